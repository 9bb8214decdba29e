"""The tree that follows from link states: the same for everybody who knows the same (Contextcast 2.4.4).

Minimum spanning, by weight and then by the names of both ends.  So no two edges are alike, there is one such tree, and no router
needs to ask another.  Its root, the router with the lowest name, only says which way is up.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from nearcast.overlay.topology.link_state import LinkState, LinkStates, digest_of
from nearcast.runtime.ports import Address

Edge = tuple[Address, Address]
"""The lower name first."""

MOST_FORESTS: Final = 64
"""Routers of one process that know the same share what follows from it; so many are kept."""


class SpanningTree:
    """Of all routers that hang together, whoever of them looks at it."""

    def __init__(self, members: Sequence[LinkState], edges: Sequence[Edge]) -> None:
        self.routers: Final = tuple(sorted(state.router for state in members))
        self.root: Final = self.routers[0]
        self.edges: Final = tuple(sorted(edges))
        lives = sorted((state.router, state.life) for state in members)
        text = repr((lives, self.edges)).encode()
        self.identity: Final = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
        """The same for the same routers, in the same lives, with the same edges."""

        self.digest = 0
        """Of the members' link states."""
        for state in members:
            self.digest ^= digest_of(state)
        self._adjacent: Final[dict[Address, list[Address]]] = {router: [] for router in self.routers}
        for one, other in self.edges:
            self._adjacent[one].append(other)
            self._adjacent[other].append(one)
        self._parent: Final[dict[Address, Address]] = {}
        self._first: Final[dict[Address, int]] = {}
        """The order in which a walk from the root comes by, and for each router the last that is below it."""
        self._last: Final[dict[Address, int]] = {}
        self._children: Final[dict[Address, tuple[list[int], list[Address]]]] = {}
        self._walk()

    def __contains__(self, router: object) -> bool:
        return router in self._first

    def neighbours(self, router: Address) -> frozenset[Address]:
        return frozenset(self._adjacent[router])

    def next_hop(self, at: Address, to: Address) -> Address | None:
        """The neighbour of ``at`` behind which the other lies; none if that is itself, or not in the tree."""
        place = self._first.get(to)
        here = self._first[at]
        if place is None or place == here:
            return None
        if not here < place <= self._last[at]:
            return self._parent[at]
        firsts, children = self._children[at]
        return children[bisect_right(firsts, place) - 1]

    def _walk(self) -> None:
        """Number the routers so that everything below one of them is a stretch of numbers."""
        waiting = [self.root]
        while waiting:
            router = waiting[-1]
            if router in self._first:
                waiting.pop()
                if router not in self._last:
                    self._last[router] = len(self._first) - 1
                    below = [child for child in self._adjacent[router] if self._parent.get(child) == router]
                    below.sort(key=self._first.__getitem__)
                    self._children[router] = [self._first[child] for child in below], below
                continue
            self._first[router] = len(self._first)
            for neighbour in self._adjacent[router]:
                if neighbour not in self._first:
                    self._parent[neighbour] = router
                    waiting.append(neighbour)


class Tree:
    """The tree, as one of its routers sees it."""

    __slots__ = ("me", "neighbours", "spanning")

    def __init__(self, spanning: SpanningTree, me: Address) -> None:
        self.spanning: Final = spanning
        self.me: Final = me
        self.neighbours: Final = spanning.neighbours(me)

    @property
    def identity(self) -> int:
        return self.spanning.identity

    @property
    def root(self) -> Address:
        return self.spanning.root

    @property
    def routers(self) -> tuple[Address, ...]:
        """All that can be reached, this one included, in order."""
        return self.spanning.routers

    def __contains__(self, router: object) -> bool:
        return router in self.spanning

    def next_hop(self, router: Address) -> Address | None:
        """The neighbour behind which it lies; none: it is this one, or cannot be reached."""
        return self.spanning.next_hop(self.me, router)


class Forest:
    """All trees that follow from some link states; a tree is made when somebody asks for it."""

    def __init__(self, states: Iterable[LinkState]) -> None:
        self._states: Final = {state.router: state for state in states}
        self._group: Final = {router: router for router in self._states}
        self._edges: Final = list(self._minimal())
        self._trees: Final[dict[Address, SpanningTree]] = {}

    def tree_of(self, router: Address) -> SpanningTree:
        group = self._found(router)
        tree = self._trees.get(group)
        if tree is None:
            members = [state for name, state in self._states.items() if self._found(name) == group]
            edges = [edge for edge in self._edges if self._found(edge[0]) == group]
            tree = self._trees[group] = SpanningTree(members, edges)
        return tree

    def _minimal(self) -> Iterable[Edge]:
        """Kruskal: the lightest edge that joins two groups, again and again."""
        for _, one, other in sorted(self._weighted()):
            first, second = self._found(one), self._found(other)
            if first != second:
                self._group[max(first, second)] = min(first, second)
                yield one, other

    def _weighted(self) -> Iterable[tuple[int, Address, Address]]:
        """Links that both ends speak of: what only one of them says is news of the past, or not agreed yet."""
        states = self._states
        weights = {(state.router, neighbour): weight for state in states.values() for neighbour, weight in state.links}
        for (one, other), weight in weights.items():
            if one < other and one in states and other in states:
                back = weights.get((other, one))
                if back is not None:
                    yield max(weight, back), one, other

    def _found(self, router: Address) -> Address:
        group = self._group
        while group[router] != router:
            group[router] = group[group[router]]
            router = group[router]
        return router


_forests: Final[OrderedDict[int, Forest]] = OrderedDict()


def tree_at(me: Address, states: LinkStates) -> Tree:
    """The tree of a router whose own link state is among these."""
    # A thousand simulated routers hear the same and would all work it out; it depends on the digest alone.
    forest = _forests.get(states.digest)
    if forest is None:
        forest = _forests[states.digest] = Forest(states)
        if len(_forests) > MOST_FORESTS:
            _forests.popitem(last=False)
    else:
        _forests.move_to_end(states.digest)
    return Tree(forest.tree_of(me), me)
