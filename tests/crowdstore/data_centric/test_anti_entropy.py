"""Members of a cell that have missed something come to have the same; as long as they have, that costs next to nothing."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.samples import gone, indexed, kept, metadata, part
from tests.crowdstore.data_centric.venue import JOINED, dcs, in_cell, storage
from tests.effort import examples

from nearcast.crowdstore.data_centric.entries import Entry, Gone
from nearcast.crowdstore.data_centric.messages import MOST, Lack, Listing, Sums
from nearcast.crowdstore.data_centric.state import BUCKETS
from nearcast.crowdstore.objects import Publication

MEMBERS = 4
FAR = (5_000.0, 5_000.0)


def _cell(**parameters: float | bool) -> Crowd:
    """All in one cell."""
    crowd = Crowd([in_cell(0, 0, number) for number in range(MEMBERS)], dcs(1, 1, **parameters))
    crowd.run(JOINED)
    return crowd


def _states(crowd: Crowd) -> list[dict[tuple[str, ...], Entry]]:
    return [storage(crowd, name).desk.state.entries for name in crowd.stores]


def _kinds(crowd: Crowd, *kinds: str) -> tuple[int, int]:
    """Messages and bytes of these kinds, inside packets or not."""
    sent = [link.books.get(("sent", kind), (0, 0)) for link in crowd.network.links.values() for kind in kinds]
    return sum(messages for messages, _ in sent), sum(size for _, size in sent)


def _entries(now: int, random: Random, count: int) -> list[Entry]:
    found: list[Entry] = []
    for _ in range(count):
        name = f"{random.randrange(count)}"
        some: list[Entry] = [
            indexed("x", name, ("a", "b"), {random.choice("ab")}),
            part("y", name, 0, "a", version=random.randrange(9)),
            gone("x", name, False, now - random.randrange(1_000_000)),
            gone("y", name, True, now - random.randrange(1_000_000)),
        ]
        found.append(random.choice(some))
    return found


@examples(8)
@given(st.integers(1, 120), st.randoms(use_true_random=False))
def test_members_that_have_missed_anything_come_to_have_the_same(count: int, random: Random) -> None:
    crowd = _cell()
    now = crowd.simulation.now()
    together = _cell()  # where all of them hear everything
    for entry in _entries(now, random, count):
        for name in together.stores:
            storage(together, name).desk.state.put(entry, now)
        for name in random.sample(list(crowd.stores), random.randint(1, MEMBERS)):
            storage(crowd, name).desk.state.put(entry, now)
    crowd.run(60)
    assert all(state == _states(together)[0] for state in _states(crowd))


def test_as_long_as_all_have_the_same_it_costs_one_small_broadcast_for_each_period() -> None:
    crowd = _cell(period=10.0)
    for number in range(30):
        crowd.publish("n1", f"{number}", "t")
        crowd.subscribe("n2", "t")
    crowd.run(30)
    before = _kinds(crowd, "crowd-told", "crowd-route")
    differences = sum(storage(crowd, name).statistics().differences for name in crowd.stores)
    crowd.run(300)
    messages, size = (
        after - then for after, then in zip(_kinds(crowd, "crowd-told", "crowd-route"), before, strict=True)
    )
    assert 29 <= messages <= 31
    assert size <= 80 * messages
    assert sum(storage(crowd, name).statistics().differences for name in crowd.stores) == differences


def test_who_was_out_of_reach_learns_what_it_has_missed_and_forgets_what_was_withdrawn() -> None:
    crowd = _cell()
    crowd.publish("n0", "early", "t")
    crowd.run(5)
    silenced = storage(crowd, "n3")
    silenced_arrived = silenced.arrived
    silenced.arrived = lambda *_: None  # type: ignore[method-assign]
    crowd.unpublish("n0", "early")
    late = crowd.publish("n1", "late", "t")
    key = crowd.subscribe("n2", "t")
    crowd.run(5)
    assert ("i", "n0", "early") in _states(crowd)[3]
    silenced.arrived = silenced_arrived  # type: ignore[method-assign]
    crowd.run(40)
    assert all(state == _states(crowd)[0] for state in _states(crowd))
    assert ("i", "n0", "early") not in _states(crowd)[3]
    assert ("p", key.owner, key.name, "0") in _states(crowd)[3]
    # The objects, too.
    assert late.key in crowd.stores["n3"].nucleus.held
    assert not [each for each in crowd.stores["n3"].nucleus.held if each.name == "early"]


def test_one_half_withdraws_what_the_other_half_takes() -> None:
    crowd = _cell()
    now = crowd.simulation.now()
    for number, name in enumerate(crowd.stores):
        there = storage(crowd, name)._keeping
        there.take(indexed("x", "o", ("t",), {"t"}) if number % 2 else gone("x", "o", False, now))
        there.take(part("y", "s", 0, "t") if number % 2 == 0 else gone("y", "s", True, now))
    crowd.run(40)
    assert all(set(state) == {("g", "o", "x", "o"), ("g", "s", "y", "s")} for state in _states(crowd))


def test_a_cell_in_two_parts_comes_together() -> None:
    """n2 and n3 are out of everybody's reach for a while, but not of each other's, and believe to be in the same cell."""
    crowd = _cell()
    for node in (2, 3):
        crowd.world.motion.put(node, -3_000.0, 10.0 + node)  # west of the area: the nearest cell is the same
    crowd.run(20)
    crowd.publish("n0", "here", "t")
    crowd.publish("n2", "there", "t")
    crowd.subscribe("n3", "t")
    crowd.run(20)
    assert len(crowd.heard.notified) == 1
    for node in (2, 3):
        crowd.world.motion.put(node, *in_cell(0, 0, node))
    crowd.run(60)
    assert all(state == _states(crowd)[0] for state in _states(crowd))
    # What matches has been told when they had come together.
    assert {*crowd.heard.notified} == crowd.expected()


def test_without_it_members_go_on_to_differ() -> None:
    crowd = _cell(anti_entropy=False)
    storage(crowd, "n0").desk.state.put(indexed("x", "o", ("t",), {"t"}), crowd.simulation.now())
    crowd.run(60)
    assert [len(state) for state in _states(crowd)] == [1, 0, 0, 0]


def test_more_than_one_message_can_list_comes_in_several_rounds() -> None:
    crowd = _cell()
    now = crowd.simulation.now()
    count = MOST + MOST // 2
    for number in range(count):
        storage(crowd, "n1").desk.state.put(gone("x", f"{number}", False, now), now)
    crowd.run(80)
    assert [len(state) for state in _states(crowd)] == [count] * MEMBERS


def test_words_that_do_not_fit_together_are_no_words() -> None:
    crowd = _cell()
    there = storage(crowd, "n0")
    sent = there.desk.router.statistics().tally.sent
    for message in (
        Sums(()),
        Sums((1,) * (BUCKETS + 1)),
        Listing((BUCKETS,), (), ()),
        Listing((0,), (1, 2), (3,)),
        Lack((1, 2, 3)),
    ):
        there._anti_entropy.receive("n1", message)
    crowd.run(1)
    assert there.desk.router.statistics().tally.sent == sent


def test_of_what_a_member_is_told_twice_it_has_one_copy_and_asks_for_none_that_was_withdrawn() -> None:
    crowd = _cell()
    there = storage(crowd, "n1")
    now = crowd.simulation.now()
    made = metadata("x", "o", ("t",))
    crowd.stores["n0"].nucleus.held[made.key] = Publication(made, b"c")
    there._keeping.absorb([gone("x", "o", False, now), kept("x", "o", ("t",))])
    crowd.run(20)
    assert made.key not in crowd.stores["n1"].nucleus.held
    assert isinstance(there.desk.state.entries["g", "o", "x", "o"], Gone)
