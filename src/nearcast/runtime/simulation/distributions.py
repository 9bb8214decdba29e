"""The few distributions from which a scenario may choose: latencies, speeds, pauses.

Each is a frozen value that knows its mean in closed form; the randomness comes from the stream that the caller owns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import Final

from nearcast.errors import InvalidInput

LEAST_ACCEPTANCE: Final = 0.01
"""A truncated normal is drawn again until it fits: less than this in the window, and a draw would take for ever."""


LARGEST_SIGMA: Final = 10.0
"""Of the logarithm: five deviations span a factor of 1e43; beyond, samples and their mean leave the numbers there are."""


class Distribution(ABC):
    """Of a real number, in the unit of whoever uses it."""

    __slots__ = ()

    @abstractmethod
    def sample(self, random: Random) -> float:
        """One number."""

    def samples(self, random: Random, count: int) -> list[float]:
        """So many of them, as if drawn one by one."""
        return [self.sample(random) for _ in range(count)]

    @property
    @abstractmethod
    def mean(self) -> float: ...

    @property
    @abstractmethod
    def least(self) -> float:
        """No sample is smaller: what must not be negative is checked once, not at every draw."""


@dataclass(frozen=True, slots=True)
class Constant(Distribution):
    value: float

    def __post_init__(self) -> None:
        _finite(self, value=self.value)

    def sample(self, random: Random) -> float:  # noqa: ARG002 - it is always the same
        return self.value

    @property
    def mean(self) -> float:
        return self.value

    @property
    def least(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class Uniform(Distribution):
    """Between ``low`` and ``high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _finite(self, low=self.low, high=self.high)
        if self.low > self.high:
            raise InvalidInput(f"Uniform: low is {self.low}, above high, which is {self.high}; exchange them")

    def sample(self, random: Random) -> float:
        return self.low + (self.high - self.low) * random.random()

    def samples(self, random: Random, count: int) -> list[float]:
        low, width, draw = self.low, self.high - self.low, random.random
        return [low + width * draw() for _ in range(count)]

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def least(self) -> float:
        return self.low


@dataclass(frozen=True, slots=True)
class Normal(Distribution):
    """Normal around ``centre``; what falls outside of ``low`` to ``high`` is drawn again."""

    centre: float
    deviation: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        _finite(self, centre=self.centre)
        _positive(self, deviation=self.deviation)
        # `not <` also refuses NaN.
        if not self.low < self.high:
            raise InvalidInput(f"Normal: low is {self.low}, not below high, which is {self.high}")
        if self._acceptance() < LEAST_ACCEPTANCE:
            raise InvalidInput(
                f"Normal: only {self._acceptance():.2g} of N({self.centre:g}, {self.deviation:g}²) lies between "
                f"{self.low:g} and {self.high:g}; move the centre into the window, or use Uniform"
            )

    def sample(self, random: Random) -> float:
        while True:
            value = random.gauss(self.centre, self.deviation)
            if self.low <= value <= self.high:
                return value

    @property
    def mean(self) -> float:
        low, high = self._standard(self.low), self._standard(self.high)
        return self.centre + self.deviation * (_density(low) - _density(high)) / self._acceptance()

    @property
    def least(self) -> float:
        return self.low

    def _standard(self, value: float) -> float:
        return (value - self.centre) / self.deviation

    def _acceptance(self) -> float:
        low, high = self._standard(self.low), self._standard(self.high)
        # From the tail in which the window lies: the difference of two numbers close to 1 would lose the digits.
        if low > 0:
            low, high = -high, -low
        return _cumulative(high) - _cumulative(low)


@dataclass(frozen=True, slots=True)
class LogNormal(Distribution):
    """``offset + median * exp(sigma * Z)``: skewed to the right, as measured latencies are."""

    median: float
    sigma: float
    """Standard deviation of the logarithm."""

    offset: float = 0.0

    def __post_init__(self) -> None:
        _finite(self, offset=self.offset)
        _positive(self, median=self.median, sigma=self.sigma)
        if self.sigma > LARGEST_SIGMA:
            raise InvalidInput(f"LogNormal: sigma is {self.sigma:g}; {LARGEST_SIGMA:g} spans all there is, give less")

    def sample(self, random: Random) -> float:
        return self.offset + self.median * math.exp(random.gauss(0.0, self.sigma))

    @property
    def mean(self) -> float:
        return self.offset + self.median * math.exp(self.sigma * self.sigma / 2)

    @property
    def least(self) -> float:
        return self.offset


@dataclass(frozen=True, slots=True)
class Exponential(Distribution):
    """``offset``, and beyond it exponential with mean ``scale``."""

    scale: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        _finite(self, offset=self.offset)
        _positive(self, scale=self.scale)

    def sample(self, random: Random) -> float:
        return self.offset - self.scale * math.log(1.0 - random.random())

    @property
    def mean(self) -> float:
        return self.offset + self.scale

    @property
    def least(self) -> float:
        return self.offset


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _cumulative(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def _finite(distribution: Distribution, **numbers: float) -> None:
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise InvalidInput(f"{type(distribution).__name__}: {name} must be a finite number, not {number!r}")


def _positive(distribution: Distribution, **numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise InvalidInput(f"{type(distribution).__name__}: {name} must be positive and finite, not {number!r}")
