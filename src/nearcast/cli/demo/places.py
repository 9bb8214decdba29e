"""Where the demo takes place: metres east and north of a centre, and the places that people go to."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane

CENTER: Final = Point(60.1716, 24.9443)
"""Of Helsinki."""

SIDE: Final = 1_000.0
HALF: Final = SIDE / 2
_PLANE: Final = Plane(CENTER)


class Place(NamedTuple):
    """With how far from it people stand who are at it."""

    name: str
    east: float
    north: float
    radius: float = 80.0

    @property
    def metres(self) -> tuple[float, float]:
        return self.east, self.north

    @property
    def point(self) -> Point:
        return point_at(self.east, self.north)


PLACES: Final = (
    Place("the market", -10.0, -40.0, 130.0),  # on the square before the station
    Place("the station", -175.0, 20.0),
    Place("the bridge", 300.0, 440.0, 60.0),
    Place("the park", 70.0, 330.0, 120.0),
    Place("the library", -340.0, 250.0),
    Place("the university", 330.0, -230.0),
    Place("the esplanade", 180.0, -450.0),
    Place("the shops", -150.0, -340.0),
    Place("the chapel", -400.0, -260.0),
    Place("the theatre", 110.0, 60.0, 60.0),
)
BY_NAME: Final = {place.name: place for place in PLACES}
MARKET: Final = BY_NAME["the market"]
BRIDGE: Final = BY_NAME["the bridge"]


def point_at(east: float, north: float) -> Point:
    """The point that lies so many metres from the centre."""
    return _PLANE.to_point(east, north)


def metres_of(point: Point) -> tuple[float, float]:
    """Of a point, metres east and north of the centre."""
    return _PLANE.to_xy(point)


def nearest_place(point: Point) -> str:
    """Its name."""
    here = metres_of(point)
    return min(PLACES, key=lambda place: math.dist(place.metres, here)).name
