"""The receiving end of every mechanism: each event once, and only what was asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.publisher import LocationRequest, Notify
from nearcast.model.delivery import in_area, within_reach
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER
from nearcast.model.topic import topic_matches
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Cancellable

DELIVERED: Final = "delivered"
DUPLICATE: Final = "duplicate"
UNWANTED: Final = "unwanted"
REMEMBERED: Final = 10_000
"""Events whose copies are recognised; at ten events a second, a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription of this host."""

    subscription: Subscription
    notify: Notify
    request: LocationRequest | None


@dataclass(frozen=True, slots=True)
class InboxStatistics:
    delivered: int
    duplicates: int
    unwanted: int


class Inbox:
    """The interests of one host, the last check against them, and the memory of what came already."""

    def __init__(self, host: Host) -> None:
        self.interests: Final[dict[str, Interest]] = {}
        self._host: Final = host
        self._now: Final = host.clock.now
        self._name: Final = host.name
        self._position: Final = host.sensor.position if host.sensor else _nowhere
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._counts = {DELIVERED: 0, DUPLICATE: 0, UNWANTED: 0}
        self._notifications: Final = host.observers.emitter("notifications")
        # No table of the records: for whoever wants to know what a client wants, before any broker knows.
        self._taken: Final = host.observers.emitter("interests")

    def add(self, interest: Interest, cancelled: Callable[[str], None] | None = None) -> Cancellable:
        """Take an interest, in place of an earlier one of that id; ``cancelled(id)`` is called when it ends."""
        self.interests[interest.subscription.id] = interest
        self._taken(self._host.name, interest.subscription.id, interest.subscription)
        return _Held(self, interest, cancelled)

    def end(self, interest: Interest) -> bool:
        """Give an interest up; false if it has ended already."""
        name = interest.subscription.id
        if self.interests.get(name) is not interest:
            return False
        del self.interests[name]
        self._taken(self._host.name, name, None)
        return True

    def has(self, event: str) -> bool:
        """Whether a copy of that event came before."""
        return event in self._seen

    def receive(self, event: Event, path: str, hops: int) -> None:
        """A copy of an event has reached this host."""
        outcome = self._judge(event)
        self._counts[outcome] += 1
        now = self._now()
        delay = now - event.published
        self._notifications(now, event.id, self._name, path, outcome, delay if delay > 0 else 0, hops)

    def statistics(self) -> InboxStatistics:
        return InboxStatistics(self._counts[DELIVERED], self._counts[DUPLICATE], self._counts[UNWANTED])

    def _judge(self, event: Event) -> str:
        if event.id in self._seen:
            return DUPLICATE
        self._seen[event.id] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        position, outcome = self._position(), UNWANTED
        for interest in tuple(self.interests.values()):  # who is notified may end an interest
            if wanted(interest.subscription, event, self._name, position):
                outcome = DELIVERED
                interest.notify(event)
        return outcome


def _nowhere() -> None:
    """The position of a host without a sensor."""


@dataclass(eq=False, slots=True)
class _Held(Cancellable):
    inbox: Inbox
    interest: Interest
    cancelled: Callable[[str], None] | None

    def cancel(self) -> None:
        if self.inbox.end(self.interest) and self.cancelled:
            self.cancelled(self.interest.subscription.id)


def wanted(subscription: Subscription, event: Event, client: str, position: Point | None) -> bool:
    """The last check: whether the subscription of a client that is there now accepts the event.

    The same meaning as ``model.delivery.interested``, for the one who knows its own position best.
    """
    return (
        not (subscription.no_local and event.publisher == client)
        and (subscription.topic == event.topic or topic_matches(subscription.topic, event.topic))
        and (subscription.frame is EVER or subscription.frame.contains(event.published))
        and in_area(subscription.area, event.place, position)
        and (event.reach is None or within_reach(event.reach, position))
        and (subscription.where is None or evaluate(subscription.where, event.properties()) is True)
    )
