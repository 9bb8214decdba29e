"""How people move, as both halves see it: straight legs, one after the other, in metres east and north of an origin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple, Protocol

from nearcast.model.time import MICROSECONDS, Instant

LONGEST: Final = 1e18
"""Microseconds of a walk, thirty thousand years: whoever is slower than that does not arrive."""


class Leg(NamedTuple):
    """From ``start`` on, move with the velocity until ``until``; zero velocity is a pause."""

    start: Instant
    until: Instant
    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0

    @classmethod
    def between(cls, start: Instant, origin: tuple[float, float], target: tuple[float, float], speed: float) -> Leg:
        """The straight way at that speed; at least a microsecond, so that time always goes on.

        It ends at the target itself: the whole microseconds are rounded up, and the velocity follows from them.
        """
        dx, dy = target[0] - origin[0], target[1] - origin[1]
        length = (dx * dx + dy * dy) ** 0.5
        microseconds = math.ceil(min(length / speed * MICROSECONDS, LONGEST)) or 1
        seconds = microseconds / MICROSECONDS
        return cls(start, start + microseconds, *origin, dx / seconds, dy / seconds)

    def at(self, time: Instant) -> tuple[float, float]:
        if time <= self.start:
            return self.x, self.y
        seconds = (min(time, self.until) - self.start) / MICROSECONDS
        return self.x + self.vx * seconds, self.y + self.vy * seconds

    @property
    def end(self) -> tuple[float, float]:
        return self.at(self.until)

    def course(self, time: Instant) -> tuple[float, float | None]:
        """Speed in metres per second, and heading in degrees clockwise from north; none while standing."""
        if time >= self.until or (self.vx == 0.0 and self.vy == 0.0):
            return 0.0, None
        heading = math.degrees(math.atan2(self.vx, self.vy)) % 360.0
        return math.hypot(self.vx, self.vy), heading if heading < 360.0 else 0.0  # -1e-20 % 360.0 is 360.0


class MobilityModel(Protocol):
    """How one kind of people moves."""

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        """The life of one of them: each leg starts where and when the one before ends; when they end, it stands still.

        All its choices come from ``random``, a stream of its own.
        """
