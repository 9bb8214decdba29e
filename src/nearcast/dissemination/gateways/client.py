"""Gateways, the part on every client: pass on what the broker asks to, and acknowledge what others have passed on.

A gateway keeps nothing of an event that it has passed on.  A member remembers for a moment what it is to acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.cloud_messages import HOPS as CLOUD_HOPS
from nearcast.dissemination.cloud_messages import PATH as CLOUD
from nearcast.dissemination.gateways.messages import (
    AGAIN,
    HOPS,
    PATH,
    PORT,
    TO_CLIENT,
    Acknowledgement,
    Registered,
    Registration,
    Relay,
)
from nearcast.dissemination.inbox import DELIVERED, DUPLICATE, Interest
from nearcast.dissemination.wire import EventMessage, event_in
from nearcast.model.event import Event
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Endpoint

AT_MOST: Final = 64
"""So many events are acknowledged in one message."""


class LocalSpreading(Protocol):
    """How a gateway reaches those nearby: a dissemination mechanism of its own, apart from that for local events (BYPASS.KOM 4.4)."""

    arrived: Callable[[EventMessage, int], None]
    """To be told of what comes this way, of each event once at least, and over how many local hops; set by the gateway's part."""

    def spread(self, message: EventMessage, targets: tuple[Address, ...] | None) -> None:
        """Bring it to these local addresses; none: to whoever hears it."""


@dataclass(frozen=True, slots=True)
class GatewayClientStatistics:
    relayed: int
    """Events that this client was a gateway for."""

    overheard: int
    """What came from gateways."""

    acknowledged: int
    """Events."""

    acknowledgements: int
    """Messages."""


class GatewayClient(Carrier):
    """Carries nothing by itself; among the carriers, because it brings events and speaks when there is an interest."""

    def __init__(
        self,
        broker: Address,
        spreading: LocalSpreading,
        interface: str = "cellular",
        local_interface: str = "wifi",
        again: float = AGAIN,
    ) -> None:
        """``again``: seconds after which it registers once more, in case that the broker has forgotten it."""
        self._broker: Final = broker
        self._spreading: Final = spreading
        self._interface: Final = interface
        self._local_interface: Final = local_interface
        self._again: Final = again
        self._interests: Final[dict[str, None]] = {}
        self._window: float | None = None
        """None: nobody wants acknowledgements, as far as is known."""

        self._unwanted_too = False
        self._due: dict[str, None] = {}
        self._recent: dict[str, None] = {}
        self._earlier: dict[str, None] = {}
        """What was acknowledged, or needs not be, in this window and the one before: several gateways may reach a member."""

        self._turning = self._registered = False
        self._relayed = self._overheard = self._acknowledged = self._sent = 0
        self._host: Host
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = host.link(self._interface).open(PORT, self._receive, *TO_CLIENT)
        self._spreading.arrived = self._arrived
        host.timers.every(self._again, self._register)

    def statistics(self) -> GatewayClientStatistics:
        return GatewayClientStatistics(self._relayed, self._overheard, self._acknowledged, self._sent)

    # The application's side

    def carry(self, event: Event, *, local: bool) -> None:
        """Events of this host go other ways."""

    def interested(self, interest: Interest) -> None:
        first = not self._interests
        self._interests[interest.subscription.id] = None
        if first:
            self._register()

    def uninterested(self, subscription_id: str) -> None:
        self._interests.pop(subscription_id, None)

    def _register(self) -> None:
        if self._interests:
            local = self._host.link(self._local_interface).address
            self._endpoint.send(self._broker, Registration(local, anew=not self._registered))
            self._registered = True

    # The broker's side

    def _receive(self, _sender: Address, message: Relay | Registered) -> None:
        if isinstance(message, Registered):
            self._window, self._unwanted_too = message.window, message.unwanted_too
            return
        self._relayed += 1
        self.inbox.receive(event_in(message.event), CLOUD, CLOUD_HOPS)
        self._remember(message.event.id)  # another gateway may reach this one; nobody waits for that
        self._spreading.spread(message.event, message.targets)

    # The local side

    def _arrived(self, message: EventMessage, hops: int) -> None:
        self._overheard += 1
        event = event_in(message)
        outcome = self.inbox.receive(event, PATH, HOPS + hops)
        if self._window is None or message.id in self._recent or message.id in self._earlier:
            return
        self._remember(message.id)
        # Many hear what is not for them, also after it came another way, and nobody waits for their answer.  Of those it is for, few do
        # not want it any more: to tell them in vain costs less than if everybody answered.  Unless they are known by channels only.
        if self._unwanted_too or outcome == DELIVERED or (outcome == DUPLICATE and self.inbox.wants(event)):
            self._due[message.id] = None
            if len(self._due) == AT_MOST:
                self._acknowledge()

    def _remember(self, event: str) -> None:
        if self._window is not None:
            self._recent[event] = None
            self._turn_later(self._window)

    def _turn_later(self, seconds: float) -> None:
        if not self._turning:
            self._turning = True
            self._host.timers.after(seconds, self._turn)

    def _turn(self) -> None:
        self._acknowledge()
        self._turning = False
        self._earlier, self._recent = self._recent, {}
        if self._earlier and self._window is not None:  # to be forgotten, too
            self._turn_later(self._window)

    def _acknowledge(self) -> None:
        if self._due:
            self._acknowledged += len(self._due)
            self._sent += 1
            self._endpoint.send(self._broker, Acknowledgement(tuple(self._due)))
            self._due = {}
