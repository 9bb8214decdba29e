"""Two who both move, and when they were near each other: compared with a glance at them many times on their ways."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from nearcast.model.area import Circle
from nearcast.model.geometry import Point, distance
from nearcast.model.presence import Way, Whereabouts, meeting, met_on, visits_on
from nearcast.model.time import MICROSECONDS

METRES = 50.0
LOOKS = 2_000
NORTH, SOUTH = Point(49.8709, 8.65), Point(49.8691, 8.65)
EAST, WEST = Point(49.87, 8.6514), Point(49.87, 8.6486)
MINUTE = 60 * MICROSECONDS


def told(other: Whereabouts, way: Way) -> list[str]:
    return [passage.kind.value for passage in meeting(METRES, other, way)]


def test_two_whose_ways_cross_have_met_although_neither_passed_where_the_other_stood() -> None:
    other = Whereabouts(EAST, (Way(WEST, 0, EAST, MINUTE),))
    assert told(other, Way(SOUTH, 0, NORTH, MINUTE)) == ["enter", "leave", "cross"]


def test_two_whose_ways_cross_at_different_times_have_not_met() -> None:
    other = Whereabouts(EAST, (Way(WEST, 0, EAST, MINUTE),))
    assert told(other, Way(SOUTH, MINUTE, NORTH, 2 * MINUTE)) == []
    assert told(other, Way(SOUTH, 0, NORTH, 4 * MINUTE)) == []


def test_who_follows_another_does_not_pass_them() -> None:
    """With each report the second one would have passed where the first had been."""
    ahead = Point(49.87, 8.6530)
    other = Whereabouts(ahead, (Way(EAST, 0, ahead, MINUTE),))
    assert told(other, Way(WEST, 0, EAST, MINUTE)) == []


def test_who_was_told_to_be_near_is_told_to_have_left() -> None:
    """The first report brought it to where the other one was last; the second says that that one had gone."""
    other = Whereabouts(NORTH, (Way(NORTH, 0, NORTH, MINUTE),))
    gone = Way(NORTH, 0, EAST, MINUTE)
    assert told(other, gone) == ["leave"]


def test_a_meeting_that_was_told_with_the_first_report_is_not_told_with_the_second() -> None:
    """He passed where she stood, or so it seemed; she had gone a little farther on meanwhile."""
    passed = Way(SOUTH, 20 * MICROSECONDS, NORTH, 30 * MICROSECONDS)
    here, there = Point(49.87, 8.6500), Point(49.87, 8.6504)
    assert told(Whereabouts(here), passed) == ["enter", "leave", "cross"]
    assert told(Whereabouts(NORTH, (passed,)), Way(here, 0, there, MINUTE)) == []


def test_who_comes_to_somebody_who_goes_on_leaves_once() -> None:
    """With the first report it had come to stay; with the second it turns out that both were near for some seconds only."""
    came = Way(SOUTH, 0, Point(49.87, 8.65), 30 * MICROSECONDS)
    here, there = Point(49.8702, 8.65), EAST
    assert told(Whereabouts(here), came) == ["enter"]
    assert told(Whereabouts(came.after or here, (came,)), Way(here, 0, there, 4 * MINUTE)) == ["leave"]


def test_who_goes_from_somebody_who_goes_too_leaves_once() -> None:
    here = Point(49.87, 8.65)
    left = Way(here, 0, NORTH, MINUTE)
    assert told(Whereabouts(here), left) == ["leave"]
    assert told(Whereabouts(NORTH, (left,)), Way(here, 0, SOUTH, MINUTE)) == []


places = st.builds(
    Point, st.floats(-0.001, 0.001).map(lambda by: 49.87 + by), st.floats(-0.002, 0.002).map(lambda by: 8.65 + by)
)


@st.composite
def tracks(draw: st.DrawFn) -> tuple[Whereabouts, Way]:
    turns = sorted(draw(st.sets(st.integers(0, 90), min_size=2, max_size=6)))
    stops = [draw(places) for _ in turns]
    legs = pairwise(zip(stops, (turn * MICROSECONDS for turn in turns), strict=True))
    ways = tuple(Way(*before, *after) for before, after in legs)
    left = draw(st.integers(turns[0], turns[-1]))
    way = Way(
        draw(places), left * MICROSECONDS, draw(places), draw(st.integers(max(left + 1, turns[-1]), 100)) * MICROSECONDS
    )
    return Whereabouts(stops[-1], ways), way


def clear_of(metres: float, other: Whereabouts, way: Way) -> list[float]:
    return [distance(other.at(way.at(look / LOOKS)), way.place(look / LOOKS)) - metres for look in range(LOOKS + 1)]


@given(tracks())
def test_visits_are_when_the_distance_was_less(drawn: tuple[Whereabouts, Way]) -> None:
    other, way = drawn
    over = clear_of(METRES, other, way)
    # Who touches only, or is at the border at an end or where somebody turns, may be taken either way.
    smallest = [each for before, each, after in zip(over, over[1:], over[2:], strict=False) if before >= each <= after]
    largest = [each for before, each, after in zip(over, over[1:], over[2:], strict=False) if before <= each >= after]
    assume(min(map(abs, [*smallest, *largest, over[0], over[-1]])) > 0.2)
    # At the beginning the other one counts as where it is last known to be, since that is what was told.
    assume((distance(other.point, way.before or other.point) <= METRES) == (over[0] <= 0))
    # Nor is told again what was told of the other one's ways.
    circle = Circle(METRES, way.before or other.point)
    assume(not any(visits_on(circle, each) for each in other.ways))
    seen = [look / LOOKS for look, (one, next_one) in enumerate(pairwise(over)) if (one <= 0) != (next_one <= 0)]
    edges = [edge for visit in met_on(METRES, other, way) for edge in visit if 0 < edge < 1]
    assert len(edges) == len(seen)
    assert all(abs(edge - look) < 3 / LOOKS for edge, look in zip(edges, seen, strict=True))
