"""From loose lines to a network: streets meet where they share a point, to the millimetre.

Everything is sorted by coordinates, so that the network depends on the lines and not on the order they came in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from nearcast.errors import InvalidMap
from nearcast.runtime.simulation.plane import Bounds

XY = tuple[float, float]
"""Metres east and north on the plane."""
Line = Sequence[XY]
"""A street as its corners."""

MILLIMETRE: Final = 0.001
FARTHEST: Final = 2.0e7
"""Metres: half around the earth."""
Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


class Edge(NamedTuple):
    """A street between two nodes: its corners from ``start`` to ``end``, and how far along it each of them lies."""

    start: int
    end: int
    geometry: tuple[XY, ...]
    along: tuple[float, ...]

    @property
    def length(self) -> float:
        return self.along[-1]


class Network(NamedTuple):
    """The largest connected part of some streets; the rest was dropped, because nobody could walk there."""

    nodes: tuple[XY, ...]
    edges: tuple[Edge, ...]
    dropped_parts: int
    dropped_metres: float


def clipped(lines: Iterable[Line], bounds: Bounds) -> list[Line]:
    """What lies within the bounds.  A street that crosses them ends there."""
    geometries = shapely.clip_by_rect([shapely.LineString(line) for line in lines if len(line) > 1], *bounds)
    parts = shapely.get_parts(geometries)
    return [shapely.get_coordinates(part).tolist() for part in parts[shapely.get_type_id(parts) == 1]]


def network(lines: Iterable[Line]) -> Network:
    """Join lines where they share a point, keep the largest connected part, and make an edge of every unbranched way."""
    corners, pieces = _pieces(lines)
    if not len(pieces):
        return Network((), (), 0, 0.0)
    kept, parts, dropped = _largest_part(corners, pieces)
    places: list[XY] = [(x, y) for x, y in corners.tolist()]
    chains = _chains(kept)
    junctions = sorted({end for chain in chains for end in (chain[0], chain[-1])})
    number = {place: node for node, place in enumerate(junctions)}
    edges = tuple(
        Edge(number[chain[0]], number[chain[-1]], geometry, _along(geometry))
        for chain in chains
        for geometry in [tuple(places[place] for place in chain)]
    )
    return Network(tuple(places[place] for place in junctions), edges, parts - 1, dropped)


def _pieces(lines: Iterable[Line]) -> tuple[Floats, Int64s]:
    """All distinct corners, and the straight pieces between them as pairs of corners (the smaller number first)."""
    drawn = [line for line in lines if len(line)]
    if not drawn:
        return np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)
    coordinates = np.concatenate(drawn)
    if not (np.abs(coordinates) < FARTHEST).all():  # also refuses NaN
        raise InvalidMap(f"a street has a corner that is no place, or farther than {FARTHEST:g} m from the origin")
    millimetres = np.rint(coordinates / MILLIMETRE).astype(np.int64)
    corners, inverse = np.unique(millimetres, axis=0, return_inverse=True)
    last = np.zeros(len(inverse), dtype=np.bool_)
    last[np.cumsum([len(line) for line in drawn]) - 1] = True
    ends = np.sort(np.column_stack((inverse[:-1], inverse[1:]))[~last[:-1]], axis=1)
    return np.round(corners * MILLIMETRE, 3), np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def _parts(corners: int, pieces: Int64s) -> Int64s:
    """Of each corner, the number of its part, by the order of their first corners."""
    least = np.arange(corners)
    while True:
        # Neighbours take the lower of their numbers, and then the number that this one has: a chain halves in every round.
        before, lower = least, np.minimum(least[pieces[:, 0]], least[pieces[:, 1]])
        least = before.copy()
        np.minimum.at(least, pieces[:, 0], lower)
        np.minimum.at(least, pieces[:, 1], lower)
        least = least[least]
        if np.array_equal(least, before):
            return np.asarray(np.unique(least, return_inverse=True)[1], np.int64)


def _largest_part(corners: Floats, pieces: Int64s) -> tuple[Int64s, int, float]:
    """The pieces of the part with most metres of street; how many parts there are; the metres of all others."""
    part = _parts(len(corners), pieces)
    metres = np.hypot(*(corners[pieces[:, 0]] - corners[pieces[:, 1]]).T)
    total = np.bincount(part[pieces[:, 0]], weights=metres, minlength=int(part.max()) + 1)
    largest = int(np.argmax(total))
    streets = int(np.count_nonzero(total))  # a corner from which no piece goes out is no part
    return pieces[part[pieces[:, 0]] == largest], streets, float(np.delete(total, largest).sum())


def _chains(pieces: Int64s) -> list[list[int]]:
    """Ways between junctions, as lists of corners.  None of them leads back to its own start."""
    neighbours: dict[int, list[int]] = {}
    for a, b in pieces.tolist():
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    junctions = [corner for corner in sorted(neighbours) if len(neighbours[corner]) != 2]
    chains = []
    walked: set[tuple[int, int]] = set()
    for start in junctions or [min(neighbours)]:  # without a junction, all is one ring
        for first in sorted(neighbours[start]):
            if (start, first) in walked:
                continue
            chain = [start, first]
            while len(neighbours[chain[-1]]) == 2 and chain[-1] != start:
                one, other = neighbours[chain[-1]]
                chain.append(other if one == chain[-2] else one)
            walked.update(((start, first), (chain[-1], chain[-2])))
            middle = len(chain) // 2
            chains += [chain] if chain[-1] != start else [chain[: middle + 1], chain[middle:]]
    return chains


def _along(geometry: Sequence[XY]) -> tuple[float, ...]:
    distances = [0.0]
    for a, b in pairwise(geometry):
        distances.append(distances[-1] + math.dist(a, b))
    return tuple(distances)
