"""A broker that fails and returns, in the middle of transitions: all it remembers are the plans for everybody (``Memory``)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import (
    FORGETFUL,
    assert_nothing_twice,
    few,
    many,
    moments,
    plans,
    schemes,
    stories,
)
from tests.dissemination.transitions.comparison import compared
from tests.dissemination.transitions.town import BROKER, Fault, Options, Plan, Town, always, instant, run
from tests.effort import campaign

SECONDS = 70.0
KEEP_ALIVE = Options().keep_alive
LONGEST_LATENCY = Options().latency[1]
RECOVERED = 4 * KEEP_ALIVE + 3 * LONGEST_LATENCY
"""Seconds after which a broker that has forgotten everything knows its clients again: whoever says nothing else says twice, each
time within two periods, how many subscriptions it holds; then it is asked, and answers."""


def check(data: st.DataObject) -> None:
    """What is lost while the broker is away and does not know its clients again is not its transitions' fault.

    So only what reaches it before it fails, or once it has recovered, is compared.
    """
    made = data.draw(plans(1, 3))
    made[-1] = Plan(made[-1].seconds, data.draw(st.sampled_from(FORGETFUL)))
    target = made[-1].scheme
    story = data.draw(stories(moments(made), seconds=SECONDS))
    failed = data.draw(st.floats(made[-1].seconds + 0.001, made[-1].seconds + 2.0))
    back = failed + data.draw(st.one_of(st.floats(0.001, 0.5), st.floats(0.5, 4.0)))
    faults = [Fault(failed, BROKER, "fail"), Fault(back, BROKER, "join")]
    first = data.draw(schemes)
    found = compared(story, first, made, undisturbed=True, faults=faults)
    assert_nothing_twice(found)
    switched = found.switched
    assert set(switched.schemes.values()) == {target}
    before = {pair for pair in found.all_along if switched.filtered.get(pair[0], instant(SECONDS)) < instant(failed)}
    assert before <= switched.notified
    # From then on it is as if nothing had ever happened.
    reference = always(story, target, None)
    recovered = {event for event, time in switched.filtered.items() if time > instant(back + RECOVERED)}
    assert len(recovered) > 10
    assert {pair for pair in switched.notified if pair[0] in recovered} == {
        pair for pair in reference.notified if pair[0] in recovered
    }


@few(5)
@given(st.data())
def test_all_end_in_the_newest_scheme_and_nobody_goes_back(data: st.DataObject) -> None:
    check(data)


@few(6)
@given(st.data())
def test_plans_made_after_a_restart_are_newer_than_all_before(data: st.DataObject) -> None:
    """Also if some clients follow a plan that the broker does not remember, because it was not for everybody."""
    made = data.draw(plans(1, 3, partial=True))
    failed = made[-1].seconds + data.draw(st.floats(0.001, 2.0))
    last = Plan(failed + 30.0, data.draw(schemes))
    faults = [Fault(failed, BROKER, "fail"), Fault(failed + 1.0, BROKER, "join")]
    switched = run(data.draw(stories(seconds=SECONDS)), data.draw(schemes), [*made, last], faults=faults)
    assert set(switched.schemes.values()) == {last.scheme}
    for said in switched.clocks.values():
        assert said == sorted(said)


@few(4)
@given(st.data())
def test_a_broker_that_has_forgotten_everything_learns_the_scheme_from_its_clients(data: st.DataObject) -> None:
    first, target = data.draw(schemes), data.draw(st.sampled_from(FORGETFUL))
    story = data.draw(stories(seconds=SECONDS))
    town = Town(
        story,
        first,
        [Plan(10.0, target)],
        faults=[Fault(15.0, BROKER, "fail"), Fault(16.0, BROKER, "join")],
        forgets_plans=True,
    )
    switched = town.run()
    assert set(switched.schemes.values()) == {target}
    recovered = {event for event, time in switched.filtered.items() if time > instant(16.0 + RECOVERED)}
    reference = always(story, target, None)
    assert {pair for pair in switched.notified if pair[0] in recovered} == {
        pair for pair in reference.notified if pair[0] in recovered
    }


@campaign
@many(100)
@given(st.data())
def test_many_restarts(data: st.DataObject) -> None:
    check(data)
