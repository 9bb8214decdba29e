"""Fences in a town, people who drive through it, and what is to be told of them: the same for every server, known beforehand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nearcast.matching.fences import FenceIndex
from nearcast.matching.grid import Floats
from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.model.passage import passages_of

CENTRE: Final = Point(49.87, 8.65)
TOWN: Final = 10_000.0
"""Metres from side to side."""

RADIUS: Final = 250.0
STEP: Final = 100.0
"""Metres between two reports: ten seconds in a town."""

_DEGREE: Final = 10_000_000
_METRE: Final = 1 / 111_195.0

Told = tuple[str, str]
"""What happened, at which fence."""


@dataclass(frozen=True, slots=True)
class FenceScript:
    fences: tuple[Circle, ...]
    lat: Floats
    """Of each step and driver, in whole ten millionths of a degree: as they are on the wire."""

    lon: Floats

    @property
    def drivers(self) -> int:
        return int(self.lat.shape[1])

    @property
    def steps(self) -> int:
        return int(self.lat.shape[0])

    def told(self, step: int) -> Iterator[tuple[int, Told]]:
        """What is to be told of the way to a step: of which driver, what; in order for each of them."""
        index = self._index()
        ways = (self.lat[step - 1], self.lon[step - 1], self.lat[step], self.lon[step])
        found = [
            (driver, passage.share, order, passage.kind.value, str(fence))
            for driver, fence, visits in index.passed(*ways)
            for visit in visits
            for order, passage in enumerate(passages_of(visit))
        ]
        for driver, _, _, kind, fence in sorted(found):
            yield driver, (kind, fence)

    def _index(self) -> FenceIndex[int]:
        index: FenceIndex[int] = FenceIndex()
        for number, fence in enumerate(self.fences):
            index.put(number, fence)
        return index


def fence_script(fences: int, drivers: int, steps: int, seed: int = 7) -> FenceScript:
    random = np.random.default_rng(seed)

    def places(count: int) -> Floats:
        return random.uniform(-TOWN / 2, TOWN / 2, (2, count))

    centres = places(fences)
    position, heading = places(drivers), random.uniform(0, 2 * math.pi, drivers)
    path = [position.copy()]
    for _ in range(steps):
        heading += random.normal(0, 0.3, drivers)
        position = position + STEP * np.stack([np.sin(heading), np.cos(heading)])
        outside = np.abs(position) > TOWN / 2
        position = np.clip(position, -TOWN / 2, TOWN / 2)
        heading = np.where(outside.any(axis=0), heading + math.pi / 2, heading)
        path.append(position.copy())
    lat, lon = _degrees(np.array(path)[:, 1], np.array(path)[:, 0])
    fence_lat, fence_lon = _degrees(centres[1], centres[0])
    circles = (Circle(RADIUS, Point(*place)) for place in zip(fence_lat.tolist(), fence_lon.tolist(), strict=True))
    return FenceScript(tuple(circles), lat, lon)


def misplaced(told: list[Told], due: list[Told]) -> int:
    """How many notices of one driver are missing, too many, or not where they belong in the order.

    At one moment of a way several fences may be passed: the order among different fences there is nobody's.
    """
    missing = Counter(due) - Counter(told)
    surplus = Counter(told) - Counter(due)
    if missing or surplus:
        return missing.total() + surplus.total()
    of_fence: dict[str, list[str]] = {}
    for what, fence in due:
        of_fence.setdefault(fence, []).append(what)
    for what, fence in told:
        if of_fence[fence].pop(0) != what:
            return 1
    return 0


def _degrees(north: Floats, east: Floats) -> tuple[Floats, Floats]:
    lat = CENTRE.lat + north * _METRE
    lon = CENTRE.lon + east * _METRE / math.cos(math.radians(CENTRE.lat))
    return np.round(lat * _DEGREE) / _DEGREE, np.round(lon * _DEGREE) / _DEGREE
