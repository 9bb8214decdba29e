"""Cells of a venue."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.geographic.geography import HERE

from nearcast.crowdstore.geographic.grid import MOST, Cell, CellGrid
from nearcast.errors import InvalidArea, InvalidPosition
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane

GRID = CellGrid(HERE, 560.0, 280.0)
PLANE = Plane(HERE)
INSIDE = 0.001


@given(st.floats(-1_000, 1_500), st.floats(-1_000, 1_500))
def test_a_point_lies_in_the_cell_of_its_metres_and_outside_in_the_nearest(x: float, y: float) -> None:
    cell = GRID.cell_at(PLANE.to_point(x, y))
    east, north = GRID.centre(cell)
    nearest_x, nearest_y = min(max(x, 0.0), 560.0), min(max(y, 0.0), 280.0)
    assert abs(east - nearest_x) <= 20 + INSIDE
    assert abs(north - nearest_y) <= 20 + INSIDE
    assert GRID.outside(PLANE.to_point(x, y), cell) < INSIDE


@pytest.mark.parametrize(("x", "y", "cell"), [(0, 0, Cell(0, 0)), (0, 40, Cell(0, 1)), (0, 80, Cell(0, 2))])
def test_cells_own_their_southern_border(x: float, y: float, cell: Cell) -> None:
    # A hair, because degrees are no metres.
    assert GRID.cell_at(PLANE.to_point(x, y + 1e-6)) == cell
    assert GRID.cell_at(PLANE.to_point(x, max(y - 1e-6, 0.0))).row == max(cell.row - 1, 0)


def test_how_far_a_point_is_outside_a_cell() -> None:
    assert GRID.outside(PLANE.to_point(85, 40), Cell(1, 1)) == pytest.approx(5, abs=INSIDE)
    assert GRID.outside(PLANE.to_point(83, 84), Cell(1, 1)) == pytest.approx(5, abs=INSIDE)
    assert GRID.outside(PLANE.to_point(-50, 10), Cell(0, 0)) == 0
    assert GRID.outside(PLANE.to_point(-50, 10), Cell(2, 0)) == pytest.approx(130, abs=INSIDE)
    assert GRID.outside(PLANE.to_point(700, 300), Cell(13, 6)) == 0


def test_a_cell_of_another_grid_is_like_the_one_in_which_its_middle_lies() -> None:
    assert all(GRID.cell_like(cell, GRID) == cell for cell in GRID)
    finer = CellGrid(PLANE.to_point(85, 45), 480.0, 240.0, 20.0)
    assert GRID.cell_like(Cell(3, 2), finer) == Cell(3, 2)
    assert finer.cell_like(Cell(3, 2), GRID) == Cell(2, 2)
    assert finer.cell_like(Cell(0, 0), GRID) == Cell(0, 0), "outside: the nearest"


def test_cells_are_numbered_row_by_row() -> None:
    assert (GRID.columns, GRID.rows, len(GRID)) == (14, 7, 98)
    assert [GRID.number(cell) for cell in GRID] == list(range(98))


def test_keys_hash_to_all_cells_alike_and_always_to_the_same() -> None:
    found = Counter(GRID.cell_of(f"tag {n}") for n in range(9_800))
    assert set(found) == set(GRID)
    # 100 each on average: five standard deviations.
    assert 50 <= min(found.values()) <= max(found.values()) <= 150


def test_a_key_hashes_to_the_same_cell_in_every_process_and_release() -> None:
    """Hosts that disagree would look for it in different cells: so this is part of what goes over the wire."""
    found = {tag: GRID.cell_of(tag) for tag in ("goal", "save", "\ud800", "")}
    assert found == {"goal": Cell(2, 1), "save": Cell(0, 5), "\ud800": Cell(10, 0), "": Cell(0, 0)}


def test_neighbours_and_distances() -> None:
    assert len(GRID.neighbours(Cell(5, 5))) == 8
    assert set(GRID.neighbours(Cell(0, 0))) == {Cell(1, 0), Cell(1, 1), Cell(0, 1)}
    assert len(GRID.neighbours(Cell(13, 3))) == 5
    assert GRID.distance(Cell(1, 1), Cell(4, 5)) == 200


def test_an_area_between_two_corners() -> None:
    grid = CellGrid.between(HERE, PLANE.to_point(160.0, 80.0))
    assert (grid.columns, grid.rows) == (4, 2)
    with pytest.raises(InvalidArea, match="north-east"):
        CellGrid.between(HERE, PLANE.to_point(-10.0, 80.0))


def test_impossible_areas() -> None:
    for width, height, side in [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("nan"))]:
        with pytest.raises(InvalidPosition):
            CellGrid(HERE, width, height, side)
    with pytest.raises(InvalidArea, match="larger cells"):
        CellGrid(HERE, 1e9, 1e9, 1e-9)
    assert len(CellGrid(HERE, 32768.0, 0.5, 1.0)) == MOST
    with pytest.raises(InvalidArea):
        CellGrid(HERE, 32769.0, 0.5, 1.0)
    assert Point(0, 0) not in GRID
