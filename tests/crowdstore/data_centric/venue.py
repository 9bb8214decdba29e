"""A crowd in a grid of cells."""

from __future__ import annotations

from collections.abc import Iterator

from tests.crowdstore.crowd import HERE, Crowd

from nearcast.crowdstore.data_centric.mechanism import DataCentricStorage
from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.specification import MechanismSpec, Scalar

JOINED = 25.0
"""Seconds after which everybody who stands still is a member of its cell."""


def dcs(columns: int, rows: int, **parameters: Scalar) -> MechanismSpec:
    """Cells of 40 m."""
    corner = Plane(HERE).to_point(40.0 * columns, 40.0 * rows)
    return MechanismSpec.of(
        "DCS", south=HERE.lat, west=HERE.lon, north=corner.lat, east=corner.lon, side=40.0, **parameters
    )


def storage(crowd: Crowd, host: str) -> DataCentricStorage:
    found = crowd.stores[host]._proxy.active
    assert isinstance(found, DataCentricStorage)
    return found


def in_cell(column: int, row: int, number: int = 0) -> tuple[float, float]:
    """A place in that cell, another one for each number."""
    return 40.0 * column + 10.0 + 7.0 * (number % 4), 40.0 * row + 10.0 + 5.0 * (number // 4)


def tags_at(grid: CellGrid, cell: Cell) -> Iterator[str]:
    """Tags that hash to that cell."""
    return (tag for tag in (f"tag{number}" for number in range(100_000)) if grid.cell_of(tag) == cell)


def tag_at(crowd: Crowd, column: int, row: int = 0) -> str:
    return next(tags_at(storage(crowd, "n0").desk.grid, Cell(column, row)))


def walk(crowd: Crowd, host: str, column: int, row: int = 0, number: int = 3) -> None:
    """It is there at once, and stands there."""
    crowd.world.motion.put(int(host[1:]), *in_cell(column, row, number))


def cell_of(crowd: Crowd, host: str) -> Cell | None:
    return storage(crowd, host).desk.router.cell
