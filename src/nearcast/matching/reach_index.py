"""Which events a position may concern: a grid over their reaches, so that a report does not test them all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nearcast.model.area import Area
from nearcast.model.geometry import Point

CELL: Final = 0.02
"""Degrees: about two kilometres."""

MOST_CELLS: Final = 1_024
"""A reach that covers more, or lies near a pole or the antimeridian, is tested for everybody."""

_METRES_PER_DEGREE: Final = 111_000.0  # a little less than there are, so that boxes are a little too large
_FURTHEST: Final = 85.0

Cell = tuple[int, int]


@dataclass(slots=True, eq=False, repr=False)
class ReachIndex:
    _cells: dict[Cell, dict[str, None]] = field(default_factory=dict)
    _everywhere: dict[str, None] = field(default_factory=dict)
    _where: dict[str, list[Cell]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._where)

    @property
    def everywhere(self) -> int:
        return len(self._everywhere)

    def add(self, key: str, reach: Area | None) -> None:
        cells = _cells_of(reach)
        self._where[key] = cells
        if not cells:
            self._everywhere[key] = None
        for cell in cells:
            self._cells.setdefault(cell, {})[key] = None

    def remove(self, key: str) -> None:
        self._everywhere.pop(key, None)
        for cell in self._where.pop(key, ()):
            there = self._cells[cell]
            del there[key]
            if not there:
                del self._cells[cell]

    def all(self) -> Iterator[str]:
        """For somebody who may be anywhere."""
        return iter(list(self._where))

    def near(self, *positions: Point | None) -> Iterator[str]:
        """All that may hold at one of these positions, each once."""
        yield from list(self._everywhere)
        cells = {_cell_of(position) for position in positions if position is not None}
        found = [there for there in map(self._cells.get, cells) if there is not None]
        if found:
            yield from dict.fromkeys(key for there in found for key in there)


def _cell_of(point: Point) -> Cell:
    return math.floor(point.lat / CELL), math.floor(point.lon / CELL)


def _cells_of(reach: Area | None) -> list[Cell]:
    """None: everywhere."""
    if reach is None:
        return []
    center, radius = reach.fixed_center(), reach.bounding_radius()
    high = radius / _METRES_PER_DEGREE
    furthest = abs(center.lat) + high
    if furthest > _FURTHEST:
        return []
    wide = high / math.cos(math.radians(furthest))
    if center.lon - wide < -180.0 or center.lon + wide > 180.0:
        return []
    south, north = (math.floor((center.lat + side) / CELL) for side in (-high, high))
    west, east = (math.floor((center.lon + side) / CELL) for side in (-wide, wide))
    if (north - south + 1) * (east - west + 1) > MOST_CELLS:
        return []
    return [(row, column) for row in range(south, north + 1) for column in range(west, east + 1)]
