"""What nobody should say, clocks that went back, and news that never ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

import msgspec
import pytest
from tests.overlay.routing_changes import everybody_gets_it
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidEvent, InvalidInput
from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.values import AttributeType, register_type, unregister_type
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.messages import PORT, ContextEntry, Partials, entry_of
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.wire import routed
from nearcast.runtime.messages import Message


def pair(knowledge: Callable[[], Knowledge]) -> Overlay:
    overlay = Overlay(2, knowledge, check_wire=False)
    overlay.connect([(0, 1)])
    overlay.run(5)
    return overlay


def say(overlay: Overlay, message: Message) -> None:
    """As router 1, to router 0."""
    overlay.wires.links["r001"].post("r000", PORT, message)
    overlay.run(2)


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
def test_a_message_that_cannot_be_read_is_counted(knowledge: Callable[[], Knowledge]) -> None:
    overlay = pair(knowledge)
    say(overlay, msgspec.structs.replace(routed(Event("e", "news", 0, to="a = 1"), "r001"), to="a >>> 3"))
    assert overlay.routers[0].statistics().malformed == 1
    overlay.register(1, {"a": 1})
    everybody_gets_it(overlay, [(0, "a = 1")])


def test_an_entry_that_cannot_be_read_was_not_said() -> None:
    overlay = pair(Reference)
    handle = overlay.register(1, {"a": 1})
    overlay.run(5)
    say(overlay, ContextEntry(handle, 2, "r001", {"a": None}))
    say(overlay, ContextEntry("somebody else/1", 1, "r001", {"a": 1}))
    assert overlay.routers[0].statistics().malformed == 2
    everybody_gets_it(overlay, [(0, "a = 1")])
    overlay.update(handle, {"a": 2})  # version 2, which the bad one had
    everybody_gets_it(overlay, [(0, "a = 2")])


@pytest.mark.parametrize("knowledge", [Adaptive, Aggregated])
def test_after_a_composite_that_cannot_be_read_everything_is_asked_for(knowledge: Callable[[], Knowledge]) -> None:
    overlay = pair(knowledge)
    overlay.register(1, {"a": 1})
    for _ in range(30):
        overlay.publish(0, "a = 2")
        overlay.run(1)
    number = int.from_bytes(overlay.routers[1].news("r000")[8:], "little")
    tree = overlay.routers[1]._tree.identity
    rows: tuple[Any, ...] = ((7, {"a": 3}, ()), (8, {"a": None}, ()))
    say(overlay, Partials(tree=tree, number=number, names=("a",), whole=True, partials=rows))
    assert overlay.routers[0].statistics().malformed == 1
    everybody_gets_it(overlay, [(0, "a = 1")])


def test_a_handle_that_others_know_by_a_higher_version_comes_into_its_own() -> None:
    overlay = pair(Reference)
    handle = overlay.register(1, {"a": 1})
    overlay.run(5)
    say(overlay, entry_of(handle, 1_000, "r001", {"a": 5}))  # from a life whose clock was ahead
    overlay.run(60)
    everybody_gets_it(overlay, [(0, "a = 1"), (0, "a = 5")])


def test_a_version_above_which_nothing_can_be_said_is_not_believed() -> None:
    overlay = pair(Reference)
    handle = overlay.register(1, {"a": 1})
    overlay.run(5)
    say(overlay, entry_of(handle, 2**64 - 1, "r001", {"a": 5}))
    assert overlay.routers[0].statistics().malformed == 1
    overlay.update(handle, {"a": 2})
    everybody_gets_it(overlay, [(0, "a = 2"), (0, "a = 5")])


def test_while_news_flows_nothing_is_sent_twice() -> None:
    overlay = Overlay(3, Reference, heartbeat=1.0, check_wire=False)
    overlay.connect([(0, 1), (1, 2)])
    overlay.run(5)
    handles = [overlay.register(0, {"a": number}) for number in range(20)]
    overlay.run(20)
    before = [router.statistics().knowledge.resent for router in overlay.routers]
    for number in range(100):
        overlay.update(handles[number % 20], {"a": number})
        overlay.run(0.05)
    assert [router.statistics().knowledge.resent for router in overlay.routers] == before


def test_what_was_lost_is_found_although_other_news_never_ends() -> None:
    overlay = Overlay(2, Reference, heartbeat=1.0, check_wire=False)
    overlay.connect([(0, 1)])
    overlay.run(5)
    busy = overlay.register(1, {"b": 0})
    overlay.run(5)
    overlay.wires.loss = 1.0
    overlay.register(1, {"a": 1})
    overlay.run(2)
    overlay.wires.loss = 0.0
    for number in range(100):
        overlay.update(busy, {"b": number})
        overlay.run(0.3)
    event = overlay.publish(0, "a = 1")
    overlay.run(3)
    assert overlay.got(event) == overlay.expected(0, event)


def test_contexts_of_who_stays_away_are_forgotten_also_where_others_come_and_go() -> None:
    overlay = Overlay(4, lambda: Reference(RoutingSettings(unreachable=100.0)), heartbeat=1.0, check_wire=False)
    overlay.connect([(0, 1), (1, 3)])
    overlay.register(3, {"a": 1})
    overlay.run(20)
    overlay.connect([(0, 1)])  # router 3 is gone for good, and router 2 has never heard of it
    overlay.run(95)
    trees = cycle([[(0, 1), (1, 2)], [(0, 1)], [(1, 2)], [(0, 2)], [(0, 1), (0, 2)]])
    for edges in islice(trees, 15):
        overlay.connect(edges)
        overlay.run(47)
    assert [router.statistics().knowledge.entries for router in overlay.routers[:3]] == [0, 0, 0]


def test_what_cannot_be_said_to_others_is_refused_before_it_counts() -> None:
    class Colour:
        pass

    register_type(AttributeType("colour", Colour, lambda value: value))
    try:
        for knowledge in (Reference, Adaptive):
            overlay = pair(knowledge)
            with pytest.raises(InvalidInput):
                overlay.routers[0].register({"colour": Colour()})
            assert overlay.routers[0].statistics().local == 0
    finally:
        unregister_type("colour")


def test_a_message_to_another_time_is_refused() -> None:
    overlay = pair(Reference)
    with pytest.raises(InvalidEvent, match="another time"):
        overlay.routers[0].publish(Event("e", "news", 10, to="a = 1", when=TemporalPredicate("overlaps", 0, 20)))
