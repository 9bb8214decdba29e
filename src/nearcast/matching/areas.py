"""Areas against many points at once; the answers are those of ``Area.covers``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from nearcast.matching.grid import Floats
from nearcast.model.area import Area, Box, Circle, Polygon
from nearcast.model.geometry import EARTH_RADIUS, HALF_CIRCUMFERENCE, Point

Bools = npt.NDArray[np.bool_]


def covered(area: Area, lat: Floats, lon: Floats) -> Bools:
    """For each point whether an absolute area covers it; no position (NaN) is outside."""
    inside = np.zeros(len(lat), np.bool_)
    known = np.flatnonzero(~np.isnan(lat))
    lat, lon = lat[known], lon[known]
    if isinstance(area, Circle):
        sure, doubtful = _circle(area, lat, lon)
    elif isinstance(area, Polygon):
        sure = shapely.covers(area.shape, shapely.points(lon, lat))
        doubtful = ~sure & (lon == -180.0)  # which is also 180
    elif isinstance(area, Box):
        sure = (lat >= area.south) & (lat <= area.north) & _between(area, lon)
        doubtful = ~sure & (lon == -180.0)
    else:
        sure = np.zeros(len(lat), np.bool_)
        doubtful = ~sure
    inside[known[sure]] = True
    for i in np.flatnonzero(doubtful):
        inside[known[i]] = area.covers(Point(float(lat[i]), float(lon[i])))
    return inside


def _circle(circle: Circle, lat: Floats, lon: Floats) -> tuple[Bools, Bools]:
    """Surely inside, and too near to the border for rounding to be trusted."""
    center = circle.fixed_center()
    half_dlat, half_dlon = np.radians(lat - center.lat) / 2, np.radians(lon - center.lon) / 2
    h = np.sin(half_dlat) ** 2 + np.cos(np.radians(center.lat)) * np.cos(np.radians(lat)) * np.sin(half_dlon) ** 2
    metres = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, h)))
    doubt = np.where(metres > 0.9 * HALF_CIRCUMFERENCE, 1.0, 1e-6 + 1e-9 * metres)
    over = metres - circle.radius
    return over < -doubt, np.abs(over) <= doubt


def _between(box: Box, lon: Floats) -> Bools:
    if box.west <= box.east:
        return (lon >= box.west) & (lon <= box.east)
    return (lon >= box.west) | (lon <= box.east)
