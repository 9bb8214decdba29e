"""A city: people who walk, ride and drive along its streets from one place to the next, and a market that draws them all.

They are faster than life, so that a minute shows something.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.cli.demo.places import BRIDGE, HALF, MARKET, PLACES, Place
from nearcast.model.geometry import Point

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets  # slow to import: it brings numba and shapely
    from nearcast.runtime.simulation.streets.pieces import XY

Floats = NDArray[np.float64]

HASTE: Final = 5.0
"""Seconds of the city's time that pass in one of ours."""

_NEAR: Final = (20.0, 220.0)
"""Metres from the market."""

_DRAWN: Final = 0.8
"""Chance that somebody goes to the market next, while it draws people."""

_OVER_THE_BRIDGE: Final = 0.35
"""Chance that somebody who drives leaves the city next."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to move: how common it is, and how fast in metres per second."""

    name: str
    transport: str
    share: float
    speed: float
    wheels: bool = True


KINDS: Final = (
    Kind("walker", "/foot", 0.50, 1.4, wheels=False),
    Kind("cyclist", "/vehicle/bicycle", 0.15, 3.0),
    Kind("car", "/vehicle/motorized/car", 0.28, 4.0),
    Kind("bus", "/vehicle/motorized/bus", 0.07, 3.5),
)
_DRIVEN: Final = "/vehicle/motorized"


class Trip:
    """Where somebody is, and the corners of the way before them."""

    __slots__ = ("_corners", "east", "north")

    def __init__(self, east: float, north: float) -> None:
        self.east, self.north = east, north
        self._corners: deque[XY] = deque()

    def go(self, way: list[XY]) -> None:
        """From here on along these."""
        self._corners = deque(way)

    def advance(self, metres: float) -> bool:
        """So far, or to the end of the way; whether that is reached."""
        while self._corners:
            east, north = self._corners[0]
            left = math.hypot(east - self.east, north - self.north)
            if left > metres:
                share = metres / left
                self.east += share * (east - self.east)
                self.north += share * (north - self.north)
                return False
            metres -= left
            self.east, self.north = self._corners.popleft()
        return True


class City:
    """Where everybody is, those included who are not there at present."""

    def __init__(self, people: int, streets: Streets, seed: int = 7) -> None:
        random = self.random = Random(seed)
        self.streets: Final = streets
        self.market_day = False
        self.kind: Final = np.array(random.choices(range(len(KINDS)), [kind.share for kind in KINDS], k=people))
        self.present: Final = np.zeros(people, np.bool_)
        self.east: Final = np.zeros(people)
        self.north: Final = np.zeros(people)
        self._speed: Final = [KINDS[kind].speed * random.uniform(0.7, 1.2) for kind in self.kind]
        self._trips: Final[list[Trip]] = []
        self._destinations: Final = [random.choice(PLACES) for _ in range(people)]
        for person in range(people):
            start = self._somewhere_at(person, random.choice(PLACES))
            self._trips.append(Trip(*start))
            self.east[person], self.north[person] = start

    def step(self, seconds: float) -> None:
        """Let so many seconds of ours pass."""
        for person in map(int, np.flatnonzero(self.present)):
            trip = self._trips[person]
            arrived = trip.advance(self._speed[person] * HASTE * seconds)
            self.east[person], self.north[person] = trip.east, trip.north
            if arrived:
                self._send(person)

    def enter(self, person: int) -> None:
        """Somebody comes, at one of the places, and goes where everybody goes; most who come for the market come from near."""
        self.present[person] = True
        trip = self._trips[person]
        if self.market_day and self.random.random() < _DRAWN:
            angle, metres = self.random.uniform(0, 2 * math.pi), self.random.uniform(*_NEAR)
            east, north = MARKET.east + metres * math.cos(angle), MARKET.north + metres * math.sin(angle)
            trip.east, trip.north = self.streets.beside(east, north, wheels=self.kind_of(person).wheels)
            self.east[person], self.north[person] = trip.east, trip.north
        self._send(person)

    def leave(self, person: int) -> None:
        self.present[person] = False

    def turn_back(self, person: int) -> None:
        """Somebody who was going over the bridge goes elsewhere."""
        if self._destinations[person] is BRIDGE:
            self._send_to(person, self.random.choice([place for place in PLACES if place is not BRIDGE]))

    def where(self, person: int) -> tuple[float, float]:
        """Metres east and north of the centre."""
        return float(self.east[person]), float(self.north[person])

    def heading_for(self, person: int) -> str:
        return self._destinations[person].name

    def destination_of(self, person: int) -> Point:
        return self._destinations[person].point

    def kind_of(self, person: int) -> Kind:
        return KINDS[self.kind[person]]

    def name_of(self, person: int) -> str:
        """Under which somebody is connected."""
        return f"{self.kind_of(person).name}-{person}"

    def transport_of(self, person: int) -> str:
        return self.kind_of(person).transport

    def drives(self, person: int) -> bool:
        return self.transport_of(person).startswith(_DRIVEN)

    def _send(self, person: int) -> None:
        """Give somebody somewhere else to go."""
        if self.market_day and self.random.random() < _DRAWN:
            self._send_to(person, MARKET)
        elif self.drives(person) and self.random.random() < _OVER_THE_BRIDGE:
            self._send_to(person, BRIDGE)
        else:
            self._send_to(person, self.random.choice(PLACES))

    def _send_to(self, person: int, place: Place) -> None:
        self._destinations[person] = place
        trip, target = self._trips[person], self._somewhere_at(person, place)
        trip.go(self.streets.way((trip.east, trip.north), target, wheels=self.kind_of(person).wheels))

    def _somewhere_at(self, person: int, place: Place) -> XY:
        """On a street: the radius is two standard deviations."""
        spread = place.radius / 2
        east, north = self.random.gauss(place.east, spread), self.random.gauss(place.north, spread)
        inside = min(max(east, -HALF), HALF), min(max(north, -HALF), HALF)
        return self.streets.beside(*inside, wheels=self.kind_of(person).wheels)
