"""A plane in which the whole city keeps its distances.

Peers that only know planar geometry (STRtree, sedonadb's geometries) and the bare kernel need metres.  The
spherical transverse Mercator projection is conformal and stretches distances by 1 + x²/2R²: at 60 km from the
central meridian that is 4.4e-5, far inside the border band of 1e-3 outside of which answers are compared.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import EARTH_RADIUS

Floats = NDArray[np.float64]

CITY_LAT: Final = 49.8728
CITY_LON: Final = 8.6512


def to_degrees(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Latitudes and longitudes of the places ``x`` metres east and ``y`` metres north of the city's centre."""
    north = y / EARTH_RADIUS + np.radians(CITY_LAT)
    east = x / EARTH_RADIUS
    lat = np.arcsin(np.sin(north) / np.cosh(east))
    lon = np.arctan2(np.sinh(east), np.cos(north))
    return np.degrees(lat), np.degrees(lon) + CITY_LON


def to_plane(lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    """The inverse of ``to_degrees``."""
    north, east = np.radians(lat), np.radians(lon - CITY_LON)
    x = np.arctanh(np.cos(north) * np.sin(east))
    y = np.arctan2(np.tan(north), np.cos(east)) - np.radians(CITY_LAT)
    return EARTH_RADIUS * x, EARTH_RADIUS * y


def great_circle(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Metres by the haversine formula, as in ``model.geometry.distance`` but for arrays."""
    half_lat, half_lon = np.radians(lat2 - lat1) / 2, np.radians(lon2 - lon1) / 2
    h = np.sin(half_lat) ** 2 + np.cos(np.radians(lat1)) * np.cos(np.radians(lat2)) * np.sin(half_lon) ** 2
    metres: Floats = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, h)))
    return metres
