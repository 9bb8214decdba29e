"""The receiving end of every mechanism: each event once, and only what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.publisher import LocationRequest, Notify
from nearcast.model.acceptance import accepted, wanted
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
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

    # Hundreds of inboxes take turns: what lies together is fetched together.
    __slots__ = (
        "_counts",
        "_held",
        "_host",
        "_name",
        "_notifications",
        "_now",
        "_older",
        "_position",
        "_recent",
        "_surely_within",
        "_taken",
        "_turn",
        "interests",
    )

    def __init__(self, host: Host) -> None:
        self.interests: Final[dict[str, Interest]] = {}
        self._host: Final = host
        self._now: Final = host.clock.now
        self._name: Final = host.name
        self._position: Final = host.sensor.position if host.sensor else _nowhere
        self._surely_within: Final = host.sensor.surely_within if host.sensor else _never_sure
        # As they were when an event came: who is notified may end an interest.
        self._held: tuple[_Check, ...] = ()
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
        self._held = tuple(map(_check, self.interests.values()))
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
        self._held = tuple(map(_check, self.interests.values()))
        self._taken(self._host.name, name, None)
        return True

    def has(self, event: str) -> bool:
        """Whether a copy of that event came before."""
        return event in self._recent or event in self._older

    def receive(self, event: Event, path: str, hops: int) -> None:
        """A copy of an event has reached this host."""
        now, name, outcome = self._now(), event.id, UNWANTED
        if now >= self._turn:
            # After a long silence, what was recent is too old as well.
            self._older = self._recent if now < self._turn + REMEMBERED else set()
            self._recent, self._turn = set(), now + REMEMBERED
        if name in self._recent or name in self._older:
            outcome = DUPLICATE
        else:
            self._recent.add(name)
            place = event.place if event.reach is None else None
            position: Point | None = None
            asked = False
            for subscription, notify, metres in self._held:
                if place is not None and metres is not None and self._surely_within(metres, place):
                    # In the right place, beyond doubt: no need to know where exactly.
                    wants = accepted(subscription, event, self._name)
                else:
                    if not asked:  # once for all interests: a sensor with errors says something else each time
                        position, asked = self._position(), True
                    wants = wanted(subscription, event, self._name, position)
                if wants:
                    outcome = DELIVERED
                    notify(event)
        self._counts[outcome] += 1
        delay = now - event.published
        self._notifications(now, name, self._name, path, outcome, delay if delay > 0 else 0, hops)

    def statistics(self) -> InboxStatistics:
        return InboxStatistics(self._counts[DELIVERED], self._counts[DUPLICATE], self._counts[UNWANTED])


_Check = tuple[Subscription, Notify, float | None]
"""What the last check needs of an interest; the metres are those around this host, if its area is such a circle."""


def _check(interest: Interest) -> _Check:
    area = interest.subscription.area
    around = area.radius if isinstance(area, Circle) and area.center is None else None
    return interest.subscription, interest.notify, around


def _nowhere() -> None:
    """The position of a host without a sensor."""


def _never_sure(_metres: float, _place: Point) -> bool:
    return False


@dataclass(eq=False, slots=True)
class _Held(Cancellable):
    inbox: Inbox
    interest: Interest
    cancelled: Callable[[str], None] | None

    def cancel(self) -> None:
        if self.inbox.end(self.interest) and self.cancelled:
            self.cancelled(self.interest.subscription.id)
