"""What the tests of all models measure, and the bounds of a test that must not fail by chance."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile
from random import Random

import numpy as np
import numpy.typing as npt

from nearcast.model.time import MICROSECONDS
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.random import RandomStreams

Floats = npt.NDArray[np.float64]
SIGMAS = 5.0
"""A normal variable is further off once in 1.7 million times."""


def streams(seed: int, count: int) -> Iterator[Random]:
    named = RandomStreams(seed)
    return (named.stream("mobility", str(index)) for index in range(count))


def legs_until(model: MobilityModel, random: Random, seconds: float, start: int = 0) -> list[Leg]:
    """All legs that begin before so many seconds have passed."""
    return list(takewhile(lambda leg: leg.start < start + seconds * MICROSECONDS, model(random, start)))


def leg_at(model: MobilityModel, random: Random, seconds: float) -> Leg:
    time = round(seconds * MICROSECONDS)
    return next(leg for leg in model(random, 0) if leg.until > time)


def places_at(model: MobilityModel, seconds: float, people: int, seed: int) -> Floats:
    """Where each of them is then: an array of x and y."""
    time = round(seconds * MICROSECONDS)
    return np.array([leg_at(model, random, seconds).at(time) for random in streams(seed, people)])


def jumps(legs: Sequence[Leg]) -> Iterator[float]:
    """Metres between the end of each leg and the start of the next, which must follow at once."""
    for before, after in pairwise(legs):
        assert before.until == after.start > before.start
        x, y = before.end
        yield float(np.hypot(after.x - x, after.y - y))


def speed(leg: Leg) -> float:
    return float(np.hypot(leg.vx, leg.vy))


def share_bound(share: float, count: int) -> float:
    """How far the share of a binomial variable may be off."""
    return float(SIGMAS * np.sqrt(share * (1 - share) / count))


def mean_bound(values: Floats) -> float:
    """How far the mean of independent values may be off, by the central limit theorem."""
    return float(SIGMAS * values.std(ddof=1) / np.sqrt(len(values)))


def chi_square_bound(degrees: int) -> float:
    """What a chi-square variable exceeds as seldom as a normal one SIGMAS (Wilson and Hilferty's approximation)."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + SIGMAS * spread**0.5) ** 3)


def chi_square(counts: npt.NDArray[np.int64], expected: Floats) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def furthest_from(values: Floats, distribution: Callable[[Floats], Floats]) -> float:
    """The Kolmogorov-Smirnov distance."""
    ordered = np.sort(values)
    expected = distribution(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max(np.abs(steps[1:] - expected).max(), np.abs(expected - steps[:-1]).max()))


def furthest_bound(count: int) -> float:
    """Exceeded once in a million times at most (the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart)."""
    return float(np.sqrt(np.log(2 / 1e-6) / (2 * count)))
