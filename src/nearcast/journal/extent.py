"""How far an area reaches, in metres: all that the record tables have room for.

The broker has checked the texts when they came; here one that cannot be read has no extent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from nearcast.errors import InvalidPosition
from nearcast.model.geometry import Point, distance


def radius_of(area: str | None, place: Point | None) -> float | None:
    """The radius of the circle around ``place`` that holds an area text of the wire contract; none if that cannot be said.

    Areas that are said relative to a place need none.
    """
    if area is None:
        return None
    try:
        return _radius(json.loads(area), place)
    except (ValueError, TypeError, KeyError, IndexError, InvalidPosition):
        return None


def _radius(area: Any, place: Point | None) -> float | None:
    if isinstance(area, int | float):
        return float(area)
    if "circle" in area:
        return _shifted(float(area["circle"]), area, place)
    if "rectangle" in area:
        width, height = area["rectangle"]
        return _shifted(math.hypot(width, height) / 2, area, place)
    if "outline" in area:
        return _shifted(max(math.hypot(*corner) for corner in area["outline"]), area, place)
    if place is None:
        return None
    return max(distance(place, corner) for corner in _corners(area))


def _shifted(radius: float, area: Any, place: Point | None) -> float | None:
    """Of an area that may stand somewhere else than at the place."""
    if "at" not in area:
        return radius
    lon, lat = area["at"]
    return None if place is None else radius + distance(place, Point(lat, lon))


def _corners(area: Any) -> Iterator[Point]:
    if "box" in area:
        west, south, east, north = area["box"]
        yield from (Point(lat, lon) for lat in (south, north) for lon in (west, east))
        return
    polygons = area["coordinates"] if area["type"] == "MultiPolygon" else [area["coordinates"]]
    for rings in polygons:
        for corner in rings[0]:
            yield Point(corner[1], corner[0])
