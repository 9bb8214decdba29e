"""Topologies as the document's experiments have them (Contextcast 4.5, 5.4, 6.4): who is linked with whom, who serves clients where.

All on a square with edges of length 1, by numbers of nodes; ``on_plane`` gives them names and places on the earth.  The
document names models and leaves parameters open; what is chosen here is said where it is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.overlay.topology.given import given_topology
from nearcast.overlay.topology.link_state import KnownStates
from nearcast.runtime.ports import Address

Floats = npt.NDArray[np.float64]
Rectangle = tuple[float, float, float, float]
"""West, south, east, north."""

WAXMAN_BETA: Final = 0.2
"""The document gives neither of Waxman's parameters; BRITE, which made such topologies popular, sets beta to 0.2."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Nodes on the unit square and the links between them."""

    places: Floats
    """A row of x and y for each node."""

    links: tuple[tuple[int, int], ...]
    """The lower number first."""

    @property
    def nodes(self) -> int:
        return len(self.places)

    def degrees(self) -> list[int]:
        degrees = [0] * self.nodes
        for one, other in self.links:
            degrees[one] += 1
            degrees[other] += 1
        return degrees

    def by_degree(self) -> list[int]:
        """Nodes, those with most links first; of equals the lower number first."""
        degrees = self.degrees()
        return sorted(range(self.nodes), key=lambda node: (-degrees[node], node))


def waxman(random: Random, nodes: int, links: int, *, beta: float = WAXMAN_BETA) -> Layout:
    """Exactly so many links, all connected; a link of length d is likely in proportion to exp(-d / (beta * L)), L = sqrt(2).

    First each node links with one before it, then pairs are drawn.  Waxman's alpha says how many links there are; here that is given.
    """
    if not (nodes - 1 <= links <= nodes * (nodes - 1) // 2 and nodes > 0 and beta > 0):
        raise InvalidInput(f"{nodes} nodes cannot hang together by {links} links with beta = {beta!r}")
    draw = np.random.default_rng(random.getrandbits(128))
    places = draw.random((nodes, 2))
    first, second = np.triu_indices(nodes, k=1)
    exponent = -np.hypot(*(places[first] - places[second]).T) / (beta * math.sqrt(2))
    # The largest of log-likelihoods with Gumbel noise are a draw without replacement; so no pair comes twice.
    score = exponent + draw.gumbel(size=len(exponent))
    order = np.full((nodes, nodes), -np.inf)
    order[second, first] = score
    tree = {(int(order[node, :node].argmax()), node) for node in range(1, nodes)}
    score[[_pair_number(nodes, *pair) for pair in tree]] = -np.inf
    best = np.argsort(-score, kind="stable")[: links - len(tree)].tolist()
    more = {(int(first[pair]), int(second[pair])) for pair in best}
    return Layout(places, tuple(sorted(tree | more)))


def _pair_number(nodes: int, one: int, other: int) -> int:
    """Where a pair stands in ``triu_indices``."""
    return one * nodes - one * (one + 1) // 2 + other - one - 1


def hot_tree(random: Random, nodes: int, gamma: float) -> Layout:
    """Highly optimised tolerance (Fabrikant, Koutsoupias, Papadimitriou): each node joins the one before it that is near, and near
    the first of all: gamma times the distance, plus its hops from the first, is the least there is.
    """
    if nodes < 1 or not gamma >= 0:
        raise InvalidInput(f"there is no tree of {nodes} nodes with gamma = {gamma!r}")
    places = np.random.default_rng(random.getrandbits(128)).random((nodes, 2))
    x, y = places.T.copy()
    hops = np.zeros(nodes)
    links = []
    for node in range(1, nodes):
        away = np.sqrt((x[:node] - x[node]) ** 2 + (y[:node] - y[node]) ** 2)
        joined = int((gamma * away + hops[:node]).argmin())
        hops[node] = hops[joined] + 1
        links.append((joined, node))
    return Layout(places, tuple(links))


def zipf(ranks: int, exponent: float) -> Floats:
    """The probability of each rank, the first first."""
    if ranks < 1 or not 0 <= exponent < math.inf:
        raise InvalidInput(f"there is no Zipf distribution over {ranks} ranks with exponent {exponent!r}")
    weights: Floats = np.arange(1, ranks + 1, dtype=float) ** -exponent
    weights /= weights.sum()
    return weights


def share_of_first(ranks: int, exponent: float, part: float = 0.2) -> float:
    """How probable the first part of the ranks is: 0.8 for "80 % in the first 20 %"."""
    return float(zipf(ranks, exponent)[: round(ranks * part)].sum())


def zipf_exponent(ranks: int, share: float = 0.8, part: float = 0.2) -> float:
    """The exponent with which the first part of the ranks has that share: 0.95 for thousands of ranks, 1.10 for 300."""
    low, high = 0.0, 50.0
    if not share_of_first(ranks, low, part) <= share <= share_of_first(ranks, high, part):
        raise InvalidInput(f"no exponent gives the first {part:.0%} of {ranks} ranks a share of {share:.0%}")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share_of_first(ranks, middle, part) < share else (low, middle)
    return (low + high) / 2


def zipf_choice(random: Random, ranked: Sequence[int], count: int, exponent: float) -> list[int]:
    """So many different nodes, drawn one after the other, those of the first ranks most likely; in the order of their ranks."""
    if not 0 <= count <= len(ranked):
        raise InvalidInput(f"{count} of {len(ranked)} nodes cannot be chosen")
    if not count:
        return []
    draw = np.random.default_rng(random.getrandbits(128))
    score = np.log(zipf(len(ranked), exponent)) + draw.gumbel(size=len(ranked))
    return [ranked[rank] for rank in np.sort(np.argsort(-score)[:count])]


def area_around(random: Random, x: float, y: float, shortest: float, longest: float) -> Rectangle:
    """The service area of a node: a rectangle around it, with edges of random length, clipped to the square."""
    width, height = random.uniform(shortest, longest), random.uniform(shortest, longest)
    return (
        max(0.0, x - width / 2), max(0.0, y - height / 2), min(1.0, x + width / 2), min(1.0, y + height / 2)
    )  # fmt: skip


def squares(edges: int) -> list[Rectangle]:
    """Service areas that cover the whole square: so many in a row, so many rows."""
    return [
        (column / edges, row / edges, (column + 1) / edges, (row + 1) / edges)
        for row in range(edges)
        for column in range(edges)
    ]


def on_plane(
    layout: Layout, to_point: Callable[[float, float], Point], size: float, *, start: int = 0
) -> tuple[dict[Address, Point], KnownStates]:
    """Names and places of the routers and the topology to give them; the square has edges of that many metres."""
    digits = len(str(layout.nodes - 1))
    names = [f"r{node:0{digits}}" for node in range(layout.nodes)]
    places = {name: to_point(x * size, y * size) for name, (x, y) in zip(names, layout.places.tolist(), strict=True)}
    return places, given_topology(places, [(names[one], names[other]) for one, other in layout.links], start=start)
