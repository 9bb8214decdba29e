"""Routers join, fail, leave, return, are cut off and find together again; once it is quiet, all have the same tree."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.child import run_python
from tests.overlay.routers import Listener, Routers

from nearcast.errors import InvalidInput
from nearcast.overlay.topology.given import given_topology
from nearcast.overlay.topology.link_state import LinkState
from nearcast.overlay.topology.messages import Agree, Heartbeat, Offer, Part, Propose, Refuse, Search, States
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.wired import Wire

CONTACTS = ("r00", "r01")


def spread(count: int, seed: int = 5, size: float = 10_000.0) -> list[tuple[float, float]]:
    random = Random(seed)
    return [(random.uniform(0, size), random.uniform(0, size)) for _ in range(count)]


def test_the_first_router_is_a_tree_by_itself() -> None:
    routers = Routers(spread(1), TopologySettings())
    routers.join()
    routers.run(1)
    routers.check()
    assert routers.listeners["r00"].told == [("tree", format(routers.topology("r00").tree.identity, "x"))]


def test_a_newcomer_links_with_those_around_it() -> None:
    # Six in one town, six in another, 200 km away.
    towns = [(x, y) for x in (0.0, 200_000.0) for y in range(0, 6_000, 1_000)]
    routers = Routers([*towns, (200_500.0, 2_500.0)])
    for name in routers.names:
        routers.join([name])
        routers.run(12)
    routers.check()
    assert set(routers.topology("r12").links) <= set(routers.names[6:])
    assert len(routers.topology("r12").links) >= 3


def test_a_ring_grows_until_enough_answer() -> None:
    """The only other routers are 100 km away: 1 km, 4 km, 16 km and 64 km are not enough."""
    routers = Routers([(0.0, 0.0), (100.0, 0.0), (100_000.0, 0.0)])
    routers.join(["r00", "r01"])
    routers.settle(60)
    routers.join(["r02"])
    routers.settle(60)
    sent = [row.messages for row in routers.network.traffic() if (row.host, row.kind) == ("r02", "search")]
    assert sent == [5]
    assert set(routers.topology("r02").links) == {"r00", "r01"}


@pytest.mark.parametrize(("most", "count"), [(2, 9), (3, 16)])
def test_where_all_slots_are_taken_a_link_that_no_tree_needs_is_given_up(most: int, count: int) -> None:
    settings = TopologySettings(contacts=CONTACTS, most_links=most, wanted_links=most)
    routers = Routers(spread(count), settings)
    for name in routers.names:
        routers.join([name])
        routers.settle(120)
        routers.check()
    routers.run(30)
    routers.check()
    full = [name for name in routers.names if len(routers.topology(name).links) == most]
    assert len(full) >= count - most  # saturated, and still everybody got in


def test_all_join_at_once_and_nobody_has_too_many_links() -> None:
    routers = Routers(spread(40), wire=Wire(delay=Uniform(0.0, 0.3)))
    routers.join()
    for _ in range(600):
        routers.run(0.05)
        for name in routers.names:
            routers.check_degree(name)
    routers.check()
    assert all(len(routers.topology(name).links) >= 3 for name in routers.names)


def test_neighbours_in_the_tree_exchange_news_with_their_heartbeats() -> None:
    routers = Routers(spread(10))
    routers.join()
    routers.settle(60)
    routers.run(3)
    for name in routers.names:
        listener = routers.listeners[name]
        assert listener.greeted == dict.fromkeys(routers.topology(name).tree.neighbours, f"to {name}".encode())


def meshed(count: int, **changes: Any) -> Routers:
    """A topology with redundancy, given from the start: each router linked with the next three."""
    delay = 0.05
    routers = Routers(spread(count), TopologySettings(contacts=CONTACTS, **changes), Wire(delay=Uniform(0.01, delay)))
    links = [(name, routers.names[(at + step) % count]) for at, name in enumerate(routers.names) for step in (1, 2, 3)]
    given = given_topology(routers.places, links)
    return Routers(spread(count), routers.settings, Wire(delay=Uniform(0.01, delay)), given=given)


def test_only_one_routes_along_the_tree() -> None:
    routers = Routers(spread(1))
    routers.join()
    with pytest.raises(InvalidInput, match="somebody listens already"):
        Listener(routers.topology("r00"))


def test_a_given_topology_is_there_at_once_without_a_message() -> None:
    routers = meshed(30)
    routers.join()
    routers.simulation.run(1)
    routers.check()
    assert routers.network.statistics().sent == 0
    assert {listener.topology.epoch for listener in routers.listeners.values()} == {1}


def test_a_router_must_be_where_it_was_given() -> None:
    routers = Routers(spread(2))
    given = given_topology(dict.fromkeys(routers.names, routers.places["r01"]), [])
    with pytest.raises(InvalidInput, match="not where the given topology has it"):
        Routers(spread(2), given=given).join()


@pytest.mark.parametrize("killed", ["r00", "r07", "r19"])
def test_a_failure_is_repaired_within_the_stated_time(killed: str) -> None:
    routers = meshed(20)
    routers.join()
    routers.run(10)
    routers.world.hosts[killed].fail()
    # Without it each of the others still reaches the next one, or the one after that: 10 hops at the most, both ways round.
    routers.run(routers.settings.repaired_within(0.05, 10))
    routers.check()


def test_whoever_leaves_in_good_order_is_not_waited_for() -> None:
    routers = meshed(20)
    routers.join()
    routers.run(10)
    routers.world.hosts["r07"].leave()
    routers.run(1)
    routers.check()


def test_a_router_that_returns_at_once_is_a_new_one_to_its_neighbours() -> None:
    routers = meshed(20)
    routers.join()
    routers.run(10)
    neighbours = sorted(routers.topology("r07").tree.neighbours)
    before = {name: len(routers.listeners[name].told) for name in neighbours}
    lives = routers.topology("r07").tree.identity
    routers.world.hosts["r07"].fail()
    routers.join(["r07"])
    routers.settle(60)
    routers.run(5)
    routers.check()
    assert routers.topology("r00").tree.identity != lives
    for name in neighbours:
        assert ("left", "r07") in routers.listeners[name].told[before[name] :]


def test_a_partition_heals_and_each_side_has_its_own_tree_meanwhile() -> None:
    routers = meshed(20)
    routers.join()
    routers.run(5)
    cut = routers.network.cut(routers.names[:10])
    routers.run(60)
    trees = routers.trees()
    sides = {trees[name].routers for name in routers.names[:10]}, {trees[name].routers for name in routers.names[10:]}
    assert sides == ({tuple(routers.names[:10])}, {tuple(routers.names[10:])})
    cut.heal()
    routers.settle(60)
    routers.run(5)
    routers.check()


def test_whoever_is_gone_is_forgotten_in_the_end_and_no_longer_looked_for() -> None:
    routers = meshed(8, forgotten_after=20.0)
    routers.join()
    routers.run(2)
    routers.world.hosts["r05"].fail()
    routers.run(60)
    before = [routers.topology(name).statistics().searches for name in routers.up]
    routers.run(60)
    assert [routers.topology(name).statistics().searches for name in routers.up] == before
    routers.join(["r05"])
    routers.settle(60)


class Puppet(Component):
    """A host that says whatever it is told to."""

    def start(self, host: Host) -> None:
        self.heard: list[tuple[str, Message]] = []
        self.endpoint = host.link("wired").open(
            30, lambda sender, message: self.heard.append((sender, message)),
            States, Propose, Agree, Refuse, Part, Heartbeat, Search, Offer,
        )  # fmt: skip


def with_puppet(count: int = 6) -> tuple[Routers, Puppet]:
    routers = Routers([*spread(count), (0.0, 0.0)])
    host = routers.world.hosts[routers.names.pop()]
    puppet = Puppet()
    host._build = lambda: [puppet]  # type: ignore[misc]
    routers.join()
    host.join()
    routers.settle(60)
    routers.run(10)
    return routers, puppet


def test_a_late_and_old_link_state_changes_nothing_and_is_answered() -> None:
    routers, puppet = with_puppet()
    routers.world.hosts["r03"].leave()
    routers.rest(100)
    before = routers.topology("r00").statistics().stale
    trees = {name: tree.identity for name, tree in routers.trees().items()}
    old = LinkState("r03", 0, 1, (48.0, 9.0), tuple((name, 1) for name in ("r00", "r01", "r02")))
    puppet.endpoint.send("r00", States((old,)))
    routers.run(3)
    assert {name: tree.identity for name, tree in routers.trees().items()} == trees
    assert routers.topology("r00").statistics().stale == before + 1
    answers = [message for sender, message in puppet.heard if sender == "r00" and isinstance(message, States)]
    assert [state.links for answer in answers for state in answer.states] == [()]


def test_a_router_that_hears_lies_about_itself_says_more() -> None:
    """Its clock was ahead in an earlier life, and everybody remembers."""
    routers, puppet = with_puppet()
    lie = LinkState("r02", 0, routers.simulation.now() + 10**10, (48.0, 9.0), ())
    puppet.endpoint.send("r04", States((lie,)))
    routers.run(2)
    routers.check()
    said = routers.topology("r00")._flooding.states.get("r02")
    assert said is not None
    assert said.number > lie.number
    assert said.links


@pytest.mark.parametrize("number", [2**62 - 1, 2**62, 2**63 - 1])
def test_a_number_that_leaves_no_room_above_it_is_not_believed(number: int) -> None:
    """Otherwise its router could never again say more, and would be silenced for ever."""
    routers, puppet = with_puppet()
    trees = {name: tree.identity for name, tree in routers.trees().items()}
    for name in ("r02", "r04"):
        puppet.endpoint.send(name, States((LinkState("r02", 0, number, (48.0, 9.0), ()),)))
    routers.run(2)
    assert {name: tree.identity for name, tree in routers.trees().items()} == trees
    routers.world.hosts["r03"].leave()
    routers.rest(100)
    routers.check()
    assert [routers.topology(name).statistics().malformed for name in ("r02", "r04")] == [1, 1]


def test_malformed_messages_are_counted_and_change_nothing() -> None:
    routers, puppet = with_puppet()
    trees = {name: tree.identity for name, tree in routers.trees().items()}
    send = puppet.endpoint.send
    send("r00", States((LinkState("x", 0, 0, (99.0, 0.0), ()), LinkState("y", 0, 2**63, (0.0, 0.0), ()))))
    send("r00", Search("r06", 1, (99.0, 0.0), 1.0, relayed=False))
    send("r00", Propose(0, (0.0, 999.0), insist=False))
    routers.run(3)
    assert routers.topology("r00").statistics().malformed == 4
    assert {name: tree.identity for name, tree in routers.trees().items()} == trees
    routers.check()


def test_who_believes_in_a_link_that_the_other_does_not_know_is_told() -> None:
    routers, puppet = with_puppet()
    puppet.endpoint.send("r00", Heartbeat(0, bytes(16), b""))
    puppet.endpoint.send("r01", Agree(0, (0.0, 0.0)))
    routers.run(1)
    assert sorted(sender for sender, message in puppet.heard if isinstance(message, Part)) == ["r00", "r01"]


def test_a_neighbour_that_never_beats_is_given_up() -> None:
    routers, puppet = with_puppet()
    puppet.endpoint.send("r00", Propose(0, (48.0, 9.0), insist=True))
    routers.run(1)
    assert "r06" in routers.topology("r00").links
    routers.run(5)
    assert "r06" not in routers.topology("r00").links
    assert routers.topology("r00").statistics().lost_neighbours == 1
    routers.check()


@pytest.mark.parametrize(
    "wrong",
    [
        {"most_links": 1, "wanted_links": 1},
        {"most_links": 3, "wanted_links": 4},
        {"wanted_links": 0},
        {"heartbeat": 4.0},
        {"heartbeat": 0.0},
        {"growth": 1.0},
        {"settle": 0.0},
        {"first_radius": float("inf")},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        TopologySettings(**wrong)


def run_recorded(seed: int, *, check_wire: bool = False) -> str:
    """A digest of every message and every tree of a small, troubled overlay."""
    digest = hashlib.sha256()
    observers = Observers()
    observers.record("messages", lambda *row: digest.update(repr(row).encode()))
    routers = Routers(spread(12), wire=Wire(loss=0.05), seed=seed, observers=observers, check_wire=check_wire)
    routers.join()
    routers.run(15)
    routers.world.hosts["r03"].fail()
    cut = routers.network.cut(routers.names[:4])
    routers.run(10)
    cut.heal()
    routers.join(["r03"])
    routers.run(15)
    for name in routers.names:
        digest.update(repr(routers.listeners[name].told).encode())
    return digest.hexdigest()


def test_the_same_seed_is_the_same_run_also_through_the_encoder() -> None:
    assert run_recorded(1) == run_recorded(1) == run_recorded(1, check_wire=True)
    assert run_recorded(1) != run_recorded(2)


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    program = "from tests.overlay.test_topology import run_recorded; print(run_recorded(1))"
    assert {run_python("-c", program, hash_seed=hash_seed).strip() for hash_seed in "12"} == {run_recorded(1)}


NUMBERS = st.integers(0, 8)
TROUBLE = st.lists(
    st.one_of(
        st.tuples(st.just("join"), NUMBERS),
        st.tuples(st.just("fail"), NUMBERS),
        st.tuples(st.just("leave"), NUMBERS),
        st.tuples(st.just("cut"), st.sets(NUMBERS, min_size=1, max_size=4)),
        st.tuples(st.just("part"), st.tuples(NUMBERS, NUMBERS)),
        st.tuples(st.just("heal"), st.integers(0, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0.02, 0.3, 1.0, 4.0, 15.0])),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(
    st.sampled_from([2, 5, 9]),
    TROUBLE,
    st.sampled_from([(2, 1), (3, 2), (6, 3)]),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 99),
)
def test_after_any_trouble_all_agree_on_one_tree(
    first: int, trouble: list[tuple[str, Any]], limits: tuple[int, int], loss: float, seed: int
) -> None:
    most, wanted = limits
    own = TopologySettings(contacts=CONTACTS, most_links=most, wanted_links=wanted)
    wire = Wire(delay=Uniform(0.0, 0.4), loss=loss)
    routers = Routers(spread(9, seed), own, wire, seed=seed)
    routers.join(routers.names[:first])
    routers.run(seed % 20)  # they have found together, or are about to
    cuts = []
    for what, whom in trouble:
        match what:
            case "join" | "fail" | "leave":
                getattr(routers.world.hosts[routers.names[whom]], what)()
            case "cut":
                cuts.append(routers.network.cut([routers.names[one] for one in whom]))
            case "part":
                cuts.append(routers.network.cut([routers.names[whom[0]]], [routers.names[whom[1]]]))
            case "heal" if whom < len(cuts):
                cuts[whom].heal()
            case "wait":
                for _ in range(max(1, round(whom / 0.5))):
                    routers.run(min(whom, 0.5))
                    for name in routers.up:
                        routers.check_degree(name)
    for cut in cuts:
        cut.heal()
    # Quiet: nothing is lost any more, and the contacts are there.
    for one in routers.names:
        for other in routers.names:
            routers.network.lay(one, other, Wire(delay=Uniform(0.0, 0.4)))
    routers.join(["r00", "r01"])
    routers.rest(900)
    routers.check()
