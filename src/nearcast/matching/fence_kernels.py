"""Ways against many fences at once: a grid over the fences, and the closed forms of ``model.passage``."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.matching.grid import COUNT as CELL_COUNT
from nearcast.matching.grid import (
    FULL_TURN,
    HALF_TURN,
    HIGHEST_LEVEL,
    KEY,
    LOWEST_LEVEL,
    SOUTH,
    START,
    UNIT_METRES,
    Floats,
    Int32s,
    Int64s,
    slot_of,
    stretch,
    to_x,
    to_y,
    whole,
)
from nearcast.matching.measuring import doubt, half_width, haversine
from nearcast.model import passage
from nearcast.model.geometry import EARTH_RADIUS, direction_degrees

# Kinds of fences
GONE: Final = 0
ROUND: Final = 1
UPRIGHT: Final = 2  # a rectangle
DRAWN: Final = 3  # only the model knows; here counts a circle around it

# What ``ways`` says of a fence on a way
SURE: Final = 0
OPEN: Final = 1  # only the model knows

DONE: Final = 0
FULL: Final = 1

# Slots of ``progress``
NEXT: Final = 0
FOUND: Final = 1
STAMP: Final = 2
TESTED: Final = 3
PROGRESS: Final = 4

MOST_CELLS: Final = 256
"""A way or a fence that touches more cells of a level is compared with everything, and everybody with it."""

LONGEST: Final = 100_000.0
"""Metres: on a longer way planes differ too much for one circle around it."""

TEMPERATE: Final = 80.0
NEAR: Final = 20_000.0
MAP_ERROR: Final = 0.03
"""Of lengths on a map with straight meridians, up to 80 degrees of latitude and 20 km: the cosine changes by at most 20 km / R * tan(80) = 1.8 %."""

METRES_PER_DEGREE: Final = math.radians(EARTH_RADIUS)

Bytes = npt.NDArray[np.int8]

_direction: Final = inlined(direction_degrees)
_chord: Final = inlined(passage.chord)
_clipped: Final = inlined(passage.clipped)


class Fences(NamedTuple):
    """The columns, a row for each fence."""

    kind: Bytes
    lat: Floats
    lon: Floats
    cosine: Floats  # of the latitude
    radius: Floats  # of a circle around it
    width: Floats  # half of a rectangle's
    height: Floats
    stamp: Int64s  # the way that has met it last


class FenceGrid(NamedTuple):
    """Cells in which fences lie; those that lie in too many stand in the list of the wide ones."""

    table: Int64s  # [rows, 4], see ``grid``
    numbers: Int32s  # fences, cell by cell
    wide: Int32s
    levels: Int64s  # those in use


class Ways(NamedTuple):
    """From where to where, a row for each."""

    lat: Floats
    lon: Floats
    end_lat: Floats
    end_lon: Floats


class Met(NamedTuple):
    """Fences that a way enters, leaves or crosses."""

    way: Int32s
    fence: Int32s
    entered: Floats
    left: Floats
    open: Bytes
    progress: Int64s


@inlined
def fence_level(metres: float) -> int:
    """Cells at least as large as what they hold: it lies in four of them or so."""
    units = metres / UNIT_METRES
    level = LOWEST_LEVEL
    while level < HIGHEST_LEVEL and float(1 << level) < 2.0 * units:
        level += 1
    return level


@inlined
def cells_of(lat: float, lon: float, metres: float, level: int, keys: Int64s) -> int:
    """Write the keys of all cells of a level that a circle touches; -1 if there are too many."""
    reach = metres / UNIT_METRES + 4
    x, y = to_x(lon), to_y(lat)
    cosine = math.cos(math.radians(min(90.0, abs(lat) + math.degrees(metres / 6_371_000.0))))
    width = half_width(reach, cosine)
    if width >= HALF_TURN:
        return -1
    first_row = max(whole(0), y + SOUTH - whole(reach) - 1) >> level
    last_row = min(whole(2 * SOUTH), y + SOUTH + whole(reach) + 1) >> level
    span = whole(width) + 1
    n = 0
    for row in range(first_row, last_row + 1):
        shift = level + stretch(row, level)
        if shift >= 32:
            first, many, mask = whole(0), whole(1), whole(0)
        else:
            mask = (whole(1) << (32 - shift)) - 1
            first = ((x - span) & (FULL_TURN - 1)) >> shift
            many = (((((x + span) & (FULL_TURN - 1)) >> shift) - first) & mask) + 1
        if n + many > keys.shape[0]:
            return -1
        for j in range(many):
            keys[n] = (whole(level) << 48) | (whole(row) << 24) | ((first + j) & mask)
            n += 1
    return n


@kernel
def count_cells(fences: Fences, many: int, table: Int64s, cells: Int32s, keys: Int64s) -> int:
    """How many fences each cell gets, and each fence how many cells (-1: it is wide); -1 if the table is too small."""
    used = 0
    for fence in range(many):
        cells[fence] = 0
        if fences.kind[fence] == GONE:
            continue
        radius = fences.radius[fence]
        n = cells_of(fences.lat[fence], fences.lon[fence], radius, fence_level(radius), keys)
        cells[fence] = n
        for i in range(n):
            slot = slot_of(table, keys[i])
            if table[slot, KEY] == -1:
                if 2 * (used + 1) > table.shape[0]:
                    return -1
                table[slot, KEY] = keys[i]
                used += 1
            table[slot, CELL_COUNT] += 1
    return used


@kernel
def fill_cells(fences: Fences, many: int, grid: FenceGrid, cells: Int32s, keys: Int64s) -> None:
    table, start = grid.table, 0
    for slot in range(table.shape[0]):
        if table[slot, KEY] != -1:
            table[slot, START] = start
            start += table[slot, CELL_COUNT]
            table[slot, CELL_COUNT] = 0
    wide = 0
    for fence in range(many):
        if cells[fence] < 0:
            grid.wide[wide] = fence
            wide += 1
        if cells[fence] <= 0:
            continue
        radius = fences.radius[fence]
        for i in range(cells_of(fences.lat[fence], fences.lon[fence], radius, fence_level(radius), keys)):
            slot = slot_of(table, keys[i])
            grid.numbers[table[slot, START] + table[slot, CELL_COUNT]] = fence
            table[slot, CELL_COUNT] += 1


@kernel
def ways(fences: Fences, many: int, built: int, grid: FenceGrid, each: Ways, met: Met, keys: Int64s) -> int:
    """All that happens on these ways.  Fences from ``built`` on are not in the grid yet: they are tested one by one.

    ``FULL``: there was no room; what was found of a way that is not over is forgotten, and it goes on there when it is called again.
    """
    progress = met.progress
    at = progress[FOUND]
    for way in range(progress[NEXT], each.lat.shape[0]):
        progress[STAMP] += 1
        began = at
        lat, lon, end_lat, end_lon = each.lat[way], each.lon[way], each.end_lat[way], each.end_lon[way]
        turn = 0.0
        if abs(end_lon - lon) > 180.0:
            turn = 360.0 if end_lon < lon else -360.0
        middle_lat, middle_lon = (lat + end_lat) / 2, (lon + end_lon + turn) / 2
        if middle_lon >= 180.0:
            middle_lon -= 360.0
        elif middle_lon < -180.0:
            middle_lon += 360.0
        metres = max(haversine(middle_lat, middle_lon, lat, lon), haversine(middle_lat, middle_lon, end_lat, end_lon))
        metres = 1.01 * metres + 0.1
        everywhere = metres > LONGEST
        for k in range(grid.levels.shape[0]):
            n = -1 if everywhere else cells_of(middle_lat, middle_lon, metres, grid.levels[k], keys)
            if n < 0:
                everywhere = True
                break
            for i in range(n):
                slot = slot_of(grid.table, keys[i])
                if grid.table[slot, KEY] != keys[i]:
                    continue
                start = grid.table[slot, START]
                for j in range(start, start + grid.table[slot, CELL_COUNT]):
                    at = _meet(fences, grid.numbers[j], each, way, met, at)
        if everywhere:
            for fence in range(built):
                at = _meet(fences, fence, each, way, met, at)
        else:
            for j in range(grid.wide.shape[0]):
                at = _meet(fences, grid.wide[j], each, way, met, at)
        for fence in range(built, many):
            at = _meet(fences, fence, each, way, met, at)
        if at > met.way.shape[0]:  # it went on counting, without writing
            progress[NEXT], progress[FOUND] = way, began
            return FULL
    progress[NEXT], progress[FOUND] = each.lat.shape[0], at
    return DONE


@kernel
def around(
    fences: Fences,
    many: int,
    built: int,
    grid: FenceGrid,
    lat: float,
    lon: float,
    stamp: int,
    out: Int32s,
    keys: Int64s,
) -> int:
    """Fences that may cover a place, into ``out``, which has room for all of them; how many."""
    at = 0
    everywhere = False
    for k in range(grid.levels.shape[0]):
        n = cells_of(lat, lon, 0.1, grid.levels[k], keys)
        if n < 0:
            everywhere = True
            break
        for i in range(n):
            slot = slot_of(grid.table, keys[i])
            if grid.table[slot, KEY] != keys[i]:
                continue
            start = grid.table[slot, START]
            for j in range(start, start + grid.table[slot, CELL_COUNT]):
                at = _reaches(fences, grid.numbers[j], lat, lon, stamp, out, at)
    if everywhere:
        for fence in range(built):
            at = _reaches(fences, fence, lat, lon, stamp, out, at)
    else:
        for j in range(grid.wide.shape[0]):
            at = _reaches(fences, grid.wide[j], lat, lon, stamp, out, at)
    for fence in range(built, many):
        at = _reaches(fences, fence, lat, lon, stamp, out, at)
    return at


@inlined
def _reaches(fences: Fences, fence: int, lat: float, lon: float, stamp: int, out: Int32s, at: int) -> int:
    """Write the fence down, once, if the circle around it holds the place."""
    if fences.kind[fence] == GONE or fences.stamp[fence] == stamp:
        return at
    fences.stamp[fence] = stamp
    metres, radius = haversine(fences.lat[fence], fences.lon[fence], lat, lon), fences.radius[fence]
    if metres > radius + doubt(metres + radius):
        return at
    out[at] = fence
    return at + 1


@inlined
def _less(lon: float, other: float) -> float:
    """The difference of two longitudes, the short way."""
    difference = lon - other
    if difference > 180.0:
        return difference - 360.0
    return difference + 360.0 if difference < -180.0 else difference


@inlined
def _apart(x0: float, y0: float, x1: float, y1: float) -> float:
    """How near a straight way comes to the origin."""
    dx, dy = x1 - x0, y1 - y0
    square = dx * dx + dy * dy
    share = 0.0 if square == 0.0 else min(1.0, max(0.0, -(x0 * dx + y0 * dy) / square))
    return math.hypot(x0 + share * dx, y0 + share * dy)


@inlined
def _offset(anchor_lat: float, anchor_lon: float, lat: float, lon: float) -> tuple[float, float]:
    """As ``geometry.offset``."""
    east, north = _direction(anchor_lat, anchor_lon, lat, lon)
    length, metres = math.hypot(east, north), haversine(anchor_lat, anchor_lon, lat, lon)
    if length == 0.0:
        return 0.0, metres
    return east * (metres / length), north * (metres / length)


@inlined
def _meet(fences: Fences, fence: int, each: Ways, way: int, met: Met, at: int) -> int:
    """Write down what happens between a way and a fence, once; the number of what was found so far."""
    stamp = met.progress[STAMP]
    kind = fences.kind[fence]
    if kind == GONE or fences.stamp[fence] == stamp:
        return at
    fences.stamp[fence] = stamp
    met.progress[TESTED] += 1
    lat, lon, radius = fences.lat[fence], fences.lon[fence], fences.radius[fence]
    if abs(lat) < TEMPERATE and radius < NEAR:
        # A glance at a map with straight meridians, which errs by less than ``MAP_ERROR`` so near: most fences need no more.
        narrow = METRES_PER_DEGREE * fences.cosine[fence]
        west, east = narrow * _less(each.lon[way], lon), narrow * _less(each.end_lon[way], lon)
        south, north = METRES_PER_DEGREE * (each.lat[way] - lat), METRES_PER_DEGREE * (each.end_lat[way] - lat)
        farthest = max(abs(west), abs(east)) + max(abs(south), abs(north))
        if farthest < NEAR:
            beyond = radius + MAP_ERROR * (farthest + radius)
            if (
                min(west, east) > beyond
                or max(west, east) < -beyond
                or min(south, north) > beyond
                or max(south, north) < -beyond
            ):
                return at
            if kind == ROUND:
                within = radius - MAP_ERROR * (farthest + radius)
                if within > 0.0 and max(west * west + south * south, east * east + north * north) < within * within:
                    return at
                if _apart(west, south, east, north) > beyond:
                    return at
    x0, y0 = _offset(lat, lon, each.lat[way], each.lon[way])
    x1, y1 = _offset(lat, lon, each.end_lat[way], each.end_lon[way])
    # The largest distance that two correct computations may give for one: within it, the model decides.
    slack = doubt(max(math.hypot(x0, y0), math.hypot(x1, y1)) + radius)
    if kind == UPRIGHT:
        width, height = fences.width[fence], fences.height[fence]
        entered, left = _clipped(x0, y0, x1, y1, width + slack, height + slack)
        if entered > left:
            return at
        sure_entered, sure_left = _clipped(x0, y0, x1, y1, width - slack, height - slack)
        plain = min(width, height) > slack
    else:
        if kind == DRAWN:
            slack += 1e-3 * radius + 0.01 * math.hypot(x1 - x0, y1 - y0)  # its way is straight in another plane
        entered, left = _chord(x0, y0, x1, y1, radius + slack)
        if entered > left:
            return at
        sure_entered, sure_left = _chord(x0, y0, x1, y1, radius - slack)
        plain = kind == ROUND and radius > slack
    # Sure is what is the same for a fence that is larger, and for one that is smaller, by all that rounding may do.
    same = (
        plain
        and sure_entered <= sure_left
        and (entered > 0.0) == (sure_entered > 0.0)
        and (left < 1.0) == (sure_left < 1.0)
    )
    if same and entered <= 0.0 and left >= 1.0:
        return at
    if at < met.way.shape[0]:
        met.way[at] = way
        met.fence[at] = fence
        met.entered[at] = (entered + sure_entered) / 2 if entered > 0.0 else 0.0
        met.left[at] = (left + sure_left) / 2 if left < 1.0 else 1.0
        met.open[at] = SURE if same else OPEN
    return at + 1
