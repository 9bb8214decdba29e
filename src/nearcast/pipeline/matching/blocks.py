"""Blocks of space: runs of cells along a curve, each of about the same work.

The box around all events is cut into cells.  What a cell costs is estimated from how many events happen in it and how
many clients stand around; along the Z-order curve, on which neighbours mostly stay together, the cells are cut into blocks
of equal cost.  A cell that is too hot for one block is dealt, event by event, to several **parts**, each of which knows
all its clients.  So a hot spot costs no task more than others, however small it is.

Cells are equal in degrees.  A circle touches all columns between the longitudes that it reaches; over the antimeridian
columns are counted on, and around a pole it touches all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nearcast.model.geometry import EARTH_RADIUS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SLACK: Final = 1.0 + 1e-6
"""Circles are taken for a little larger: which blocks an area touches is computed with other rounding than what it covers."""
_NEAR_POLE: Final = 0.999


@dataclass(frozen=True, slots=True)
class Cells:
    """The grid of cells: ``rows`` x ``columns`` from a south-western corner, each ``height`` x ``width`` degrees."""

    south: float
    west: float
    height: float
    width: float
    rows: int
    columns: int

    @classmethod
    def over(cls, south: float, west: float, north: float, east: float, count: int) -> Cells:
        """About ``count`` cells, as square as can be, over a box with its borders."""
        tall = max(north - south, 1e-6)
        wide = max(east - west, 1e-6)
        aspect = wide * math.cos(math.radians((south + north) / 2)) / tall
        columns = max(1, min(count, round(math.sqrt(count * max(aspect, 1e-6)))))
        rows = max(1, count // columns)
        # A whole number of columns goes round the earth; the last row and column hold the borders.
        width = 360.0 / max(1, math.floor(360.0 / (wide / columns)))
        return cls(south, west, tall / rows, width, rows + 1, min(math.floor(wide / width) + 1, round(360.0 / width)))

    @property
    def round_the_earth(self) -> int:
        return round(360.0 / self.width)

    @property
    def square_metres(self) -> float:
        """Of a cell in the middle of the box, about."""
        metres = math.radians(1.0) * EARTH_RADIUS
        middle = math.cos(math.radians(self.south + self.rows * self.height / 2))
        return max(1.0, self.height * metres * self.width * metres * max(middle, 0.01))

    def of_place(self, lat: Column, lon: Column) -> Column:
        """The cell of an event, which lies in the box; null without a place."""
        from pyspark.sql import functions as F

        row = F.least(F.floor((lat - self.south) / self.height), F.lit(self.rows - 1))
        column = F.least(F.floor((lon - self.west) / self.width), F.lit(self.columns - 1))
        # `least` would leave nulls out.
        return F.when(lat.isNotNull() & lon.isNotNull(), (row * self.columns + column).cast("int"))

    def touched(self, lat: Column, lon: Column, metres: float) -> Column:
        """The cells that a circle touches, as an array; null without a position."""
        from pyspark.sql import functions as F

        angle = min(math.pi, metres * _SLACK / EARTH_RADIUS + 1e-9)
        degrees = math.degrees(angle)
        rows = F.sequence(
            F.greatest(F.floor((lat - degrees - self.south) / self.height), F.lit(0)),
            F.least(F.floor((lat + degrees - self.south) / self.height), F.lit(self.rows - 1)),
        )
        # The widest longitude of a circle: asin(sin(angle) / cos(lat)); all of them if it holds a pole.
        ratio = F.lit(math.sin(min(angle, math.pi / 2))) / F.greatest(F.cos(F.radians(lat)), F.lit(1e-12))
        around = (ratio > _NEAR_POLE) | F.lit(angle >= math.pi / 2)
        half = F.degrees(F.asin(F.least(ratio, F.lit(_NEAR_POLE)))) * _SLACK
        first = F.floor((lon - half - self.west) / self.width)
        last = F.floor((lon + half - self.west) / self.width)
        turn = self.round_the_earth
        everything = around | (last - first + 1 >= turn)
        columns = F.when(
            everything, F.sequence(F.lit(0).cast("bigint"), F.lit(self.columns - 1).cast("bigint"))
        ).otherwise(
            F.filter(F.transform(F.sequence(first, last), lambda c: F.pmod(c, F.lit(turn))), lambda c: c < self.columns)
        )
        visible = (lat + degrees >= self.south) & (lat - degrees < self.south + self.rows * self.height)
        cells = F.flatten(
            F.transform(rows, lambda r: F.transform(columns, lambda c: (r * self.columns + c).cast("int")))
        )
        return F.when(visible, cells)


@dataclass(frozen=True, eq=False, slots=True)
class Blocks:
    """Which block, or which several parts, each cell belongs to: ``first[cell]`` and ``parts[cell]`` of them."""

    cells: Cells
    first: tuple[int, ...]
    parts: tuple[int, ...]
    count: int

    def of_event(self, cell: Column, event: Column) -> Column:
        from pyspark.sql import functions as F

        part = F.pmod(F.hash(event), _looked_up(self.parts, cell))
        return _looked_up(self.first, cell) + part

    def of_cells(self, cells: Column) -> Column:
        """All blocks of several cells."""
        from pyspark.sql import functions as F

        if max(self.parts) == 1:
            return F.array_distinct(F.transform(cells, lambda cell: _looked_up(self.first, cell)))
        several = F.transform(
            cells,
            lambda cell: F.sequence(
                _looked_up(self.first, cell), _looked_up(self.first, cell) + _looked_up(self.parts, cell) - 1
            ),
        )
        return F.array_distinct(F.flatten(several))


def counts_per_cell(events: DataFrame, reports: DataFrame, cells: Cells) -> tuple[Any, Any]:
    """How many events happened in each cell, and how many reports came from it."""
    from pyspark.sql import functions as F

    frames = []
    for number, frame in enumerate((events, reports)):
        cell = cells.of_place(F.col("lat"), F.col("lon"))
        inside = (cell >= 0) & (cell < cells.rows * cells.columns) & (F.col("lon") >= cells.west)
        placed = frame.where(F.col("lat").isNotNull() & inside).select(cell.alias("cell"))
        frames.append(placed.groupBy("cell").count().withColumn("number", F.lit(number)))
    found = frames[0].unionByName(frames[1]).toArrow()
    counts = np.zeros((2, cells.rows * cells.columns))
    counts[found.column("number").to_numpy(), found.column("cell").to_numpy()] = found.column("count").to_numpy()
    return counts[0], counts[1]


def _looked_up(table: tuple[int, ...], index: Column) -> Column:
    """An element of a constant array, which the optimiser makes of a text once."""
    from pyspark.sql import functions as F

    constant = F.split(F.lit(",".join(map(str, table))), ",").cast("array<int>")
    return F.get(constant, index)


def cut_into_blocks(cells: Cells, events: Any, clients: Any, count: int) -> Blocks:
    """At most ``count`` blocks and parts, the dearest of them about as cheap as can be.

    What a cell costs: its ``events`` can be dealt to several parts, its ``clients`` each of these parts has to know.
    """
    order = np.argsort(_z_order(cells), kind="stable")
    # A little more than everything, however it is rounded: that fits into one block.
    low, high = 0.0, 1.001 * float(events.sum() + clients.sum()) or 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _cut(cells, order, events, clients, middle).count > count:
            low = middle
        else:
            high = middle
    return _cut(cells, order, events, clients, high)


_HALVINGS: Final = 24


def _cut(cells: Cells, order: Any, events: Any, clients: Any, most: float) -> Blocks:
    """Blocks and parts none of which costs more than ``most``, as far as that is possible."""
    # A part that has to know more clients than that has half of its work, at least, in events.
    room = np.maximum(most - clients, most / 2)
    parts = np.maximum(np.ceil(events / room), 1.0).astype(np.int64)
    first = np.zeros(len(events), np.int64)
    block, filled = 0, math.inf
    blocks = 0
    costs = events + clients
    for cell in order.tolist():
        if parts[cell] > 1:  # beside the others, whose run goes on after it
            first[cell], blocks = blocks, blocks + int(parts[cell])
            continue
        if filled + costs[cell] > most:
            block, blocks, filled = blocks, blocks + 1, 0.0
        first[cell] = block
        filled += costs[cell]
    return Blocks(cells, tuple(first.tolist()), tuple(parts.tolist()), blocks)


def _z_order(cells: Cells) -> Any:
    """The place of each cell on the curve: the bits of row and column in turns."""
    number = np.arange(cells.rows * cells.columns)
    row, column = number // cells.columns, number % cells.columns
    place = np.zeros(len(number), np.int64)
    for bit in range(20):
        place |= ((column >> bit & 1) << (2 * bit)) | ((row >> bit & 1) << (2 * bit + 1))
    return place
