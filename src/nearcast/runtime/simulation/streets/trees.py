"""Shortest ways from everywhere to one node, kept for the next who goes there.

Walkers go to few places (attraction points) from many, so a tree of ways *towards* a node serves them all.  rustworkx finds
the distances (Dijkstra); which edge to take follows from them, with ties going to the edge of the lower number, so that ways
depend neither on the order in which a heap breaks ties nor on what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import rustworkx

from nearcast.runtime.simulation.streets.pieces import Network

HELD_BYTES: Final = 64 << 20
"""Memory for trees: all of them up to 2,300 nodes, the most recently used ones beyond."""


class Tree(NamedTuple):
    """Metres to go from every node, and the edge to take there."""

    distance: Sequence[float]
    onward: Sequence[int]


class Trees:
    """The trees of a network, made when first asked for."""

    def __init__(self, network: Network) -> None:
        nodes, edges = len(network.nodes), network.edges
        self._graph = rustworkx.PyGraph(multigraph=True)
        self._graph.add_nodes_from(range(nodes))
        self._graph.add_edges_from([(edge.start, edge.end, edge.length) for edge in edges])
        start = np.array([edge.start for edge in edges])
        end = np.array([edge.end for edge in edges])
        # Every edge in both directions, by the node it leaves and then by its number.
        order = np.lexsort((np.tile(np.arange(len(edges)), 2), np.concatenate((start, end))))
        self._tail = np.concatenate((start, end))[order]
        self._head = np.concatenate((end, start))[order]
        self._edge = np.tile(np.arange(len(edges), dtype=np.int32), 2)[order]
        self._length = np.tile([edge.length for edge in edges], 2)[order]
        self._first = np.searchsorted(self._tail, np.arange(nodes))
        self._most = max(2, HELD_BYTES // (nodes * 12))
        self._held: dict[int, Tree] = {}
        self.made = 0

    def __len__(self) -> int:
        return len(self._held)

    def towards(self, node: int) -> Tree:
        tree = self._held.pop(node, None)
        if tree is None:
            tree = self._make(node)
            if len(self._held) >= self._most:
                del self._held[next(iter(self._held))]
        self._held[node] = tree  # dictionaries keep the order of insertion: the first one was not used for longest
        return tree

    def _make(self, node: int) -> Tree:
        self.made += 1
        lengths = rustworkx.graph_dijkstra_shortest_path_lengths(self._graph, node, float)
        distance = np.zeros(len(self._first))
        distance[np.fromiter(lengths.keys(), np.int64, len(lengths))] = np.fromiter(
            lengths.values(), np.float64, len(lengths)
        )
        cost = distance[self._head] + self._length
        best = np.flatnonzero(cost == np.minimum.reduceat(cost, self._first)[self._tail])
        _, leftmost = np.unique(self._tail[best], return_index=True)
        # Read one number at a time: a memoryview gives Python's own numbers, faster than an array gives its own.
        return Tree(distance.data, self._edge[best[leftmost]].data)
