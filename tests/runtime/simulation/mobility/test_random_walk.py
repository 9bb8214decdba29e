"""Incrementally changed random motion: small changes, and uniform for ever."""

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tests.runtime.simulation.mobility.measures import (
    chi_square,
    chi_square_bound,
    furthest_bound,
    furthest_from,
    leg_at,
    legs_until,
    places_at,
    speed,
    streams,
)

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.mobility.random_walk import RandomWalk
from nearcast.runtime.simulation.plane import Bounds

SQUARE = Bounds.around(400.0, 400.0)


@pytest.mark.parametrize("seconds", [0.0, 1_000.0])
def test_people_stay_uniform(seconds: float) -> None:
    people = 3_000
    places = places_at(RandomWalk(SQUARE, turn=40.0), seconds, people, seed=1)
    cells = np.floor((places + 200) / 80).clip(0, 4).astype(int)
    counts = np.bincount(cells[:, 0] * 5 + cells[:, 1], minlength=25)
    assert chi_square(counts, np.full(25, people / 25)) < chi_square_bound(24)


def test_speeds_and_headings_stay_uniform() -> None:
    people = 3_000
    legs = [leg_at(RandomWalk(SQUARE, 0.5, 2.5, acceleration=0.5), random, 500.0) for random in streams(2, people)]
    speeds = np.array([speed(leg) for leg in legs])
    assert furthest_from(speeds, lambda v: (v - 0.5) / 2.0) < furthest_bound(people)
    headings = np.array([math.atan2(leg.vy, leg.vx) for leg in legs])
    assert furthest_from(headings, lambda h: (h + math.pi) / (2 * math.pi)) < furthest_bound(people)


def test_heading_and_speed_change_by_what_was_asked_for() -> None:
    # So large a world that nobody meets its border.
    legs = legs_until(RandomWalk(Bounds.around(1e7, 1e7), 1.0, 3.0, 10.0, 15.0, 0.01), Random(3), 50_000.0)
    assert len(legs) == 5_000
    assert {leg.until - leg.start for leg in legs} == {10 * MICROSECONDS}
    turns = np.array(
        [
            (math.atan2(b.vy, b.vx) - math.atan2(a.vy, a.vx) + math.pi) % (2 * math.pi) - math.pi
            for a, b in pairwise(legs)
        ]
    )
    # The standard deviation of n normal values has a standard error of 1 / sqrt(2n) of itself.
    allowed = 5 / math.sqrt(2 * len(turns))
    assert np.degrees(turns).std() == pytest.approx(15.0, rel=allowed)
    changes = np.array([speed(b) - speed(a) for a, b in pairwise(legs)])
    assert changes.std() == pytest.approx(0.01, rel=allowed + 0.01)  # a few are mirrored at 1 and 3 m/s


def test_at_the_border_the_angle_out_is_the_angle_in() -> None:
    legs = legs_until(RandomWalk(SQUARE, turn=0.0, acceleration=0.0), Random(4), 20_000.0)
    bounces = [(a, b) for a, b in pairwise(legs) if (a.vx, a.vy) != pytest.approx((b.vx, b.vy), abs=1e-9)]
    assert len(bounces) > 50
    for before, after in bounces:
        # Within a microsecond's way of a border, and only the way towards that border is turned.
        x, y = before.end
        assert 200 - max(abs(x), abs(y)) < 1e-5
        mirrored = (-before.vx, before.vy) if abs(x) > abs(y) else (before.vx, -before.vy)
        assert (after.vx, after.vy) == pytest.approx(mirrored, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"slowest": 0.0}, "0 < slowest"),
        ({"slowest": 3.0, "fastest": 2.0}, "0 < slowest"),
        ({"fastest": math.nan}, "0 < slowest"),
        ({"step": 0.0}, "millisecond"),
        ({"turn": -1.0}, "turn is a standard deviation"),
        ({"acceleration": math.inf}, "acceleration is a standard deviation"),
    ],
)
def test_nonsense_is_refused(options: dict[str, float], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        RandomWalk(SQUARE, **options)
    with pytest.raises(InvalidInput, match="at least 1 m"):
        RandomWalk(Bounds.around(0.5, 400.0))
