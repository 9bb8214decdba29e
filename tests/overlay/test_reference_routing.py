"""The reference: everybody it is for, nobody else, and no way in vain (Def. 3.7, 3.8)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS
from tests.overlay.routing_changes import changed, changes, edges_of, messages
from tests.overlay.routing_worlds import Overlay

from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.overlay.routing.messages import entry_of
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.settings import RoutingSettings

CITY = WORLDS[2]


def perfect(overlay: Overlay, sender: int, predicate: object) -> None:
    event = overlay.publish(sender, predicate)  # type: ignore[arg-type]
    overlay.run(30)
    assert overlay.got(event) == overlay.expected(sender, event)
    copies = overlay.copies(event)
    assert set(copies.values()) <= {1}
    assert frozenset(copies) == overlay.reached(sender, event)


@given(st.data(), st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=40)
def test_after_quiescence_messages_reach_exactly_whom_they_are_for(data: st.DataObject, size: int, seed: int) -> None:
    overlay = Overlay(size, Reference, seed=seed)
    overlay.connect(data.draw(edges_of(size)))
    for change in data.draw(st.lists(changes(size, CITY), max_size=12)):
        changed(overlay, change)
    overlay.run(60)
    for sender, predicate in data.draw(messages(size, CITY)):
        perfect(overlay, sender, predicate)


@given(st.data(), st.integers(2, 6), st.integers(0, 2**32))
@settings(max_examples=25)
def test_what_wires_lose_is_told_again(data: st.DataObject, size: int, seed: int) -> None:
    overlay = Overlay(size, Reference, seed=seed)
    overlay.connect(data.draw(edges_of(size)))
    overlay.wires.loss = 0.4
    for change in data.draw(st.lists(changes(size, CITY), min_size=3, max_size=12)):
        changed(overlay, change)
    overlay.run(20)
    overlay.wires.loss = 0.0
    overlay.run(120)
    for sender, predicate in data.draw(messages(size, CITY)):
        perfect(overlay, sender, predicate)


def chain(size: int, reference: RoutingSettings | None = None) -> Overlay:
    overlay = Overlay(size, lambda: Reference(reference))
    overlay.connect((number, number + 1) for number in range(size - 1))
    return overlay


def test_only_what_has_not_reached_the_way_of_a_message_is_missed() -> None:
    overlay = chain(5)
    overlay.wires.longest = 1
    overlay.register(4, {"speed": 5})
    early = overlay.publish(0, "speed = 5")
    overlay.run(1e-6 * 3)
    midway = overlay.publish(2, "speed = 5")  # the context has come as far as this
    overlay.run(10)
    assert (overlay.got(early), len(overlay.got(midway))) == ([], 1)
    late = overlay.publish(0, "speed = 5")
    overlay.run(10)
    assert len(overlay.got(late)) == 1


def test_updates_cost_one_message_for_each_link_of_the_tree() -> None:
    overlay = chain(7)
    overlay.run(20)
    handle = overlay.register(3, {"speed": 5})
    overlay.run(20)
    overlay.update(handle, {"speed": 6})
    overlay.run(20)
    overlay.update(handle, {"speed": 6})  # nothing new
    overlay.run(20)
    assert sum(router.statistics().knowledge.updates_sent for router in overlay.routers) == 2 * 6


def test_a_late_registration_does_not_bring_back_what_was_removed() -> None:
    overlay = chain(2)
    handle = overlay.register(0, {"speed": 5})
    overlay.run(10)
    overlay.remove(handle)
    overlay.run(10)
    late = entry_of(handle, 1, overlay.names[0], {"speed": 5})
    overlay.routers[1].knowledge.heard(overlay.names[0], late)
    assert overlay.routers[1].statistics().knowledge.entries == 0


def test_who_removed_a_context_removes_it_again_when_the_removal_is_forgotten() -> None:
    overlay = chain(3, RoutingSettings(tombstone=10.0))
    handle = overlay.register(0, {"speed": 5})
    overlay.run(10)
    old = overlay.routers[0].knowledge._known.get(handle)  # type: ignore[attr-defined]
    overlay.remove(handle)
    overlay.run(60)
    overlay.register(0, {"speed": 6})  # looks after what is old
    overlay.routers[2].knowledge.heard(overlay.names[1], old)
    overlay.run(60)
    assert [router.statistics().knowledge.entries for router in overlay.routers] == [1, 1, 1]
    perfect(overlay, 2, "speed = 5")


def test_contexts_out_of_reach_do_not_count_and_count_again_when_the_partition_heals() -> None:
    overlay = chain(4)
    overlay.register(3, {"speed": 5})
    overlay.run(20)
    overlay.connect([(0, 1), (2, 3)])
    overlay.run(20)
    perfect(overlay, 0, "speed = 5")
    overlay.connect([(0, 1), (1, 3), (2, 3)])
    overlay.run(20)
    perfect(overlay, 0, "speed = 5")


def test_contexts_of_a_router_that_stays_away_are_forgotten() -> None:
    overlay = chain(2, RoutingSettings(unreachable=100.0))
    overlay.register(1, {"speed": 5})
    overlay.run(20)
    overlay.connect([])
    overlay.run(300)
    assert overlay.routers[0].statistics().knowledge.entries == 0


def test_the_same_seed_is_the_same_run() -> None:
    def run() -> list[object]:
        overlay = Overlay(6, Reference, seed=7)
        overlay.connect([(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)])
        for number in range(20):
            overlay.register(number % 6, {"speed": number})
        overlay.publish(0, "speed > 3")
        overlay.run(30)
        return [*(router.statistics() for router in overlay.routers), list(overlay.wires.copies)]

    assert run() == run()


def test_a_reach_is_part_of_whom_a_message_is_for() -> None:
    """Who stands elsewhere neither gets it nor draws it there; who says nothing of his place stands nowhere."""
    overlay = Overlay(3, Reference)
    overlay.connect([(0, 1), (1, 2)])
    inside, outside = Point(49.5, 8.5), Point(48.5, 8.5)
    near = overlay.register(1, {"a": 1, "position": inside})
    overlay.register(2, {"a": 1, "position": outside})
    overlay.register(2, {"a": 1})
    overlay.run(10)
    event = Event("e", "news", 0, to="a = 1", reach=Box(8.0, 49.0, 9.0, 50.0))
    overlay.delivered["e"] = []
    overlay.routers[0].publish(event)
    overlay.run(10)
    assert overlay.got(event) == [near]
    assert overlay.copies(event) == {"r001": 1}
