"""Several transitions in a row, also faster than a round trip, and of a part of the clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import (
    assert_nothing_is_lost,
    few,
    many,
    moments,
    plans,
    schemes,
    stories,
)
from tests.dissemination.transitions.comparison import compared
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Options, Plan, instant
from tests.effort import campaign

from nearcast.transition.specification import MechanismSpec


def check(data: st.DataObject, least: int, most: int, *, partial: bool) -> None:
    made = data.draw(plans(least, most, partial=partial))
    found = compared(data.draw(stories(moments(made))), data.draw(schemes), made)
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.served
    if all(plan.share is None for plan in made):
        assert set(found.switched.schemes.values()) == {made[-1].scheme}


@few(5)
@given(st.data())
def test_one_after_the_other(data: st.DataObject) -> None:
    check(data, 2, 4, partial=False)


@few(5)
@given(st.data())
def test_of_some_clients_and_of_all(data: st.DataObject) -> None:
    check(data, 1, 4, partial=True)


@pytest.mark.parametrize("between", ["RADIAL", "STE", "MULTI"])
def test_a_scheme_in_between_that_never_got_to_know_anybody_is_not_relied_on(between: str) -> None:
    # The first forgets positions, so the second has none, and the third comes before the second has asked for any.
    first, last = MechanismSpec.of("RGRID", factor=6), MechanismSpec("GRID")
    made = [Plan(12.0, MechanismSpec(between)), Plan(12.03, last)]
    found = compared(Story(21, clients=20, busy=(12.0,)), first, made)
    assert (
        len([pair for pair in found.all_along if 0 < found.switched.filtered[pair[0]] - instant(12.0) < 600_000]) > 10
    )
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.served


def test_whoever_never_heard_of_the_way_there_and_back_says_so_all_the_same() -> None:
    # In between the broker forgot all positions; a client that stands has no reason to say anything in its grid.
    first = MechanismSpec.of("EGRID", factor=4)
    made = [Plan(12.0, MechanismSpec.of("RGRID", factor=6)), Plan(12.01, first)]
    story = Story(22, clients=20, speed=0.0, rate=6.0)
    found = compared(story, first, made, Options(grace=2.0))
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.references[first].notified


@few(5)
@given(st.data())
def test_there_and_back_before_anybody_has_arrived(data: st.DataObject) -> None:
    first, second = data.draw(schemes), data.draw(schemes)
    seconds, pause = data.draw(st.floats(10.0, 14.0)), data.draw(st.floats(0.001, 0.9))
    made = [Plan(seconds, second), Plan(seconds + pause, first)]
    found = compared(data.draw(stories(moments(made))), first, made)
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.served
    assert set(found.switched.schemes.values()) == {first}


@campaign
@many(120)
@given(st.data())
def test_many_of_them(data: st.DataObject) -> None:
    check(data, 1, 5, partial=data.draw(st.booleans()))
