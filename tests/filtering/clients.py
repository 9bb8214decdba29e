"""Client halves without a network."""

from __future__ import annotations

from typing import Any

from tests.filtering.halves import TERRITORY, place

from nearcast.filtering.client_half import Surroundings
from nearcast.filtering.messages import FromClient
from nearcast.filtering.registry import client_halves
from nearcast.filtering.scheme import Territory
from nearcast.model.geometry import Point
from nearcast.runtime.ports import Fix
from nearcast.transition.specification import MechanismSpec


class Walker:
    """A client that is told where it is."""

    def __init__(
        self, spec: MechanismSpec, radius: float = 125.0, *, confirms: bool = True, territory: Territory = TERRITORY
    ) -> None:
        self.said: list[FromClient] = []
        self.fix: Fix | None = None
        self.radius = radius
        self._make = client_halves(
            territory, Surroundings(self.said.append, lambda: self.fix, lambda: self.radius, confirms)
        )
        self.half: Any = self._make(spec)
        self.time = 0

    def become(self, spec: MechanismSpec) -> None:
        """Exchange the scheme: nothing of it is transferred."""
        self.half = self._make(spec)
        self.half.start_mechanism()
        self.half.bootstrap()

    def walk(self, x: float, y: float, speed: float = 0.0, heading: float | None = None) -> list[FromClient]:
        """Answers what it says because of that."""
        return self.go(place(x, y), speed, heading)

    def go(self, to: Point, speed: float = 0.0, heading: float | None = None) -> list[FromClient]:
        self.time += 1
        before = len(self.said)
        self.fix = Fix(self.time, to, 0.0, speed, heading)
        self.half.moved(self.fix)
        return self.said[before:]
