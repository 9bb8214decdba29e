"""Random waypoint: straight to a place chosen uniformly, pause, and on (BYPASS 6.1.1; THYME 6.5 with a coin toss)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from nearcast.model.time import Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.distributions import Constant, Distribution
from nearcast.runtime.simulation.mobility.places import check_bounds, uniform_place
from nearcast.runtime.simulation.mobility.wandering import XY, Wanderer, check_habits, wander
from nearcast.runtime.simulation.plane import Bounds

NO_PAUSE: Final = Constant(0.0)


@dataclass(frozen=True, slots=True)
class RandomWaypoint:
    """Speeds in m/s, drawn for each walk; pauses in seconds.

    Everybody starts with a pause at a uniform place: that is what the documents say ("uniform placement") and what ns-3
    does, so it is the default.  But people then drift to the middle of the area and slow down, until after some crossings
    they are distributed as ``stationary`` starts them: choose it where a run's first minutes count.
    """

    bounds: Bounds
    speed: Distribution
    pause: Distribution = NO_PAUSE
    move_probability: float = 1.0
    """That one goes on when a pause ends; else one pauses once more (THYME 6.5: 0.8)."""

    stationary: bool = False

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        check_habits(self.speed, self.pause, self.move_probability)

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        walker = Wanderer(self.speed, self.pause, uniform_place(self.bounds), _straight, self.move_probability)
        longest = math.hypot(self.bounds.width, self.bounds.height) if self.stationary else None
        return wander(walker, random, start, longest_way=longest)


def _straight(origin: XY, target: XY) -> tuple[XY, XY]:
    return origin, target
