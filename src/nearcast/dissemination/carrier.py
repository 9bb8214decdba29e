"""One way for events to travel, and the service that uses one or several of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from nearcast.dissemination.inbox import Inbox, Interest
from nearcast.dissemination.publisher import EventService, LocationRequest, Notify
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable


class Carrier(Component):
    """A mechanism that takes events from here to others, and brings those of others."""

    inbox: Inbox
    """To be told of each event that reaches this host, the path it took and how many hops; set by the service."""

    @abstractmethod
    def carry(self, event: Event, *, local: bool) -> None:
        """Send the event on its way; ``local`` as in ``EventService.publish``."""

    def interested(self, interest: Interest) -> None:
        """This host has a new interest: a carrier whose events are chosen elsewhere says so there."""

    def uninterested(self, subscription_id: str) -> None:
        """An interest of this host has ended."""


class CarriedEvents(EventService):
    """Events over all of the carriers; whatever way the first copy comes, the application sees it once.

    The carriers are components of the same host, after this one.
    """

    def __init__(self, carriers: Sequence[Carrier]) -> None:
        self._carriers: Final = tuple(carriers)
        self.inbox: Inbox

    def start(self, host: Host) -> None:
        self.inbox = Inbox(host)
        for carrier in self._carriers:
            carrier.inbox = self.inbox

    def publish(self, event: Event, *, local: bool = False) -> None:
        for carrier in self._carriers:
            carrier.carry(event, local=local)

    def subscribe(
        self, subscription: Subscription, notify: Notify, request: LocationRequest | None = None
    ) -> Cancellable:
        interest = Interest(subscription, notify, request)
        for carrier in self._carriers:
            carrier.interested(interest)
        return self.inbox.add(interest, self._ended)

    def _ended(self, subscription_id: str) -> None:
        for carrier in self._carriers:
            carrier.uninterested(subscription_id)
