"""Random waypoint against what is known about it in closed form."""

import math
from random import Random

import numpy as np
import pytest
from tests.runtime.simulation.mobility.measures import (
    leg_at,
    legs_until,
    mean_bound,
    places_at,
    share_bound,
    speed,
    streams,
)

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.distributions import Constant, Exponential, LogNormal, Normal, Uniform
from nearcast.runtime.simulation.mobility.waypoint import RandomWaypoint
from nearcast.runtime.simulation.plane import Bounds

SIDE = 1000.0
SQUARE = Bounds.around(SIDE, SIDE)
MEAN_LEG = SIDE * (2 + math.sqrt(2) + 5 * math.log(1 + math.sqrt(2))) / 15
"""The mean distance of two uniform places in a square: 0.5214 of its side."""

WIDE = Uniform(0.5, 5.0)
SETTLED_SPEED = 4.5 / math.log(10)
"""1 / E[1/V]: 1.954 m/s, well below the mean 2.75 of the speeds that are drawn."""


def test_the_mean_leg_is_half_the_side_of_a_square() -> None:
    model = RandomWaypoint(SQUARE, Constant(1.0))
    lengths = np.array([math.dist((leg.x, leg.y), leg.end) for leg in legs_until(model, Random(1), 5e6)])
    assert len(lengths) > 9_000
    assert lengths.mean() == pytest.approx(0.5214 * SIDE, abs=mean_bound(lengths))


def test_everybody_starts_with_a_pause_at_a_uniform_place() -> None:
    model = RandomWaypoint(SQUARE, WIDE, Uniform(1.0, 60.0))
    people = 5_000
    firsts = [next(model(random, 7)) for random in streams(2, people)]
    assert all(speed(leg) == 0 and leg.start == 7 for leg in firsts)
    waits = np.array([leg.until - leg.start for leg in firsts]) / MICROSECONDS
    assert waits.mean() == pytest.approx(30.5, abs=mean_bound(waits))
    inner = np.mean([max(abs(leg.x), abs(leg.y)) < SIDE / 4 for leg in firsts])
    assert inner == pytest.approx(0.25, abs=share_bound(0.25, people))


def _settled_inner_share() -> float:
    """The share in the inner quarter, from the definition: places on a leg, each leg weighted by its length."""
    random = np.random.default_rng(1)
    a, b = random.uniform(-0.5, 0.5, (2, 1_000_000, 2))
    on_the_way = a + random.random((1_000_000, 1)) * (b - a)
    inner = np.abs(on_the_way).max(axis=1) < 0.25
    return float(np.average(inner, weights=np.hypot(*(b - a).T)))


@pytest.mark.parametrize(("stationary", "seconds"), [(True, 0.0), (True, 300.0), (False, 8_000.0)])
def test_people_gather_in_the_middle(stationary: bool, seconds: float) -> None:
    # At once if started under way, after some crossings if not.
    model = RandomWaypoint(SQUARE, Uniform(1.0, 3.0), stationary=stationary)
    people = 4_000
    places = places_at(model, seconds, people, seed=3)
    inner = float(np.mean(np.abs(places).max(axis=1) < SIDE / 4))
    expected = _settled_inner_share()
    # Bettstetter's approximation of the density, 36 (1/4 - x²) (1/4 - y²), puts 0.6875² = 0.473 there.
    assert expected == pytest.approx(0.6875**2, abs=0.02)
    assert inner == pytest.approx(expected, abs=share_bound(expected, people))


@pytest.mark.parametrize("seconds", [0.0, 100.0, 2_000.0])
def test_under_way_the_mean_speed_has_settled(seconds: float) -> None:
    model = RandomWaypoint(SQUARE, WIDE, stationary=True)
    speeds = np.array([speed(leg_at(model, random, seconds)) for random in streams(4, 4_000)])
    assert speeds.mean() == pytest.approx(SETTLED_SPEED, abs=mean_bound(speeds))


def test_from_a_uniform_start_the_mean_speed_decays() -> None:
    model = RandomWaypoint(SQUARE, WIDE)
    first = np.array([speed(leg_at(model, random, 0.0)) for random in streams(5, 2_000)])
    later = np.array([speed(leg_at(model, random, 10_000.0)) for random in streams(5, 2_000)])
    assert first.mean() == pytest.approx(2.75, abs=mean_bound(first))
    assert later.mean() == pytest.approx(SETTLED_SPEED, abs=mean_bound(later))


@pytest.mark.parametrize(
    "pause",
    [
        Constant(200.0),
        Uniform(20.0, 400.0),
        Exponential(100.0, offset=50.0),
        LogNormal(100.0, 0.5, offset=20.0),
        Normal(200.0, 60.0, low=0.0),
    ],
    ids=lambda pause: type(pause).__name__,
)
@pytest.mark.parametrize("probability", [1.0, 0.6])
def test_under_way_the_share_of_pauses_is_theirs_of_the_time(pause: Uniform, probability: float) -> None:
    model = RandomWaypoint(SQUARE, WIDE, pause, probability, stationary=True)
    mean_walk = MEAN_LEG / SETTLED_SPEED
    expected = pause.mean / (pause.mean + probability * mean_walk)
    people = 3_000
    firsts = [next(model(random, 0)) for random in streams(6, people)]
    waits = np.array([leg.until / MICROSECONDS for leg in firsts if speed(leg) == 0])
    assert len(waits) / people == pytest.approx(expected, abs=share_bound(expected, people))
    # What is left of a pause when somebody looks: E[P²] / 2E[P].
    drawn = np.array([pause.sample(random) for random in streams(7, 50_000)])
    residual = (drawn**2).mean() / (2 * drawn.mean())
    assert waits.mean() == pytest.approx(residual, abs=mean_bound(waits) + 0.02 * residual)


def test_who_tosses_a_coin_stays_for_a_geometric_number_of_pauses() -> None:
    # THYME 6.5: at the end of each pause of 120 s, move with probability 0.8.
    model = RandomWaypoint(SQUARE, WIDE, Constant(120.0), move_probability=0.8)
    legs = legs_until(model, Random(8), 1e6)
    walks = sum(1 for leg in legs if speed(leg) > 0)
    pauses = len(legs) - walks
    assert walks > 1_000
    assert walks / pauses == pytest.approx(0.8, abs=share_bound(0.8, pauses))


def test_speed_zero_and_other_nonsense_are_refused() -> None:
    for speeds in (Uniform(0.0, 2.0), Exponential(1.0), Constant(-1.0)):
        with pytest.raises(InvalidInput, match="stays above 0"):
            RandomWaypoint(SQUARE, speeds)
    with pytest.raises(InvalidInput, match="never negative"):
        RandomWaypoint(SQUARE, WIDE, Uniform(-1.0, 1.0))
    with pytest.raises(InvalidInput, match="let them stand"):
        RandomWaypoint(SQUARE, WIDE, move_probability=0.0)
    for bounds in (Bounds(0, 0, 0, 1), Bounds(1, 0, 0, 1), Bounds(0, 0, math.nan, 1), Bounds(0, 0, math.inf, 1)):
        with pytest.raises(InvalidInput, match="no room"):
            RandomWaypoint(bounds, WIDE)
