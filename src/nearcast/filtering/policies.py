"""When a client tells the broker that its context has changed (BYPASS.KOM 4.2.2).

A policy is asked when a fix arrives and told when one was reported; it starts no timer of its own.  So a period that ends
between two fixes is noticed at the next one, and periods are best chosen as multiples of the sensor's interval.  The first
fix is always due.  The thesis names the policies but no thresholds: distances and periods are the caller's to choose.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from nearcast.errors import InvalidScheme
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant


@dataclass(frozen=True, slots=True)
class UpdateStatistics:
    """How many fixes a policy was asked about, and how many were reported."""

    asked: int
    reported: int


class UpdatePolicy(ABC):
    """Decides which fixes are reported."""

    @abstractmethod
    def due(self, now: Instant, position: Point) -> bool:
        """Whether this fix should be reported."""

    @abstractmethod
    def reported(self, now: Instant, position: Point) -> None:
        """This fix was reported, because it was due or along with another message."""

    @abstractmethod
    def statistics(self) -> UpdateStatistics: ...


class _Limits(UpdatePolicy):
    """Reports beyond a distance from the last report, or a time after it, whichever comes first.

    What it remembers are plain attributes of the same names in every policy, so that a transition may hand them on.
    """

    def __init__(self, metres: float, seconds: float) -> None:
        self.metres = metres
        self.seconds = seconds
        self.last_instant: Instant | None = None
        self.last_position: Point | None = None
        self._asked = 0
        self._reported = 0

    def due(self, now: Instant, position: Point) -> bool:
        self._asked += 1
        if self.last_instant is None or self.last_position is None:
            return True
        if now - self.last_instant >= self.seconds * MICROSECONDS:
            return True
        return self.metres < math.inf and distance(self.last_position, position) > self.metres

    def reported(self, now: Instant, position: Point) -> None:
        self._reported += 1
        self.last_instant = now
        self.last_position = position

    def statistics(self) -> UpdateStatistics:
        return UpdateStatistics(self._asked, self._reported)


class EveryFix(_Limits):
    """Each fix is reported: what the prototype does, which leaves the rate to the sensor."""

    def __init__(self) -> None:
        super().__init__(math.inf, -math.inf)


class Distance(_Limits):
    """Reports whoever moved more than ``metres`` from where they last reported."""

    def __init__(self, metres: float) -> None:
        super().__init__(_checked(metres, "metres"), math.inf)


class Frequency(_Limits):
    """Reports once ``seconds`` have passed since the last report."""

    def __init__(self, seconds: float) -> None:
        super().__init__(math.inf, _checked(seconds, "seconds"))


class Hybrid(_Limits):
    """Reports at either, the distance or the period; a report for distance restarts the period."""

    def __init__(self, metres: float, seconds: float) -> None:
        super().__init__(_checked(metres, "metres"), _checked(seconds, "seconds"))


def _checked(value: object, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < math.inf:
        raise InvalidScheme(f"the threshold of an update policy is a positive number of {unit}, not {value!r}")
    return float(value)
