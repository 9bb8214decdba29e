"""A uniform grid of moving entries over the whole earth, in arrays, with compiled kernels.

**Coordinates** are 32-bit fixed point: the circle of longitude is 2**32 units (9.3 mm at the equator), so that the
difference of two longitudes wraps at the antimeridian by itself.  Latitude uses the same unit.

**Cells**: at level k a row is 2**k units high.  Within a row, cells are 2**(k + s) units wide, where s grows towards
the poles (once for every halving of the cosine), so that cells stay between half and once as wide as high, and the
row at a pole is a single cell.  An entry of radius r lives at a level whose cells are about as large as r; an
event looks at the few cells around it, on every level in use.

**Buckets**: the entries of a cell are three columns of one int32 pool, each ``capacity`` long: the place within the cell
(16 bits each way), the tag (which filter, flags), and the holder.  Twelve bytes an entry: what is not read need not be
fetched, and memory is what limits matching.  Full buckets move to the next larger size; their old block goes to a free
list.  The cells are found through an open-addressing hash table whose rows hold key, start, count and capacity in
one half cache line.

**Holders**: an entry whose tag has no flags names its client; one with flags names its item (the subscription), which
has to be looked at closer anyway.  ``where`` knows the slot and the index of every item.

**Exactness**: the planar single-precision test carries a bound of its own error.  What it cannot decide is decided in
double precision, and what that cannot decide (a border within a micrometre) is left to the model's own definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.matching.vector import peek
from nearcast.model.geometry import EARTH_RADIUS, HALF_CIRCUMFERENCE

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

whole = cast("Callable[[Any], int]", np.int64)
"""A number of 64 bits, to the kernels; to everybody else an int."""

UNITS_PER_DEGREE: Final = 2.0**32 / 360.0
UNIT_RADIANS: Final = 2.0 * math.pi / 2.0**32
UNIT_METRES: Final = UNIT_RADIANS * EARTH_RADIUS
SOUTH: Final = 1 << 30
"""Latitude -90 in units, negated."""
FULL_TURN: Final = 1 << 32
HALF_TURN: Final = 1 << 31

LOWEST_LEVEL: Final = 11  # cells of 19 m; smaller ones would only cost memory
HIGHEST_LEVEL: Final = 31  # one cell for the whole earth
LEVELS: Final = 32

# Columns of a bucket
PLACE: Final = 0
TAG: Final = 1
HOLDER: Final = 2
COLUMNS: Final = 3
SMALLEST_BUCKET: Final = 4
SPARE: Final = 64
"""Vectors may read beyond the last bucket."""

FILTER_BITS: Final = (1 << 26) - 1
"""The part of a tag that is the number of a filter; what lies above are flags."""

CLASS_BITS: Final = 12
"""Radii are kept with so many significant bits, rounded up; entries of one filter share their class of radius."""

# Columns of a row of the table
KEY: Final = 0
START: Final = 1
COUNT: Final = 2
CAPACITY: Final = 3
ROW: Final = 4

# Slots of ``ledger``
POOL_USED: Final = 0
CELLS_USED: Final = 1
ENTRIES: Final = 2
LARGEST_BUCKET: Final = 3
LEVELS_USED: Final = 4  # a bit for every level that holds entries
FREE: Final = 5  # heads of the free lists, one per size of buckets
LEDGER: Final = FREE + 64

OK: Final = 0
POOL_FULL: Final = 1
TABLE_FULL: Final = 2

# A cosine below 2**-j: latitudes at which cells double their width (see ``stretch``).
_DOUBLINGS: Final = np.array(
    [math.degrees(math.acos(2.0**-j)) * UNITS_PER_DEGREE for j in range(1, 22)], dtype=np.int64
)


class Grid(NamedTuple):
    """The arrays of a grid; kernels take it as one argument."""

    table: Int64s  # [rows, 4]
    pool: Int32s
    ledger: Int64s
    levels: Int64s  # [LEVELS, 3]: entries, largest and smallest radius in units


@inlined
def stretch(row: int, level: int) -> int:
    """Halvings of the cosine at the poleward edge of a row."""
    low = (row << level) - SOUTH
    high = low + (1 << level)
    edge = max(abs(low), abs(high))
    s = 0
    while s < 21 and edge >= _DOUBLINGS[s]:
        s += 1
    return min(s, 32 - level)


@inlined
def cell_key(x: int, y: int, level: int) -> int:
    row = (y + SOUTH) >> level
    column = (x & (FULL_TURN - 1)) >> (level + stretch(row, level))
    return (level << 48) | (row << 24) | column


@inlined
def home(table: Int64s, key: int) -> int:
    """The row where the search for a key begins.  Four cells side by side share two cache lines."""
    return whole(((((key >> 2) * -7046029254386353131) >> 20 << 2) | (key & 3)) & (table.shape[0] - 1))


@inlined
def slot_of(table: Int64s, key: int) -> int:
    """The row of the table that holds ``key``, or the free row where it belongs."""
    mask = table.shape[0] - 1
    slot = home(table, key)
    while True:
        there = peek(table, slot * ROW + KEY)
        if there in (key, -1):
            return slot
        slot = (slot + 1) & mask


@inlined
def level_of(radius: int) -> int:
    """The level whose cells are between one and a half and three radii high: few cells around an event, few strangers in them."""
    level = LOWEST_LEVEL
    while level < HIGHEST_LEVEL and (2 << level) < 3 * radius:
        level += 1
    return level


@inlined
def to_x(lon: float) -> int:
    x = whole(math.floor(lon * UNITS_PER_DEGREE + 0.5))
    return x - FULL_TURN if x >= HALF_TURN else x


@inlined
def to_y(lat: float) -> int:
    return whole(math.floor(lat * UNITS_PER_DEGREE + 0.5))


@inlined
def _class_step(units: int) -> int:
    step = 1
    while units >> CLASS_BITS:
        units >>= 1
        step *= 2
    return step


@inlined
def units_of(metres: float) -> int:
    """The class of a radius: rounded up, never beyond the earth."""
    units = whole(math.ceil(min(metres, HALF_CIRCUMFERENCE) / UNIT_METRES))
    step = _class_step(units)
    return min((units + step - 1) // step * step, HALF_TURN - 1)


@inlined
def least_units(units: int) -> int:
    """No radius of this class is smaller."""
    return max(0, units - _class_step(units) - 1)


@inlined
def place_in_cell(x: int, y: int, key: int) -> int:
    """Where in its cell a point lies: 16 bits of latitude above 16 bits of longitude, as int32."""
    level, row, column = key >> 48, (key >> 24) & 0xFFFFFF, key & 0xFFFFFF
    shift = level + stretch(row, level)
    north = (y + SOUTH - (row << level)) >> max(0, level - 16)
    east = ((x - (column << shift)) & (FULL_TURN - 1)) >> max(0, shift - 16)
    packed = (north << 16) | east
    return packed - FULL_TURN if packed >= HALF_TURN else packed


@inlined
def item_at(where: Int32s, first: Int32s, following: Int32s, holder: int, tag: int, slot: int, index: int) -> int:
    """The item of an entry; ``first`` and ``following`` chain the items of a client."""
    if tag > FILTER_BITS:
        return holder
    item = whole(first[holder])
    while where[item, 0] != slot or where[item, 1] != index:
        item = whole(following[item])
    return item


@inlined
def _size_class(capacity: int) -> int:
    size_class = 0
    while capacity_of(size_class) < capacity:
        size_class += 1
    return size_class


@inlined
def capacity_of(size_class: int) -> int:
    """4, 6, 8, 12, 16, 24 ...: two sizes for every doubling, so that little of a bucket is empty."""
    return (SMALLEST_BUCKET + SMALLEST_BUCKET // 2 * (size_class & 1)) << (size_class >> 1)


@inlined
def _block(grid: Grid, size_class: int) -> int:
    """Take a block from the free list or the end of the pool; -1 if there is no room."""
    ledger = grid.ledger
    head = ledger[FREE + size_class]
    if head >= 0:
        ledger[FREE + size_class] = grid.pool[head]
        return whole(head)
    size = capacity_of(size_class) * COLUMNS
    if ledger[POOL_USED] + size + SPARE > grid.pool.shape[0]:
        return -1
    start = ledger[POOL_USED]
    ledger[POOL_USED] += size
    return whole(start)


@inlined
def _release(grid: Grid, start: int, capacity: int) -> None:
    size_class = _size_class(capacity)
    grid.pool[start] = grid.ledger[FREE + size_class]
    grid.ledger[FREE + size_class] = start


@kernel
def insert(grid: Grid, where: Int32s, item: int, holder: int, x: int, y: int, radius: int, tag: int) -> int:
    """Put an entry into its cell; ``where[item]`` is (slot, index).  Nothing is changed unless OK is returned."""
    table, pool, ledger, levels = grid.table, grid.pool, grid.ledger, grid.levels
    level = level_of(radius)
    key = cell_key(x, y, level)
    slot = slot_of(table, key)
    if table[slot, KEY] == -1:
        if (ledger[CELLS_USED] + 1) * 2 > table.shape[0]:
            return TABLE_FULL
        start = _block(grid, 0)
        if start < 0:
            return POOL_FULL
        table[slot, KEY] = key
        table[slot, START] = start
        table[slot, COUNT] = 0
        table[slot, CAPACITY] = SMALLEST_BUCKET
        ledger[CELLS_USED] += 1
    count, capacity, start = table[slot, COUNT], table[slot, CAPACITY], table[slot, START]
    if count == capacity:
        size_class = _size_class(capacity + 1)
        wider = capacity_of(size_class)
        to = _block(grid, size_class)
        if to < 0:
            return POOL_FULL
        for column in range(COLUMNS):
            for i in range(count):
                pool[to + column * wider + i] = pool[start + column * capacity + i]
        if capacity > 0:
            _release(grid, start, capacity)
        start, capacity = to, wider
        table[slot, START] = start
        table[slot, CAPACITY] = capacity
    pool[start + PLACE * capacity + count] = place_in_cell(x, y, key)
    pool[start + TAG * capacity + count] = tag
    pool[start + HOLDER * capacity + count] = holder
    where[item, 0] = slot
    where[item, 1] = count
    table[slot, COUNT] = count + 1
    ledger[ENTRIES] += 1
    ledger[LARGEST_BUCKET] = max(ledger[LARGEST_BUCKET], count + 1)
    least = least_units(radius)
    if levels[level, 0] == 0:
        levels[level, 1], levels[level, 2] = radius, least
        ledger[LEVELS_USED] |= whole(1) << level
    levels[level, 0] += 1
    levels[level, 1] = max(levels[level, 1], radius)
    levels[level, 2] = min(levels[level, 2], least)
    return OK


@kernel
def remove(grid: Grid, where: Int32s, first: Int32s, following: Int32s, item: int) -> None:
    """Take an entry out; the last one of its bucket takes its place."""
    table, pool, ledger, levels = grid.table, grid.pool, grid.ledger, grid.levels
    slot, index = where[item, 0], where[item, 1]
    start, capacity = table[slot, START], table[slot, CAPACITY]
    last = table[slot, COUNT] - 1
    if index != last:
        holder, tag = pool[start + HOLDER * capacity + last], pool[start + TAG * capacity + last]
        other = item_at(where, first, following, holder, tag, slot, last)
        for column in range(COLUMNS):
            pool[start + column * capacity + index] = pool[start + column * capacity + last]
        where[other, 1] = index
    table[slot, COUNT] = last
    where[item, 0] = -1
    ledger[ENTRIES] -= 1
    level = table[slot, KEY] >> 48
    levels[level, 0] -= 1
    if levels[level, 0] == 0:
        ledger[LEVELS_USED] &= ~(whole(1) << level)
    if last == 0:
        _release(grid, start, capacity)
        table[slot, START] = 0
        table[slot, CAPACITY] = 0


@kernel
def move(grid: Grid, where: Int32s, first: Int32s, following: Int32s, item: int, x: int, y: int, radius: int) -> int:
    """Shift an entry that is in the grid.  If the new cell has no room the entry stays where it was."""
    table, pool = grid.table, grid.pool
    slot, index = where[item, 0], where[item, 1]
    start, capacity, key = table[slot, START], table[slot, CAPACITY], table[slot, KEY]
    if cell_key(x, y, key >> 48) == key:
        pool[start + PLACE * capacity + index] = place_in_cell(x, y, key)
        return OK
    tag = pool[start + TAG * capacity + index]
    holder = pool[start + HOLDER * capacity + index]
    # Into the new cell first: if there is no room, nothing has happened.
    status = insert(grid, where, item, holder, x, y, radius, tag)
    if status != OK:
        return status
    to_slot, to_index = where[item, 0], where[item, 1]
    where[item, 0], where[item, 1] = slot, index
    remove(grid, where, first, following, item)
    where[item, 0], where[item, 1] = to_slot, to_index
    return OK


@kernel
def rehash(table: Int64s, grid: Grid, where: Int32s, first: Int32s, following: Int32s) -> int:
    """Copy the cells that hold something into a larger, empty ``table``; returns how many they are."""
    used = 0
    for old in range(grid.table.shape[0]):
        if grid.table[old, KEY] == -1 or grid.table[old, COUNT] == 0:
            continue
        slot = slot_of(table, grid.table[old, KEY])
        for column in range(4):
            table[slot, column] = grid.table[old, column]
        used += 1
        start, capacity = table[slot, START], table[slot, CAPACITY]
        for i in range(table[slot, COUNT]):
            holder, tag = grid.pool[start + HOLDER * capacity + i], grid.pool[start + TAG * capacity + i]
            # Negative until all are done: a new slot must not be taken for an old one.
            where[item_at(where, first, following, holder, tag, old, i), 0] = -2 - slot
    for item in range(where.shape[0]):
        if where[item, 0] <= -2:
            where[item, 0] = -2 - where[item, 0]
    return used


def new_grid(cells: int = 64, entries: int = 64) -> Grid:
    table = np.full((cells, 4), -1, dtype=np.int64)
    ledger = np.zeros(LEDGER, dtype=np.int64)
    ledger[FREE:] = -1
    return Grid(table, np.empty(entries * COLUMNS, dtype=np.int32), ledger, np.zeros((LEVELS, 3), dtype=np.int64))


def with_room(grid: Grid, where: Int32s, first: Int32s, following: Int32s, status: int) -> Grid:
    """The grid with a larger pool or table, as ``status`` asks."""
    if status == POOL_FULL:
        size = grid.pool.shape[0] * 3 // 2 + 4 * COLUMNS * int(grid.ledger[LARGEST_BUCKET])
        pool = np.empty(max(1024, size), dtype=np.int32)
        pool[: grid.pool.shape[0]] = grid.pool
        return grid._replace(pool=pool)
    occupied = int(np.count_nonzero(grid.table[:, COUNT] > 0))
    size = grid.table.shape[0]
    # Cells that were left stay in the table until here; grow only if it is the occupied ones that fill it.
    if occupied * 4 > size:
        size *= 2
    table = np.full((size, 4), -1, dtype=np.int64)
    grid.ledger[CELLS_USED] = rehash(table, grid, where, first, following)
    return grid._replace(table=table)
