"""The location sensor of a live host, and where its positions come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Final

from nearcast.errors import InvalidPosition
from nearcast.model.geometry import Point, checked_metres
from nearcast.model.time import Instant
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.ports import Accuracy, Cancellable, Clock, Fix, LocationSensor, Timers

NewestFix = Callable[[], Fix | None]
"""Where a host is, as far as is known; it outlives the host's failures."""


class LiveSensor(LocationSensor):
    """The sensor of one life of a host."""

    def __init__(self, newest: NewestFix, timers: Timers) -> None:
        self._newest: Final = newest
        self._timers: Final = timers

    def fix(self) -> Fix | None:
        return self._newest()

    def request(
        self,
        seconds: float,
        moved: Callable[[Fix], None],
        accuracy: Accuracy = Accuracy.HIGH,  # noqa: ARG002 - a wish that saves battery; here a fix is as good as its source
        *,
        first: float = 0.0,
    ) -> Cancellable:
        def tell() -> None:
            fix = self._newest()
            if fix is not None:
                moved(fix)

        return self._timers.every(seconds, tell, first=first)


class FedPosition:
    """Fixes that somebody hands in: a GPS receiver, a test, a person at a keyboard."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._fix: Fix | None = None

    def update(
        self,
        lat: float,
        lon: float,
        *,
        accuracy: float,
        speed: float = 0.0,
        heading: float | None = None,
        time: Instant | None = None,
    ) -> None:
        """A new fix, in the units of ``Fix``; taken now, unless its time is given."""
        if heading is not None and not math.isfinite(heading):
            raise InvalidPosition(f"heading {heading!r} is no direction: give degrees clockwise from north, or none")
        self._fix = Fix(
            self._clock.now() if time is None else time,
            Point(lat, lon),
            checked_metres(accuracy, "accuracy"),
            checked_metres(speed, "speed per second"),
            None if heading is None else heading % 360.0,
        )

    def fix(self) -> Fix | None:
        return self._fix


class MovingPosition:
    """Fixes of somebody who moves by a model, in real time: for demonstrations.

    ``to_point`` turns metres east and north into a place (``Plane.to_point``).
    """

    def __init__(
        self, clock: Clock, model: MobilityModel, random: Random, to_point: Callable[[float, float], Point]
    ) -> None:
        self._clock: Final = clock
        self._to_point: Final = to_point
        start = clock.now()
        self._legs: Final = model(random, start)
        # As in the simulated half: a model without any leg leaves its node at the origin.
        self._leg = next(self._legs, Leg(start, start, 0.0, 0.0))

    def fix(self) -> Fix:
        now = self._clock.now()
        while now >= self._leg.until:
            leg = next(self._legs, None)
            if leg is None:
                break
            self._leg = leg
        return Fix(now, self._to_point(*self._leg.at(now)), 0.0, *self._leg.course(now))
