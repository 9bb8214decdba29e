"""The grid of equal square cells that a venue is cut into (THYME 5.1, 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil, floor, hypot
from typing import Final, NamedTuple

from nearcast.errors import InvalidArea
from nearcast.model.geometry import Point, checked_metres, offset

SIDE: Final = 40.0
"""Metres (6.2): a radio of 113.2 m reaches everybody in the eight cells around, from wherever in the cell it is."""

MOST: Final = 1 << 15
"""Cells of a grid: with one bit more, a cell fits into the three bytes of a beacon (5.8.1)."""

_ROUNDING: Final = 1e-6


class Cell(NamedTuple):
    """Counted from the south-west corner."""

    column: int
    row: int


def rank(cell: Cell, target: Cell) -> tuple[int, int, int]:
    """How near a cell is to another one: the square of the distance in cells; of equally near ones the western, then the southern, is
    the nearer.  So of any cells exactly one is the nearest, whoever asks.
    """
    return (cell.column - target.column) ** 2 + (cell.row - target.row) ** 2, cell.column, cell.row


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Cells own their southern and western borders.  Whoever is outside the area belongs to the cell of the border that is nearest:
    so nobody who strays is lost, though it may be out of reach of its neighbours.

    The last column and row may reach beyond the area, where its sides are no multiple of a cell's.
    """

    corner: Point
    """In the south-west."""

    width: float
    """Metres to the east."""

    height: float
    """Metres to the north."""

    side: float = SIDE
    """Metres of a cell."""

    columns: int = field(init=False)
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("width", "height", "side"):
            object.__setattr__(self, name, checked_metres(getattr(self, name), f"the {name}", positive=True))
        # An area of 80.0000001 m that was computed from degrees has two cells of 40 m, not three.
        across, up = self.width / self.side - _ROUNDING, self.height / self.side - _ROUNDING
        if max(across, 1.0) * max(up, 1.0) > MOST:
            raise InvalidArea(
                f"{self.width:g} x {self.height:g} m are more than {MOST} cells of {self.side:g} m: choose larger cells"
            )
        object.__setattr__(self, "columns", max(1, ceil(across)))
        object.__setattr__(self, "rows", max(1, ceil(up)))
        if len(self) > MOST:
            raise InvalidArea(
                f"{self.columns} x {self.rows} are more than {MOST} cells: choose cells of more than {self.side:g} m"
            )

    @classmethod
    def between(cls, southwest: Point, northeast: Point, side: float = SIDE) -> CellGrid:
        """Of the area with these corners."""
        east, north = offset(southwest, northeast)
        if east <= 0 or north <= 0:
            raise InvalidArea(f"{northeast} does not lie north-east of {southwest}")
        return cls(southwest, east, north, side)

    def __len__(self) -> int:
        return self.columns * self.rows

    def __iter__(self) -> Iterator[Cell]:
        return map(self.cell, range(len(self)))

    def __contains__(self, cell: object) -> bool:
        return isinstance(cell, Cell) and 0 <= cell.column < self.columns and 0 <= cell.row < self.rows

    def cell(self, number: int) -> Cell:
        """The inverse of ``number``."""
        row, column = divmod(number, self.columns)
        return Cell(column, row)

    def number(self, cell: Cell) -> int:
        """Of all cells, row by row, from 0."""
        return cell.row * self.columns + cell.column

    def cell_at(self, point: Point) -> Cell:
        """Where the point lies; of points outside, the nearest cell."""
        return self._cell_at(*offset(self.corner, point))

    def _cell_at(self, east: float, north: float) -> Cell:
        return Cell(
            min(max(floor(east / self.side), 0), self.columns - 1), min(max(floor(north / self.side), 0), self.rows - 1)
        )

    def cell_like(self, cell: Cell, other: CellGrid) -> Cell:
        """Where the middle of a cell of another grid lies."""
        east, north = offset(self.corner, other.corner)
        x, y = other.centre(cell)
        return self._cell_at(east + x, north + y)

    def outside(self, point: Point, cell: Cell) -> float:
        """By how many metres the point misses the cell; 0 in it, and beyond a border of the area that is the cell's, too."""
        east, north = offset(self.corner, point)
        return hypot(self._beyond(east, cell.column, self.columns), self._beyond(north, cell.row, self.rows))

    def _beyond(self, metres: float, index: int, count: int) -> float:
        if metres < index * self.side:
            return index * self.side - metres if index else 0.0
        return max(0.0, metres - (index + 1) * self.side) if index < count - 1 else 0.0

    def cell_of(self, key: str) -> Cell:
        """The cell that a key, such as a tag, hashes to: everywhere and always the same, and all are equally likely."""
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.cell(int.from_bytes(digest, "big") % len(self))

    def centre(self, cell: Cell) -> tuple[float, float]:
        """Metres east and north of the corner."""
        return (cell.column + 0.5) * self.side, (cell.row + 0.5) * self.side

    def distance(self, a: Cell, b: Cell) -> float:
        """Metres between their centres."""
        return self.side * hypot(a.column - b.column, a.row - b.row)

    def neighbours(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells around it, eight of them in the middle of the area; anti-clockwise, from the east on."""
        around = (Cell(cell.column + east, cell.row + north) for east, north in AROUND)
        return tuple(each for each in around if each in self)


AROUND: Final = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
"""Steps to the cells around, anti-clockwise from the east on."""
