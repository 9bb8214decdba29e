"""Points on the earth and the distance between them.

The earth is the sphere of radius 6,371,008.8 m (the mean radius of WGS 84) and distances are great-circle
metres.  ``distance`` is the one deciding comparison of the whole project: faster code may rule points in or
out with a margin, but whatever lies within that margin is decided here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidPosition

EARTH_RADIUS: Final = 6_371_008.8
"""Metres; the same sphere that PostGIS uses with ``use_spheroid=false``."""

HALF_CIRCUMFERENCE: Final = math.pi * EARTH_RADIUS
"""The largest distance there is."""

_SLACK_DEGREES: Final = 1e-9  # a tenth of a millimetre: boxes may be too large, never too small


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the earth in degrees.  Longitude 180 is stored as -180: both name the same meridian."""

    lat: float
    lon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lat", checked_degrees(self.lat, "latitude", 90.0))
        lon = checked_degrees(self.lon, "longitude", 180.0)
        object.__setattr__(self, "lon", -180.0 if lon == 180.0 else lon)


def computed_point(lat: float, lon: float) -> Point:
    """A point whose degrees were computed, and so need no check: latitude within ±90, longitude within [-180, 180)."""
    point = _new_point(Point)
    _set_field(point, "lat", lat)
    _set_field(point, "lon", lon)
    return point


_new_point: Final = object.__new__
_set_field: Final = object.__setattr__


def checked_degrees(value: object, name: str, limit: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidPosition(f"{name} must be a number of degrees, not {value!r}")
    if not -limit <= value <= limit:  # also refuses NaN and the infinities
        raise InvalidPosition(f"{name} {value!r} is outside [-{limit:g}, {limit:g}] degrees")
    return float(value)


def checked_metres(value: object, name: str, *, positive: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidPosition(f"{name} must be a number of metres, not {value!r}")
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise InvalidPosition(f"{name} must be finite and {'positive' if positive else 'not negative'}, not {value!r}")
    return float(value)


def distance(a: Point, b: Point) -> float:
    """Great-circle metres, by the haversine formula (well conditioned for near points)."""
    return distance_degrees(a.lat, a.lon, b.lat, b.lon)


def distance_degrees(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    half_dlat = math.radians(lat2 - lat1) / 2
    half_dlon = math.radians(lon2 - lon1) / 2
    h = (
        math.sin(half_dlat) ** 2
        + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * math.sin(half_dlon) ** 2
    )
    return 2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, h)))


def offset(anchor: Point, point: Point) -> tuple[float, float]:
    """Metres east and north of ``anchor`` in the azimuthal equidistant plane around it.

    Rectangles and outlines around a moving client are drawn in this plane.  Distance and direction from the
    anchor are true in it, so neither the antimeridian nor the poles need a special case, and whatever is drawn
    within r metres of the anchor lies within r metres of it on the earth.
    """
    east, north = direction_degrees(anchor.lat, anchor.lon, point.lat, point.lon)
    length = math.hypot(east, north)
    if length == 0.0:  # the anchor itself, or its antipode, where every direction is right
        return 0.0, distance(anchor, point)
    metres = distance(anchor, point) / length
    return east * metres, north * metres


def direction_degrees(lat1: float, lon1: float, lat2: float, lon2: float) -> tuple[float, float]:
    """East and north, of any length, in which the way to the second point begins at the first."""
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    dlon = math.radians(lon2 - lon1)
    north = math.cos(phi1) * math.sin(phi2) - math.sin(phi1) * math.cos(phi2) * math.cos(dlon)
    return math.cos(phi2) * math.sin(dlon), north


def circle_bounds(center: Point, radius: float) -> tuple[float, float, float, float]:
    """Degrees south, west, north, east of a box that holds the circle; ``west > east`` where it crosses the antimeridian."""
    height = math.degrees(radius / EARTH_RADIUS) + _SLACK_DEGREES
    south, north = max(-90.0, center.lat - height), min(90.0, center.lat + height)
    if abs(center.lat) + height >= 89.9 or radius >= HALF_CIRCUMFERENCE / 2:
        return south, -180.0, north, 180.0
    sine = math.sin(math.radians(height)) / math.cos(math.radians(center.lat))
    width = math.degrees(math.asin(sine)) + _SLACK_DEGREES
    west, east = center.lon - width, center.lon + width
    return south, west + 360.0 if west < -180.0 else west, north, east - 360.0 if east >= 180.0 else east
