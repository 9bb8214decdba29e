"""Closed forms against samples: each bound is 4.5 standard errors (a chance of 7 in a million), with a fixed seed."""

import math
from collections.abc import Callable
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform

SAMPLES = 40_000
ERRORS = 4.5


def truncated_normal_variance(a: float, b: float) -> float:
    """Of a standard normal that was cut to [a, b] (Johnson, Kotz, Balakrishnan: Continuous Univariate Distributions)."""

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    mass = (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) / 2
    slope = (density(a) - density(b)) / mass
    return 1 + (a * density(a) - b * density(b)) / mass - slope * slope


CASES: list[tuple[Distribution, float, float]] = [
    # distribution, mean, standard deviation
    (Uniform(0.075, 0.125), 0.1, 0.05 / math.sqrt(12)),
    (Normal(0.2, 0.05), 0.2, 0.05),
    (Normal(0.2, 0.1, low=0.1, high=0.3), 0.2, 0.1 * math.sqrt(truncated_normal_variance(-1, 1))),
    # Cut at its centre: half of a normal, whose mean is sqrt(2/pi) and whose variance is 1 - 2/pi.
    (Normal(3.0, 2.0, low=3.0), 3.0 + 2.0 * math.sqrt(2 / math.pi), 2.0 * math.sqrt(1 - 2 / math.pi)),
    (Normal(3.0, 2.0, high=3.0), 3.0 - 2.0 * math.sqrt(2 / math.pi), 2.0 * math.sqrt(1 - 2 / math.pi)),
    (LogNormal(0.1, 0.5), 0.1 * math.exp(0.125), 0.1 * math.exp(0.125) * math.sqrt(math.exp(0.25) - 1)),
    (LogNormal(0.1, 0.5, offset=1.0), 1 + 0.1 * math.exp(0.125), 0.1 * math.exp(0.125) * math.sqrt(math.exp(0.25) - 1)),
    (Exponential(0.05, offset=0.15), 0.2, 0.05),
]


@pytest.mark.parametrize(("distribution", "mean", "deviation"), CASES)
def test_mean_and_spread_are_those_of_the_closed_form(
    distribution: Distribution, mean: float, deviation: float
) -> None:
    random = Random(11)
    samples = [distribution.sample(random) for _ in range(SAMPLES)]
    assert distribution.mean == pytest.approx(mean)
    assert abs(fmean(samples) - mean) < ERRORS * deviation / math.sqrt(SAMPLES)
    squares = [(sample - mean) ** 2 for sample in samples]
    square_error = math.sqrt(fmean((square - deviation**2) ** 2 for square in squares) / SAMPLES)
    assert abs(fmean(squares) - deviation**2) < ERRORS * square_error
    assert min(samples) >= distribution.least


def test_a_constant_draws_nothing() -> None:
    random = Random(1)
    before = random.getstate()
    assert Constant(3.0).sample(random) == Constant(3.0).mean == Constant(3.0).least == 3.0
    assert random.getstate() == before


@given(st.floats(-3, 3), st.floats(0.3, 3), st.integers(0, 2**32))
def test_a_truncated_normal_stays_in_its_window(middle: float, width: float, seed: int) -> None:
    normal = Normal(0.0, 2.0, low=middle - width, high=middle + width)
    random = Random(seed)
    assert all(middle - width <= normal.sample(random) <= middle + width for _ in range(20))
    assert middle - width <= normal.mean <= middle + width


def test_the_same_stream_gives_the_same_samples() -> None:
    for distribution, _, _ in CASES:
        one, other = Random(5), Random(5)
        assert [distribution.sample(one) for _ in range(50)] == [distribution.sample(other) for _ in range(50)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Constant(math.nan), "finite"),
        (lambda: Uniform(2.0, 1.0), "exchange"),
        (lambda: Uniform(0.0, math.inf), "finite"),
        (lambda: Normal(0.0, 0.0), "deviation must be positive"),
        (lambda: Normal(0.0, 1.0, low=1.0, high=1.0), "not below"),
        (lambda: Normal(0.0, 1.0, low=math.nan), "not below"),
        (lambda: Normal(0.0, 1.0, low=40.0), "lies between"),
        (lambda: Normal(0.0, 1.0, high=-40.0), "lies between"),
        (lambda: LogNormal(0.0, 1.0), "median must be positive"),
        (lambda: LogNormal(1.0, -1.0), "sigma must be positive"),
        (lambda: LogNormal(1.0, 1_000.0), "give less"),
        (lambda: Exponential(0.0), "scale must be positive"),
        (lambda: Exponential(1.0, offset=math.inf), "finite"),
    ],
)
def test_parameters_that_cannot_be_are_refused(make: Callable[[], Distribution], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()
