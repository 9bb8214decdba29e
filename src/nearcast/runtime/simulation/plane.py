"""The plane on which a simulated world is drawn: metres east and north of its origin.

Azimuthal equidistant around the origin, as everywhere in nearcast (``model.geometry.offset``).  Within 10 km of the origin
its distances differ from great-circle metres by less than one part in a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import atan2, cos, degrees, hypot, sin
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.model.geometry import EARTH_RADIUS, Point, computed_point, offset

Floats = npt.NDArray[np.float64]
MOST_KNOWN: Final = 4_096
"""Points whose places in the plane are remembered."""


class Bounds(NamedTuple):
    """A rectangle of the plane, in metres."""

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def around(cls, width: float, height: float) -> Bounds:
        """Of that size, with the origin in its middle."""
        return cls(-width / 2, -height / 2, width / 2, height / 2)

    @classmethod
    def enclosing(cls, places: Iterable[tuple[float, float]]) -> Bounds:
        """The smallest that holds all these places."""
        xs, ys = zip(*places, strict=True)
        return cls(min(xs), min(ys), max(xs), max(ys))

    @property
    def width(self) -> float:
        return self.east - self.west

    @property
    def height(self) -> float:
        return self.north - self.south

    def contains(self, x: float, y: float) -> bool:
        return self.west <= x <= self.east and self.south <= y <= self.north


@dataclass(frozen=True, slots=True)
class Plane:
    """Metres around an origin."""

    origin: Point
    _sine: float = field(init=False, repr=False, compare=False)
    _cosine: float = field(init=False, repr=False, compare=False)
    known: dict[int, tuple[Point, float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What ``known_xy`` remembers, by the identity of the point; for inner loops."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sine", math.sin(math.radians(self.origin.lat)))
        object.__setattr__(self, "_cosine", math.cos(math.radians(self.origin.lat)))

    def to_xy(self, point: Point) -> tuple[float, float]:
        return offset(self.origin, point)

    def known_xy(self, point: Point) -> tuple[float, float]:
        """As ``to_xy``, for one and the same point that is asked for again and again, such as the place of an event."""
        # By identity: to hash a point costs more than all the rest.  Kept, it cannot lend its identity to another.
        known = self.known.get(id(point))
        if known is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            known = self.known[id(point)] = (point, *self.to_xy(point))
        return known[1], known[2]

    def to_point(self, x: float, y: float) -> Point:
        """The inverse of ``to_xy``: go ``hypot(x, y)`` metres along a great circle."""
        angle = hypot(x, y) / EARTH_RADIUS
        ratio = sin(angle) / angle / EARTH_RADIUS if angle else 1 / EARTH_RADIUS
        along, sine0, cosine0 = cos(angle), self._sine, self._cosine
        east, north = x * ratio, cosine0 * along - sine0 * y * ratio
        # Not the arc sine: near a pole it does not tell one decimetre from another.
        lat = degrees(atan2(sine0 * along + cosine0 * y * ratio, hypot(east, north)))
        lon = self.origin.lon + degrees(atan2(east, north))
        return computed_point(lat, lon if -180.0 <= lon < 180.0 else (lon + 180.0) % 360.0 - 180.0)

    def degrees(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Latitudes and longitudes of many places (``to_point``, for arrays)."""
        lat0 = math.radians(self.origin.lat)
        angle = np.hypot(x, y) / EARTH_RADIUS
        # sin(angle) / angle, also where the angle is 0.
        ratio = np.sinc(angle / np.pi) / EARTH_RADIUS
        sine = math.sin(lat0) * np.cos(angle) + math.cos(lat0) * y * ratio
        east = x * ratio
        north = math.cos(lat0) * np.cos(angle) - math.sin(lat0) * y * ratio
        lat = np.degrees(np.arctan2(sine, np.hypot(east, north)))
        lon = np.degrees(math.radians(self.origin.lon) + np.arctan2(east, north))
        lon -= 360.0 * (lon >= 180.0)
        lon += 360.0 * (lon < -180.0)
        return lat, lon

    def metres(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Metres east and north of many places (``offset``, for arrays)."""
        lat0, lats = math.radians(self.origin.lat), np.radians(lat)
        dlon = np.radians(lon - self.origin.lon)
        east = np.cos(lats) * np.sin(dlon)
        north = math.cos(lat0) * np.sin(lats) - math.sin(lat0) * np.cos(lats) * np.cos(dlon)
        length = np.hypot(east, north)
        half = np.sin((lats - lat0) / 2) ** 2 + math.cos(lat0) * np.cos(lats) * np.sin(dlon / 2) ** 2
        distance = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, half)))
        scale = np.divide(distance, length, out=np.zeros_like(length), where=length > 0)
        return east * scale, north * scale
