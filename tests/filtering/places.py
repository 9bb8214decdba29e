"""Places and small worlds for the tests of filter schemes."""

from __future__ import annotations

import math

from nearcast.filtering.tessellation import GeoBox
from nearcast.model.geometry import EARTH_RADIUS, Point

METRES_PER_DEGREE = math.radians(1.0) * EARTH_RADIUS


def away(start: Point, bearing: float, metres: float) -> Point:
    """The place ``metres`` from the start along a great circle, ``bearing`` in degrees clockwise from north."""
    lat, turn, angle = math.radians(start.lat), math.radians(bearing), metres / EARTH_RADIUS
    # As a vector whose first axis points to the start's meridian and whose third to the pole: exact also near the poles.
    x = math.cos(lat) * math.cos(angle) - math.sin(lat) * math.sin(angle) * math.cos(turn)
    y = math.sin(angle) * math.sin(turn)
    z = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(turn)
    lon = start.lon + math.degrees(math.atan2(y, x))
    return Point(math.degrees(math.atan2(z, math.hypot(x, y))), (lon + 180.0) % 360.0 - 180.0)


def town(metres: float, lat: float = 49.872, lon: float = 8.652) -> GeoBox:
    """A square world with a place in its middle."""
    height = metres / 2 / METRES_PER_DEGREE
    width = height / math.cos(math.radians(lat))
    return GeoBox(lat - height, lon - width, lat + height, lon + width)
