"""One transition of everybody, between any two schemes, over a network on which messages overtake each other."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import (
    FORGETFUL,
    SCHEMES,
    assert_nothing_is_lost,
    few,
    moments,
    plans,
    schemes,
    stories,
)
from tests.dissemination.transitions.comparison import Comparison, compared
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Options, Plan, always, instant, run
from tests.effort import campaign

from nearcast.transition.specification import MechanismSpec

LONGEST_LATENCY = Options().latency[1]
RADIAL = MechanismSpec("RADIAL")


def one_transition(data: st.DataObject) -> Comparison:
    made = data.draw(plans(1, 1))
    return compared(data.draw(stories(moments(made))), data.draw(schemes), made)


@few(7)
@given(st.data())
def test_no_event_is_lost_and_none_comes_twice(data: st.DataObject) -> None:
    found = one_transition(data)
    assert_nothing_is_lost(found)
    # More than that: at every moment, every client gets what the scheme says in which it was last heard.
    assert found.switched.notified == found.served


@few(8)
@given(st.data())
def test_once_bootstrapped_it_is_as_if_it_had_never_been_otherwise(data: st.DataObject) -> None:
    source, target = data.draw(schemes), data.draw(st.sampled_from(FORGETFUL))
    seconds = data.draw(st.floats(8.0, 14.0))
    story = data.draw(stories((seconds + 2.0,)))
    switched = run(story, source, [Plan(seconds, target)])
    # The plan to the client, its first word back; where schemes remember no more than that, one more fix makes all equal.
    bootstrapped = instant(seconds + 2 * LONGEST_LATENCY + story.interval + LONGEST_LATENCY)
    after = {event for event, time in switched.filtered.items() if time > bootstrapped}
    reference = always(story, target, None)
    assert len(after) > 10
    assert {pair for pair in switched.notified if pair[0] in after} == {
        pair for pair in reference.notified if pair[0] in after
    }
    assert set(switched.schemes.values()) == {target}


@few(6)
@given(st.data())
def test_extended_grids_may_have_other_cells_to_spare_but_never_too_few(data: st.DataObject) -> None:
    """Which cells a client has beyond those that it needs depends on where it asked last, so they differ after a transition.

    Those it needs are the same: of what RADIAL finds, it gets everything.
    """
    source = data.draw(schemes)
    target = data.draw(st.sampled_from([spec for spec in SCHEMES if spec.name in {"EGRID", "RGRID"}]))
    seconds = data.draw(st.floats(8.0, 14.0))
    story = data.draw(stories((seconds + 2.0,)))
    switched = run(story, source, [Plan(seconds, target)])
    bootstrapped = instant(seconds + 2 * LONGEST_LATENCY)
    near = always(story, RADIAL, None).notified
    assert {pair for pair in near if switched.filtered[pair[0]] > bootstrapped} <= switched.notified


@campaign
@pytest.mark.parametrize("source", SCHEMES, ids=str)
def test_all_pairs_of_schemes(source: MechanismSpec) -> None:
    for first, target in permutations(SCHEMES, 2):
        if first == source:
            random = Random(f"{first} {target}")
            seconds = random.uniform(10.0, 14.0)
            story = Story(
                random.randrange(2**32), interval=random.choice((1.0, 2.0, 5.0)), rate=3.0, speed=15.0, busy=(seconds,)
            )
            found = compared(story, first, [Plan(seconds, target)])
            assert_nothing_is_lost(found)
            assert found.switched.notified == found.served
