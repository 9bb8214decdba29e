"""Update policies on scripted walks: how many of the fixes are reported is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.places import away

from nearcast.errors import InvalidScheme
from nearcast.filtering.policies import Distance, EveryFix, Frequency, Hybrid, UpdatePolicy, UpdateStatistics
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant

START = Point(49.872, 8.652)
Walk = list[tuple[Instant, Point]]


def walk(speeds: Iterable[float], interval: float = 1.0) -> Walk:
    """A fix before the start, and one after each step eastwards at that speed in m/s."""
    fixes, metres, now = [(0, START)], 0.0, 0
    for speed in speeds:
        metres += speed * interval
        now += round(interval * MICROSECONDS)
        fixes.append((now, away(START, 90, metres)))
    return fixes


def reports(policy: UpdatePolicy, fixes: Walk) -> list[int]:
    """The numbers of the fixes that were reported."""
    sent = []
    for i, (now, position) in enumerate(fixes):
        if policy.due(now, position):
            policy.reported(now, position)
            sent.append(i)
    assert policy.statistics() == UpdateStatistics(len(fixes), len(sent))
    return sent


def test_the_prototype_reports_every_fix() -> None:
    fixes = walk([0.0, 1.4, 0.0, 3.0])
    assert reports(EveryFix(), fixes) == [0, 1, 2, 3, 4]
    assert reports(EveryFix(), fixes[::-1]) == [0, 1, 2, 3, 4]  # also those that come late


@pytest.mark.parametrize(
    ("metres", "speed", "count"), [(10.5, 1.0, 100), (10, 1.5, 100), (7.5, 2.0, 250), (0.1, 0.5, 30)]
)
def test_by_distance_a_steady_walk_is_reported_every_so_many_fixes(metres: float, speed: float, count: int) -> None:
    step = math.floor(metres / speed) + 1  # the first fix beyond
    sent = reports(Distance(metres), walk([speed] * count))
    assert sent == list(range(0, count + 1, step))


def test_by_distance_the_threshold_itself_is_not_yet_beyond_it() -> None:
    place = away(START, 45, 10)
    apart = distance(START, place)
    assert reports(Distance(apart), [(0, START), (1, place)]) == [0]
    assert reports(Distance(math.nextafter(apart, 0)), [(0, START), (1, place)]) == [0, 1]


def test_by_distance_who_stands_still_or_walks_to_and_fro_is_silent() -> None:
    assert reports(Distance(10), walk([0.0] * 500)) == [0]
    assert reports(Distance(10), walk([2.0, -2.0] * 250)) == [0]


@pytest.mark.parametrize(("seconds", "interval"), [(5, 1.0), (1, 1.0), (5, 2.0), (0.5, 1.0), (60, 7.0)])
def test_by_frequency_reports_come_at_the_first_fix_after_each_period(seconds: float, interval: float) -> None:
    step = max(1, math.ceil(seconds / interval))
    for speed in (0.0, 30.0):
        assert reports(Frequency(seconds), walk([speed] * 200, interval)) == list(range(0, 201, step))


def test_in_the_hybrid_a_report_for_distance_restarts_the_period() -> None:
    # Still until second 8, then 11 m at once, then still: the period of 10 s ends at 8 + 10, not at 10.
    fixes = walk([0.0] * 7 + [11.0] + [0.0] * 22)
    assert reports(Hybrid(10, 10), fixes) == [0, 8, 18, 28]
    assert reports(Frequency(10), fixes) == [0, 10, 20, 30]
    assert reports(Distance(10), fixes) == [0, 8]


def test_in_the_hybrid_a_report_for_the_period_restarts_the_distance() -> None:
    # 1 m/s, period 8 s: 10 m from the last report are never reached.
    assert reports(Hybrid(10, 8), walk([1.0] * 40)) == list(range(0, 41, 8))


@pytest.mark.parametrize("speed", [0.0, 0.5, 1.4, 12.0])
def test_the_hybrid_of_a_steady_walk_is_the_more_frequent_of_the_two(speed: float) -> None:
    fixes = walk([speed] * 300)
    both = reports(Distance(10), fixes), reports(Frequency(15), fixes)
    assert reports(Hybrid(10, 15), fixes) == max(both, key=len)


@given(st.lists(st.floats(-5, 5), max_size=60), st.floats(1, 30), st.integers(1, 20))
def test_what_the_broker_believes_is_never_staler_than_the_thresholds(
    speeds: list[float], metres: float, seconds: int
) -> None:
    policies: list[tuple[UpdatePolicy, float, float]] = [
        (EveryFix(), 0.0, 0.0),
        (Distance(metres), metres, math.inf),
        (Frequency(seconds), math.inf, seconds),
        (Hybrid(metres, seconds), metres, seconds),
    ]
    for policy, farthest, longest in policies:
        known: tuple[Instant, Point] | None = None
        for now, position in walk(speeds):
            if policy.due(now, position):
                policy.reported(now, position)
                known = now, position
            assert known is not None
            assert distance(known[1], position) <= farthest
            assert now == known[0] or now - known[0] < longest * MICROSECONDS


def test_a_report_that_went_along_with_another_message_counts_like_any_other() -> None:
    policy, fixes = Frequency(10), walk([1.0] * 30)
    policy.reported(*fixes[4])
    assert [i for i in range(5, 31) if policy.due(*fixes[i])] == list(range(14, 31))
    assert policy.statistics() == UpdateStatistics(26, 1)


@pytest.mark.parametrize("make", [EveryFix, lambda: Distance(10), lambda: Frequency(10), lambda: Hybrid(10, 10)])
def test_what_a_policy_remembers_can_be_handed_to_another(make: Callable[[], Any]) -> None:
    fixes = walk([1.0] * 50)
    whole = reports(make(), fixes)
    first, second = make(), make()
    before = reports(first, fixes[:23])
    second.last_instant, second.last_position = first.last_instant, first.last_position
    assert before + [23 + i for i in reports(second, fixes[23:])] == whole


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "10", None])
def test_a_threshold_that_cannot_be_is_refused(value: Any) -> None:
    for make in (Distance, Frequency, lambda given: Hybrid(given, 10), lambda given: Hybrid(10, given)):
        with pytest.raises(InvalidScheme, match="positive number of"):
            make(value)
