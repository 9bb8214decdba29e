"""All broker halves against plain definitions: who gets what after any sequence of whatever clients can do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.halves import (
    CHANNEL_SCHEMES,
    SCHEMES,
    Ears,
    Step,
    World,
    events,
    expected,
    play,
    steps,
    transferred,
)

from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.channels import ChannelBroker
from nearcast.filtering.multi import MultiBroker
from nearcast.model.event import Event
from nearcast.transition.specification import MechanismSpec

scripts = st.lists(steps, max_size=14)
several_events = st.lists(events, min_size=1, max_size=4)
by_scheme = pytest.mark.parametrize("spec", SCHEMES, ids=str)


def agrees(half: BrokerHalf, spec: MechanismSpec, world: World, published: list[Event]) -> None:
    for event in published:
        found = half.receivers(event, None)
        assert len(found) == len(set(found))
        assert set(found) == expected(spec, world, event)


@by_scheme
@given(script=scripts, published=several_events)
def test_receivers_are_those_that_the_definition_says(
    spec: MechanismSpec, script: list[Step], published: list[Event]
) -> None:
    half, world = Ears().make(spec), World()
    play(half, world, script)
    agrees(half, spec, world, published)


@given(
    before=st.sampled_from(SCHEMES),
    after=st.sampled_from(SCHEMES),
    script=scripts,
    more=scripts,
    published=several_events,
)
def test_what_was_transferred_from_another_scheme_is_as_good_as_what_was_said(
    before: MechanismSpec, after: MechanismSpec, script: list[Step], more: list[Step], published: list[Event]
) -> None:
    ears, world = Ears(), World()
    old = ears.make(before)
    play(old, world, script)
    new = transferred(old, ears.make(after))
    # Channels that were joined are names in one scheme, and strange words in the next.
    for name, known in world.items():
        known.joined = new.contexts[name].channels
    agrees(new, after, world, published)
    play(new, world, more, len(script))
    agrees(new, after, world, published)


@given(spec=st.sampled_from(SCHEMES), script=scripts, published=several_events)
def test_nothing_is_left_behind_by_those_who_were_forgotten(
    spec: MechanismSpec, script: list[Step], published: list[Event]
) -> None:
    half, world = Ears().make(spec), World()
    play(half, world, script)
    for name in list(world):
        half.forget(name)
        half.forget(name)
    assert all(half.receivers(event, None) == [] for event in published)
    for inner in (half._attract, half._radial) if isinstance(half, MultiBroker) else (half,):
        statistics = inner._matcher.statistics()  # type: ignore[attr-defined]
        assert (statistics.clients, statistics.subscriptions, inner.contexts) == (0, 0, {})


@given(spec=st.sampled_from(CHANNEL_SCHEMES), script=scripts)
def test_there_is_one_copy_of_a_subscription_for_each_channel_of_its_holder(
    spec: MechanismSpec, script: list[Step]
) -> None:
    half, world = Ears().make(spec), World()
    assert isinstance(half, ChannelBroker)
    play(half, world, script)
    copies = sum(
        1 if held.area is None else len(context.channels) + 1  # and one for events without a place
        for context in half.contexts.values()
        for held in context.subscriptions.values()
    )
    assert half._matcher.statistics().subscriptions == copies
    fresh = transferred(half, Ears().make(spec))
    assert isinstance(fresh, ChannelBroker)
    assert fresh._matcher.statistics().subscriptions == copies


@given(spec=st.sampled_from(CHANNEL_SCHEMES), script=scripts)
def test_no_client_believes_in_a_channel_that_it_has_lost(spec: MechanismSpec, script: list[Step]) -> None:
    ears, world = Ears(), World()
    half = ears.make(spec)
    play(half, world, script)
    told = dict(ears.said)
    for name, context in half.contexts.items():
        if name in told and ("forget", name, None) not in script:
            assert set(told[name].channels) <= set(context.channels)
