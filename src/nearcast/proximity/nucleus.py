"""The event service nucleus (STEAM 4.1): announcements, subscriptions and the filter engine of one device.

However an event comes, over the air or through an uplink, it passes here: each event once, in time, in order if that was
promised, for whoever stands where it matters and wants its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.model.area import Area
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION
from nearcast.model.predicate import DistanceDecreases, Predicate, atoms_of
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.proximity.announcement import Announcement
from nearcast.proximity.cache import Cache
from nearcast.proximity.event_type import Attributes, Order
from nearcast.proximity.messages import Stream
from nearcast.proximity.settings import ProximitySettings
from nearcast.proximity.streams import InOrder, Numbers
from nearcast.proximity.whereabouts import Bearings, OwnTrack
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Fix

Handler = Callable[[Event], None]
DELIVERED, DUPLICATE, LATE, OUTSIDE = "delivered", "duplicate", "late", "outside"
FILTERED, FOREIGN, OVERTAKEN, RECOVERED = "filtered", "foreign", "overtaken", "recovered"
FORGOTTEN: Final = 600 * MICROSECONDS
FRESH: Final = MICROSECONDS // 20
"""Within so short a time nobody gets far."""


@dataclass(eq=False, slots=True)
class Local:
    """An announcement of this device."""

    announcement: Announcement
    group: int
    latest: int
    """The number of its newest event."""

    beacons: int = 0


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription of this device."""

    subject: str
    handler: Handler
    where: Predicate | None
    area: Area | None = None
    """Its own proximity: events from inside it are wanted, too."""

    def points(self) -> tuple[str | None, ...]:
        """The parameters of which the filter asks whether they come nearer; none: the producer."""
        if self.where is None:
            return ()
        return tuple(atom.property for atom in atoms_of(self.where) if isinstance(atom, DistanceDecreases))


class Nucleus:
    """What both mechanisms share; it outlives an exchange of them, and so nothing is lost or doubled by one."""

    def __init__(self, host: Host, settings: ProximitySettings) -> None:
        self.host: Final = host
        self.settings: Final = settings
        self.locals: Final[dict[str, Local]] = {}
        """By subject."""

        self.wanted: Final[dict[Interest, Local]] = {}
        """Proximities of consumers on this device."""

        self.interests: Final[dict[str, tuple[Interest, ...]]] = {}
        """By subject."""

        self.cache: Final = Cache()
        self.counts: Final[Counter[str]] = Counter()
        self._track: Final = OwnTrack()
        self._bearings: Final = Bearings()
        self._numbers: Final[dict[Stream, Numbers]] = {}
        self._orders: Final[dict[Stream, InOrder]] = {}

    # Where this device is

    def fix(self) -> Fix | None:
        """The newest one, which is remembered."""
        fix = self.host.sensor.fix() if self.host.sensor else None
        if fix is not None:
            self._track.note(self.host.now(), fix.position)
        return fix

    def position(self) -> Point | None:
        fix = self.fix()
        return fix.position if fix else None

    def heard_of(self, stream: Stream, place: Point) -> None:
        """A beacon said where the producer is."""
        here = self.position()
        if here is not None:
            self._bearings.note((*stream, None), self.host.now(), place, here)

    # What is wanted

    def add(self, interest: Interest) -> None:
        self.interests[interest.subject] = (*self.interests.get(interest.subject, ()), interest)

    def remove(self, interest: Interest) -> None:
        left = tuple(each for each in self.interests[interest.subject] if each is not interest)
        if left:
            self.interests[interest.subject] = left
            return
        del self.interests[interest.subject]
        for (_, subject), numbers in self._numbers.items():
            if subject == interest.subject:
                numbers.since = None  # what is raised from now on is not due

    # What came and what should have come

    def numbers(self, stream: Stream) -> Numbers:
        numbers = self._numbers.setdefault(stream, Numbers())
        numbers.heard = self.host.now()
        return numbers

    def forget(self) -> None:
        """Producers of which nothing was heard for long: a device that travels meets ever new ones."""
        oldest = self.host.now() - FORGOTTEN
        self._bearings.forget(oldest)
        for stream in [stream for stream, numbers in self._numbers.items() if numbers.heard < oldest]:
            if stream not in self._orders or self._orders[stream].is_empty:
                del self._numbers[stream]
                self._orders.pop(stream, None)

    def arrived(self, event: Event, number: int, attributes: Attributes, *, again: bool = False) -> str:
        """A copy of an event has reached this device: what became of it."""
        outcome = self._arrived(event, number, attributes)
        if outcome != DELIVERED:  # one that is delivered, perhaps later, is counted then
            self.counts[outcome] += 1
        elif again:
            self.counts[RECOVERED] += 1
        return outcome

    def _arrived(self, event: Event, number: int, attributes: Attributes) -> str:
        stream = event.publisher or "", event.topic
        numbers = self.numbers(stream)
        if not numbers.take(number):
            return DUPLICATE
        fix, now = self.fix(), self.host.now()
        late = _is_late(event, attributes, now)
        where = self._was(fix, event) if fix else None
        concerned = () if late or where is None else self._concerned(event, where)
        if attributes.order is Order.PRODUCER:
            wanted = event if concerned else None
            if not self._order(stream, attributes).add(number, wanted, numbers.since):
                return OVERTAKEN
        elif concerned and fix is not None and where is not None:
            self._deliver(event, concerned, fix, where)
        return DELIVERED if concerned else LATE if late else OUTSIDE

    def _was(self, fix: Fix, event: Event) -> Point:
        """Where this device was when the event was raised, which is what counts (``model.delivery``): it may come late."""
        if self.host.now() - event.published <= FRESH:
            return fix.position
        return self._track.at(event.published) or fix.position

    def _concerned(self, event: Event, where: Point) -> tuple[Interest, ...]:
        """The interests of this device if it stands where the event matters, or where it wants to hear of it."""
        inside = event.reach is None or event.reach.covers(where)
        return tuple(each for each in self.interests.get(event.topic, ()) if inside or _wants(each, event, where))

    def _order(self, stream: Stream, attributes: Attributes) -> InOrder:
        try:
            return self._orders[stream]
        except KeyError:
            order = InOrder(
                self.host.timers, self.settings.patience, lambda event: self._deliver_in_turn(event, attributes)
            )
            self._orders[stream] = order
            return order

    def _deliver_in_turn(self, event: Event, attributes: Attributes) -> None:
        fix = self.fix()
        if _is_late(event, attributes, self.host.now()):  # it waited too long for one before it
            self.counts[LATE] += 1
        elif fix is not None:
            where = self._was(fix, event)
            self._deliver(event, self._concerned(event, where), fix, where)

    def _deliver(self, event: Event, concerned: tuple[Interest, ...], fix: Fix, where: Point) -> None:
        properties = {**event.properties(), POSITION: where}
        approaching = _Approaching(self._bearings, event, fix, self.host.now())
        matched = False
        for interest in concerned:
            if interest.where is None or evaluate(interest.where, properties, approaching) is True:
                matched = True
                interest.handler(event)
        self._note(event, where)
        self.counts[DELIVERED if matched else FILTERED] += 1

    def _note(self, event: Event, here: Point) -> None:
        stream = event.publisher or "", event.topic
        asked = {name for each in self.interests.get(event.topic, ()) for name in each.points()}
        for name in asked:
            place = event.place if name is None else event.attributes.get(name)
            if isinstance(place, Point):
                self._bearings.note((*stream, name), self.host.now(), place, here)


@dataclass(frozen=True, slots=True)
class _Approaching:
    """Answers ``distance decreases`` for one event."""

    bearings: Bearings
    event: Event
    fix: Fix
    now: Instant

    def __call__(self, name: str | None) -> bool | None:
        place = self.event.place if name is None else self.event.attributes.get(name)
        if not isinstance(place, Point):
            return None
        what = self.event.publisher or "", self.event.topic, name
        return self.bearings.approaching(what, self.now, place, self.fix)


def _is_late(event: Event, attributes: Attributes, now: Instant) -> bool:
    age = now - event.published
    deadline, lifetime = attributes.deadline, event.lifetime
    return (deadline is not None and age > deadline * MICROSECONDS) or (lifetime is not None and age >= lifetime)


def _wants(interest: Interest, event: Event, where: Point) -> bool:
    return interest.area is not None and event.place is not None and interest.area.covers_from(where, event.place)
