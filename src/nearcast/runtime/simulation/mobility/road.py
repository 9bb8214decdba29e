"""Straight roads: lanes, and the vehicles that drive along them (STEAM 5.1 and 5.2).

Traffic flows freely: a vehicle keeps its speed and does not see the others.  STEAM's vehicles do the same, its intersection
included ("arriving at the intersection in time to pass the light").

A vehicle is *circulating*, so that the number on the road stays what it is (STEAM's saturation): it enters anew as soon as it
has left.  Or it is *passing*, at instants that were drawn before; between two passages its host is away (``stays``).  In both
cases it is moved from the end of the road to its start, the one jump that motion of any kind makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.distributions import Distribution
from nearcast.runtime.simulation.mobility.wandering import XY, length_biased

LANE_WIDTH: Final = 3.5
"""Metres."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where everybody waits, for example at a light: metres from the start of the lane, and for how many seconds."""

    at: float
    seconds: Distribution

    def __post_init__(self) -> None:
        if not self.seconds.least >= 0:
            raise InvalidInput(
                f"the shortest stop is {self.seconds.least:g} s; give a distribution that is never negative"
            )


@dataclass(frozen=True, slots=True)
class Lane:
    """A straight line to drive along, in one direction."""

    start: XY
    end: XY
    stop: Stop | None = None

    def __post_init__(self) -> None:
        if not 0 < self.length < math.inf:
            raise InvalidInput(f"a lane from {self.start} to {self.end} leads nowhere; give two different places")
        if self.stop and not 0 <= self.stop.at <= self.length:
            raise InvalidInput(f"a stop after {self.stop.at} m is not on a lane of {self.length:g} m")

    @property
    def length(self) -> float:
        """Metres."""
        return math.dist(self.start, self.end)

    def at(self, metres: float) -> XY:
        share = metres / self.length
        (ax, ay), (bx, by) = self.start, self.end
        return ax + share * (bx - ax), ay + share * (by - ay)


def lanes(
    start: XY, end: XY, *, forward: int = 1, backward: int = 1, stop: Stop | None = None, keep_left: bool = False
) -> list[Lane]:
    """The lanes of a road around the line from ``start`` to ``end``: first those that lead there, from the middle outwards.

    Everybody keeps to the right, or to the left as in STEAM's Dublin.
    """
    length, side = Lane(start, end).length, -LANE_WIDTH if keep_left else LANE_WIDTH
    # One lane to the right of the line.
    right = (end[1] - start[1]) / length * side, (start[0] - end[0]) / length * side

    def beside(place: XY, widths: float) -> XY:
        return place[0] + widths * right[0], place[1] + widths * right[1]

    there = [Lane(beside(start, n + 0.5), beside(end, n + 0.5), stop) for n in range(forward)]
    back = [Lane(beside(end, -n - 0.5), beside(start, -n - 0.5), stop) for n in range(backward)]
    return there + back


def _check_speed(speed: float) -> None:
    if not 0 < speed < math.inf:
        raise InvalidInput(f"{speed} m/s is no speed of a vehicle; give more than 0")


@dataclass(frozen=True, slots=True)
class Circulating:
    """A vehicle that drives along a lane for ever, from anywhere on it, at a speed of its own (m/s)."""

    lane: Lane
    speed: Distribution

    def __post_init__(self) -> None:
        _check_speed(self.speed.least)

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        lane, stop, speed = self.lane, self.lane.stop, self.speed.sample(random)
        metres, wait = self._under_way(random, speed)
        time = start
        while True:
            if stop and wait is None and metres <= stop.at:
                wait = stop.seconds.sample(random)
            for leg in _drive(lane, time, metres, speed, wait):
                yield leg
                time = leg.until
            metres, wait = 0.0, None

    def _under_way(self, random: Random, speed: float) -> tuple[float, float | None]:
        """Where a random instant finds a vehicle that has always been driving: metres, and the rest of its stop."""
        stop, driving = self.lane.stop, self.lane.length / speed
        if stop and random.random() * (driving + stop.seconds.mean) >= driving:
            return stop.at, length_biased(stop.seconds, random) * random.random()
        return random.random() * self.lane.length, None


@dataclass(frozen=True, slots=True)
class Passage:
    """One drive along a lane: seconds after the start of the run, m/s, and the seconds of its stop."""

    lane: Lane
    enters: float
    speed: float
    waits: float = 0.0

    def __post_init__(self) -> None:
        _check_speed(self.speed)
        if not (0 <= self.enters < math.inf and 0 <= self.waits < math.inf):
            raise InvalidInput(
                f"a vehicle cannot enter after {self.enters} s and stop for {self.waits} s; give 0 or more"
            )

    @property
    def leaves(self) -> float:
        return self.enters + self.lane.length / self.speed + self.waits


@dataclass(frozen=True, slots=True)
class Passing:
    """A node that is a vehicle on the road now and then."""

    passages: tuple[Passage, ...]

    def __post_init__(self) -> None:
        free = 0.0
        for passage in self.passages:
            if passage.enters < free:
                raise InvalidInput(
                    f"a vehicle enters after {passage.enters:g} s, but is on the road until {free:g} s; share the passages "
                    "out with vehicles()"
                )
            free = passage.leaves

    @property
    def stays(self) -> tuple[tuple[float, float], ...]:
        """When it is on the road: seconds after the start of the run."""
        return tuple((passage.enters, passage.leaves) for passage in self.passages)

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:  # noqa: ARG002 - all was drawn before
        time = start
        for passage in self.passages:
            enters = start + round(passage.enters * MICROSECONDS)
            if enters > time:
                yield Leg(time, enters, *passage.lane.start)
                time = enters
            for leg in _drive(passage.lane, time, 0.0, passage.speed, passage.waits):
                yield leg
                time = leg.until


def _drive(lane: Lane, time: Instant, metres: float, speed: float, wait: float | None) -> Iterator[Leg]:
    """From so many metres on to the end of the lane, with a stop on the way if there is one ahead."""
    here = lane.at(metres)
    if lane.stop and wait and metres <= lane.stop.at:
        if metres < lane.stop.at:
            leg = Leg.between(time, here, lane.at(lane.stop.at), speed)
            yield leg
            time, here = leg.until, lane.at(lane.stop.at)
        leg = Leg(time, time + max(1, round(wait * MICROSECONDS)), *here)
        yield leg
        time = leg.until
    yield Leg.between(time, here, lane.end, speed)


def arrivals(lane: Lane, speed: Distribution, headway: Distribution, seconds: float, random: Random) -> list[Passage]:
    """Whoever enters the lane during so many seconds, with ``headway`` seconds between two: exponential makes it Poisson."""
    if not headway.least >= 0 or not headway.mean > 0:
        raise InvalidInput(f"a headway from {headway.least:g} s on, {headway.mean:g} s on average, cannot be")
    passages = []
    enters = headway.sample(random)
    while enters < seconds:
        passages.append(_passage(lane, enters, speed, random))
        enters += headway.sample(random)
    return passages


def counted(lane: Lane, speed: Distribution, count: int, seconds: float, random: Random) -> list[Passage]:
    """``count`` vehicles that enter at any instant of so many seconds, as a counter beside the road tells (STEAM 5.2)."""
    enters = sorted(random.random() * seconds for _ in range(count))
    return [_passage(lane, instant, speed, random) for instant in enters]


def _passage(lane: Lane, enters: float, speed: Distribution, random: Random) -> Passage:
    return Passage(lane, enters, speed.sample(random), lane.stop.seconds.sample(random) if lane.stop else 0.0)


def vehicles(passages: Iterable[Passage]) -> list[Passing]:
    """As few vehicles as can make all these passages: a day's traffic needs only as many nodes as are on the road at once."""
    free: list[tuple[float, int]] = []
    shares: list[list[Passage]] = []
    for passage in sorted(passages, key=lambda passage: passage.enters):
        if free and free[0][0] <= passage.enters:
            _, index = heappop(free)
        else:
            index = len(shares)
            shares.append([])
        shares[index].append(passage)
        heappush(free, (passage.leaves, index))
    return [Passing(tuple(share)) for share in shares]
