"""Presence: what somebody who watches an area, or the surroundings of a client, is told of those who move.

This is the definition; whoever finds it faster is compared with it.  It goes by reports one after the other:

- A client is where it was last for sure (``fixes``) until its next report, and comes there on a straight way (``passage``).  On it, it may
  enter the area, leave it, and cross it: enter and leave it again between two reports.
- A client of which nothing was known before *appears*: if that is in the area, it enters it.  One whose position is forgotten, or whose session
  ends, *disappears*: if it was in the area, it leaves it.  So whoever entered leaves some day.
- It *stays* if it has been in the area for so long without leaving it.  That is known when the clock says so and no report has said otherwise,
  or when a report says that it has left meanwhile, but after long enough.  Once for each visit.
- Two clients are near each other if they are within so many metres.  When a report says on which way one of them has come, the other one was
  meanwhile on those ways that it has reported already, and has stood at the end of them since.  So two who have passed each other are told of it
  with the second of both reports, although neither way leads past where the other one stood: what counts is how they moved as seen from each other,
  straight between any two reports.  Before and after the way they are near or not as the last reports say, which is what was told.  A meeting
  that was told with the first report, since the other one was thought to stand, is not told again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from nearcast.model.area import Area, Circle
from nearcast.model.geometry import Point, computed_point, offset
from nearcast.model.passage import AT_ONCE, Passage, Visit, chord, passages_of, visits, with_ends
from nearcast.model.time import Instant


class Kind(StrEnum):
    """What one may be told of."""

    ENTER = "enter"
    LEAVE = "leave"
    CROSS = "cross"
    STAY = "stay"
    NEAR = "near"


@dataclass(frozen=True, slots=True)
class Way:
    """From where a client was last for sure to where it is, and when; from or to nowhere: it appears, or disappears."""

    before: Point | None
    left: Instant
    after: Point | None
    came: Instant

    def at(self, share: float) -> Instant:
        """When so much of the way lay behind."""
        return self.left + round(share * (self.came - self.left))

    def share(self, at: Instant) -> float:
        """The other way round, for an instant on the way."""
        length = self.came - self.left
        return 1.0 if length == 0 else min(1.0, max(0.0, (at - self.left) / length))

    def place(self, share: float) -> Point:
        """Where that was; between reports some centimetres beside the way that counts, which is straight in another plane."""
        if self.before is None or self.after is None:
            known = self.after or self.before
            assert known is not None
            return known
        if share >= 1.0:
            return self.after
        turn = 0.0
        if abs(self.after.lon - self.before.lon) > 180.0:
            turn = 360.0 if self.after.lon < self.before.lon else -360.0
        lon = self.before.lon + share * (self.after.lon + turn - self.before.lon)
        lon = lon - 360.0 if lon >= 180.0 else lon + 360.0 if lon < -180.0 else lon
        return computed_point(self.before.lat + share * (self.after.lat - self.before.lat), lon)


def visits_on(area: Area, way: Way) -> tuple[Visit, ...]:
    """Its visits on the way; of one that appears or disappears there, the end or the beginning."""
    if way.before is not None and way.after is not None:
        return visits(area, way.before, way.after)
    if way.after is not None:
        return APPEARS if area.covers(way.after) else ()
    return DISAPPEARS if way.before is not None and area.covers(way.before) else ()


APPEARS: tuple[Visit, ...] = ((1.0, 1.0),)
DISAPPEARS: tuple[Visit, ...] = ((0.0, 1.0 - 2**-53),)
"""All of the way, and in the end not any more."""


def happening(area: Area, way: Way) -> tuple[Passage, ...]:
    """All that happens on the way; ``enter``, ``leave`` and ``cross`` in their order."""
    return tuple(passage for visit in visits_on(area, way) for passage in passages_of(visit))


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where somebody was whom somebody else may have met on a way."""

    point: Point
    """Where it is known to be last; it has stood there since."""

    ways: tuple[Way, ...] = ()
    """The newest of those that led there, one behind the other, oldest first; before them it stood where they begin."""

    def at(self, when: Instant) -> Point:
        if not self.ways:
            return self.point
        way = self.ways[bisect_left(self.ways, when, hi=len(self.ways) - 1, key=_came)]
        return way.place(way.share(when))


def met_on(metres: float, other: Whereabouts, way: Way, own: tuple[Way, ...] = ()) -> tuple[Visit, ...]:
    """When somebody on its way was within so many metres of somebody else, who may have moved meanwhile; ``own`` are its ways before that one.

    The other one may have reported a way on which it came to, or went from where this one was last.  That was told then, and is not told again.
    """
    found, before = _near_on(metres, other, way), way.before
    if before is None or not found or not other.ways:
        return found
    if len(found) > 1 and found[0] == (0.0, 0.0):
        found = (0.0, found[1][1]), *found[2:]  # it was told to be near before it was
    earlier = Whereabouts(before, own)
    seen = ((each, _near_on(metres, earlier, each)) for each in _meanwhile(other, way))
    # Of what was told then, that counts for which this one was thought to stand.
    left_then = [
        (each, entered > 0.0)
        for each, then in seen
        for entered, left in then
        if left < 1.0 and each.at(left) > way.left
    ]

    def is_told(entered: float, left: float) -> bool:
        since, until = way.at(entered), way.at(left)
        return any(
            (crossed or entered == AT_ONCE) and each.left < until and each.came > since for each, crossed in left_then
        )

    return tuple(
        (entered, left) for entered, left in found if entered <= 0.0 or left >= 1.0 or not is_told(entered, left)
    )


def _near_on(metres: float, other: Whereabouts, way: Way) -> tuple[Visit, ...]:
    circle, meanwhile = Circle(metres, other.point), _meanwhile(other, way)
    before, after = way.before, way.after
    if before is None or after is None or not meanwhile:
        return visits_on(circle, way)
    turns = {turn for each in meanwhile for turn in (each.left, each.came) if way.left < turn < way.came}
    found: list[Visit] = []
    for since, until in pairwise([way.left, *sorted(turns), way.came]):
        first, last = way.share(since), way.share(until)
        began = offset(other.at(since), way.place(first))
        ended = offset(other.at(until), way.place(last))
        entered, left = chord(*began, *ended, metres)
        if entered <= left:  # at its ends the same numbers as those of the pieces beside it
            found.append((_between(first, last, entered), _between(first, last, left)))
    return with_ends(found, first=circle.covers(before), last=circle.covers(after))


def _meanwhile(other: Whereabouts, way: Way) -> list[Way]:
    return [each for each in other.ways if each.came > way.left and each.left < way.came]


def meeting(metres: float, other: Whereabouts, way: Way, own: tuple[Way, ...] = ()) -> tuple[Passage, ...]:
    """The same between two clients, for who wants to know of those within so many metres."""
    return tuple(passages_in(met_on(metres, other, way, own)))


def _came(way: Way) -> Instant:
    return way.came


def _between(first: float, last: float, share: float) -> float:
    return last if share >= 1.0 else first + share * (last - first)


@dataclass(slots=True)
class Stay:
    """A visit that is not over, of somebody who may stay for long."""

    since: Instant
    told: bool = False


def stays_on(
    found: tuple[Visit, ...], way: Way, length: int, before: Stay | None
) -> tuple[list[tuple[float, Instant]], Stay | None]:
    """Stays of so many microseconds that the report at the end of the way makes known, as shares and instants; and the visit that goes on.

    ``before`` is the visit that was going on; none: it was outside, or nobody has looked.
    """
    told: list[tuple[float, Instant]] = []
    now: Stay | None = None
    for entered, left in found:
        current = before if entered <= 0.0 and before is not None else Stay(way.at(entered))
        if left < 1.0:
            due = current.since + length
            if not current.told and due <= way.at(left):
                told.append((way.share(due), due))
        else:
            now = current
    return told, now


def still_there(visit: Stay, length: int, clock: Instant) -> bool:
    """Whether it is time to tell that somebody stays, of whom no report has said otherwise."""
    return not visit.told and clock >= visit.since + length


def passages_in(found: tuple[Visit, ...]) -> Iterator[Passage]:
    for visit in found:
        yield from passages_of(visit)
