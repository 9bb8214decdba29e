"""Streets that people walk along, and the places that attract them (BYPASS 6.1.1).

A ``StreetGraph`` takes the part of OpenStreetMap and GraphHopper in the dissertation: it knows the walkways, finds the
shortest way between two places, and holds the attraction points.  All places are metres on a plane around ``origin``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, NamedTuple

import shapely

from nearcast.errors import InvalidInput, InvalidMap, InvalidPosition
from nearcast.model.geometry import Point, checked_metres
from nearcast.runtime.simulation.plane import Bounds, Plane
from nearcast.runtime.simulation.streets.pieces import XY, Line, network
from nearcast.runtime.simulation.streets.search import Search

DEFAULT_RADIUS: Final = 25.0
"""Metres (BYPASS 6.1.1)."""


@dataclass(frozen=True, slots=True)
class AttractionPoint:
    """A place that people go to: chosen in proportion to its weight, approached to about its radius (BYPASS 6.1.1)."""

    name: str
    x: float
    y: float
    radius: float = DEFAULT_RADIUS
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise InvalidPosition(f"attraction point {self.name!r} is at ({self.x}, {self.y}), which is no place")
        checked_metres(self.radius, f"the radius of attraction point {self.name!r}", positive=True)
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise InvalidInput(f"attraction point {self.name!r} has weight {self.weight}; give a positive number")


class Place(NamedTuple):
    """A place on a street: which edge, which of its straight pieces, how far along the edge, and how far it was off."""

    edge: int
    piece: int
    along: float
    x: float
    y: float
    off: float


@dataclass(frozen=True, slots=True)
class StreetStatistics:
    """What a street graph consists of, what was left out, and what was asked of it."""

    nodes: int
    dead_ends: int
    edges: int
    metres: float
    attraction_points: int
    dropped_parts: int
    dropped_metres: float
    routes: int
    searches: int


class StreetGraph:
    """The largest connected part of some streets.  Immutable but for the desk on which ways are searched."""

    def __init__(
        self,
        streets: Iterable[Line],
        *,
        name: str = "streets",
        origin: Point,
        bounds: Bounds | None = None,
        points: Sequence[AttractionPoint] = (),
        attribution: str = "",
    ) -> None:
        found = network(streets)
        if not found.edges:
            raise InvalidMap(f"{name}: there is no street to walk on; give at least one line of two different corners")
        self.name = name
        self.origin = origin
        self.plane = Plane(origin)
        self.nodes = found.nodes
        self.edges = found.edges
        corners = [corner for edge in found.edges for corner in edge.geometry]
        self.bounds = bounds or Bounds.enclosing(corners)
        self.points = _distinct(points)
        self.attribution = attribution
        self._dropped_parts, self._dropped_metres = found.dropped_parts, found.dropped_metres
        self._search = Search(found)
        self._pieces = [
            (index, piece) for index, edge in enumerate(found.edges) for piece in range(len(edge.geometry) - 1)
        ]
        lines = [found.edges[index].geometry[piece : piece + 2] for index, piece in self._pieces]
        self._index = shapely.STRtree(shapely.linestrings(lines))
        self._routes = 0

    def with_points(self, points: Sequence[AttractionPoint]) -> StreetGraph:
        """The same streets with other attraction points, for example some of a map's parks with more weight."""
        other = copy(self)
        other.points = _distinct(points)
        return other

    def centred_at(self, origin: Point) -> StreetGraph:
        """The same streets elsewhere on the earth."""
        other = copy(self)
        other.origin, other.plane = origin, Plane(origin)
        return other

    def nearest(self, x: float, y: float) -> Place:
        """The place on a street that is nearest; of several equally near streets, the one of the lowest number."""
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidPosition(f"({x}, {y}) is no place; give metres east and north")
        index, piece = self._pieces[int(self._index.query_nearest(shapely.Point(x, y)).min())]
        edge = self.edges[index]
        (ax, ay), (bx, by) = edge.geometry[piece], edge.geometry[piece + 1]
        dx, dy = bx - ax, by - ay
        share = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)
        if share <= 0.0:
            foot, along = (ax, ay), edge.along[piece]
        elif share >= 1.0:
            foot, along = (bx, by), edge.along[piece + 1]
        else:
            foot = ax + share * dx, ay + share * dy
            along = edge.along[piece] + share * (edge.along[piece + 1] - edge.along[piece])
        return Place(index, piece, along, *foot, math.dist(foot, (x, y)))

    def route(self, origin: XY, target: XY) -> list[XY]:
        """The shortest walk: straight to the nearest street, along streets, and from the place nearest to the target straight to it.

        Both ends are way points, and no two consecutive ones are equal.  Who is nearer to the target than both are to their
        streets (in the same park, say) goes straight.
        """
        self._routes += 1
        here, there = self.nearest(*origin), self.nearest(*target)
        way: list[XY] = [origin]
        if math.dist(origin, target) > here.off + there.off:
            way.append((here.x, here.y))
            way += self._along_streets(here, there)
            way.append((there.x, there.y))
        way.append(target)
        return [place for index, place in enumerate(way) if index == 0 or place != way[index - 1]]

    def _along_streets(self, here: Place, there: Place) -> list[XY]:
        """The corners between two places on streets."""
        edges = self.edges
        first, last = edges[here.edge], edges[there.edge]
        way = self._search.way(
            ((first.start, here.along), (first.end, first.length - here.along)),
            ((last.start, there.along), (last.end, last.length - there.along)),
            (there.x, there.y),
        )
        if here.edge == there.edge and abs(here.along - there.along) <= way.length:
            if here.piece <= there.piece:
                return list(first.geometry[here.piece + 1 : there.piece + 1])
            return list(first.geometry[here.piece : there.piece : -1])
        node = way.leave
        corners = list(first.geometry[here.piece :: -1] if node == first.start else first.geometry[here.piece + 1 :])
        for number in way.edges:
            edge = edges[number]
            onwards = edge.start == node
            corners += edge.geometry if onwards else edge.geometry[::-1]
            node = edge.end if onwards else edge.start
        corners += last.geometry[: there.piece + 1] if node == last.start else last.geometry[: there.piece : -1]
        return corners

    def statistics(self) -> StreetStatistics:
        degree = [0] * len(self.nodes)
        for edge in self.edges:
            degree[edge.start] += 1
            degree[edge.end] += 1
        return StreetStatistics(
            nodes=len(self.nodes),
            dead_ends=degree.count(1),
            edges=len(self.edges),
            metres=sum(edge.length for edge in self.edges),
            attraction_points=len(self.points),
            dropped_parts=self._dropped_parts,
            dropped_metres=self._dropped_metres,
            routes=self._routes,
            searches=self._search.searches,
        )


def _distinct(points: Sequence[AttractionPoint]) -> tuple[AttractionPoint, ...]:
    """Names identify attraction points: each is a channel to those who filter by them."""
    names = [point.name for point in points]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"two attraction points are called {name!r}; give each a name of its own")
    return tuple(points)
