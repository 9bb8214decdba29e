"""Standing still: sensors, access points, players in a game that is about something else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.mobility.places import check_bounds, uniform_place
from nearcast.runtime.simulation.motion import FOREVER
from nearcast.runtime.simulation.plane import Bounds


@dataclass(frozen=True, slots=True)
class Standing:
    """At one place for ever: at ``x``, ``y``.  For a list of places, one of these each."""

    x: float
    y: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise InvalidInput(f"nobody can stand at ({self.x}, {self.y}); give metres east and north")

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:  # noqa: ARG002 - nothing to choose
        yield Leg(start, int(FOREVER), self.x, self.y)


@dataclass(frozen=True, slots=True)
class StandingAnywhere:
    """At one place for ever, chosen uniformly."""

    bounds: Bounds

    def __post_init__(self) -> None:
        check_bounds(self.bounds)

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        yield Leg(start, int(FOREVER), *uniform_place(self.bounds)(random))
