"""What an application on a host sees: publish and subscribe, whatever carries the events (BYPASS.KOM 4.2.1)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from nearcast.filtering.location import LocationRequest
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Cancellable

__all__ = ["EventService", "LocationRequest", "Notify", "Tally"]

Notify = Callable[[Event], None]


class Tally:
    """To be notified, for who wants to know only how many events there were: it need not be called when they come."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _event: Event) -> None:
        self.count += 1


class EventService(Component):
    """The application's interface; every mechanism that carries events offers it."""

    @abstractmethod
    def publish(self, event: Event, *, local: bool = False) -> None:
        """Publish.

        ``local`` says that the event's place is where this host is now: those nearby can be reached without infrastructure.
        """

    @abstractmethod
    def subscribe(
        self, subscription: Subscription, notify: Notify, request: LocationRequest | None = None
    ) -> Cancellable:
        """Have ``notify`` called for every event that passes the subscription, once for each event.

        A subscription around the own position needs ``request``; it ends when the last subscription that asked for it is
        cancelled.
        """
