"""Distances and the cells around a point: parts of the kernels."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nearcast.compiled import inlined
from nearcast.matching.columns import AROUND_CLIENT, INSIDE, ONLY_THE_MODEL_KNOWS, OUTSIDE, REFINE, Events, Subscribers
from nearcast.matching.grid import (
    FULL_TURN,
    HALF_TURN,
    LEVELS_USED,
    SOUTH,
    UNIT_RADIANS,
    Floats,
    Grid,
    Int64s,
    stretch,
    whole,
)
from nearcast.matching.vector import trailing_zeros
from nearcast.model.geometry import HALF_CIRCUMFERENCE, distance_degrees

# Slots of the shape of a level, as seen from one event
OUTER: Final = 0  # squared distance, in units, beyond which nobody is near
INNER: Final = 1  # within which everybody is
MARGIN: Final = 2  # what rounding may have done to a distance, in units ...
ERROR: Final = 3  # ... and the formula, as a share of it
SHAPE: Final = 4

LARGEST_ERROR: Final = 1e-3
"""Where the formula errs by more, everything is measured in double precision."""


haversine: Final = inlined(distance_degrees)
"""Metres, with the formula of the definition: what decides here is what decides there."""


@inlined
def doubt(metres: float) -> float:
    """How far two correct computations of one distance may lie apart: much near the antipode, else next to nothing."""
    return 1.0 if metres > 0.9 * HALF_CIRCUMFERENCE else 1e-6 + 1e-9 * metres


@inlined
def measured(item: int, event: int, events: Events, subscribers: Subscribers) -> int:
    """Whether the event is in the area of a subscription, by double precision."""
    if subscribers.tag[item] & REFINE or subscribers.kind[item] != AROUND_CLIENT:
        return ONLY_THE_MODEL_KNOWS
    client = subscribers.client[item]
    metres = haversine(events.lat[event], events.lon[event], subscribers.lat[client], subscribers.lon[client])
    over = metres - subscribers.radius[item]
    if abs(over) <= doubt(metres):
        return ONLY_THE_MODEL_KNOWS
    return INSIDE if over < 0 else OUTSIDE


@inlined
def signed_square(value: float) -> float:
    return value * abs(value)


@inlined
def half_width(reach: float, cosine: float) -> float:
    """Largest difference in longitude, in units, within ``reach`` units: asin(sin(reach) / cosine), rounded up."""
    q = reach * UNIT_RADIANS / cosine if cosine > 0 else 1.0
    if q >= 0.5:
        return float(HALF_TURN)
    return reach / cosine * (1 + 0.25 * q * q) + 2


@inlined
def _measure(grid: Grid, level: int, reach: float, width: float, cosine: float, shapes: Floats) -> None:
    """How to measure on this level.

    With a the angle to the farthest candidate in latitude and b in longitude, the planar formula errs by at most
    0.6 a² + b²/12 of the squared distance (the second-order term of the cosine; sin x against x).  Four units cover
    the rounding of two positions and a radius, the coarser of the two steps in the cell its truncation, 1e-6 that of
    single precision.
    """
    size = float(1 << level)
    a = (reach + size) * UNIT_RADIANS
    error = 1.0
    margin = 4.0
    if cosine > 10 * a:
        b = width * UNIT_RADIANS + 2 * size * UNIT_RADIANS / (cosine - a)
        error = 0.6 * a * a + b * b / 12 + 1e-6
        margin += 2 * size / cosine / 65536 + 2 * size / 65536
    shapes[level, MARGIN] = margin
    shapes[level, ERROR] = error
    if error < LARGEST_ERROR:
        shapes[level, OUTER] = signed_square((float(grid.levels[level, 1]) + margin) * (1 + error))
        shapes[level, INNER] = signed_square((float(grid.levels[level, 2]) - margin) * (1 - error))
    else:  # near a pole or across a continent: everything is measured in double precision
        shapes[level, OUTER] = np.inf
        shapes[level, INNER] = -1.0


@inlined
def cells_around(grid: Grid, x: int, y: int, cosine: float, keys: Int64s, n: int, shapes: Floats) -> int:
    """Write the keys of all cells that may hold an entry within its radius of a point, from ``n`` on."""
    used = grid.ledger[LEVELS_USED]
    while used:
        level = trailing_zeros(used)
        used &= used - 1
        reach = float(grid.levels[level, 1]) + 4
        widest = half_width(reach, cosine)
        _measure(grid, level, reach, widest, cosine, shapes)
        units = whole(reach) + 1
        first_row = max(whole(0), y + SOUTH - units) >> level
        last_row = min(whole(2 * SOUTH), y + SOUTH + units) >> level
        for row in range(first_row, last_row + 1):
            shift = level + stretch(row, level)
            if widest >= HALF_TURN or shift >= 32:
                first, many = whole(0), whole(1) << max(0, 32 - shift)
            else:
                span = whole(_width_in_row(row, level, y, reach, widest, cosine)) + 1
                first = ((x - span) & (FULL_TURN - 1)) >> shift
                last = ((x + span) & (FULL_TURN - 1)) >> shift
                many = ((last - first) & ((whole(1) << (32 - shift)) - 1)) + 1
            mask = (whole(1) << max(0, 32 - shift)) - 1
            for j in range(many):
                keys[n] = (whole(level) << 48) | (whole(row) << 24) | ((first + j) & mask)
                n += 1
    return n


@inlined
def _width_in_row(row: int, level: int, y: int, reach: float, widest: float, cosine: float) -> float:
    """A row beside the point's own sees only a chord of the circle."""
    low = (row << level) - SOUTH
    gap = max(float(low - y), float(y - low - (1 << level)))
    if gap <= 0:
        return widest
    q = widest * UNIT_RADIANS
    chord = math.sqrt(max(0.0, reach * reach - gap * gap))
    least = cosine * max(0.1, 1 - reach * UNIT_RADIANS / cosine)
    return min(widest, chord / math.sqrt(cosine * least * (1 - q * q / 12)) + 2)
