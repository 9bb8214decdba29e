"""Messages that wait while wires lose and trees change; and where composites know too little to let them wait."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.overlay.temporal.test_future import Life, tree
from tests.overlay.temporal.waiting import WaitingTown
from tests.overlay.temporal.worlds import inside

from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.temporal.settings import TemporalSettings

KNOWLEDGE = pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])


@KNOWLEDGE
@examples(5)
@given(seed=st.integers(0, 1_000_000))
def test_another_tree_leaves_nobody_out(knowledge: Callable[[], Knowledge], seed: int) -> None:
    random = Random(seed)
    size = 6
    town = WaitingTown(size, tree(random, size), TemporalSettings(settling=3.0), knowledge=knowledge, seed=seed)
    people = [town.person(f"p{number}") for number in range(3)]
    for person in people:
        person.register("me", {"role": "guest"})
    events = [town.message("overlaps", 0, 2_000, name=f"e{number}") for number in range(2)]
    for event in events:
        town.publish(random.randrange(size), event)
    for _ in range(3):
        town.run(random.choice([1.0, 12.0]))
        town.connect(tree(random, size))
        home = random.randrange(size)
        person = random.choice(people)
        person.contexts["me"] = {"role": random.choice(["guest", "staff"])}
        person.go(town.names[home], inside(home))
    town.run(60)
    for event in events:
        assert town.receivers(event) == town.expected(event)


@examples(6)
@given(seed=st.integers(0, 1_000_000), knowledge=st.sampled_from([Reference, Adaptive, Aggregated]))
def test_what_is_lost_between_routers_is_said_again(seed: int, knowledge: Callable[[], Knowledge]) -> None:
    """The predicate is one that more news cannot make false, so however late they come, all get it."""
    random = Random(seed)
    town = WaitingTown(5, tree(random, 5), TemporalSettings(settling=3.0), knowledge=knowledge, seed=seed)
    people = [town.person(f"p{number}") for number in range(3)]
    for person in people:
        person.register("me", {"role": "guest"})
    town.wires.loss = 0.2
    events = [town.message("overlaps", random.choice([-20, 0, 30]), 2_000, name=f"e{number}") for number in range(2)]
    for event in events:
        town.publish(random.randrange(5), event)
        town.run(5)
    for person in people:
        home = random.randrange(5)
        person.contexts["me"] = {"role": random.choice(["guest", "staff", "staff"])}
        person.go(town.names[home], inside(home))
        town.run(40)
    town.wires.loss = 0.0
    town.run(120)
    for event in events:
        assert town.receivers(event) == town.expected(event)


def test_with_composites_a_message_waits_only_where_one_covers_what_it_asks_for() -> None:
    """The document's rule (6.3.3): otherwise it goes on speculation, and counts as a false positive."""
    chain = [(0, 1), (1, 2), (2, 3)]
    town = WaitingTown(4, chain, TemporalSettings(settling=3.0), knowledge=Adaptive)
    town.run(10)
    town.publish(0, town.message("overlaps", 50, 1_000, name="nothing known"))
    town.run(1)
    assert town.holding("nothing known") == town.names
    last = town.routers["r003"].knowledge
    assert isinstance(last, Adaptive)
    assert [rate.count > 0 for rate in last._links["r002"].in_vain.values()] == [True]
    # Many messages for nobody make composites for their attributes grow.
    ada = town.person("ada")
    ada.register("me", {"role": "guest"})
    ada.go("r003", inside(3))
    for number in range(200):
        town.routers["r000"].publish(town.event("role = 'nobody'", name=f"in vain {number}"))
        town.run(0.3)
    first = town.routers["r000"].knowledge
    assert isinstance(first, Adaptive)
    assert frozenset({"role"}) in first.held("r001")
    town.publish(0, town.message("overlaps", 50, 1_000, name="known"))
    town.publish(0, town.message("overlaps", 50, 1_000, to="age > 3", name="not known"))
    town.run(5)
    assert town.holding("known") == ["r000"]
    assert town.holding("not known") == town.names
    # Nobody asks for that any more, so the composite goes, and the message with it.
    ada.register("me", {"role": "guest", "mood": 1})
    for number in range(200):
        ada.register("me", {"role": "guest" if number % 2 else "visitor"})
        town.run(1)
    assert not first.held("r001")
    assert town.holding("known") == town.names


def test_a_router_that_was_away_knows_nothing_and_is_told_again() -> None:
    town = WaitingTown(4, [(0, 1), (1, 2), (2, 3)], TemporalSettings(settling=3.0))
    ada = town.person("ada")
    ada.register("me", {"role": "staff"})
    ada.go("r003", inside(3))
    town.run(5)
    town.publish(0, town.message("overlaps", 300, 1_000))
    town.run(5)
    assert town.holding() == town.names
    # It lost everything: what it had is gone, and its neighbours hear that it joined.
    lost = town.futures["r002"]
    for held in lost._held.all():
        lost._held.remove(held)
    for neighbour in ("r001", "r003"):
        town.routers[neighbour].joined("r002")
    town.run(10)
    assert town.holding() == town.names


@KNOWLEDGE
def test_life_goes_on_without_wires_that_are_checked(knowledge: Callable[[], Knowledge]) -> None:
    """One long life for each, at least: with all predicates, many messages at once."""
    life = Life(7, knowledge, size=7)
    life.live(30, 25)
    life.check()


@pytest.mark.parametrize("relation", ["overlaps", "starts_in", "during"])
def test_a_trusted_node_that_was_out_of_reach_is_told_in_the_end(relation: str) -> None:
    town = WaitingTown(4, [(0, 1), (1, 2), (2, 3)], TemporalSettings(settling=3.0, lease=600.0), trusted=(3,))
    ada, bob = town.person("ada", trusted=3), town.person("bob", trusted=3)
    for person in (ada, bob):
        person.register("me", {"role": "staff"})
    bob.go("r001", inside(1))
    town.run(5)
    event = town.message(relation, 10, 300)
    town.publish(1, event)
    town.run(20)
    town.wires.cut = frozenset({"r003"})
    ada.go("r001", inside(1))
    town.run(60)
    if relation == "during":
        ada.go(None, None)
    town.run(140)
    town.wires.cut = frozenset()
    town.run(30)
    ada.go("r003", inside(3))
    town.run(400)
    assert town.receivers(event) == town.expected(event)
    assert "ada" in town.receivers(event)


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
def test_who_is_back_after_a_partition_is_found_by_routers_whose_neighbours_have_not_changed(
    knowledge: Callable[[], Knowledge],
) -> None:
    town = WaitingTown(4, [(0, 1), (1, 2), (0, 3)], TemporalSettings(settling=3.0), knowledge=knowledge)
    ada = town.person("ada", trusted=0)
    ada.register("me", {"role": "staff"})
    ada.go("r003", inside(3))
    town.run(10)
    town.connect([(0, 1), (1, 2)])
    town.run(10)
    event = town.message("overlaps", 0, 1_000)
    town.publish(1, event)
    town.run(10)
    assert ada.got == []
    town.connect([(0, 1), (1, 2), (2, 3)])
    town.run(30)
    assert ada.got == ["e"]


@pytest.mark.parametrize("knowledge", [Reference, Aggregated])
def test_who_was_there_for_a_moment_only_is_told_of_when_the_message_comes_too_late_for_him(
    knowledge: Callable[[], Knowledge],
) -> None:
    """He is gone before the message that he drew there has arrived."""
    town = WaitingTown(
        6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], TemporalSettings(settling=3.0), longest=30_000, knowledge=knowledge
    )
    ada = town.person("ada")
    ada.register("me", {"role": "staff"})
    town.run(5)
    event = town.message("overlaps", 0, 1_000)
    town.publish(0, event)
    town.run(5)
    ada.go("r005", inside(5))
    town.run(0.08)
    ada.go(None, None)
    assert town.holding() == ["r000"]
    town.run(10)
    assert town.holding() == town.names
    ada.contexts["me"] = {"role": "guest"}
    ada.go("r000", inside(0))
    town.run(30)
    assert (ada.got, town.expected(event)) == (["e"], ["ada"])
