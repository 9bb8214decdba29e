"""A city centre: people who walk, ride and drive from one place to the next, and a market that draws them all.

The motion is as simple as can be (straight to the next place), and faster than life, so that a minute shows something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import EARTH_RADIUS, Point

Floats = NDArray[np.float64]

CENTER: Final = Point(49.8728, 8.6512)
HALF_WIDTH: Final = 1_800.0
HALF_HEIGHT: Final = 1_100.0
METRES_PER_DEGREE: Final = math.pi * EARTH_RADIUS / 180
HASTE: Final = 5.0
"""Seconds of the city's time that pass in one of ours."""

PLACES: Final = {  # metres east and north of the centre
    "the square": (0.0, 0.0),
    "the castle": (320.0, 180.0),
    "the station": (-1_350.0, 120.0),
    "the bridge": (-900.0, -760.0),
    "the park": (180.0, 780.0),
    "the university": (700.0, 560.0),
    "the market": (-150.0, -300.0),
    "the stadium": (1_350.0, -700.0),
}
MARKET: Final = list(PLACES).index("the market")
_SCATTER: Final = (190.0, 140.0)
"""Metres, east and north: how far from a place people stand who are at it."""

_NEAR: Final = (30.0, 350.0)
"""Metres from the market."""

_DRAWN: Final = 0.8
"""Chance that somebody goes to the market next, while it draws people."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to move: how common it is, and how fast in metres per second."""

    name: str
    transport: str
    share: float
    speed: float


KINDS: Final = (
    Kind("walker", "/foot", 0.50, 1.4),
    Kind("cyclist", "/vehicle/bicycle", 0.15, 3.0),
    Kind("car", "/vehicle/motorized/car", 0.28, 4.0),
    Kind("bus", "/vehicle/motorized/bus", 0.07, 3.5),
)


def point_at(east: float, north: float) -> Point:
    """The point that lies so many metres from the centre."""
    lat = CENTER.lat + north / METRES_PER_DEGREE
    return Point(lat, CENTER.lon + east / (METRES_PER_DEGREE * math.cos(math.radians(CENTER.lat))))


def metres_of(point: Point) -> tuple[float, float]:
    """Of a point, metres east and north of the centre."""
    east = (point.lon - CENTER.lon) * METRES_PER_DEGREE * math.cos(math.radians(CENTER.lat))
    return east, (point.lat - CENTER.lat) * METRES_PER_DEGREE


def nearest_place(point: Point) -> str:
    """Its name."""
    here = metres_of(point)
    return min(PLACES, key=lambda name: math.dist(PLACES[name], here))


class City:
    """Where everybody is, those included who are not there at present."""

    def __init__(self, people: int, seed: int = 7) -> None:
        self.random: Final = np.random.default_rng(seed)
        self.market_day = False
        self.kind: Final = self.random.choice(len(KINDS), people, p=[kind.share for kind in KINDS])
        self.present: Final = np.zeros(people, np.bool_)
        self._places: Final = np.array(list(PLACES.values()))
        self._speed: Final = np.array([kind.speed for kind in KINDS])[self.kind] * self.random.uniform(0.7, 1.2, people)
        self.east, self.north = self._somewhere_at(self.random.integers(len(PLACES), size=people))
        self.destination: Final = self.random.integers(len(PLACES), size=people)
        self._to_east, self._to_north = self._somewhere_at(self.destination)

    def step(self, seconds: float) -> None:
        """Let so many seconds of ours pass."""
        east, north = self._to_east - self.east, self._to_north - self.north
        left = np.hypot(east, north)
        stride = self._speed * HASTE * seconds
        share = np.where(self.present, np.minimum(stride, left) / np.maximum(left, 1e-9), 0.0)
        self.east += share * east
        self.north += share * north
        arrived = np.flatnonzero(self.present & (left <= stride))
        self._send(arrived)

    def enter(self, person: int) -> None:
        """Somebody comes, at one of the places, and goes where everybody goes; most who come for the market come from near."""
        self.present[person] = True
        if self.market_day and self.random.random() < _DRAWN:
            east, north = self._places[MARKET]
            angle, metres = self.random.uniform(0, 2 * math.pi), self.random.uniform(*_NEAR)
            self.east[person], self.north[person] = east + metres * math.cos(angle), north + metres * math.sin(angle)
        self._send(np.array([person]))

    def leave(self, person: int) -> None:
        self.present[person] = False

    def where(self, person: int) -> tuple[float, float]:
        """Metres east and north of the centre."""
        return float(self.east[person]), float(self.north[person])

    def destination_of(self, person: int) -> Point:
        east, north = self._places[self.destination[person]]
        return point_at(float(east), float(north))

    def transport_of(self, person: int) -> str:
        return KINDS[self.kind[person]].transport

    def _send(self, people: NDArray[np.int64]) -> None:
        """Give these people somewhere else to go."""
        chosen = self.random.integers(len(PLACES), size=len(people))
        if self.market_day:
            chosen[self.random.random(len(people)) < _DRAWN] = MARKET
        self.destination[people] = chosen
        self._to_east[people], self._to_north[people] = self._somewhere_at(chosen)

    def _somewhere_at(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        middle, (wide, high) = self._places[places], _SCATTER
        east = middle[:, 0] + self.random.normal(0, wide, len(places))
        north = middle[:, 1] + self.random.normal(0, high, len(places))
        return np.clip(east, -HALF_WIDTH, HALF_WIDTH), np.clip(north, -HALF_HEIGHT, HALF_HEIGHT)
