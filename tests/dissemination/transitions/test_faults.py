"""Transitions while plans get lost, and clients come, go, fail and return."""

from __future__ import annotations

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
from tests.dissemination.transitions.town import Fault, Options
from tests.effort import campaign

LOSSY = Options(lossy=("plan", "plan done"), loss=0.3)


@st.composite
def comings_and_goings(draw: st.DrawFn, story: Story) -> list[Fault]:
    """Of a third of the clients: some fail, some leave, and return after a while or before anybody has noticed; some are new."""
    faults = []
    for number in range(0, story.clients, 3):
        host, seconds = f"c{number}", draw(st.floats(9.0, 18.0))
        what = draw(st.sampled_from(("fail", "leave", "new")))
        if what != "new":
            faults.append(Fault(seconds, host, "fail" if what == "fail" else "leave"))
            seconds += draw(st.one_of(st.floats(0.01, 0.5), st.floats(0.5, 5.0)))
        faults.append(Fault(seconds, host, "join"))
    return faults


def check_lost_plans(data: st.DataObject) -> None:
    made = data.draw(plans(1, 3))
    story = data.draw(stories(moments(made), seconds=60.0))
    found = compared(story, data.draw(schemes), made, LOSSY)
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.served
    assert set(found.switched.schemes.values()) == {made[-1].scheme}


def check_comings_and_goings(data: st.DataObject) -> None:
    made = data.draw(plans(1, 3))
    # Who is new, or returns, runs the first scheme until the broker has heard of it and has sent it the plans: three ways.  A
    # fix in this time might be told in one scheme and not in the other; here there is none.
    story = data.draw(stories(moments(made), least_interval=2.0))
    found = compared(story, data.draw(schemes), made, faults=data.draw(comings_and_goings(story)))
    assert_nothing_is_lost(found)
    assert set(found.switched.schemes.values()) == {made[-1].scheme}


@few(5)
@given(st.data())
def test_plans_that_get_lost_are_repeated_and_nothing_is_lost_meanwhile(data: st.DataObject) -> None:
    check_lost_plans(data)


@few(5)
@given(st.data())
def test_clients_that_come_and_go_lose_nothing_while_they_are_there(data: st.DataObject) -> None:
    check_comings_and_goings(data)


@campaign
@many(100)
@given(st.data())
def test_many_lost_plans(data: st.DataObject) -> None:
    check_lost_plans(data)


@campaign
@many(100)
@given(st.data())
def test_many_comings_and_goings(data: st.DataObject) -> None:
    check_comings_and_goings(data)
