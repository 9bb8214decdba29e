"""Fences: areas of which somebody wants to know who enters, leaves or crosses them.

A fence has no memory of who is inside: what happens on a way follows from the way alone.  So a million clients and a hundred thousand
fences need no state for their pairs, nothing has to be carried over, and the answer is the definition's (``model.passage``).

Fences that are new are tested one by one until there are enough of them to build the grid anew.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from nearcast.errors import InvalidArea
from nearcast.matching import fence_kernels as kernels
from nearcast.matching.fence_kernels import DRAWN, GONE, MOST_CELLS, OPEN, ROUND, UPRIGHT, FenceGrid, Met, Ways
from nearcast.matching.grid import Floats, Int32s
from nearcast.matching.growing import grown
from nearcast.model.area import Area, Circle, Rectangle
from nearcast.model.geometry import Point
from nearcast.model.passage import Visit, visits

K = TypeVar("K", bound=Hashable)

_TYPES: Final = (np.int8, *([np.float64] * 6), np.int64)

RECENT: Final = 64
"""So many fences, or an eighth of all, may be outside the grid."""


@dataclass(frozen=True, slots=True)
class FencesStatistics:
    fences: int
    waiting: int
    """Not in the grid yet."""

    tested: int
    """Pairs of a way and a fence."""

    left_to_the_model: int


class Passed(NamedTuple, Generic[K]):
    """What happened between one way and one fence."""

    way: int
    key: K
    visits: tuple[Visit, ...]


class Passages(NamedTuple, Generic[K]):
    """The same in columns, a row for each visit, for whoever has very many of them; ways and fences in any order.

    Good until the index is asked again, or a fence is put or removed.
    """

    way: Int32s
    fence: Int32s
    """The number of it among ``keys``."""

    entered: Floats
    left: Floats
    keys: Sequence[K | None]


class FenceIndex(Generic[K]):
    """Absolute areas by key."""

    def __init__(self) -> None:
        self._number: Final[dict[K, int]] = {}
        self._keys: list[K | None] = []
        self._areas: list[Area | None] = []
        self._columns = _columns(*(np.zeros(0, each) for each in _TYPES))
        self._built = 0
        self._grid = _empty_grid()
        self._removed = 0
        self._scratch: Final = np.empty(MOST_CELLS, np.int64)
        self._met = _room(1024)
        self._left_to_the_model = 0
        self._near: Int32s = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, key: object) -> bool:
        return key in self._number

    def statistics(self) -> FencesStatistics:
        return FencesStatistics(
            len(self),
            len(self._keys) - self._built,
            int(self._met.progress[kernels.TESTED]),
            self._left_to_the_model,
        )

    def put(self, key: K, area: Area) -> None:
        """Watch it; a fence of the same key is replaced."""
        if area.is_relative:
            raise InvalidArea("a fence lies somewhere: anchor the area at a position first")
        self.remove(key)
        number = len(self._keys)
        columns = self._columns = _columns(*(grown(column, number + 1) for column in self._columns))
        center = area.fixed_center()
        columns.kind[number] = ROUND if isinstance(area, Circle) else UPRIGHT if isinstance(area, Rectangle) else DRAWN
        columns.lat[number], columns.lon[number] = center.lat, center.lon
        columns.cosine[number] = math.cos(math.radians(center.lat))
        columns.radius[number] = area.bounding_radius()
        columns.stamp[number] = 0
        if isinstance(area, Rectangle):
            columns.width[number], columns.height[number] = area.width / 2, area.height / 2
        self._number[key] = number
        self._keys.append(key)
        self._areas.append(area)

    def remove(self, key: K) -> bool:
        number = self._number.pop(key, None)
        if number is None:
            return False
        self._columns.kind[number] = GONE
        self._keys[number] = self._areas[number] = None
        self._removed += 1
        return True

    def area(self, key: K) -> Area:
        area = self._areas[self._number[key]]
        assert area is not None
        return area

    def passed(self, lat: Floats, lon: Floats, end_lat: Floats, end_lon: Floats) -> Iterator[Passed[K]]:
        """All fences that each of the ways enters, leaves or crosses; ways in their order, fences in any."""
        met, found, resolved = self._meet(lat, lon, end_lat, end_lon)
        columns = (column[:found].tolist() for column in met[:-1])
        for way, fence, entered, left, doubtful in zip(*columns, strict=True):
            key = self._keys[fence]
            there = resolved.get((way, fence), ()) if doubtful == OPEN else ((entered, left),)
            if there and key is not None:
                yield Passed(way, key, there)

    def passages(self, lat: Floats, lon: Floats, end_lat: Floats, end_lon: Floats) -> Passages[K]:
        """The same, in columns."""
        met, found, resolved = self._meet(lat, lon, end_lat, end_lon)
        columns: list[Any] = [column[:found] for column in met[:4]]
        if resolved:
            sure = met.open[:found] != OPEN
            more = [(*pair, *visit) for pair, there in resolved.items() for visit in there]
            parts = zip(columns, zip(*more, strict=True) if more else [()] * 4, strict=True)
            columns = [np.append(known[sure], np.array(new, known.dtype)) for known, new in parts]
        way, fence, entered, left = columns
        return Passages(way, fence, entered, left, self._keys)

    def _meet(
        self, lat: Floats, lon: Floats, end_lat: Floats, end_lon: Floats
    ) -> tuple[Met, int, dict[tuple[int, int], tuple[Visit, ...]]]:
        """What the kernel found, and how much; and what the model says of the ways and fences that it left open."""
        self._build()
        met = self._met
        met.progress[kernels.NEXT] = met.progress[kernels.FOUND] = 0
        each = Ways(lat, lon, end_lat, end_lon)
        many = len(self._keys)
        while kernels.ways(self._columns, many, self._built, self._grid, each, met, self._scratch) == kernels.FULL:
            self._met = met = _room(2 * len(met.way), met)
        found = int(met.progress[kernels.FOUND])
        resolved: dict[tuple[int, int], tuple[Visit, ...]] = {}
        doubtful = np.flatnonzero(met.open[:found])
        for way, fence in zip(met.way[doubtful].tolist(), met.fence[doubtful].tolist(), strict=True):
            area = self._areas[fence]
            assert area is not None  # or the kernel had passed over it
            self._left_to_the_model += 1
            there = visits(area, Point(lat[way], lon[way]), Point(end_lat[way], end_lon[way]))
            resolved[way, fence] = () if there == ((0.0, 1.0),) else there
        return met, found, resolved

    def covering(self, point: Point) -> Iterator[K]:
        """The fences that somebody there is in."""
        self._build()
        progress = self._met.progress
        progress[kernels.STAMP] += 1
        many = len(self._keys)
        if len(self._near) < many:
            self._near = np.empty(len(self._columns.kind), np.int32)
        found = kernels.around(
            self._columns,
            many,
            self._built,
            self._grid,
            point.lat,
            point.lon,
            int(progress[kernels.STAMP]),
            self._near,
            self._scratch,
        )
        for number in self._near[:found].tolist():
            key, area = self._keys[number], self._areas[number]
            if key is not None and area is not None and area.covers(point):
                yield key

    def _build(self) -> None:
        """Put all into the grid if too many are outside."""
        waiting = len(self._keys) - self._built
        if waiting + self._removed <= max(RECENT, len(self._keys) // 8):
            return
        if self._removed:
            self._compact()
        columns, many = self._columns, len(self._keys)
        cells: Int32s = np.empty(many, np.int32)
        rows = 1024
        while True:
            table = np.zeros((rows, 4), np.int64)
            table[:, 0] = -1
            if kernels.count_cells(columns, many, table, cells, self._scratch) >= 0:
                break
            rows *= 2
        wide = int(np.count_nonzero(cells < 0))
        levels = sorted({_level(radius) for radius in np.unique(columns.radius[:many][cells >= 0]).tolist()})
        numbers = np.empty(int(cells[cells > 0].sum()), np.int32)
        self._grid = FenceGrid(table, numbers, np.empty(wide, np.int32), np.array(levels, np.int64))
        kernels.fill_cells(columns, many, self._grid, cells, self._scratch)
        self._built = many

    def _compact(self) -> None:
        kept = [number for number, key in enumerate(self._keys) if key is not None]
        self._columns = _columns(*(column[kept] for column in self._columns))
        self._keys = [self._keys[number] for number in kept]
        self._areas = [self._areas[number] for number in kept]
        self._number.update({key: number for number, key in enumerate(self._keys) if key is not None})
        self._removed = 0


def _level(radius: float) -> int:
    return kernels.fence_level(radius)


def _columns(*columns: Any) -> kernels.Fences:
    return kernels.Fences(*columns)


def _empty_grid() -> FenceGrid:
    table = np.full((2, 4), -1, np.int64)
    return FenceGrid(table, np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))


def _room(size: int, before: Met | None = None) -> Met:
    """For so many passages; what was found stays."""
    met = Met(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size),
        np.empty(size),
        np.empty(size, np.int8),
        np.zeros(kernels.PROGRESS, np.int64),
    )
    if before is not None:
        pairs: Any = zip(met, before, strict=True)
        for column, known in pairs:
            column[: len(known)] = known
    return met
