"""The way of a message between cells, against the definition: the populated cell that is nearest."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from math import atan2, tau

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.geographic.geography import cells

from nearcast.crowdstore.geographic.grid import AROUND, Cell, CellGrid, rank
from nearcast.crowdstore.geographic.planar import next_on_face, planar, step
from nearcast.model.geometry import Point

GRID = CellGrid(Point(50, 8), 400.0, 320.0)


def around(cell: Cell, populated: Collection[Cell]) -> list[Cell]:
    return [each for each in GRID.neighbours(cell) if each in populated]


def way(start: Cell, target: Cell, populated: Collection[Cell]) -> list[Cell]:
    """All cells that a message comes through."""
    path, walk, last = [start], None, None
    for _ in range(2_000):
        following = step(GRID, path[-1], target, around(path[-1], populated), walk, last)
        if following.cell is None:
            return path
        assert following.cell in around(path[-1], populated)
        last, walk = path[-1], following.walk
        path.append(following.cell)
    raise AssertionError(f"a message from {start} to {target} goes on for ever: {path[:50]}")


def reachable(start: Cell, populated: Collection[Cell]) -> dict[Cell, int]:
    hops, queue = {start: 0}, deque([start])
    while queue:
        cell = queue.popleft()
        for each in around(cell, populated):
            if each not in hops:
                hops[each] = hops[cell] + 1
                queue.append(each)
    return hops


@given(st.sets(st.sampled_from(list(GRID)), min_size=1), st.sampled_from(list(GRID)), st.data())
def test_a_message_ends_in_the_nearest_populated_cell_that_can_be_reached(
    populated: set[Cell], target: Cell, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from(sorted(populated)))
    found = reachable(start, populated)
    assert way(start, target, populated)[-1] == min(found, key=lambda cell: rank(cell, target))


@given(st.sets(st.sampled_from(list(GRID)), min_size=1))
def test_the_planar_graph_has_no_crossing_and_connects_what_was_connected(populated: set[Cell]) -> None:
    edges = {
        (cell, Cell(cell.column + east, cell.row + north))
        for cell in populated
        for east, north in AROUND
        if Cell(cell.column + east, cell.row + north) in populated and planar(cell, east, north, populated)
    }
    assert all((b, a) in edges for a, b in edges)
    # Edges between cells around each other cross only as the two diagonals of one block.
    assert not any(
        (Cell(a.column, b.row), Cell(b.column, a.row)) in edges
        for a, b in edges
        if a.column != b.column and a.row != b.row
    )
    start = min(populated)
    seen, queue = {start}, [start]
    while queue:
        cell = queue.pop()
        new = {b for a, b in edges if a == cell} - seen
        seen |= new
        queue += new
    assert seen == set(reachable(start, populated))


@given(st.sets(st.sampled_from(AROUND), min_size=1), st.tuples(st.integers(-9, 9), st.integers(-9, 9)).filter(any))
def test_the_right_hand_rule_takes_the_first_edge_anti_clockwise(
    steps: set[tuple[int, int]], back: tuple[int, int]
) -> None:
    here = Cell(20, 20)
    populated = {Cell(20 + east, 20 + north) for east, north in steps}
    edges = [(east, north) for east, north in steps if planar(here, east, north, populated)]

    def turned(edge: tuple[int, int]) -> float:
        angle = (atan2(edge[1], edge[0]) - atan2(back[1], back[0])) % tau
        return tau if angle < 1e-9 or angle > tau - 1e-9 else angle

    east, north = min(edges, key=turned)
    assert next_on_face(here, Cell(20 + back[0], 20 + back[1]), populated) == Cell(20 + east, 20 + north)


U_SHAPE = """
    ##########
    #........#
    #........#
    #........#
    #........#
    #........#
    #........#
    #........#
"""


def test_a_message_goes_round_a_bay() -> None:
    populated = cells(U_SHAPE)
    path = way(Cell(0, 0), Cell(9, 0), populated)
    assert path[-1] == Cell(9, 0)
    # There is no other way; corners may be cut, and nothing is passed twice but where the walk turned.
    assert len(populated) - 3 <= len(path) <= len(populated) + 3


def test_a_message_to_the_middle_of_a_ring_goes_round_it_once_and_stays_at_the_nearest() -> None:
    ring = cells("""
        .........
        .#######.
        .#.....#.
        .#.....#.
        .#.....#.
        .#.....#.
        .#######.
    """)
    path = way(Cell(7, 0), Cell(4, 3), ring)
    assert path[-1] == min(ring, key=lambda cell: rank(cell, Cell(4, 3))) == Cell(4, 5)
    # To the near side, from there to the nearest, and once round.
    assert len(path) <= 2 * len(ring)


@pytest.mark.parametrize("gone", [Cell(0, 0), Cell(5, 0), Cell(4, 4), Cell(9, 7), Cell(0, 3)])
def test_hardly_any_message_to_a_single_empty_cell_goes_round_it(gone: Cell) -> None:
    populated = [cell for cell in GRID if cell != gone]
    nearest = min(populated, key=lambda cell: rank(cell, gone))
    for start in populated:
        path = way(start, gone, populated)
        assert path[-1] == nearest
        assert len(path) <= reachable(start, populated)[nearest] + 4
