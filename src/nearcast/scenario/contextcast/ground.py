"""The square on which routers and people are: its lower left corner lies where the equator meets the meridian of Greenwich.

There, a degree is as long in both directions, so that rectangles in metres are rectangles in degrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nearcast.model.area import Box
from nearcast.model.geometry import EARTH_RADIUS, Point, computed_point
from nearcast.overlay.topology.models import Rectangle

METRES_PER_DEGREE: Final = math.radians(1.0) * EARTH_RADIUS


@dataclass(frozen=True, slots=True)
class Ground:
    """A square with edges of so many metres."""

    edge: float = 10_000.0

    def point(self, x: float, y: float) -> Point:
        """Metres east and north of the corner."""
        return computed_point(y / METRES_PER_DEGREE, x / METRES_PER_DEGREE)

    def box(self, rectangle: Rectangle) -> Box:
        """Of a rectangle on the unit square."""
        return self.rectangle(*(side * self.edge for side in rectangle))

    def rectangle(self, west: float, south: float, east: float, north: float) -> Box:
        """Metres."""
        corner, other = self.point(west, south), self.point(east, north)
        return Box(corner.lon, corner.lat, other.lon, other.lat)
