"""What random waypoint and walking on streets share: pause somewhere, choose a place, go there, and so on.

Either life starts at a place, with a pause; or it starts *under way*, drawn from the state in which a walker who has been
going for ever is found at a random instant.  Places, speeds and pauses are independent, so that state is known without any
warm-up: an instant falls into a stretch of life in proportion to how long it lasts (Le Boudec and Vojnović, "Perfect
simulation and stationarity of a class of mobility models", INFOCOM 2005; Navidi and Camp, "Stationary distributions for the
random waypoint mobility model", 2004).  Slow and long walks are therefore found more often than they are begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.distributions import (
    Constant,
    Distribution,
    Exponential,
    LogNormal,
    Normal,
    Uniform,
)

XY = tuple[float, float]
"""Metres east and north on the plane."""


@dataclass(frozen=True, slots=True)
class Wanderer:
    """Whoever goes from place to place."""

    speed: Distribution
    """Metres per second, drawn anew for each walk."""

    pause: Distribution
    """Seconds at each place."""

    place: Callable[[Random], XY]
    """Where to go next; it does not depend on where one is."""

    way: Callable[[XY, XY], Sequence[XY]]
    """The corners of the way between two places, both included."""

    move_probability: float = 1.0
    """That one goes on when a pause ends; else one pauses again."""


def check_habits(speed: Distribution, pause: Distribution, move_probability: float) -> None:
    # With speeds down to 0 the walks that last longest outweigh all others: the mean speed of everybody decays
    # towards 0 and never settles (Yoon, Liu and Noble, "Random waypoint considered harmful", INFOCOM 2003).
    if not speed.least > 0:
        raise InvalidInput(f"the slowest speed is {speed.least:g} m/s; give a distribution that stays above 0")
    if not pause.least >= 0:
        raise InvalidInput(f"the shortest pause is {pause.least:g} s; give a distribution that is never negative")
    if not 0 < move_probability <= 1:
        raise InvalidInput(
            f"the probability to move is {move_probability}; give a number above 0 and up to 1, or let them stand"
        )


def wander(walker: Wanderer, random: Random, start: Instant, *, longest_way: float | None = None) -> Iterator[Leg]:
    """The legs of one life: from a pause on, or under way if the ``longest_way`` that there is, in metres, is given."""
    speed, pause, chance = walker.speed, walker.pause, walker.move_probability
    if longest_way is None:
        state = _State(walker.place(random), (), 1.0, pause.sample(random))
    else:
        state = _under_way(walker, random, longest_way)
    here, corners, velocity, wait = state
    time = start
    while True:
        for corner in corners:
            leg = Leg.between(time, here, corner, velocity)
            yield leg
            time, here = leg.until, corner
        microseconds = round((pause.sample(random) if wait is None else wait) * MICROSECONDS)
        wait = None
        if microseconds:
            yield Leg(time, time + microseconds, *here)
            time += microseconds
        if chance < 1.0 and random.random() >= chance:
            corners = ()
            continue
        corners = walker.way(here, walker.place(random))[1:]
        velocity = speed.sample(random)


class _State(NamedTuple):
    here: XY
    corners: Sequence[XY]
    """Still to come."""

    velocity: float
    wait: float | None
    """Seconds of the next pause, if that is known already."""


def _under_way(walker: Wanderer, random: Random, longest_way: float) -> _State:
    """The state at a random instant of an endless life, by rejection.

    A stretch of life is one pause, and with ``move_probability`` a walk after it.  The walk is proposed as if it lasted as
    long as any can, and kept in proportion to how long it lasts.
    """
    paused = walker.pause.mean
    total = paused + walker.move_probability * longest_way / walker.speed.least
    while True:
        origin = walker.place(random)
        if random.random() * total < paused:
            return _State(origin, (), 1.0, length_biased(walker.pause, random) * random.random())
        velocity = walker.speed.sample(random)
        # The speed first: it needs no way to be found.
        if random.random() * velocity >= walker.speed.least:
            continue
        way = walker.way(origin, walker.place(random))
        length = sum(math.dist(a, b) for a, b in pairwise(way))
        if random.random() * longest_way < length:
            return _State(*_cut(way, random.random() * length), velocity, None)


def _cut(way: Sequence[XY], metres: float) -> tuple[XY, Sequence[XY]]:
    """Where one is after so many metres, and the corners still to come."""
    for index, (a, b) in enumerate(pairwise(way)):
        piece = math.dist(a, b)
        if metres < piece:
            share = metres / piece
            return (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])), way[index + 1 :]
        metres -= piece
    return way[-1], ()


def length_biased(distribution: Distribution, random: Random) -> float:
    """A duration as a random instant finds it: each in proportion to how long it lasts."""
    match distribution:
        case Constant(value):
            return value
        case Uniform(low, high):
            return math.sqrt(low * low + random.random() * (high * high - low * low))
        case Exponential(scale, offset):
            # The sum of two exponentials (a gamma distribution of shape 2) is the length-biased one of them.
            longer = -scale * math.log(1.0 - random.random())
            return distribution.sample(random) + (longer if random.random() * distribution.mean >= offset else 0.0)
        case LogNormal(median, sigma, offset):
            shift = math.exp(sigma * sigma) if random.random() * distribution.mean >= offset else 1.0
            return offset + median * shift * math.exp(random.gauss(0.0, sigma))
        case Normal(centre, deviation, _, high):
            # Twelve deviations above the centre, nothing is left that any run could notice.
            longest = min(high, centre + 12 * deviation)
            while True:
                value = distribution.sample(random)
                if random.random() * longest < value:
                    return value
    raise InvalidInput(
        f"{type(distribution).__name__} has no known length-biased form; start at a place instead of under way"
    )
