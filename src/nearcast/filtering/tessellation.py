"""Cells that cut the world into channels, for the schemes GRID and EGRID (BYPASS.KOM 4.2.4; LCN 2016, III-C).

A cell is known by its name, which is the name of its channel.  Where a place belongs is decided by ``cell_of`` alone; the
other questions are answered so that they agree with it: whoever asks for the cells around a circle gets the cell of every
place in that circle.  Rounding is met with a slack that may add a cell which a circle misses by a micrometre, and never
loses one that it meets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from nearcast.errors import InvalidArea, InvalidPosition, InvalidScheme, UnknownName
from nearcast.model.geometry import EARTH_RADIUS, Point, checked_degrees

Cover = Literal["circle", "box"]
"""Which cells an area of interest takes: those that meet the circle (RGRID, LCN 2016), or its bounding box (eGRID)."""

Block = tuple[int, int, int, int]
"""First and last column, first and last row."""

HIGHEST_LATITUDE: Final = 85.0
"""Worlds end here: nearer to the poles a box in degrees is no neighbourhood any more."""

SLACK: Final = 1.0 + 1e-9
SLACK_METRES: Final = 1e-6
_LONGEST_NAME: Final = 32  # a name may come from anywhere: what is longer is not even read as a number
_CIRCLE: Final = 360.0
_HALF_CIRCLE: Final = 180.0


@dataclass(frozen=True, slots=True)
class GeoBox:
    """The world: degrees, from west to east without crossing the antimeridian."""

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        for name, limit in (("south", HIGHEST_LATITUDE), ("north", HIGHEST_LATITUDE), ("west", 180.0), ("east", 180.0)):
            object.__setattr__(self, name, checked_degrees(getattr(self, name), name, limit))
        if self.south >= self.north:
            raise InvalidArea(
                f"the world's northern border ({self.north}) must lie north of its southern ({self.south})"
            )
        if self.west >= self.east:
            raise InvalidArea(
                f"the world's eastern border ({self.east}) must lie east of its western ({self.west}); a world that "
                "crosses the antimeridian cannot be cut into cells: take one of its halves"
            )

    @property
    def center(self) -> Point:
        return Point((self.south + self.north) / 2, (self.west + self.east) / 2)


class Tessellation(ABC):
    """A division of the world into named cells, each place belonging to exactly one."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of channels, as the documents count match operations (LCN 2016, IV-A)."""

    @abstractmethod
    def __contains__(self, cell: object) -> bool:
        """Whether this is the name of a channel; events of unknown channels are discarded (BYPASS.KOM 4.2.4)."""

    @abstractmethod
    def cell_of(self, point: Point) -> str:
        """The cell to which the place belongs."""

    @abstractmethod
    def around(self, point: Point, radius: float, cover: Cover) -> tuple[str, ...]:
        """The cells that meet the circle of ``radius`` metres, or its bounding box in degrees; sorted."""

    @abstractmethod
    def center(self, cell: str) -> Point:
        """The middle of the cell: the place of an event of which no more than its cell may be known."""

    @abstractmethod
    def bounds(self, cell: str) -> tuple[float, float, float, float]:
        """The cell's bounding box: degrees south, west, north, east."""

    def contains(self, cell: str, point: Point) -> bool:
        return self.cell_of(point) == cell

    def covers(self, cells: AbstractSet[str], point: Point, radius: float, cover: Cover) -> bool:
        """Whether ``cells`` still suffice: what a client asks at every fix before it asks for others."""
        return all(cell in cells for cell in self.around(point, radius, cover))


@dataclass(frozen=True, slots=True)
class SquareGrid(Tessellation):
    """The world cut into ``factor`` x ``factor`` rectangles of equal degrees (GRID, BYPASS.KOM 4.2.4).

    ``"5:3,1"`` is column 3 (from the west) and row 1 (from the south) of a grid of factor 5: a channel of another factor,
    in use before a transition, is never taken for one of this.  Cells own their southern and western border.  Those at
    the border of the world reach on outwards, so that nobody who strays is lost.
    """

    world: GeoBox
    factor: int
    _width: float = field(init=False, repr=False, compare=False)
    _height: float = field(init=False, repr=False, compare=False)
    _opposite: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.factor, bool) or not isinstance(self.factor, int) or self.factor < 1:
            raise InvalidScheme(f"a grid factor is a whole number of cells per side, at least 1, not {self.factor!r}")
        span = self.world.east - self.world.west
        for name, value in (
            ("_width", span / self.factor),
            ("_height", (self.world.north - self.world.south) / self.factor),
            ("_opposite", span / 2 + _HALF_CIRCLE),
        ):
            object.__setattr__(self, name, value)

    @property
    def cells(self) -> int:
        return self.factor * self.factor

    def __contains__(self, cell: object) -> bool:
        return isinstance(cell, str) and _indices(cell, self.factor) is not None

    def cell_of(self, point: Point) -> str:
        return _name(self.factor, self._column(self._from_west(point.lon)), self._row(point.lat))

    def around(self, point: Point, radius: float, cover: Cover) -> tuple[str, ...]:
        blocks = self._met(point, radius, cover)
        if len(blocks) == 1:
            return _block(self.factor, *blocks[0])
        return tuple(sorted({cell for block in blocks for cell in _block(self.factor, *block)}))

    def covers(self, cells: AbstractSet[str], point: Point, radius: float, cover: Cover) -> bool:
        for block in self._met(point, radius, cover):
            if not all(map(cells.__contains__, _block(self.factor, *block))):
                return False
        return True

    def center(self, cell: str) -> Point:
        south, west, north, east = self.bounds(cell)
        return Point((south + north) / 2, (west + east) / 2)

    def bounds(self, cell: str) -> tuple[float, float, float, float]:
        indices = _indices(cell, self.factor)
        if indices is None:
            raise UnknownName(
                f"{cell!r} is no cell of a grid of factor {self.factor}; its cells are named like '{self.factor}:0,0'"
            )
        column, row = indices
        world = self.world
        return (
            world.south + row * self._height,
            world.west + column * self._width,
            world.north if row == self.factor - 1 else world.south + (row + 1) * self._height,
            world.east if column == self.factor - 1 else world.west + (column + 1) * self._width,
        )

    # Longitudes are counted from the western border to the meridian opposite to the middle of the world, either way: so a
    # place beyond the antimeridian belongs to the border to which it is nearer.  Columns and rows never decrease with the
    # degrees, rounding included, which is what keeps ``around`` in agreement with ``cell_of``.

    def _from_west(self, lon: float) -> float:
        east = lon - self.world.west
        if east >= self._opposite:
            return east - _CIRCLE
        return east + _CIRCLE if east < self._opposite - _CIRCLE else east

    def _column(self, east: float) -> int:
        column = math.floor(east / self._width)
        if column < 0:
            return 0
        return column if column < self.factor else self.factor - 1

    def _row(self, lat: float) -> int:
        row = math.floor((lat - self.world.south) / self._height)
        if row < 0:
            return 0
        return row if row < self.factor else self.factor - 1

    def _met(self, point: Point, radius: float, cover: Cover) -> list[Block]:
        reach, half_width = _reach(point.lat, radius)
        lowest, highest = self._row(point.lat - reach), self._row(point.lat + reach)
        east = self._from_west(point.lon)
        if half_width >= _HALF_CIRCLE:  # a pole lies in the circle, or nearly: too far out to be worth an exact answer
            return [(0, self.factor - 1, lowest, highest)]
        spans = [(east, self._column(east - half_width), self._column(east + half_width))]
        # What reaches over the opposite meridian comes back at the other border.
        if east + half_width >= self._opposite:
            spans.append((east - _CIRCLE, 0, self._column(east - _CIRCLE + half_width)))
        if east - half_width < self._opposite - _CIRCLE:
            spans.append((east + _CIRCLE, self._column(east + _CIRCLE - half_width), self.factor - 1))
        if cover == "box":
            return [(first, last, lowest, highest) for _, first, last in spans]
        meridians = _MeridiansInCircle(point.lat, reach)
        return [block for span in spans for block in self._columns_met(span, (lowest, highest), meridians)]

    def _columns_met(
        self, span: tuple[float, int, int], rows: tuple[int, int], meridians: _MeridiansInCircle
    ) -> Iterator[Block]:
        """Of all points of a column at one latitude, the one on the nearest meridian is nearest to the centre.

        So a column's cells meet the circle where that meridian does: between two latitudes.
        """
        east, first, last = span
        outermost = self.factor - 1
        for column in range(first, last + 1):
            west_edge = column * self._width if column else self._opposite - _CIRCLE
            east_edge = (column + 1) * self._width if column < outermost else self._opposite
            if east < west_edge:
                latitudes = meridians.latitudes(west_edge - east)
            elif east > east_edge:
                latitudes = meridians.latitudes(east - east_edge)
            else:
                yield column, column, *rows
                continue
            if latitudes:
                yield column, column, self._row(latitudes[0]), self._row(latitudes[1])


def _reach(lat: float, radius: float) -> tuple[float, float]:
    """Half the height and half the width, in degrees, of the box around a circle; 180 wide if it holds a pole."""
    if not 0.0 <= radius < math.inf:
        raise InvalidPosition(f"a radius must be a finite number of metres, not negative: {radius!r}")
    angle = (radius * SLACK + SLACK_METRES) / EARTH_RADIUS
    height = math.degrees(angle)
    if abs(lat) + height >= 89.9:
        return height, _HALF_CIRCLE
    return height, math.degrees(math.asin(math.sin(angle) / math.cos(math.radians(lat))))


class _MeridiansInCircle:
    """Where meridians cross a circle that holds no pole.

    By Napier's rules for the right triangle of centre, foot of the perpendicular and crossing; in sines, which keep small
    circles exact where cosines would not.
    """

    __slots__ = ("_cosine", "_sine", "_squared_sine_of_reach")

    def __init__(self, lat: float, reach: float) -> None:
        phi = math.radians(lat)
        self._sine: Final = math.sin(phi)
        self._cosine: Final = math.cos(phi)
        self._squared_sine_of_reach: Final = math.sin(math.radians(reach)) ** 2

    def latitudes(self, aside: float) -> tuple[float, float] | None:
        """The two crossings of the meridian ``aside`` degrees from the centre, if it meets the circle."""
        turn = math.radians(aside)
        away = self._cosine * math.sin(turn)
        rest = self._squared_sine_of_reach - away * away
        if rest < 0.0:
            return None
        foot = math.atan2(self._sine, self._cosine * math.cos(turn))
        half = math.asin(math.sqrt(rest / (1.0 - away * away)))
        return math.degrees(foot - half), math.degrees(foot + half)


# Names are made again and again for the same few cells: remembering them saves most of the time of every question.


@lru_cache(maxsize=65_536)
def _name(factor: int, column: int, row: int) -> str:
    return f"{factor}:{column},{row}"


@lru_cache(maxsize=1_024)
def _block(factor: int, first: int, last: int, lowest: int, highest: int) -> tuple[str, ...]:
    return tuple(
        sorted(_name(factor, column, row) for column in range(first, last + 1) for row in range(lowest, highest + 1))
    )


@lru_cache(maxsize=65_536)
def _indices(cell: str, factor: int) -> tuple[int, int] | None:
    """Column and row of a cell of a grid of that factor; nothing for whatever else is written in its name."""
    column, _, row = cell.partition(":")[2].partition(",")
    if len(cell) > _LONGEST_NAME or not (column.isdecimal() and row.isdecimal()):
        return None
    indices = int(column), int(row)
    known = _name(factor, *indices) == cell and max(indices) < factor
    return indices if known else None
