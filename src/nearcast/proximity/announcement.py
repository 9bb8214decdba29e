"""Announcements: an event type with its proximity, and the identifier of the group in which it is spread (STEAM 3, 4.4).

``Proximity = Area(shape, dimensions, reference point), anchor``.  The reference point of the model's shapes is their centre;
an ``Outline`` has it wherever its ring says.  A proximity is stationary, or moves with whoever announced it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import msgspec

from nearcast.errors import InvalidEvent
from nearcast.model.area import Area
from nearcast.model.area_text import area_in, area_text
from nearcast.model.event import Proximity
from nearcast.model.geometry import Point, distance
from nearcast.proximity.event_type import EventType

IDENTIFIER_BYTES: Final = 3
LatLon = tuple[float, float]


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    """Make one with ``announcement_of``; it travels in beacons as it is."""

    event_type: EventType
    area: str
    """As ``model.area_text`` writes it."""

    anchor: LatLon | None
    """Where a relative area lies; of one that moves, where it lay when it was announced, which never changes."""

    moves: bool
    wanted: bool = False
    """A consumer's: it wants all events of that subject from inside the area (STEAM 3.2, "future work")."""

    def __post_init__(self) -> None:
        area = area_in(self.area)
        if area.is_relative and self.anchor is None:
            raise InvalidEvent(f"the area of the proximity for {self.subject!r} lies nowhere: it needs an anchor")
        if self.moves and not area.is_relative:
            raise InvalidEvent(f"the area of the proximity for {self.subject!r} is absolute and cannot move")

    @property
    def subject(self) -> str:
        return self.event_type.subject

    @property
    def description(self) -> str:
        """The text that identifies the pair, the same for everybody and for ever (STEAM 4.4, Fig. 5)."""
        return msgspec.json.encode(self).decode()

    def reach(self, at: Point | None) -> Area:
        """The area now that whoever announced it is there."""
        if not self.moves:
            return _stationary(self.area, self.anchor)
        if at is None:
            raise InvalidEvent(f"the proximity for {self.subject!r} moves, and it is not known where it is")
        return area_in(self.area).anchored(at)


@lru_cache(maxsize=1_024)
def _stationary(area: str, anchor: LatLon | None) -> Area:
    found = area_in(area)
    return found.anchored(point_of(anchor)) if found.is_relative else found


def announcement_of(
    event_type: EventType, area: Area, anchor: Point | None, position: Point | None, *, wanted: bool = False
) -> Announcement:
    """``position`` is where the announcer is: the first anchor of a proximity that moves with it."""
    proximity = Proximity(event_type.subject, area, anchor)
    first = anchor or (position if proximity.moves else None)
    if proximity.moves and first is None:
        raise InvalidEvent(
            f"the proximity for {event_type.subject!r} moves with its producer, whose position is not known; "
            "give it an anchor, or announce it when there is a fix"
        )
    return Announcement(event_type, area_text(area), lat_lon(first), proximity.moves, wanted)


def identifier(description: str) -> int:
    """24 bits of a text, computed locally and alike by everybody.

    STEAM combines a function of Preiss with a multiplier, whose constants are not in the paper; all that matters is that they
    scatter, and BLAKE2 does.
    """
    return int.from_bytes(hashlib.blake2b(description.encode(), digest_size=IDENTIFIER_BYTES).digest(), "big")


def range_from(position: Point, reach: Area) -> float:
    """P_R: metres from a producer to the farthest point that the area may have (STEAM 4.3)."""
    center = reach.fixed_center()
    return reach.bounding_radius() + distance(position, center)


def lat_lon(point: Point | None) -> LatLon | None:
    return None if point is None else (point.lat, point.lon)


def point_of(place: LatLon | None) -> Point:
    if place is None:
        raise InvalidEvent("there is no place")
    return Point(*place)
