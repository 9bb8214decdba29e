"""Areas in the plane of longitude and latitude, and how they lie to each other there."""

from __future__ import annotations

import math
from typing import Any, Final

import shapely
from shapely.affinity import translate
from shapely.geometry.base import BaseGeometry

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import EARTH_RADIUS, Point, circle_bounds, distance

_CORNERS: Final = 64  # of the polygon drawn around a circle
_WORLD: Final = shapely.box(-180.0, -90.0, 180.0, 90.0)
_TURNS: Final = (0.0, 360.0, -360.0)


def is_only(area: Area, point: Point) -> bool:
    """Whether the point is all that there is of the area."""
    west, south, east, north = lon_lat(area).bounds
    return area.covers(point) and (west, south) == (east, north)


def on_border(point: Point, area: Area) -> bool:
    if isinstance(area, Circle):
        return distance(area.fixed_center(), point) == area.radius
    border = lon_lat(area).boundary
    return any(shapely.intersects(border, shapely.points(point.lon + turn, point.lat)) for turn in _TURNS)


def meets_border(area: Area, other: Area) -> bool:
    """Whether some point of the area lies on the border of the other."""
    return bool(shapely.intersects(lon_lat(area), lon_lat(other).boundary))


def intersects(a: Area, b: Area) -> bool:
    if isinstance(a, Circle) and isinstance(b, Circle):
        return distance(a.fixed_center(), b.fixed_center()) <= a.radius + b.radius
    if isinstance(a, Box) and isinstance(b, Box) and a.west <= a.east and b.west <= b.east:
        # As drawn, without drawing: routers ask this for each area that a message may be for.
        return (
            a.south <= b.north
            and b.south <= a.north
            and any(a.west <= b.east + turn and b.west + turn <= a.east for turn in _TURNS)
        )
    shape, other = lon_lat(a), lon_lat(b)
    # The meridian of 180 degrees is written with both signs: look for the neighbour on the other side too.
    return any(shapely.intersects(shape, translate(other, turn) if turn else other) for turn in _TURNS)


def covers(outer: Area, inner: Area) -> bool:
    if isinstance(outer, Circle):
        center = outer.fixed_center()
        if isinstance(inner, Circle):
            return distance(center, inner.fixed_center()) + inner.radius <= outer.radius
        corners = shapely.get_coordinates(lon_lat(inner))
        return all(outer.covers(Point(lat, lon)) for lon, lat in corners.tolist())
    return bool(shapely.covers(lon_lat(outer), lon_lat(inner)))


def bounds_of(area: Area) -> tuple[float, float, float, float]:
    """Degrees west, south, east and north of all its points, and of what the functions above take for it.

    Degrees do not go around here: what crosses the antimeridian is bounded by all longitudes.
    """
    if isinstance(area, Box) and area.west <= area.east:
        return area.west, area.south, area.east, area.north
    west, south, east, north = lon_lat(area).bounds
    if isinstance(area, (Box, Polygon)):
        return west, south, east, north
    # The drawing of a large circle misses some of it, and that of a rectangle differs from it here and there.
    s, w, n, e = circle_bounds(area.fixed_center(), area.bounding_radius())
    if w > e:
        w, e = -180.0, 180.0
    return min(west, w), min(south, s), max(east, e), max(north, n)


def lon_lat(area: Area) -> BaseGeometry:
    """The area in the plane of longitude and latitude.

    Exact except for a circle, which becomes a polygon drawn around it (at most 0.13 % wider): a coarse position
    then matches rather too often than too seldom, but for slivers of circles of many kilometres.
    """
    if isinstance(area, (Box, Polygon)):
        return _proper(area.shape)
    center = area.fixed_center()
    if isinstance(area, Circle):
        return _around_circle(center, area.radius)
    if isinstance(area, Rectangle):
        east, north = area.width / 2, area.height / 2
        ring: Any = ((-east, -north), (east, -north), (east, north), (-east, north))
    elif isinstance(area, Outline):
        ring = area.ring
    else:
        raise TypeError(f"no shape known for {area!r}")
    stretch = max(math.cos(math.radians(center.lat)), 1e-9)
    return _wrapped(
        (center.lon + math.degrees(east / EARTH_RADIUS / stretch), center.lat + math.degrees(north / EARTH_RADIUS))
        for east, north in ring
    )


def _around_circle(center: Point, radius: float) -> BaseGeometry:
    angle = radius / EARTH_RADIUS / math.cos(math.pi / _CORNERS)
    lat, reach = math.radians(center.lat), math.degrees(angle)
    if abs(center.lat) + reach >= 90.0:  # a pole is inside: every longitude, up to there
        south, north = max(-90.0, center.lat - reach), min(90.0, center.lat + reach)
        return shapely.box(-180.0, south, 180.0, north)
    ring = []
    for step in range(_CORNERS):
        bearing = 2 * math.pi * step / _CORNERS
        to = math.asin(math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing))
        turn = math.atan2(
            math.sin(bearing) * math.sin(angle) * math.cos(lat),
            math.cos(angle) - math.sin(lat) * math.sin(to),
        )
        ring.append((center.lon + math.degrees(turn), math.degrees(to)))
    return _wrapped(ring)


def _wrapped(ring: Any) -> BaseGeometry:
    shape = _proper(shapely.Polygon(ring))
    west, south, east, north = shape.bounds
    if west >= -180.0 and east <= 180.0 and south >= -90.0 and north <= 90.0:
        return shape
    if east - west >= 360.0:
        return shapely.box(-180.0, max(south, -90.0), 180.0, min(north, 90.0))
    return shapely.union_all([shapely.intersection(translate(shape, turn), _WORLD) for turn in _TURNS])


def _proper(shape: BaseGeometry) -> BaseGeometry:
    """A box or rectangle without width is a line or a point, which shapely wants to be told."""
    if shape.area > 0:
        return shape
    return shapely.union_all([part.convex_hull for part in shapely.get_parts(shape)])
