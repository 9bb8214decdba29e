"""Late, doubled, wrong and vague reports: what becomes of each follows from those before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidPosition
from nearcast.model.fixes import REMEMBERED, Fix, FixOrder, FixRules, Treatment
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS

RULES = FixRules(ahead=10 * MICROSECONDS, accuracy=50.0)
HERE, THERE = Point(49.87, 8.65), Point(49.88, 8.65)
NOW = 1_000_000 * MICROSECONDS


def after(*fixes: Fix) -> list[Treatment]:
    order = FixOrder()
    return [order.treat(fix, NOW, RULES) for fix in fixes]


def test_what_is_older_than_the_newest_is_late_and_the_same_again_is_a_duplicate() -> None:
    new, old = Fix(HERE, NOW - 10), Fix(THERE, NOW - 20)
    assert after(new, old, old, new) == ["plain", "late", "duplicate", "duplicate"]


def test_of_two_places_at_one_time_the_later_report_counts() -> None:
    assert after(Fix(HERE, NOW), Fix(THERE, NOW)) == ["plain", "plain"]


def test_a_report_without_a_time_is_always_of_this_moment() -> None:
    assert after(Fix(HERE), Fix(HERE), Fix(THERE, NOW - 20), Fix(HERE)) == ["plain"] * 4


def test_a_clock_may_be_ahead_by_a_little_and_is_told_when_it_is_wrong() -> None:
    ahead = Fix(HERE, NOW + 10 * MICROSECONDS)
    assert after(ahead) == ["plain"]
    assert ahead.at(NOW) == NOW
    assert Fix(HERE, NOW - 5).at(NOW) == NOW - 5
    order = FixOrder()
    with pytest.raises(InvalidPosition, match=r"ahead of the broker's clock.*at most 10s"):
        order.treat(Fix(HERE, NOW + 10 * MICROSECONDS + 1), NOW, RULES)
    assert order.treat(Fix(HERE, NOW - 1), NOW, RULES) == "plain"  # what was refused has set no time


def test_vague_is_what_is_worse_than_asked_for_and_it_keeps_its_place_in_the_order() -> None:
    assert after(Fix(HERE, NOW, 50.1), Fix(THERE, NOW - 1, 3.0), Fix(HERE, None, 50.0), Fix(HERE, None, 51.0)) == [
        "vague",
        "late",
        "plain",
        "vague",
    ]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=30))
def test_those_that_move_are_in_the_order_of_time(reports: list[tuple[int, int]]) -> None:
    order = FixOrder()
    moved: list[int] = []
    seen: list[tuple[int, int]] = []
    for said, place in reports:
        fix = Fix(Point(49.0, 8.0 + place), said)
        treatment = order.treat(fix, NOW, RULES)
        recent = seen[-REMEMBERED:]
        if (said, place) in recent:
            assert treatment == "duplicate"
            continue
        seen.append((said, place))
        assert (treatment == "plain") == all(said >= other for other, _ in seen)
        if treatment == "plain":
            moved.append(said)
    assert moved == sorted(moved)
