"""Transitions as the documents have them, which do lose events; and what it takes that they do not.

The old scheme ends at once, channels that are not known any more are discarded, plans are sent once (BYPASS.KOM 4.2.3, 6.2; LCN 2016, V).
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import (
    FORGETFUL,
    assert_nothing_is_lost,
    few,
    moments,
    plans,
    schemes,
    stories,
)
from tests.dissemination.transitions.comparison import Comparison, compared
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import DOCUMENTS, Options, Pair, Plan, instant

from nearcast.transition.specification import MechanismSpec

SWITCH = 12.0
STANDING = Story(4, clients=20, speed=0.0, rate=10.0, busy=(SWITCH,))
"""Nobody moves: so whatever is lost is not lost because a position was old."""

GRID = MechanismSpec("GRID")
EGRID = MechanismSpec.of("EGRID", factor=7)
LONGEST_LATENCY = DOCUMENTS.latency[1]


def kinds(found: Comparison, pairs: set[Pair]) -> set[str]:
    by_id = {publication.id: publication.kind for publication in found.story.publications}
    return {by_id[event] for event, _ in pairs}


def test_what_carries_a_channel_of_another_grid_is_lost_for_about_a_latency() -> None:
    found = compared(STANDING, GRID, [Plan(SWITCH, EGRID)], DOCUMENTS)
    lost = found.lost()
    assert len(lost) > 10
    assert kinds(found, lost) == {"local"}
    # Sent before the plan and the new channel were there, at most one latency after the exchange; one more to the broker.
    times = {found.switched.filtered[event] for event, _ in lost}
    assert min(times) > instant(SWITCH)
    assert max(times) < instant(SWITCH + 2 * LONGEST_LATENCY)


def test_what_is_published_to_a_place_is_not_lost() -> None:
    found = compared(STANDING, GRID, [Plan(SWITCH, EGRID)], DOCUMENTS)
    by_id = {publication.id: publication for publication in STANDING.publications}
    meanwhile = {
        pair
        for pair in found.all_along
        if by_id[pair[0]].kind == "elsewhere" and 0 < found.switched.filtered[pair[0]] - instant(SWITCH) < instant(0.8)
    }
    assert len(meanwhile) > 10
    assert meanwhile <= found.switched.notified


def test_places_instead_of_unknown_channels_would_have_been_enough_for_those_who_stand() -> None:
    found = compared(STANDING, GRID, [Plan(SWITCH, EGRID)], replace(DOCUMENTS, discard=False))
    assert not found.lost()


def test_without_transfer_of_state_there_is_a_gap_of_a_round_trip_and_then_all_is_well() -> None:
    options = replace(DOCUMENTS, state_transfer=False, resubscribes=True)
    found = compared(STANDING, MechanismSpec("RADIAL"), [Plan(SWITCH, GRID)], options)
    switched, target = found.switched, found.references[GRID]
    since = {event: time - instant(SWITCH) for event, time in switched.filtered.items()}
    # Nobody gets anything until its subscriptions have come again.
    back = {client: time for client, said in switched.arrivals.items() for time, clock in said if clock == 1}
    gap = [(event, client) for event in since for client in back if 0 < since[event] < back[client] - instant(SWITCH)]
    assert len(found.all_along.intersection(gap)) > 5
    assert not switched.notified.intersection(gap)
    lost = found.lost()
    assert lost
    # The plan there and the subscriptions back; and what was published until then is on its way for one more latency.
    assert max(since[event] for event, _ in lost) < instant(3 * LONGEST_LATENCY)
    after = {event for event, seconds in since.items() if seconds > instant(4 * LONGEST_LATENCY)}
    assert len(after) > 50
    assert {p for p in switched.notified if p[0] in after} == {p for p in target.notified if p[0] in after}


def check_without_transfer(data: st.DataObject) -> None:
    made = data.draw(plans(1, 1))
    options = Options(state_transfer=False, resubscribes=True)
    found = compared(data.draw(stories(moments(made))), data.draw(schemes), made, options)
    assert_nothing_is_lost(found)
    assert found.switched.notified == found.served


@few(5)
@given(st.data())
def test_where_no_state_can_be_transferred_the_overlap_alone_loses_nothing(data: st.DataObject) -> None:
    """What LCN 2016 (VI) proposes for its transition T4."""
    check_without_transfer(data)


def test_nobody_is_given_up_by_the_old_scheme_before_all_its_subscriptions_have_come() -> None:
    """One of them may overtake the message that tells them all anew."""
    story = Story(2597, clients=14, side=900.0, interval=3.7, rate=3.0, busy=(10.9136547994535,), speed=15.0)
    plan = Plan(story.busy[0], MechanismSpec("RGRID", (("factor", 6),)))
    first = MechanismSpec("EGRID", (("factor", 4),))
    found = compared(story, first, [plan], Options(state_transfer=False, resubscribes=True))
    assert found.switched.notified == found.served


@few(4)
@given(st.data())
def test_in_the_end_the_documents_transitions_come_to_the_same(data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(FORGETFUL))
    story = data.draw(stories((SWITCH + 3.0,)))
    found = compared(story, data.draw(schemes), [Plan(SWITCH, target)], DOCUMENTS)
    settled = instant(SWITCH + 4 * LONGEST_LATENCY + story.interval)
    after = {event for event, time in found.switched.filtered.items() if time > settled}
    reference = found.references[target]
    assert {p for p in found.switched.notified if p[0] in after} == {p for p in reference.notified if p[0] in after}
