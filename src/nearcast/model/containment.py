"""Whether an area surely lies in another one.

Sure, not exact: what cannot be decided cheaply is answered with no.  An area that is neither a box nor a polygon is judged by
a circle around it, so close to the border of the permitted area a long rectangle may be refused although it would fit.
"""

from __future__ import annotations

import math
from typing import Final

import shapely
from shapely.geometry import Polygon as ShapelyPolygon

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import EARTH_RADIUS, Point, distance, offset
from nearcast.model.spatial import possible

_HAIR: Final = 1e-9
"""Degrees: a tenth of a millimetre."""

# A circle is drawn as a polygon of 64 corners around it, whose edges are straight in lon/lat: they come closer to its centre than
# the circle by at most 0.12 % of radius x (radius x tan(latitude) / earth radius), as long as that bracket is at most 1.
_WIDER: Final = 1.0025


def surely_within(outer: Area, inner: Area | Point) -> bool:
    """Whether every point of ``inner`` lies in ``outer``; both are absolute."""
    if isinstance(inner, Point):
        return outer.covers(inner)
    if isinstance(outer, Circle):
        return distance(outer.fixed_center(), inner.fixed_center()) + inner.bounding_radius() <= outer.radius
    if isinstance(outer, (Rectangle, Outline)):
        return _fits_plane(outer, inner)
    if isinstance(outer, Box) and not isinstance(inner, Polygon):
        return _box_covers(outer, inner if isinstance(inner, Box) else _box_around(inner))
    if isinstance(outer, (Box, Polygon)):
        if isinstance(inner, (Box, Polygon)):
            return bool(shapely.covers(outer.shape, inner.shape))
        return bool(shapely.covers(outer.shape, _box_around(inner).shape)) or _covers_drawing(outer, inner)
    return False


def _fits_plane(outer: Rectangle | Outline, inner: Area) -> bool:
    """In the plane in which the outer area is drawn.

    That plane keeps distances from its centre and stretches those across by c / sin(c) at an angle of c; so the circle around
    the inner area is drawn within a circle that is larger by the greatest of these.
    """
    east, north = offset(outer.fixed_center(), inner.fixed_center())
    radius = inner.bounding_radius()
    farthest = (math.hypot(east, north) + radius) / EARTH_RADIUS
    if farthest >= math.pi / 2:
        return False
    drawn = radius * (farthest / math.sin(farthest) if farthest else 1.0)
    if isinstance(outer, Rectangle):
        return abs(east) + drawn <= outer.width / 2 and abs(north) + drawn <= outer.height / 2
    middle, ring = shapely.points(east, north), ShapelyPolygon(outer.ring)
    return bool(shapely.covers(ring, middle)) and bool(shapely.distance(ring.exterior, middle) >= drawn)


def _covers_drawing(outer: Area, inner: Area) -> bool:
    """Whether the circle around the inner area, drawn in lon/lat with a few corners, lies in an area drawn there too."""
    center, radius = inner.fixed_center(), inner.bounding_radius()
    latitude = abs(center.lat) + math.degrees(radius / EARTH_RADIUS)
    if latitude >= 89.0 or radius * math.tan(math.radians(latitude)) > EARTH_RADIUS:
        return False
    return not possible("s_within", Circle(radius * _WIDER, center), outer, negated=True)


def _box_covers(outer: Box, inner: Box) -> bool:
    if not outer.south <= inner.south <= inner.north <= outer.north:
        return False
    width = _width(outer)
    return width >= 360.0 or (inner.west - outer.west) % 360.0 + _width(inner) <= width


def _width(box: Box) -> float:
    return box.east - box.west + (360.0 if box.west > box.east else 0.0)


def _box_around(inner: Area) -> Box:
    """The smallest box, but for a hair, around the circle around the area."""
    center, radius = inner.fixed_center(), inner.bounding_radius()
    height = math.degrees(radius / EARTH_RADIUS) + _HAIR
    south, north = max(-90.0, center.lat - height), min(90.0, center.lat + height)
    if abs(center.lat) + height >= 90.0:
        return Box(-180.0, south, 180.0, north)
    width = math.degrees(math.asin(math.sin(math.radians(height)) / math.cos(math.radians(center.lat)))) + _HAIR
    west, east = center.lon - width, center.lon + width
    return Box(west + 360.0 if west < -180.0 else west, south, east - 360.0 if east > 180.0 else east, north)
