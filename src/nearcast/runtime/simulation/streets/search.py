"""The shortest way through a network of streets, found anew for whoever walks: A* in compiled code.

The straight line to the target is never longer than the way, so the search looks mostly in the right direction: some
50 µs in a city centre, a millisecond or two across a city of 50 km².  Nothing is kept from one search to the next, so ways
do not depend on what was asked before.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.streets.pieces import Network

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# The straight line, computed in another order than the lengths of edges, may come out longer by rounding.
_HUMBLE: Final = 1.0 - 1e-9

_WAITING: Final = np.dtype([("estimate", np.float64), ("node", np.int64)])


class Way(NamedTuple):
    """How to get from one place on a street to another on another."""

    length: float
    leave: int
    """The end of the first street at which one leaves it."""

    edges: list[int]
    """In the order in which they are walked, the first and the last street not among them."""


class _Streets(NamedTuple):
    """Every edge in both directions, by the node that it leaves, and then by its number."""

    first: Int64s  # of each node, where its edges begin; one more at the end
    head: Int64s
    edge: Int64s
    length: Floats
    x: Floats
    y: Floats


class _Desk(NamedTuple):
    """Where the search writes."""

    search: Int64s  # of each node, the last search that reached it
    distance: Floats
    previous: Int64s
    via: Int64s
    waiting: npt.NDArray[Any]  # a heap of _WAITING
    way: Int64s


class Search:
    """Finds ways in one network."""

    def __init__(self, network: Network) -> None:
        nodes, edges = len(network.nodes), network.edges
        start = np.array([edge.start for edge in edges], np.int64)
        end = np.array([edge.end for edge in edges], np.int64)
        tail, number = np.concatenate((start, end)), np.tile(np.arange(len(edges)), 2)
        order = np.lexsort((number, tail))
        xy = np.array(network.nodes, np.float64)
        self._streets: Final = _Streets(
            np.searchsorted(tail[order], np.arange(nodes + 1)),
            np.concatenate((end, start))[order],
            number[order],
            np.tile([edge.length for edge in edges], 2)[order],
            np.ascontiguousarray(xy[:, 0]),
            np.ascontiguousarray(xy[:, 1]),
        )
        self._desk: Final = _Desk(
            np.zeros(nodes, np.int64),
            np.zeros(nodes),
            np.zeros(nodes, np.int64),
            np.zeros(nodes, np.int64),
            # Each edge is walked once in each direction; twice the room, because by rounding a node may be left twice.
            np.zeros(4 * len(edges) + 8, _WAITING),
            np.zeros(nodes, np.int64),
        )
        self._ends: Final = np.zeros((4, 2))
        self.searches = 0

    def way(
        self, exits: tuple[tuple[int, float], ...], entries: tuple[tuple[int, float], ...], target: tuple[float, float]
    ) -> Way:
        """The shortest from one of the exits to one of the entries: two each, as nodes and metres to get to or from them."""
        self.searches += 1
        self._ends[:2], self._ends[2:] = exits, entries
        length, leave, count = _search(self._streets, self._desk, self._ends, *target, self.searches)
        return Way(length, leave, self._desk.way[:count][::-1].tolist())


@kernel
def _search(
    streets: _Streets, desk: _Desk, ends: npt.NDArray[np.float64], x: float, y: float, number: int
) -> tuple[float, int, int]:
    """Length, the exit taken, and how many edges of the way were written, the last one first."""
    size = 0
    for exit_ in range(2):
        node, metres = int(ends[exit_, 0]), ends[exit_, 1]
        if desk.search[node] != number or metres < desk.distance[node]:
            desk.search[node], desk.distance[node], desk.via[node] = number, metres, -1
            size = _push(desk.waiting, size, metres + _straight(streets, node, x, y), node)
    best, enter = math.inf, -1
    while size and desk.waiting[0].estimate < best:
        node = desk.waiting[0].node
        estimate = desk.waiting[0].estimate
        size = _pop(desk.waiting, size)
        so_far = desk.distance[node]
        if estimate > so_far + _straight(streets, node, x, y):
            continue  # it has been reached by a shorter way since
        for entry in range(2, 4):
            if int(ends[entry, 0]) == node and so_far + ends[entry, 1] < best:
                best, enter = so_far + ends[entry, 1], node
        for index in range(streets.first[node], streets.first[node + 1]):
            there, metres = streets.head[index], so_far + streets.length[index]
            if desk.search[there] != number or metres < desk.distance[there]:
                desk.search[there], desk.distance[there] = number, metres
                desk.previous[there], desk.via[there] = node, streets.edge[index]
                size = _push(desk.waiting, size, metres + _straight(streets, there, x, y), there)
    count, node = 0, enter
    while desk.via[node] >= 0:
        desk.way[count] = desk.via[node]
        count += 1
        node = desk.previous[node]
    return best, node, count


@inlined
def _straight(streets: _Streets, node: int, x: float, y: float) -> float:
    return _HUMBLE * math.hypot(streets.x[node] - x, streets.y[node] - y)


@inlined
def _before(waiting: npt.NDArray[Any], one: int, other: int) -> bool:
    """Ties go to the lower number: equal ways are chosen alike on every machine."""
    a, b = waiting[one], waiting[other]
    return bool(a.estimate < b.estimate or (a.estimate == b.estimate and a.node < b.node))


@inlined
def _swap(waiting: npt.NDArray[Any], one: int, other: int) -> None:
    a, b = waiting[one], waiting[other]
    estimate, node = a.estimate, a.node
    a.estimate, a.node = b.estimate, b.node
    b.estimate, b.node = estimate, node


@inlined
def _push(waiting: npt.NDArray[Any], size: int, estimate: float, node: int) -> int:
    place = size
    waiting[place].estimate, waiting[place].node = estimate, node
    while place > 0 and _before(waiting, place, (place - 1) // 2):
        _swap(waiting, place, (place - 1) // 2)
        place = (place - 1) // 2
    return size + 1


@inlined
def _pop(waiting: npt.NDArray[Any], size: int) -> int:
    size -= 1
    _swap(waiting, 0, size)
    place = 0
    while True:
        least = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < size and _before(waiting, child, least):
                least = child
        if least == place:
            return size
        _swap(waiting, place, least)
        place = least
