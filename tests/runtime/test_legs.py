import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nearcast.model.time import MICROSECONDS
from nearcast.runtime.legs import LONGEST, Leg

PLACES = st.tuples(st.floats(-5_000, 5_000), st.floats(-5_000, 5_000))
SPEEDS = st.floats(0.1, 50)
STARTS = st.integers(0, 2_000_000_000 * MICROSECONDS)


@given(STARTS, PLACES, PLACES, SPEEDS)
def test_a_leg_begins_at_its_origin_and_ends_at_its_target(
    start: int, origin: tuple[float, float], target: tuple[float, float], speed: float
) -> None:
    leg = Leg.between(start, origin, target, speed)
    assert leg.at(start) == origin
    assert leg.end == pytest.approx(target, abs=1e-6)
    length = math.dist(origin, target)
    # Whole microseconds, at least one.
    assert 0 <= (leg.until - start) - length / speed * MICROSECONDS <= 1 + 1e-3
    assert leg.until > start


@given(STARTS, PLACES, PLACES, SPEEDS, st.floats(0, 1))
def test_a_leg_is_straight_and_even(
    start: int, origin: tuple[float, float], target: tuple[float, float], speed: float, part: float
) -> None:
    leg = Leg.between(start, origin, target, speed)
    time = start + round(part * (leg.until - start))
    share = (time - start) / (leg.until - start)
    expected = [a + share * (b - a) for a, b in zip(origin, target, strict=True)]
    assert leg.at(time) == pytest.approx(expected, abs=1e-6)


def test_whoever_hardly_moves_arrives_long_after_all_is_over() -> None:
    leg = Leg.between(0, (0.0, 0.0), (1_000.0, 0.0), 1e-300)
    assert leg.until == LONGEST
    assert leg.at(10**15)[0] == pytest.approx(1.0)
    assert leg.end[0] == pytest.approx(1_000.0)


def test_before_and_after_a_leg_its_node_stands_at_its_ends() -> None:
    leg = Leg(100, 200, 1.0, 2.0, 1e6, 0.0)
    assert leg.at(0) == (1.0, 2.0)
    assert leg.at(150) == (51.0, 2.0)
    assert leg.at(10_000) == leg.end == (101.0, 2.0)


@pytest.mark.parametrize(
    ("vx", "vy", "heading"), [(0, 2, 0), (2, 0, 90), (0, -2, 180), (-2, 0, 270), (math.sqrt(2), math.sqrt(2), 45)]
)
def test_headings_go_clockwise_from_north(vx: float, vy: float, heading: float) -> None:
    speed, direction = Leg(0, 100, 0, 0, vx, vy).course(50)
    assert speed == pytest.approx(2)
    assert direction == pytest.approx(heading)


def test_who_stands_has_no_heading() -> None:
    assert Leg(0, 100, 5, 5).course(50) == (0.0, None)
    assert Leg(0, 100, 5, 5, 1.0, 1.0).course(100) == (0.0, None)


@given(PLACES, PLACES, SPEEDS)
@example((0.0, -2.0), (-1e-26, 0.0), 1.0)
def test_the_course_leads_to_the_target(origin: tuple[float, float], target: tuple[float, float], speed: float) -> None:
    assume(math.dist(origin, target) > 1)
    fast, heading = Leg.between(0, origin, target, speed).course(0)
    assert heading is not None
    assert 0 <= heading < 360
    far = math.dist(origin, target)
    assert origin[0] + far * math.sin(math.radians(heading)) == pytest.approx(target[0], abs=1e-6)
    assert origin[1] + far * math.cos(math.radians(heading)) == pytest.approx(target[1], abs=1e-6)
    assert fast == pytest.approx(speed, rel=1e-4)
