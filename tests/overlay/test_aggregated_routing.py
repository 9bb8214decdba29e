"""Aggregated contexts between routers: fewer updates, some messages in vain, and nobody is missed (4.4)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS
from tests.overlay.routing_changes import changed, changes, edges_of, everybody_gets_it, messages, restless
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidSettings
from nearcast.model.values import Range
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import Fixed, SelfTuning
from nearcast.overlay.routing.aggregated import Aggregated, AggregatedSettings
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.values.domains import Domains

CITY = WORLDS[2]


def aggregated(threshold: float = 0.3, **parameters: Any) -> Aggregated:
    return Aggregated(
        Aggregation(threshold=Fixed(threshold)), AggregatedSettings(**parameters), Domains({"speed": Range(0, 100)})
    )


def chain(size: int, knowledge: Callable[[], Knowledge] = aggregated) -> Overlay:
    overlay = Overlay(size, knowledge)
    overlay.connect((number, number + 1) for number in range(size - 1))
    overlay.run(5)
    return overlay


def updates(overlay: Overlay) -> int:
    return sum(router.statistics().knowledge.updates_sent for router in overlay.routers)


def in_vain(overlay: Overlay) -> int:
    return sum(router.statistics().false_positives for router in overlay.routers)


def test_who_lies_within_an_aggregate_comes_changes_and_goes_unheard() -> None:
    overlay = chain(3)
    overlay.register(2, {"speed": 10})
    overlay.register(2, {"speed": 40})
    for speed in range(11, 18):  # more than a set holds: an interval
        overlay.register(2, {"speed": speed})
    overlay.run(5)
    before = updates(overlay)
    handle = overlay.register(2, {"speed": 20})
    overlay.update(handle, {"speed": 30})
    overlay.remove(handle)
    overlay.run(5)
    assert updates(overlay) == before
    overlay.register(2, {"speed": 50})
    overlay.run(5)
    assert updates(overlay) == before + 2  # one on each link


def test_a_message_in_vain_reaches_the_router_whose_aggregate_seemed_to_match_and_nobody_behind_it() -> None:
    overlay = chain(3)
    for speed in range(0, 100, 5):
        overlay.register(1, {"speed": speed})
    overlay.register(2, {"speed": 1000})  # too far away for any aggregate
    overlay.run(5)
    event = overlay.publish(0, "speed = 7")
    overlay.run(5)
    assert overlay.got(event) == []
    assert overlay.copies(event) == {"r001": 1}
    assert in_vain(overlay) == 1


@pytest.mark.parametrize("by_aggregates", [False, True])
def test_by_what_the_neighbour_said_nothing_is_sent_that_only_our_own_aggregate_seems_to_match(
    by_aggregates: bool,
) -> None:
    overlay = chain(5, lambda: aggregated(by_aggregates=by_aggregates))
    # Two aggregates on the link from router 3, its own and that of router 4, of which router 2 makes one.
    for speed in range(0, 20, 2):
        overlay.register(3, {"speed": speed})
        overlay.register(4, {"speed": speed + 20})
    overlay.run(10)
    between = overlay.publish(2, "speed = 19")
    overlay.run(5)
    assert overlay.copies(between) == ({"r003": 1} if by_aggregates else {})
    from_afar = overlay.publish(1, "speed = 19")
    overlay.run(5)
    assert set(overlay.copies(from_afar)) == ({"r002", "r003"} if by_aggregates else {"r002"})
    everybody_gets_it(overlay, [(1, "speed = 18"), (1, "speed = 20")])


def test_an_aggregate_that_brings_too_many_messages_in_vain_is_dissolved() -> None:
    overlay = chain(2, lambda: aggregated(0.05, window=10.0, in_vain=0.5))
    random = Random(1)
    for _ in range(40):
        overlay.register(1, {"speed": random.choice([random.uniform(0, 10), random.uniform(90, 100)])})
    overlay.run(5)
    for _ in range(60):
        overlay.publish(0, "speed = 50")
        overlay.run(0.5)
    assert sum(router.statistics().knowledge.reaggregated for router in overlay.routers) > 0
    everybody_gets_it(overlay, [(0, "speed < 10"), (0, "speed > 95"), (0, "speed = 50")])


def test_a_threshold_that_tunes_itself_is_told_of_messages_in_vain() -> None:
    tuning = SelfTuning(start=0.3, least=0.2)
    overlay = chain(2, lambda: Aggregated(Aggregation(threshold=tuning), domains=Domains({"speed": Range(0, 100)})))
    for speed in range(0, 100, 5):
        overlay.register(1, {"speed": speed})
    overlay.run(30)
    before = tuning.value
    for _ in range(200):
        overlay.publish(0, "speed = 7")
        overlay.run(0.1)
    overlay.run(20)
    assert tuning.value > before


def test_few_updates_more_messages_and_the_same_deliveries_as_the_reference() -> None:
    overlays = [chain(6, Reference), chain(6)]
    for overlay in overlays:
        random = Random(3)
        handles = [overlay.register(random.randrange(6), {"speed": random.randrange(100)}) for _ in range(60)]
        overlay.run(10)
        for _ in range(200):
            overlay.update(random.choice(handles), {"speed": random.randrange(100)})
            overlay.run(10)
            overlay.publish(random.randrange(6), f"speed = {random.randrange(100)}")
            overlay.run(10)
    exact, coarse = overlays
    assert updates(coarse) < updates(exact) / 2
    assert in_vain(exact) == 0 < in_vain(coarse)
    assert {name: sorted(got) for name, got in coarse.delivered.items()} == {
        name: sorted(got) for name, got in exact.delivered.items()
    }


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidSettings):
        AggregatedSettings(window=0)


@given(st.data(), st.integers(2, 5), st.integers(0, 2**32), st.booleans())
@settings(max_examples=15)
def test_with_contexts_and_messages_of_any_kind_nobody_is_missed(
    data: st.DataObject, size: int, seed: int, by_aggregates: bool
) -> None:
    overlay = Overlay(size, lambda: aggregated(by_aggregates=by_aggregates), seed=seed)
    overlay.connect(data.draw(edges_of(size)))
    for change in data.draw(st.lists(changes(size, CITY), max_size=15)):
        changed(overlay, change)
    everybody_gets_it(overlay, data.draw(messages(size, CITY)))


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("loss", [0.0, 0.2])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=12)
def test_while_contexts_and_trees_change_and_words_are_lost_nobody_is_missed(
    seed: int, loss: float, trees: bool
) -> None:
    restless(lambda: aggregated(window=2.0, in_vain=0.2), seed, loss=loss, trees=trees)
