"""Incrementally changed random motion: heading and speed change a little at each step.

A variant of the random walk that Contextcast's clients follow (4.5.1, after Haas and Pearlman 1998); the document gives no
parameters.  At the border people turn as a billiard ball does.  Both the flow and the changes preserve volume, so uniform
places, headings and speeds stay uniform: people start that way, and there is no transient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.kernel import NEVER
from nearcast.runtime.simulation.mobility.places import check_bounds, uniform_place
from nearcast.runtime.simulation.plane import Bounds

NARROWEST: Final = 1.0
"""Metres; in a world as narrow as a microsecond's way there is no time between two borders."""

FASTEST: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """Speeds in m/s, between ``slowest`` and ``fastest``; 1.5 m/s is the pedestrian of Contextcast 4.3."""

    bounds: Bounds
    slowest: float = 1.0
    fastest: float = 2.0
    step: float = 10.0
    """Seconds between two changes."""

    turn: float = 30.0
    """Degrees: the standard deviation of a change of heading."""

    acceleration: float = 0.1
    """Metres per second: the standard deviation of a change of speed."""

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        if min(self.bounds.width, self.bounds.height) < NARROWEST:
            raise InvalidInput(
                f"a walk needs a world of at least {NARROWEST:g} m in both directions, not {self.bounds}"
            )
        # `not <` also refuses NaN.
        if not 0 < self.slowest <= self.fastest <= FASTEST:
            raise InvalidInput(
                f"speeds from {self.slowest} to {self.fastest} m/s cannot be; give 0 < slowest <= fastest <= {FASTEST:g}"
            )
        if not 1e-3 <= self.step < math.inf:
            raise InvalidInput(f"a step of {self.step} s cannot be; give at least a millisecond")
        for name, change in (("turn", self.turn), ("acceleration", self.acceleration)):
            if not 0 <= change < math.inf:
                raise InvalidInput(f"{name} is a standard deviation, not {change}; give 0 or more")

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        bounds, turn, step = self.bounds, math.radians(self.turn), round(self.step * MICROSECONDS)
        x, y = uniform_place(bounds)(random)
        heading, speed = random.uniform(-math.pi, math.pi), random.uniform(self.slowest, self.fastest)
        time = start
        while True:
            vx, vy = speed * math.cos(heading), speed * math.sin(heading)
            left = step
            while left:
                to_x = _until_border(x, vx, bounds.west, bounds.east)
                to_y = _until_border(y, vy, bounds.south, bounds.north)
                if to_x == 0:
                    vx = -vx
                elif to_y == 0:
                    vy = -vy
                else:
                    leg = Leg(time, time + min(left, to_x, to_y), x, y, vx, vy)
                    yield leg
                    left -= leg.until - time
                    time = leg.until
                    x, y = leg.end
            heading = math.atan2(vy, vx) + random.gauss(0.0, turn)
            speed = _reflected(speed + random.gauss(0.0, self.acceleration), self.slowest, self.fastest)


def _until_border(place: float, velocity: float, low: float, high: float) -> int:
    """Whole microseconds until the border ahead, rounded down: nobody steps over it."""
    if velocity == 0.0:
        return NEVER
    seconds = ((high if velocity > 0 else low) - place) / velocity
    return min(int(seconds * MICROSECONDS), NEVER) if seconds > 0 else 0


def _reflected(value: float, low: float, high: float) -> float:
    """Mirrored at both ends as often as it takes."""
    room = high - low
    if room == 0.0:
        return low
    over = (value - low) % (2 * room)
    return low + min(over, 2 * room - over)
