"""Areas as GeoJSON, to be drawn: circles become polygons of many corners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nearcast.dashboard.contract import GeoJson
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle, area_to_geojson
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane

CORNERS: Final = 48
MOST_CORNERS: Final = 256
"""Of a ring; of one with thousands, which anybody may publish, some are drawn: every viewer is sent it."""

DIGITS: Final = 7
"""Of degrees: a centimetre."""


def area_shape(area: Area | None, at: Point | None) -> GeoJson | None:
    """What an area around ``at`` looks like; none where it is everywhere, or nobody knows where."""
    if area is None:
        return None
    if area.is_relative:
        if at is None:
            return None
        area = area.anchored(at)
    match area:
        case Circle():
            angles = np.linspace(0.0, 2 * np.pi, CORNERS + 1)
            return _ring(area.fixed_center(), area.radius * np.sin(angles), area.radius * np.cos(angles))
        case Rectangle():
            x, y = area.width / 2, area.height / 2
            return _ring(area.fixed_center(), np.array([-x, x, x, -x, -x]), np.array([-y, -y, y, y, -y]))
        case Outline():
            east, north = zip(*area.ring, strict=True)
            return _ring(area.fixed_center(), np.array(east), np.array(north))
        case Box() | Polygon():
            return _thinned(area_to_geojson(area))
    return None


def circle_shape(center: Point, radius: float) -> GeoJson:
    shape = area_shape(Circle(radius, center), None)
    assert shape is not None
    return shape


def area_kind(area: Area | None) -> str:
    return "everywhere" if area is None else type(area).__name__.lower()


def _ring(center: Point, east: np.ndarray, north: np.ndarray) -> GeoJson:
    lat, lon = Plane(center).degrees(east, north)
    corners = np.column_stack([lon, lat]).round(DIGITS).tolist()
    return {"type": "Polygon", "coordinates": [corners]}


def _thinned(shape: GeoJson) -> GeoJson:
    def thin(ring: Sequence[Any]) -> Sequence[Any]:
        step = -(-len(ring) // MOST_CORNERS)
        return ring if step <= 1 else [*ring[:-1:step], ring[-1]]

    match shape["type"]:
        case "Polygon":
            return shape | {"coordinates": [thin(ring) for ring in shape["coordinates"]]}
        case "MultiPolygon":
            return shape | {"coordinates": [[thin(ring) for ring in each] for each in shape["coordinates"]]}
    return shape
