"""Roads: flow, headways, stops, and as few nodes as a day's traffic needs."""

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tests.runtime.simulation.mobility.measures import (
    furthest_bound,
    furthest_from,
    jumps,
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
from nearcast.runtime.simulation.distributions import Constant, Exponential, Uniform
from nearcast.runtime.simulation.mobility.road import (
    Circulating,
    Lane,
    Passage,
    Passing,
    Stop,
    arrivals,
    counted,
    lanes,
    vehicles,
)

MPH_25 = Constant(25 * 1609.344 / 3600)
ROAD = Lane((-700.0, 0.0), (700.0, 0.0))
"""STEAM 5.1: a road section of 1,400 m."""


def test_the_lanes_of_a_road_keep_to_the_right() -> None:
    east, further_right, west = lanes((0.0, 0.0), (100.0, 0.0), forward=2, backward=1)
    assert (east.start, east.end) == ((0.0, -1.75), (100.0, -1.75))
    assert (further_right.start, further_right.end) == ((0.0, -5.25), (100.0, -5.25))
    assert (west.start, west.end) == ((100.0, 1.75), (0.0, 1.75))
    dublin, _ = lanes((0.0, 0.0), (100.0, 0.0), keep_left=True)
    assert dublin.start == (0.0, 1.75)


@pytest.mark.parametrize("seconds", [0.0, 500.0])
def test_circulating_vehicles_stay_uniform_on_the_road(seconds: float) -> None:
    count = 2_000
    places = places_at(Circulating(ROAD, Uniform(5.0, 15.0)), seconds, count, seed=1)
    assert furthest_from(places[:, 0], lambda x: (x + 700) / 1400) < furthest_bound(count)
    assert (places[:, 1] == 0).all()


def test_flow_is_density_times_speed() -> None:
    count, seconds = 240, 3_600.0
    passed = np.array(
        [
            sum(leg.x <= 0 < leg.end[0] for leg in legs_until(Circulating(ROAD, Uniform(5.0, 15.0)), random, seconds))
            for random in streams(2, count)
        ]
    )
    density = count / ROAD.length
    assert passed.sum() == pytest.approx(density * 10.0 * seconds, abs=mean_bound(passed) * count)


def test_a_vehicle_enters_anew_when_it_has_left() -> None:
    legs = legs_until(Circulating(ROAD, Constant(14.0)), Random(3), 1_000.0)
    assert [leg.end[0] for leg in legs] == pytest.approx([700.0] * len(legs))
    assert [leg.x for leg in legs[1:]] == [-700.0] * (len(legs) - 1)
    # The one jump of all motion: from the end to the start; time goes on.
    assert list(jumps(legs)) == pytest.approx([1400.0] * (len(legs) - 1))


@pytest.mark.parametrize("seconds", [0.0, 60.0, 1_000.0])
def test_stopping_vehicles_stand_for_the_share_of_their_stop(seconds: float) -> None:
    lane = Lane((0.0, 0.0), (0.0, 600.0), Stop(300.0, Uniform(0.0, 80.0)))
    count = 3_000
    legs = [leg_at(Circulating(lane, Constant(10.0)), random, seconds) for random in streams(4, count)]
    standing = [leg for leg in legs if speed(leg) == 0]
    assert all((leg.x, leg.y) == (0.0, 300.0) for leg in standing)
    expected = 40 / (40 + 60)
    assert len(standing) / count == pytest.approx(expected, abs=share_bound(expected, count))


def test_poisson_arrivals_have_exponential_headways() -> None:
    passages = arrivals(ROAD, MPH_25, Exponential(5.0), 20_000.0, Random(5))
    headways = np.diff([0.0, *(passage.enters for passage in passages)])
    assert furthest_from(headways, lambda t: 1 - np.exp(-t / 5.0)) < furthest_bound(len(headways))
    # A Poisson variable's deviation is the square root of its mean.
    assert len(passages) == pytest.approx(4_000, abs=5 * math.sqrt(4_000))


def test_on_the_lane_vehicles_of_one_speed_keep_their_headway() -> None:
    passages = arrivals(ROAD, MPH_25, Constant(4.0), 100.0, Random(6))
    now = 60 * MICROSECONDS
    on_the_road = [
        next(leg for leg in Passing((passage,))(Random(0), 0) if leg.until > now).at(now)[0]
        for passage in passages
        if passage.enters < 60
    ]
    assert len(on_the_road) == 14
    gaps = [a - b for a, b in pairwise(on_the_road)]
    assert gaps == pytest.approx([4.0 * MPH_25.value] * 13, abs=1e-4)


def test_counted_vehicles_all_come() -> None:
    # STEAM 5.2: lane 1 of approach 1 carried 6,652 vehicles in 24 hours.
    day = 86_400.0
    passages = counted(ROAD, MPH_25, 6_652, day, Random(7))
    enters = np.array([passage.enters for passage in passages])
    assert len(enters) == 6_652
    assert (np.diff(enters) >= 0).all()
    assert furthest_from(enters, lambda t: t / day) < furthest_bound(len(enters))


def test_a_days_traffic_needs_as_many_nodes_as_are_on_the_road_at_once() -> None:
    passages = counted(ROAD, Uniform(5.0, 15.0), 1_000, 36_000.0, Random(8))
    nodes = vehicles(passages)
    ends = sorted(
        [(passage.enters, 1) for passage in passages] + [(passage.leaves, -1) for passage in passages],
    )
    busiest = int(np.cumsum([change for _, change in ends]).max())
    assert len(nodes) == busiest
    assert sorted(p.enters for node in nodes for p in node.passages) == [p.enters for p in passages]


def test_a_passing_vehicle_is_on_the_road_when_it_says() -> None:
    lane = Lane((0.0, 0.0), (100.0, 0.0), Stop(40.0, Constant(7.0)))
    node = Passing((Passage(lane, 5.0, 10.0, 7.0), Passage(lane, 30.0, 20.0)))
    assert node.stays == ((5.0, 22.0), (30.0, 35.0))
    legs = list(node(Random(0), 1_000))
    assert [(leg.start - 1_000, leg.until - 1_000) for leg in legs] == [
        (0, 5_000_000),
        (5_000_000, 9_000_000),
        (9_000_000, 16_000_000),
        (16_000_000, 22_000_000),
        (22_000_000, 30_000_000),
        (30_000_000, 35_000_000),
    ]
    assert [leg.end for leg in legs] == [(0, 0), (40, 0), (40, 0), (100, 0), (0, 0), (100, 0)]


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="leads nowhere"):
        Lane((1.0, 1.0), (1.0, 1.0))
    with pytest.raises(InvalidInput, match="not on a lane"):
        Lane((0.0, 0.0), (1.0, 0.0), Stop(2.0, Constant(1.0)))
    with pytest.raises(InvalidInput, match="never negative"):
        Stop(0.0, Uniform(-1.0, 1.0))
    with pytest.raises(InvalidInput, match="no speed"):
        Circulating(ROAD, Uniform(0.0, 1.0))
    with pytest.raises(InvalidInput, match="cannot enter"):
        Passage(ROAD, -1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"vehicles\(\)"):
        Passing((Passage(ROAD, 0.0, 1.0), Passage(ROAD, 1.0, 1.0)))
    with pytest.raises(InvalidInput, match="headway"):
        arrivals(ROAD, MPH_25, Constant(0.0), 1.0, Random(0))
