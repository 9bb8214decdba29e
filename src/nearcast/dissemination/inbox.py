"""The receiving end of every mechanism: each event once, and only what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.publisher import LocationRequest, Notify
from nearcast.model.delivery import in_area, within_reach
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, MICROSECONDS, Instant
from nearcast.model.topic import topic_matches
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Cancellable

DELIVERED: Final = "delivered"
DUPLICATE: Final = "duplicate"
UNWANTED: Final = "unwanted"
REMEMBERED: Final = 60 * MICROSECONDS
"""For so long at least, and twice as long at most, copies of an event are recognised: bounded by time, not by number, so that
the memory of ten thousand clients is that of a minute."""


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
        self._recent: set[str] = set()
        self._older: set[str] = set()
        self._turn: Instant = 0
        self._counts = {DELIVERED: 0, DUPLICATE: 0, UNWANTED: 0}
        self._notifications: Final = host.observers.emitter("notifications")
        # No table of the records: for whoever wants to know what a client wants, before any broker knows.
        self._taken: Final = host.observers.emitter("interests")

    def add(self, interest: Interest, cancelled: Callable[[str], None] | None = None) -> Cancellable:
        """Take an interest, in place of an earlier one of that id; ``cancelled(id)`` is called when it ends."""
        if self._host.observers.watching:
            self._host.observers.refuse("subscribe")
        self.interests[interest.subscription.id] = interest
        self._taken(self._host.name, interest.subscription.id, interest.subscription)
        return _Held(self, interest, cancelled)

    def end(self, interest: Interest) -> bool:
        """Give an interest up; false if it has ended already."""
        if self._host.observers.watching:
            self._host.observers.refuse("unsubscribe")
        name = interest.subscription.id
        if self.interests.get(name) is not interest:
            return False
        del self.interests[name]
        self._taken(self._host.name, name, None)
        return True

    def has(self, event: str) -> bool:
        """Whether a copy of that event came before."""
        return event in self._recent or event in self._older

    def receive(self, event: Event, path: str, hops: int) -> None:
        """A copy of an event has reached this host."""
        now = self._now()
        outcome = self._judge(event, now)
        self._counts[outcome] += 1
        delay = now - event.published
        self._notifications(now, event.id, self._name, path, outcome, delay if delay > 0 else 0, hops)

    def statistics(self) -> InboxStatistics:
        return InboxStatistics(self._counts[DELIVERED], self._counts[DUPLICATE], self._counts[UNWANTED])

    def _judge(self, event: Event, now: Instant) -> str:
        if now >= self._turn:
            # After a long silence, what was recent is too old as well.
            self._older = self._recent if now < self._turn + REMEMBERED else set()
            self._recent, self._turn = set(), now + REMEMBERED
        if event.id in self._recent or event.id in self._older:
            return DUPLICATE
        self._recent.add(event.id)
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
