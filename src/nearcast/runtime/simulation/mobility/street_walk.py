"""Walking along streets, to attraction points or anywhere (BYPASS 6.1.1, Tables 2 and 3; LCN Table I)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Final, Literal

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.distributions import Distribution, Uniform
from nearcast.runtime.simulation.mobility.wandering import XY, Wanderer, check_habits, wander
from nearcast.runtime.simulation.streets.graph import StreetGraph

WALKING: Final = Uniform(1.0, 2.0)
"""Metres per second (BYPASS Table 3)."""

PAUSING: Final = Uniform(1.0, 60.0)
"""Seconds (BYPASS Table 3)."""

RADII: Final = 3.0
"""The radius of an attraction point is that many standard deviations of where its visitors stop (BYPASS 6.1.1)."""

LONGEST_WAY: Final = 1.5
"""Times width plus height of the map: an upper bound of all walks, as generous as a city needs.

What is longer all the same is found under way a little too seldom, and only at the start.
"""


@dataclass(frozen=True, slots=True)
class StreetWalk:
    """One of the people in a city: walk to a target along streets, pause there, choose the next.

    Targets are the map's attraction points, chosen by weight, each with a normal scatter of a third of its radius on each
    axis; or any places, drawn uniformly from the map and moved to the nearest street (as GraphHopper does).  Two axes leave
    only 98.9 % of the visitors within the radius, not the 99 % that the dissertation states for one; with ``truncate`` whoever
    would stop outside chooses again.

    By default everybody is under way at the start, as if they had always been walking.  If all paused at a target instead,
    they would set out within the same minute and arrive in waves, and it would take several walks until these even out.
    """

    graph: StreetGraph
    targets: Literal["attraction points", "anywhere"] = "attraction points"
    speed: Distribution = WALKING
    pause: Distribution = PAUSING
    truncate: bool = False
    stationary: bool = True

    def __post_init__(self) -> None:
        check_habits(self.speed, self.pause, 1.0)
        if self.targets not in {"attraction points", "anywhere"}:
            raise InvalidInput(f"targets are 'attraction points' or 'anywhere', not {self.targets!r}")
        if self.targets == "attraction points" and not self.graph.points:
            raise InvalidInput(f"{self.graph.name} has no attraction points; add some, or let people walk 'anywhere'")

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        west, south, east, north = self.graph.bounds
        longest = LONGEST_WAY * (east - west + north - south) if self.stationary else None
        return wander(
            Wanderer(self.speed, self.pause, self.target(), self.graph.route), random, start, longest_way=longest
        )

    def target(self) -> Callable[[Random], XY]:
        """How a target is drawn."""
        if self.targets == "anywhere":
            return _on_streets(self.graph)
        return _at_points(self.graph, truncate=self.truncate)


def _on_streets(graph: StreetGraph) -> Callable[[Random], XY]:
    west, south, east, north = graph.bounds

    def target(random: Random) -> XY:
        place = graph.nearest(random.uniform(west, east), random.uniform(south, north))
        return place.x, place.y

    return target


def _at_points(graph: StreetGraph, *, truncate: bool) -> Callable[[Random], XY]:
    points = graph.points
    limits = list(accumulate(point.weight for point in points))
    west, south, east, north = graph.bounds

    def target(random: Random) -> XY:
        # The sum of the weights times a number just below 1 may round to the sum itself.
        index = min(bisect_right(limits, random.random() * limits[-1]), len(points) - 1)
        point = points[index]
        sigma = point.radius / RADII
        while True:
            dx, dy = random.gauss(0.0, sigma), random.gauss(0.0, sigma)
            if not truncate or math.hypot(dx, dy) <= point.radius:
                # The map ends where the world does: nobody walks out of it.
                return min(max(point.x + dx, west), east), min(max(point.y + dy, south), north)

    return target
