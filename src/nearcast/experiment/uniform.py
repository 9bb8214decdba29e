"""What grids bring when people are spread evenly over a square: closed forms have no borders, a city has (spec 3.5).

An event happens where somebody is, and is due to whoever is within the radius.  With people everywhere alike, its recall and precision
are shares of areas: here counted on a fine lattice of places, so without random numbers, and averaged over events.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np

from nearcast.metrics.columns import Flags, Floats, Wholes

_LATTICE: Final = 260
"""Places in each direction: 5 m apart in a city of 1,300 m, and as many in each cell for all factors that divide it."""

_STEP: Final = 7
"""Events happen at every seventh of them, which meets all parts of a cell alike."""


@cache
def grid_recall(side: float, radius: float, factor: int) -> float:
    """GRID: of those within the radius, the share in the same cell."""
    places, cells = _lattice(side, factor)
    shares = []
    for x, y, column, row in _events(places, cells):
        near = _near(places, x, y, radius)
        together = near & (cells[:, None] == column) & (cells[None, :] == row)
        # The publisher is among both, and counts in neither.
        shares.append((together.sum() - 1) / (near.sum() - 1))
    return float(np.mean(shares))


@cache
def egrid_precision(side: float, radius: float, factor: int) -> float:
    """EGRID with boxes: of those whose box meets the cell of the event, the share within the radius."""
    places, cells = _lattice(side, factor)
    width = side / factor
    shares = []
    for x, y, column, row in _events(places, cells):
        told = _meets(places, column * width, width, radius) * _meets(places, row * width, width, radius)
        shares.append((_near(places, x, y, radius).sum() - 1) / (told - 1))
    return float(np.mean(shares))


def _lattice(side: float, factor: int) -> tuple[Floats, Wholes]:
    places = (np.arange(_LATTICE) + np.float64(0.5)) * side / _LATTICE
    return places, (places / side * factor).astype(np.int64)


def _events(places: Floats, cells: Wholes) -> Iterator[tuple[float, float, int, int]]:
    chosen = range(_STEP // 2, _LATTICE, _STEP)
    for i in chosen:
        for j in chosen:
            yield float(places[i]), float(places[j]), int(cells[i]), int(cells[j])


def _near(places: Floats, x: float, y: float, radius: float) -> Flags:
    return (places[:, None] - x) ** 2 + (places[None, :] - y) ** 2 <= radius**2


def _meets(places: Floats, low: float, width: float, radius: float) -> int:
    """How many places in one direction are within the radius of the interval."""
    return int(((places + radius >= low) & (places - radius <= low + width)).sum())
