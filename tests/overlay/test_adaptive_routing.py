"""Adaptive propagation: nobody is missed, and contexts are told where that pays (5.3)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS
from tests.overlay.routing_changes import changed, changes, edges_of, everybody_gets_it, messages, restless
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidSettings
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import Fixed
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.benefit import Rate, benefit
from nearcast.overlay.routing.composites import Condense, Listed
from nearcast.overlay.routing.merged import merging
from nearcast.overlay.routing.settings import AdaptiveSettings

CITY = WORLDS[2]
SPEED = frozenset({"speed"})


# Statistics


def test_rates_and_benefit_are_those_of_the_document() -> None:
    in_vain, updates, prunes = Rate(), Rate(), Rate()
    in_vain.count, updates.count = 146, 17 + 36 + 45
    assert in_vain.turn(10.0, 0.8) == pytest.approx(14.6)
    assert updates.turn(10.0, 0.8) == pytest.approx(9.8)
    assert benefit(14.6, 9.8) == pytest.approx(1.49, abs=0.005)
    prunes.count = 37
    assert prunes.turn(10.0, 0.8) == pytest.approx(3.7)
    assert benefit(3.7, 9.3) == pytest.approx(0.40, abs=0.005)


def test_smoothing_starts_with_the_first_window_and_weighs_the_newest() -> None:
    rate = Rate()
    rate.count = 100
    assert rate.turn(10.0, 0.8) == 10.0
    assert rate.turn(10.0, 0.8) == pytest.approx(2.0)
    rate.count = 10
    assert rate.turn(10.0, 0.8) == pytest.approx(0.8 * 1 + 0.2 * 2)


def test_without_updates_a_composite_is_worth_any_message_and_nothing_says_nothing() -> None:
    assert benefit(0.1, 0.0) == math.inf
    assert not benefit(0.0, 0.0) > 1.3
    assert not benefit(0.0, 0.0) < 0.9


def test_thresholds_must_leave_room_between_them() -> None:
    with pytest.raises(InvalidSettings):
        AdaptiveSettings(propagate_above=1.0, invalidate_below=1.0)


# Small trees


def chain(size: int, **parameters: Any) -> Overlay:
    overlay = Overlay(size, lambda: Adaptive(AdaptiveSettings(**parameters)))
    overlay.connect((number, number + 1) for number in range(size - 1))
    overlay.run(5)
    return overlay


def knowledge(overlay: Overlay, number: int) -> Adaptive:
    found = overlay.routers[number].knowledge
    assert isinstance(found, Adaptive)
    return found


def ask(overlay: Overlay, sender: int, to: str, times: int = 20, seconds: float = 1.0) -> None:
    for _ in range(times):
        event = overlay.publish(sender, to)
        overlay.run(seconds)
        assert overlay.got(event) == overlay.expected(sender, event)


def test_at_first_messages_go_everywhere_and_never_back() -> None:
    overlay = chain(4)
    event = overlay.publish(1, "speed = 5")
    overlay.run(10)
    assert overlay.copies(event) == {"r000": 1, "r002": 1, "r003": 1}
    assert overlay.routers[3].statistics().false_positives == 1


def test_who_is_asked_in_vain_tells_what_is_there_and_knowledge_grows_towards_the_sender() -> None:
    overlay = chain(4)
    overlay.register(3, {"speed": 5, "role": "driver"})
    overlay.run(20)
    ask(overlay, 0, "speed = 6", times=60)
    assert [knowledge(overlay, number).sent(f"r{number - 1:03}") for number in (3, 2, 1)] == [{SPEED}] * 3
    ask(overlay, 0, "speed = 6", times=1)
    last = list(overlay.delivered)[-1]
    assert not any(name == last for name, _, _ in overlay.wires.copies)
    ask(overlay, 0, "speed = 5", times=1, seconds=10)  # it is there
    ask(overlay, 0, "role = 'guest'", times=1, seconds=10)  # of that nothing is known


def test_what_is_told_is_kept_up_to_date_at_each_router() -> None:
    overlay = chain(4, invalidate_below=0.0)
    handle = overlay.register(3, {"speed": 5})
    ask(overlay, 0, "speed = 6", times=60)
    overlay.update(handle, {"speed": 6})
    overlay.run(10)
    ask(overlay, 0, "speed = 6", times=1, seconds=10)
    overlay.update(handle, {"role": "driver"})
    overlay.run(10)
    ask(overlay, 0, "speed IS NULL", times=1, seconds=10)
    overlay.remove(handle)
    overlay.run(10)
    ask(overlay, 0, "speed IS NULL", times=1, seconds=10)
    last = list(overlay.delivered)[-1]
    assert not any(name == last for name, _, _ in overlay.wires.copies)


def test_a_composite_is_sent_only_by_who_knows_all_other_neighbours() -> None:
    overlay = Overlay(4, Adaptive)  # a star; 0 asks, 2 and 3 hang on 1
    overlay.connect([(0, 1), (1, 2), (1, 3)])
    overlay.register(2, {"speed": 5})
    ask(overlay, 0, "speed = 5", times=20, seconds=3.0)  # never in vain at 2, always at 3
    assert knowledge(overlay, 3).sent("r001") == {SPEED}
    assert knowledge(overlay, 2).sent("r001") == frozenset()
    assert knowledge(overlay, 1).sent("r000") == frozenset()


def test_a_composite_that_prunes_too_little_goes_back_and_what_was_made_of_it_too() -> None:
    overlay = chain(4)
    handle = overlay.register(3, {"speed": 5})
    ask(overlay, 0, "speed = 6", times=60)
    assert knowledge(overlay, 0).held("r001") == {SPEED}
    for number in range(120):  # many updates, no messages
        overlay.update(handle, {"speed": 10 + number})
        overlay.run(1)
    # Router 0 sends it back first; what fed it is not pinned any more then, and follows.
    assert [knowledge(overlay, number).held(f"r{number + 1:03}") for number in (0, 1, 2)] == [frozenset()] * 3
    assert sum(router.statistics().knowledge.invalidations_sent for router in overlay.routers) == 3
    ask(overlay, 0, "speed = 129", times=1, seconds=10)


def test_what_was_made_of_a_composite_that_is_retired_is_retired_too() -> None:
    overlay = Overlay(5, Adaptive)  # 0 asks; 1 is in the middle of 2 and 3, and 4 hangs on 2
    overlay.connect([(0, 1), (1, 2), (1, 3), (2, 4)])
    for router in range(5):
        overlay.register(router, {"speed": 5})
    ask(overlay, 0, "speed = 6", times=40, seconds=2.0)
    assert knowledge(overlay, 0).held("r001") == {SPEED}
    knowledge(overlay, 4)._retire("r002", SPEED)
    overlay.run(8)
    assert [knowledge(overlay, number).sent(to) for number, to in ((2, "r001"), (1, "r000"))] == [frozenset()] * 2
    assert knowledge(overlay, 3).sent("r001") == {SPEED}
    overlay.register(4, {"speed": 6})
    ask(overlay, 0, "speed = 6", times=1, seconds=10)


def test_what_feeds_a_composite_that_was_sent_is_pinned() -> None:
    overlay = chain(3, invalidate_below=1.0)
    handle = overlay.register(2, {"speed": 5})
    ask(overlay, 0, "speed = 6", times=40)
    assert knowledge(overlay, 1).sent("r000") == {SPEED}
    # Router 0 prunes all messages, so that those of router 1's source prune nothing at all; yet it is needed.
    for number in range(40):
        overlay.update(handle, {"speed": 10 + number})
        ask(overlay, 0, "speed = 6", times=2)
    assert knowledge(overlay, 1).held("r002") == {SPEED}
    assert knowledge(overlay, 0).held("r001") == {SPEED}


def test_between_the_thresholds_nothing_happens() -> None:
    """Whatever was there before stays: with a composite, and without one."""
    for before in (60, 0):
        overlay = chain(2, window=10.0)
        handle = overlay.register(1, {"speed": 5})
        if before:
            ask(overlay, 0, "speed = 6", times=before)
        overlay.run(10)
        held = knowledge(overlay, 0).held("r001")
        assert bool(held) == bool(before)
        for number in range(150):  # 1.1 messages for each update: between 0.9 and 1.3
            overlay.update(handle, {"speed": 10 + number})
            ask(overlay, 0, "speed = 6", times=1)
            if number % 10 == 9:
                ask(overlay, 0, "speed = 6", times=1, seconds=1e-5)
                overlay.run(0)
        assert knowledge(overlay, 0).held("r001") == held


def test_a_larger_set_retires_a_smaller_one_on_both_sides() -> None:
    overlay = chain(2)
    overlay.register(1, {"speed": 5, "role": "driver"})
    ask(overlay, 0, "speed = 6", times=30)
    assert knowledge(overlay, 0).held("r001") == {SPEED}
    ask(overlay, 0, "speed = 5 AND role = 'guest'", times=30)
    both = frozenset({"speed", "role"})
    assert knowledge(overlay, 0).held("r001") == knowledge(overlay, 1).sent("r000") == {both}
    ask(overlay, 0, "speed = 6", times=30)
    assert knowledge(overlay, 1).sent("r000") == {both}


def test_a_message_for_everybody_goes_where_anybody_is() -> None:
    overlay = chain(3)
    ask(overlay, 0, "TRUE", times=40)
    assert knowledge(overlay, 0).held("r001") == {frozenset()}
    handle = overlay.register(2, {"speed": 5})
    overlay.run(10)
    ask(overlay, 0, "TRUE", times=1, seconds=10)
    assert len(overlay.got(overlay.publish(0, "FALSE"))) == 0
    overlay.remove(handle)
    overlay.run(10)
    ask(overlay, 0, "TRUE", times=1, seconds=10)


def test_an_alternative_is_pruned_only_if_both_parts_are_known() -> None:
    overlay = chain(2)
    overlay.register(1, {"speed": 5, "role": "driver"})
    ask(overlay, 0, "speed = 6", times=30)
    ask(overlay, 0, "speed = 6 OR role = 'driver'", times=1, seconds=10)
    ask(overlay, 0, "speed = 6 OR role = 'guest'", times=30)
    assert knowledge(overlay, 0).held("r001") == {frozenset({"speed", "role"})}
    ask(overlay, 0, "speed = 6 OR role = 'driver'", times=1, seconds=10)


def test_with_another_tree_it_begins_anew() -> None:
    overlay = chain(3)
    overlay.register(2, {"speed": 5})
    ask(overlay, 0, "speed = 6", times=40)
    overlay.connect([(0, 2), (1, 2)])
    overlay.run(5)
    assert knowledge(overlay, 0).held("r002") == frozenset()
    ask(overlay, 0, "speed = 5", times=1, seconds=10)
    overlay.connect([(0, 1), (1, 2)])  # and back: what was said in this tree before is forgotten
    overlay.run(5)
    assert knowledge(overlay, 0).held("r001") == frozenset()
    ask(overlay, 0, "speed = 6", times=40)
    assert knowledge(overlay, 0).held("r001") == {SPEED}


# Random ones


@given(st.data(), st.integers(2, 5), st.integers(0, 2**32))
@settings(max_examples=15)
def test_with_contexts_and_messages_of_any_kind_nobody_is_missed(data: st.DataObject, size: int, seed: int) -> None:
    adaptive = AdaptiveSettings(window=1.0, propagate_above=0.3, invalidate_below=0.25)
    overlay = Overlay(size, lambda: Adaptive(adaptive), seed=seed)
    overlay.connect(data.draw(edges_of(size)))
    usual = data.draw(messages(size, CITY, 3))
    for change in data.draw(st.lists(changes(size, CITY), max_size=15)):
        changed(overlay, change)
        for sender, predicate in usual:
            overlay.publish(sender, predicate)
        overlay.run(1.0)
    everybody_gets_it(overlay, [*usual, *data.draw(messages(size, CITY))])


@pytest.mark.parametrize("condense", [Listed, merging(Aggregation(threshold=Fixed(0.3)))], ids=["listed", "merged"])
@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("loss", [0.0, 0.2])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=12)
def test_while_composites_come_and_go_nobody_is_missed(seed: int, loss: float, trees: bool, condense: Condense) -> None:
    adaptive = AdaptiveSettings(window=2.0, propagate_above=0.8, invalidate_below=0.7)
    restless(lambda: Adaptive(adaptive, condense=condense), seed, loss=loss, trees=trees)
