"""Wires between hosts: delays, losses, cuts that heal, and books in which nothing is missing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.links import RECEIVED, RECEIVER_DOWN, UNKNOWN_RECEIVER
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint, Sending
from nearcast.runtime.simulation.distributions import Constant, Normal, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.wired import CUT, LOST, Wire, WiredNetwork

NAMES = ("ada", "bob", "cleo", "dan")


class Text(Message, frozen=True, tag="text"):
    number: int


class Rig:
    def __init__(self, wire: Wire | None = None, *, seed: int = 1, check_wire: bool = False) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.drops: list[tuple[Any, ...]] = []
        self.got: list[tuple[int, str, str, int]] = []
        observers = Observers()
        observers.record("messages", lambda *row: self.rows.append(row))
        observers.record("drops", lambda *row: self.drops.append(row))
        self.simulation = Simulation(seed, observers=observers)
        self.network = WiredNetwork(self.simulation, wire, check_wire=check_wire)
        self.links = {name: self.network.attach(name, node) for node, name in enumerate(NAMES)}
        self.ports = {name: self.open(name) for name in NAMES}

    def open(self, name: str) -> Endpoint:
        def receive(sender: str, text: Text) -> None:
            self.got.append((self.simulation.now(), sender, name, text.number))

        self.links[name].switch(on=True)
        return self.links[name].open(7, receive, Text)

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def heard(self) -> list[int]:
        return [number for *_, number in self.got]


@pytest.mark.parametrize("check_wire", [False, True])
def test_a_message_takes_the_time_of_its_wire(check_wire: bool) -> None:
    rig = Rig(Wire(delay=Constant(0.25)), check_wire=check_wire)
    rig.network.lay("cleo", "ada", Wire(delay=Constant(0.5)))
    assert rig.ports["ada"].send("bob", Text(1)) is Sending.ACCEPTED
    assert rig.ports["ada"].send("cleo", Text(2)) is Sending.ACCEPTED
    assert rig.ports["cleo"].send("ada", Text(3)) is Sending.ACCEPTED
    assert rig.network.in_flight == 3
    rig.run(1)
    assert rig.got == [(250_000, "ada", "bob", 1), (500_000, "ada", "cleo", 2), (500_000, "cleo", "ada", 3)]
    assert rig.network.in_flight == 0


def test_one_message_overtakes_another_and_none_comes_twice() -> None:
    rig = Rig(Wire(delay=Uniform(0.0, 1.0)))
    for number in range(100):
        rig.ports["ada"].send("bob", Text(number))
    rig.run(2)
    assert sorted(rig.heard()) == list(range(100))
    assert rig.heard() != sorted(rig.heard())


def test_the_share_that_is_lost_is_that_of_the_wire_and_nobody_is_told() -> None:
    rig = Rig(Wire(loss=0.3))
    assert {rig.ports["ada"].send("bob", Text(number)) for number in range(2_000)} == {Sending.ACCEPTED}
    rig.run(1)
    # Four deviations of a binomial distribution.
    assert abs(len(rig.got) - 1_400) < 4 * (2_000 * 0.3 * 0.7) ** 0.5
    assert rig.network.statistics().lost == {LOST: 2_000 - len(rig.got)}


def test_a_cut_parts_two_sets_of_hosts_until_it_heals() -> None:
    rig = Rig(Wire(delay=Constant(0.1)))
    cut = rig.network.cut(["ada", "bob"], ["cleo"])
    for number, (sender, receiver) in enumerate(
        [("ada", "cleo"), ("cleo", "bob"), ("ada", "bob"), ("ada", "dan"), ("dan", "cleo")]
    ):
        rig.ports[sender].send(receiver, Text(number))
    rig.run(1)
    assert rig.heard() == [2, 3, 4]
    assert rig.network.statistics().lost == {CUT: 2}
    cut.heal()
    cut.heal()
    rig.ports["ada"].send("cleo", Text(5))
    rig.run(1)
    assert rig.heard() == [2, 3, 4, 5]


def test_a_partition_parts_some_from_everybody_else() -> None:
    rig = Rig()
    rig.network.cut(["ada", "bob"])
    for number, (sender, receiver) in enumerate([("ada", "bob"), ("cleo", "dan"), ("ada", "dan"), ("cleo", "bob")]):
        rig.ports[sender].send(receiver, Text(number))
    rig.run(1)
    assert sorted(rig.heard()) == [0, 1]


def test_what_is_on_its_way_is_lost_if_it_would_arrive_during_the_cut() -> None:
    rig = Rig(Wire(delay=Constant(0.5)))
    rig.ports["ada"].send("bob", Text(1))
    rig.run(0.25)
    cut = rig.network.cut(["ada"], ["bob"])
    rig.run(0.5)
    rig.ports["ada"].send("bob", Text(2))
    cut.heal()
    rig.run(1)
    assert rig.heard() == []
    assert [row[7] for row in rig.rows] == [CUT, CUT]


def test_a_cut_does_not_change_how_long_later_messages_take() -> None:
    def times(cut: bool) -> list[int]:
        rig = Rig(Wire(delay=Uniform(0, 1)))
        parted = rig.network.cut(["ada"], ["bob"]) if cut else None
        rig.ports["ada"].send("bob", Text(1))
        if parted:
            parted.heal()
        for number in range(2, 6):
            rig.ports["ada"].send("cleo", Text(number))
        rig.run(2)
        return [time for time, _, receiver, _ in rig.got if receiver == "cleo"]

    assert times(cut=True) == times(cut=False)


def test_nobody_of_that_name_and_nobody_at_home() -> None:
    rig = Rig()
    assert rig.ports["ada"].send("nobody", Text(1)) is Sending.DROPPED
    rig.links["bob"].switch(on=False)
    assert rig.ports["ada"].send("bob", Text(2)) is Sending.ACCEPTED
    rig.run(1)
    assert [row[7] for row in rig.rows] == [UNKNOWN_RECEIVER, RECEIVER_DOWN]
    assert rig.network.statistics().sent == 1
    assert rig.network.statistics().lost == {RECEIVER_DOWN: 1}


def test_wires_have_no_broadcast() -> None:
    with pytest.raises(InvalidInput, match="wired reaches hosts by address only"):
        Rig().ports["ada"].broadcast(Text(1))


@pytest.mark.parametrize("wrong", [{"delay": Normal(0.1, 0.1)}, {"loss": -0.1}, {"loss": 1.1}, {"loss": float("nan")}])
def test_wires_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Wire(**wrong)


DEEDS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(NAMES), st.sampled_from((*NAMES, "nobody"))),
    st.tuples(st.just("wait"), st.floats(0, 0.4), st.none()),
    st.tuples(st.just("cut"), st.sets(st.sampled_from(NAMES)), st.none() | st.sets(st.sampled_from(NAMES))),
    st.tuples(st.just("heal"), st.integers(0, 3), st.none()),
    st.tuples(st.just("switch"), st.sampled_from(NAMES), st.booleans()),
)


@given(st.lists(DEEDS, max_size=60), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 3))
def test_every_message_is_received_lost_or_on_its_way_and_has_one_row(
    deeds: list[tuple[Any, ...]], loss: float, seed: int
) -> None:
    rig = Rig(Wire(delay=Uniform(0, 0.5), loss=loss), seed=seed)
    cuts, handed, number = [], 0, 0

    def balanced() -> None:
        statistics = rig.network.statistics()
        assert statistics.sent == statistics.received + sum(statistics.lost.values()) + statistics.in_flight
        assert statistics.received == len(rig.got)
        assert len(rig.rows) == handed - statistics.in_flight

    for deed, one, other in deeds:
        if deed == "send":
            number, handed = number + 1, handed + 1
            rig.ports[one].send(other, Text(number))
        elif deed == "wait":
            rig.run(one)
        elif deed == "cut":
            cuts.append(rig.network.cut(one, other))
        elif deed == "heal":
            if one < len(cuts):
                cuts[one].heal()
        elif other != rig.links[one].up:
            if other:
                rig.ports[one] = rig.open(one)
            else:
                rig.links[one].switch(on=False)
        balanced()
    rig.run(1)
    balanced()
    assert rig.network.in_flight == 0
    assert len(set(rig.heard())) == len(rig.got)
    outcomes = Counter(row[7] for row in rig.rows)
    assert outcomes[RECEIVED] == len(rig.got)
    assert Counter(row[4] for row in rig.drops) == outcomes - Counter({RECEIVED: outcomes[RECEIVED]})
