"""How people move at the match (THYME 6.5): random waypoint with a coin toss before each walk.

In the paper's way, cells keep their population: the last one in a cell stays in it, and people go only where others are (6.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from nearcast.experiment.thyme.venue import CELL, XY
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.legs import Leg

PAUSE: Final = 120.0
MOVES: Final = 0.8
SLOWEST: Final = 0.3
"""Metres per second; the paper names the fastest only."""


class Walks:
    """Of all nodes, which know where the others are."""

    def __init__(self, size: XY, starts: list[XY], fastest: float, *, populated: bool) -> None:
        self._size: Final = size
        self._starts: Final = starts
        self._fastest: Final = fastest
        self._populated: Final = populated
        self.settled: Final = Counter(map(cell, starts))
        """How many are in each cell, without those who are on their way."""

    def life(self, node: int, random: Random, start: Instant) -> Iterator[Leg]:
        here, time = self._starts[node], start
        wait = round(PAUSE * random.random() * MICROSECONDS)
        """The first pause began before: else everybody would start at the same time."""

        while True:
            yield Leg(time, time + max(wait, 1), *here)
            time += max(wait, 1)
            wait = round(PAUSE * MICROSECONDS)
            if random.random() < MOVES:
                target = self._target(here, random)
                self.settled[cell(here)] -= 1
                leg = Leg.between(time, here, target, random.uniform(SLOWEST, max(SLOWEST, self._fastest)))
                yield leg
                here, time = target, leg.until
                self.settled[cell(here)] += 1

    def _target(self, here: XY, random: Random) -> XY:
        alone = self._populated and self.settled[cell(here)] == 1
        while True:
            place = self._size[0] * random.random(), self._size[1] * random.random()
            if alone:
                column, row = cell(here)
                return CELL * (column + random.random()), CELL * (row + random.random())
            if not self._populated or self.settled[cell(place)] > 0:
                return place


def cell(place: XY) -> tuple[int, int]:
    return int(place[0] // CELL), int(place[1] // CELL)
