"""Points and areas: the rectangle in degrees that bounds them, and whether somebody in it could be where a message goes.

Degrees here do not go around: what crosses the antimeridian is bounded by all longitudes.  So bounding is a join, which it
would not be if each merge chose the shorter way around the earth.
"""

from __future__ import annotations

import math
from typing import Final

from nearcast.model.area import Area, Box, Circle, Polygon
from nearcast.model.geometry import (
    EARTH_RADIUS,
    HALF_CIRCUMFERENCE,
    Point,
    distance,
    distance_degrees,
)
from nearcast.model.values import OneOf, Value, same
from nearcast.overlay.values.kinds import AttributeKind, Extent, Limits

Bounds = tuple[float, float, float, float]
"""Degrees west, south, east, north."""

# Distances on both sides of a border are computed in different ways: who is nearer than this could be on it.
_SLACK: Final = 1.0 + 1e-9
_SLACK_METRES: Final = 1e-3


def merged(a: Value, b: Value, _limits: Limits) -> Value:
    if same(a, b):
        return a
    (west, south, east, north), (w, s, e, n) = bounds(a), bounds(b)
    return Box(min(west, w), min(south, s), max(east, e), max(north, n))


def bounds(value: Value) -> Bounds:
    """Of all points that it stands for, as the model draws it too."""
    if isinstance(value, Point):
        return value.lon, value.lat, value.lon, value.lat
    if isinstance(value, OneOf):
        lons, lats = [point.lon for point in value.values], [point.lat for point in value.values]
        return min(lons), min(lats), max(lons), max(lats)
    assert isinstance(value, Area)
    from nearcast.model.shapes import bounds_of

    return bounds_of(value)


def extents(value: Value) -> tuple[Extent, Extent]:
    """From west to east, and from south to north."""
    west, south, east, north = bounds(value)
    return (west, east), (south, north)


PLACES: Final = AttributeKind("point", merged, extents)


def possible(op: str, area: Area, geometry: Point | Area, *, negated: bool) -> bool:
    """Whether somebody in ``area`` could stand (``negated``: not stand) in that relation to ``geometry``.

    ``model.spatial.possible`` answers this for what a client says of itself; here the area may be a rectangle around
    others, so whatever is true of one of them there must be true of all of it here, down to the last bit.
    """
    # In degrees the model draws boxes and polygons as they are, of circles not quite all.
    if not isinstance(area, (Box, Polygon)) and not (
        isinstance(area, Circle) and isinstance(geometry, (Circle, Point))
    ):
        area = Box(*bounds(area))
    if op == "s_disjoint":
        op, negated = "s_intersects", not negated
    if isinstance(geometry, Circle) and geometry.radius == 0:
        geometry = geometry.fixed_center()
    if op in ("s_equals", "s_contains") and isinstance(geometry, Area):
        return negated  # a point neither contains nor equals an area
    if negated:
        return op == "s_touches" or not _surely_inside(area, geometry)
    if isinstance(geometry, Point):
        return op != "s_touches" and area.covers(geometry)
    return _could_meet(area, geometry)


def _could_meet(area: Area, geometry: Area) -> bool:
    from nearcast.model.shapes import intersects

    if intersects(area, geometry):
        return True
    if isinstance(geometry, (Box, Polygon)):
        return False  # these are drawn as they are
    center, radius = geometry.fixed_center(), geometry.bounding_radius()
    if isinstance(area, Circle):
        return distance(center, area.fixed_center()) <= (radius + area.radius) * _SLACK + _SLACK_METRES
    return distance_to(bounds(area), center) <= radius * _SLACK + _SLACK_METRES


def _surely_inside(area: Area, geometry: Point | Area) -> bool:
    from nearcast.model.shapes import covers

    if isinstance(geometry, (Box, Polygon)):
        return covers(geometry, area)
    if isinstance(geometry, Circle) and geometry.radius < HALF_CIRCUMFERENCE / 2:
        # Caps up to a hemisphere are convex, and along a parallel its ends are farthest, or the meridian opposite: these decide.
        west, south, east, north = bounds(area)
        center, radius = geometry.fixed_center(), geometry.radius / _SLACK - _SLACK_METRES
        opposite = [lon for lon in (center.lon - 180.0, center.lon + 180.0) if west < lon < east]
        return east - west < 180.0 and all(
            distance_degrees(center.lat, center.lon, lat, lon) <= radius
            for lat in (south, north)
            for lon in (west, east, *opposite)
        )
    return False


def distance_to(box: Bounds, point: Point) -> float:
    """Metres from the point to the nearest place in the rectangle, or a little less."""
    west, south, east, north = box
    if west <= point.lon <= east or (point.lon == -180.0 and east == 180.0):
        return math.radians(max(0.0, south - point.lat, point.lat - north)) * EARTH_RADIUS
    return min(_to_meridian(point, lon, south, north) for lon in (west, east))


def _to_meridian(point: Point, lon: float, south: float, north: float) -> float:
    """To the nearest place on a piece of a meridian."""
    turn = math.radians(point.lon - lon)
    # Along a meridian the cosine of the distance is A cos(lat) + B sin(lat), highest at atan2(B, A).
    lat = math.radians(point.lat)
    nearest = math.degrees(math.atan2(math.sin(lat), math.cos(lat) * math.cos(turn)))
    inside = [nearest] if south <= nearest <= north else []
    return min(distance_degrees(point.lat, point.lon, at, lon) for at in (south, north, *inside))
