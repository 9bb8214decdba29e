"""The location sensor of a simulated host: what its mobility model says, as well as was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import hypot
from random import Random
from typing import Final

from nearcast.model.geometry import Point
from nearcast.runtime.ports import Accuracy, Cancellable, Fix, LocationSensor, Timers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.plane import Plane

EXACT: Final[Mapping[Accuracy, float]] = dict.fromkeys(Accuracy, 0.0)
"""The documents' sensors have no error; a scenario may give each level its standard deviation in metres."""

SURE: Final = 1.0 - 1e-6
NEARBY: Final = 50_000.0
"""Metres; within twice as many of the origin, distances in the plane are at most 42 parts in a million too long."""

FAR: Final = 1.0 + 1e-4
ROUNDING: Final = 0.001
"""Metres.  Together far more than is lost by rounding: micrometres nearby, decimetres at the other end of the earth."""


class SimulatedSensor(LocationSensor):
    """Fixes of one node."""

    __slots__ = (
        "_errors",
        "_exact",
        "_known",
        "_legs",
        "_motion",
        "_node",
        "_plane",
        "_random",
        "_simulation",
        "_timers",
    )

    def __init__(
        self,
        simulation: Simulation,
        motion: Motion,
        node: int,
        plane: Plane,
        timers: Timers,
        random: Random,
        errors: Mapping[Accuracy, float] = EXACT,
    ) -> None:
        self._simulation: Final = simulation
        self._motion: Final = motion
        self._node: Final = node
        self._plane: Final = plane
        self._timers: Final = timers
        self._random: Final = random
        self._errors: Final = errors
        self._exact: Final = not errors[Accuracy.HIGH]
        self._legs: Final = motion.legs
        self._known: Final = plane.known

    def fix(self) -> Fix | None:
        return self._measure(Accuracy.HIGH)

    def position(self) -> Point | None:
        if not self._exact:
            return super().position()
        x, y = self._motion.at(self._node)
        return self._plane.to_point(x, y)

    def within(self, metres: float, place: Point) -> bool | None:
        # No distance in the plane is shorter than on the earth.  A fifth of the time by way of the points in degrees.
        if not self._exact:
            return None
        # With every event that arrives: ``Motion.at`` and ``Plane.known_xy``, without the calls.
        start, until, x, y, vx, vy = self._legs[self._node]
        known = self._known.get(id(place))
        _, east, north = known if known is not None else (place, *self._plane.known_xy(place))
        now = self._simulation.time
        seconds = ((now if now < until else until) - start) * 1e-6
        if seconds > 0.0:
            x += vx * seconds
            y += vy * seconds
        apart = hypot(east - x, north - y)
        if apart <= metres * SURE - ROUNDING:
            return True
        # Nor is one longer by more than a = r / R over sin a, where r is how far from the origin the farther of the two is.
        if metres * FAR + ROUNDING < apart < NEARBY and hypot(east, north) < NEARBY:
            return False
        return None

    def request(
        self, seconds: float, moved: Callable[[Fix], None], accuracy: Accuracy = Accuracy.HIGH, *, first: float = 0.0
    ) -> Cancellable:
        return self._timers.every(seconds, lambda: moved(self._measure(accuracy)), first=first)

    def _measure(self, accuracy: Accuracy) -> Fix:
        now = self._simulation.now()
        leg = self._motion.leg(self._node)
        x, y = leg.at(now)
        error = self._errors[accuracy]
        if error:
            if self._simulation.observers.watching:
                self._simulation.observers.refuse("draw a random number; Motion.at says where a node is")
            x, y = x + self._random.gauss(0.0, error), y + self._random.gauss(0.0, error)
        return Fix(now, self._plane.to_point(x, y), error, *leg.course(now))
