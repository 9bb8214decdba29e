"""Where the crowd is: areas of which each cell has two nodes on average (THYME 6.2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.experiment.thyme.radio import RANGE

XY = tuple[float, float]

CELL: Final = 40.0
SIZES: Final = (16, 36, 64, 100, 144, 196)


def area(nodes: int) -> XY:
    """Width and height in metres: twice as wide as high, with a cell for each two nodes."""
    root = math.isqrt(nodes)
    if root * root != nodes or root % 2:
        raise InvalidInput(f"areas are known for squares of even numbers of nodes, such as {SIZES}, not for {nodes}")
    return CELL * root, CELL * root / 2


def places(nodes: int, random: Random) -> list[XY]:
    """Anywhere, drawn again until everybody is connected with everybody."""
    width, height = area(nodes)
    while True:
        drawn = [(width * random.random(), height * random.random()) for _ in range(nodes)]
        if connected(drawn):
            return drawn


def connected(drawn: Sequence[XY]) -> bool:
    left, edge = set(range(1, len(drawn))), [0]
    while edge:
        here = drawn[edge.pop()]
        near = {node for node in left if math.dist(here, drawn[node]) <= RANGE}
        left -= near
        edge += near
    return not left


def replaceable(candidates: Sequence[int], where: Sequence[XY]) -> list[int]:
    """Those of the nodes, in their order, that may go one after the other while every populated cell keeps somebody.

    The paper's cells hand nothing over, so "populated and empty cells will remain as such" in all its experiments, those with churn too (6.1).
    """
    there = Counter(_cell(at) for at in where)
    chosen = []
    for node in candidates:
        cell = _cell(where[node])
        if there[cell] > 1:
            there[cell] -= 1
            chosen.append(node)
    return chosen


def _cell(at: XY) -> tuple[int, int]:
    return int(at[0] // CELL), int(at[1] // CELL)
