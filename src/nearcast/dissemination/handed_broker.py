"""The filter schemes of a broker to which MQTT brings their messages.

Sessions, subscriptions and events are the server's: MQTT knows who is there, and loses nothing within a session.  What is left to do
is to bring up who has just connected, and to follow who knows more than this broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.broker_settings import BrokerSettings, Memory
from nearcast.dissemination.cloud_messages import PROXY, Context
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.dissemination.scheme_messages import CONTEXTS, GREETINGS, INTERFACE, PORT, Hello, Inquiry, ground_of
from nearcast.errors import QuotaExceeded
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.time import Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Endpoint
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId
from nearcast.transition.specification import MechanismSpec

REMEMBERED: Final = 100
"""Transitions that are told of."""

MOST_SCHEMES: Final = 64
"""Clients may insist on schemes of their own; every event is filtered by each scheme that somebody is in."""


@dataclass(frozen=True, slots=True)
class TransitionDone:
    """A transition that this broker has carried out."""

    time: Instant
    scheme: MechanismSpec
    clients: int
    """That were to follow."""

    everybody: bool
    before: MechanismSpec | None = None
    """In which they were; none: not all in the same."""

    region: str | None = None
    """Of a plan, because of which they came to that scheme."""

    order: str | None = None
    """By which somebody asked for it; none: what decides here did, a rule."""


class HandedBroker(PlannedBroker):
    def __init__(
        self,
        territory: Territory,
        settings: BrokerSettings,
        memory: Memory,
        changed: Callable[[Collection[Address]], None],
    ) -> None:
        """``changed`` is told of whom something else is known now, or is to be done."""
        super().__init__(territory, settings, memory, INTERFACE)
        if not memory.plans:
            # A newcomer knows of no scheme but RADIAL: what runs at first is news to it, and so takes a plan.
            memory.plans = (ExecutionPlan(PlanId(1, "broker"), (Exchange(PROXY, settings.scheme),)),)
            memory.clock = max(memory.clock, 1)
        self._ground: Final = ground_of(territory)
        self._changed: Final = changed
        self.transitions: Final = deque[TransitionDone](maxlen=REMEMBERED)
        self.transitions_done = 0
        self.order: str | None = None
        """By which somebody asks for what is exchanged now."""

        self.aside: Callable[[], Callable[[], None]] = _nobody_aside
        """Asked before everybody changes, and what it answers is called afterwards: for whoever has some that are to stay where they are."""

        self._greetings: Endpoint

    def _listen(self, host: Host) -> Endpoint:
        link = host.link(self._interface)
        self._greetings = link.open(GREETINGS, self._met, Hello)
        return link.open(PORT, self._heard_from, *CONTEXTS)

    def _deliver(self, client: Address, event: Event) -> None:
        raise NotImplementedError(f"{event.id!r} for {client!r}: what waits for a client, waits in its session")

    def transition(
        self, scheme: MechanismSpec, clients: Iterable[Address] | None = None, *, region: str | None = None
    ) -> None:
        """``region``: who is in it comes to its scheme."""
        some = None if clients is None else list(dict.fromkeys(clients))
        before = self.exchange.memory.clock
        running = {self.exchange.scheme} if some is None else {self.scheme_of(client) for client in some}
        back = self.aside() if some is None else _nothing
        super().transition(scheme, some)
        if self.exchange.memory.clock > before:
            concerned = self.clients if some is None else some
            self.transitions_done += 1
            source = running.pop() if len(running) == 1 else None
            self.transitions.append(
                TransitionDone(self._host.now(), scheme, len(concerned), some is None, source, region, self.order)
            )
            self._changed(concerned)
        back()

    def greet(self, client: Address) -> None:
        """It has just connected."""
        self._greetings.send(client, self._ground)

    def _met(self, client: Address, message: Hello) -> None:
        schemes = self.schemes
        self._check_number(message.pinned)
        schemes.pin(client, message.pinned)
        if self.exchange.check_clock(client, message.clock):
            self._check_number(message.running)
            self.exchange.follow(client, message.running, message.plan)
        if message.context is not None:
            schemes.renew(client)
            schemes.take(client, message.context)
        else:
            schemes.arrived(client, message.clock)
        self._changed([client])

    def _heard_from(self, client: Address, message: Context) -> None:
        if self.schemes.hear(client, message):
            self._greetings.send(client, Inquiry())
        self._changed([client])

    def _check_number(self, asked_for: MechanismSpec | None) -> None:
        groups = self.exchange.groups()
        if asked_for is not None and asked_for not in groups and len(groups) >= MOST_SCHEMES:
            raise QuotaExceeded(f"{len(groups)} filter schemes run here for others already; choose one of them")


def _nobody_aside() -> Callable[[], None]:
    return _nothing


def _nothing() -> None:
    """Everybody means everybody."""
