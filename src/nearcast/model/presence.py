"""Presence: what somebody who watches an area, or the surroundings of a client, is told of those who move.

This is the definition; whoever finds it faster is compared with it.  It goes by reports one after the other:

- A client is where it was last for sure (``fixes``) until its next report, and comes there on a straight way (``passage``).  On it, it may
  enter the area, leave it, and cross it: enter and leave it again between two reports.
- A client of which nothing was known before *appears*: if that is in the area, it enters it.  One whose position is forgotten, or whose session
  ends, *disappears*: if it was in the area, it leaves it.  So whoever entered leaves some day.
- It *stays* if it has been in the area for so long without leaving it.  That is known when the clock says so and no report has said otherwise,
  or when a report says that it has left meanwhile, but after long enough.  Once for each visit.
- Two clients are near each other if they are within so many metres.  When one of them moves, the other one stands where it was last for sure, and
  the way of the first may enter, leave and cross the circle around it.  It is the same whoever of the two moves: distance is symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from nearcast.model.area import Area, Circle
from nearcast.model.geometry import Point, computed_point
from nearcast.model.passage import Passage, Visit, passages_of, visits
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


def meeting(metres: float, standing: Point, way: Way) -> tuple[Passage, ...]:
    """The same between somebody who moves and somebody who stands, for who wants to know of those within so many metres."""
    return happening(Circle(metres, standing), way)


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
