"""The next cell of a message: greedy, and by the right-hand rule round voids (GPSR at the level of cells, THYME 5.8.1).

The graph has an edge from each populated cell to those of the eight around it that are populated.  Without every diagonal that has
another populated cell beside it, it is planar, and connected as before: that is its Gabriel graph.  In it, if a cell is nearer to a target
than all its neighbours, then some cell of the face in the target's direction is nearer still, or the cell is the nearest of all.  (Were an edge
between that cell v and the target t, with both ends no nearer to t than v, then v would see its ends at more than 90°, and the edge
would not be in the graph.)  So one walk round one face suffices: it meets a nearer cell, from which the message goes on greedily, or it
comes back, and no populated cell is nearer (5.8.2).  Unlike in GPSR proper, faces never have to be changed in mid-walk.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from nearcast.crowdstore.geographic.grid import AROUND, Cell, CellGrid, rank

Walk = tuple[Cell, Cell]
"""Where the walk round a face began, and the cell after that."""


class Step(NamedTuple):
    """What a message does in a cell."""

    cell: Cell | None
    """Where it goes; none: it stays, here is the nearest populated cell."""

    walk: Walk | None = None


STAY = Step(None)


def step(
    grid: CellGrid,
    here: Cell,
    target: Cell,
    populated: Collection[Cell],
    walk: Walk | None = None,
    last: Cell | None = None,
) -> Step:
    """``populated`` are those around ``here``; a message that walks round a void came from the cell ``last``."""
    if here == target or not populated:
        return STAY
    own = rank(here, target)
    if walk is None or last is None or own < rank(walk[0], target):
        nearest = min(populated, key=lambda cell: rank(cell, target))
        if rank(nearest, target) < own:
            return Step(nearest)
        if surely_nearest(grid, here, target):
            return STAY
        walk = here, next_on_face(here, target, populated)
        return Step(walk[1], walk)
    following = next_on_face(here, last, populated)
    return STAY if (here, following) == walk else Step(following, walk)


def surely_nearest(grid: CellGrid, here: Cell, target: Cell) -> bool:
    """Whether all cells that are nearer to the target are around this one: then it knows without a walk that nobody is in them.

    Most messages to empty cells are spared the walk by that: one to a cell at the border would have to go round the whole area.
    """
    return _around(here, target) and all(
        cell == target or _around(here, cell)
        for cell in grid.neighbours(target)
        if rank(cell, target) < rank(here, target)
    )


def next_on_face(here: Cell, back: Cell, populated: Collection[Cell]) -> Cell:
    """The first neighbour in the planar graph, anti-clockwise from the direction to ``back``; that itself comes last."""
    # With the bearing of an arbitrary cell: exact, because whole numbers are compared.
    x, y = back.column - here.column, back.row - here.row
    edges = [
        (east, north)
        for east, north in AROUND
        if Cell(here.column + east, here.row + north) in populated and planar(here, east, north, populated)
    ]
    turned = min(edges, key=lambda edge: _turn(x, y, *edge))
    return Cell(here.column + turned[0], here.row + turned[1])


def planar(here: Cell, east: int, north: int, populated: Collection[Cell]) -> bool:
    """Whether the edge in that direction is in the planar graph: diagonals only if nobody is in either cell beside them."""
    return not (
        east
        and north
        and (Cell(here.column + east, here.row) in populated or Cell(here.column, here.row + north) in populated)
    )


def _around(a: Cell, b: Cell) -> bool:
    return abs(a.column - b.column) <= 1 and abs(a.row - b.row) <= 1


def _turn(x: int, y: int, east: int, north: int) -> tuple[int, float]:
    """How far one turns anti-clockwise from (x, y) to another direction, as something that grows with the angle in (0°, 360°]."""
    along, across = x * east + y * north, x * north - y * east
    if across == 0:
        return (1, 0.0) if along < 0 else (4, 0.0)
    return (0, -along / across) if across > 0 else (2, -along / across)
