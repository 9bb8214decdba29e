"""Hosts on the radio: messages, back-pressure, stations that go, and books that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint, Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.radio.layout import KNOWN
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import wifi_b
from nearcast.runtime.simulation.world import World


class Note(Message, frozen=True, tag="note", dict=True):
    text: str


class Listener(Component):
    def __init__(self) -> None:
        self.heard: list[tuple[int, str, str]] = []
        self.endpoint: Endpoint
        self.host: Host

    def start(self, host: Host) -> None:
        self.host = host
        self.endpoint = host.link("wifi").open(1, self._receive, Note)

    def _receive(self, sender: str, message: Note) -> None:
        self.heard.append((self.host.now(), sender, message.text))


class Told(list[Any]):
    """Says who hears something."""

    def __init__(self, told: list[str], name: str) -> None:
        super().__init__()
        self.told = told
        self.name = name

    def append(self, heard: Any) -> None:
        super().append(heard)
        self.told.append(self.name)


class Street:
    """Hosts a, b, c ... in a row."""

    def __init__(self, *places: float, **profile: Any) -> None:
        self.rows: list[tuple[Any, ...]] = []
        observers = Observers()
        observers.record("messages", lambda *row: self.rows.append(row))
        self.simulation = Simulation(5, start=1_000_000_000_000_000, observers=observers)
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), len(places) + 1)
        self.radio = RadioNetwork(self.simulation, wifi_b(**profile), self.world.motion)
        self.listeners: dict[str, Listener] = {}
        for node, place in enumerate(places):
            name = "abcdefgh"[node]
            self.listeners[name] = Listener()
            self.world.add(name, lambda name=name: [self.listeners[name]], [self.radio])  # type: ignore[misc]
            self.world.motion.put(node, place, 0.0)
            self.world.hosts[name].join()

    def send(self, sender: str, to: str | None, text: str = "x") -> Sending:
        endpoint = self.listeners[sender].endpoint
        return endpoint.broadcast(Note(text)) if to is None else endpoint.send(to, Note(text))

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * 1e6))

    def outcomes(self) -> list[tuple[str, str | None, str, int]]:
        return [(row[4], row[5], row[7], row[8]) for row in self.rows]


def test_a_broadcast_is_heard_by_those_in_range_at_the_end_of_its_airtime() -> None:
    street = Street(0.0, 80.0, 87.0, 89.0, 400.0)
    street.send("a", None, "hello")
    street.after(1.0)
    heard = {name: [text for _, _, text in listener.heard] for name, listener in street.listeners.items()}
    assert heard == {"a": [], "b": ["hello"], "c": ["hello"], "d": [], "e": []}
    profile = street.radio.profile
    [(time, sender, _)] = street.listeners["b"].heard
    row = street.rows[0]
    airtime = (profile.difs_ns + profile.airtime_ns(row[6], profile.basic_rate)) // 1_000
    assert (sender, time - street.simulation.start) == ("a", airtime)
    assert street.outcomes() == [("a", None, "sent", 2)]


def test_a_message_to_one_is_acknowledged_or_given_up() -> None:
    street = Street(0.0, 50.0, 400.0, retry_limit=3)
    assert street.send("a", "b") is Sending.ACCEPTED
    street.after(0.1)
    street.send("a", "c")
    street.send("a", "nobody")
    street.after(1.0)
    assert street.outcomes() == [
        ("a", "b", "received", 1),
        ("a", "nobody", "unknown receiver", 0),
        ("a", "c", "retries exhausted", 0),
    ]
    assert street.radio.statistics().data_sent == 1 + 3
    # What was on air is booked as sent, once, also if nobody acknowledged it.
    assert [row.messages for row in street.radio.traffic() if row.direction == "sent"] == [2]


def test_a_message_to_one_who_does_not_listen_ends_once_and_says_why() -> None:
    street = Street(0.0, 50.0)
    street.listeners["b"].endpoint.close()
    street.send("a", "b")
    street.after(1.0)
    assert street.outcomes() == [("a", "b", "nobody listens", 0)]
    # It went over the air all the same, and was acknowledged.
    assert {(row.direction, row.messages) for row in street.radio.traffic()} == {("sent", 1)}


def test_a_station_does_not_send_to_itself() -> None:
    with pytest.raises(InvalidInput, match="to itself"):
        Street(0.0).send("a", "a")


def test_back_pressure_shows_and_the_queue_is_bounded() -> None:
    street = Street(0.0, 50.0, queue_frames=3)
    said = [street.send("a", None, str(n)) for n in range(6)]
    assert said[0] is Sending.ACCEPTED
    assert Sending.QUEUED in said
    assert said[-1] is Sending.DROPPED
    street.after(1.0)
    counts = Counter(outcome for _, _, outcome, _ in street.outcomes())
    assert counts == Counter(sent=6 - said.count(Sending.DROPPED), **{"queue full": said.count(Sending.DROPPED)})
    assert [text for _, _, text in street.listeners["b"].heard] == [str(n) for n in range(counts["sent"])]


def test_what_is_too_large_for_a_frame_is_refused() -> None:
    street = Street(0.0, 50.0)
    assert street.send("a", None, "x" * 4_100) is Sending.DROPPED
    assert street.outcomes() == [("a", None, "too large", 0)]


def test_who_goes_takes_its_waiting_messages_along() -> None:
    street = Street(0.0, 50.0)
    for n in range(5):
        street.send("a", None, str(n))
    street.world.hosts["a"].fail()
    # Written down at once, although nothing happens on air any more.
    assert street.outcomes() == [("a", None, "switched off", 0)] * 5
    assert street.radio.in_flight == 0
    street.after(1.0)
    assert street.listeners["b"].heard == []


def test_a_host_without_this_radio_neither_hears_nor_disturbs() -> None:
    street = Street(0.0, 50.0)
    street.world.add("wired", list, [])
    street.send("a", None)
    street.after(1.0)
    assert street.outcomes() == [("a", None, "sent", 1)]


def test_groups_of_messages_that_nobody_names_any_more_are_forgotten_and_never_mixed_up() -> None:
    street = Street(0.0, 10.0)
    sender, hearer = (street.listeners[name] for name in "ab")

    def heard_twice(group: str, text: str) -> list[str]:
        """What arrives of two copies of one message."""
        note, before = Note(text), len(hearer.heard)
        note.__dict__["repetition"] = group, text
        for _ in range(2):
            sender.endpoint.broadcast(note)
            street.after(0.1)
        return [text for _, _, text in hearer.heard[before:]]

    hearer.endpoint.once("first plan")
    assert heard_twice("first plan", "x") == ["x"]
    assert heard_twice("no plan", "x") == ["x", "x"]
    for number in range(3 * KNOWN):
        sender.endpoint.once(f"plan {number}")
    assert len(street.radio._groups) <= KNOWN
    assert heard_twice("another plan", "y") == ["y", "y"], "its number is not that of the first plan"
    hearer.endpoint.once("first plan")
    assert heard_twice("first plan", "z") == ["z"]


def test_who_is_told_together_and_who_is_told_alone_are_told_in_the_order_in_which_they_hear() -> None:
    """Hosts with one radio may be told together, those that choose among several are not (``LocalTransport``)."""
    street = Street(0.0, 10.0, 20.0, 30.0, 40.0, 50.0)
    told: list[str] = []

    def together(listeners: Iterable[Listener], _sender: str, _message: Note) -> None:
        # As one who hands over its rows when it has gone through all of them.
        heard = [listener.host.name for listener in listeners]
        told.extend(heard)

    for name, listener in street.listeners.items():
        listener.heard = Told(told, name)
        if name in "abde":
            listener.endpoint.together(Note, listener, together)
    street.send("a", None)
    street.after(1.0)
    assert told == ["b", "c", "d", "e", "f"]
    assert street.outcomes() == [("a", None, "sent", 5)]


def test_who_jumps_is_heard_where_it_is() -> None:
    street = Street(0.0, 5_000.0)
    street.send("a", None)
    street.after(1.0)
    street.world.motion.put(1, 40.0, 0.0)
    street.send("a", None)
    street.after(1.0)
    street.world.motion.put(1, -9_000.0, 0.0)
    street.send("a", None)
    street.after(1.0)
    assert [received for _, _, _, received in street.outcomes()] == [0, 1, 0]


actions = st.lists(
    st.tuples(
        st.sampled_from(["send", "broadcast", "fail", "join", "wait", "move"]),
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
    ),
    max_size=40,
)


@settings(max_examples=50)
@given(actions)
def test_every_message_has_one_fate(script: list[tuple[str, str, str]]) -> None:
    street = Street(0.0, 60.0, 120.0, 180.0)
    sent = 0
    for action, one, other in script:
        host = street.world.hosts[one]
        if action == "send" and host.up and one != other:
            sent += 1
            street.send(one, other)
        elif action == "broadcast" and host.up:
            sent += 1
            street.send(one, None)
        elif action == "fail":
            host.fail()
        elif action == "join":
            street.listeners[one] = street.listeners[one] if host.up else Listener()
            host.join()
        elif action == "move":
            street.world.motion.put(host.node, 30.0 * (ord(other) - ord("a")), 10.0)
        elif action == "wait":
            street.after(0.002)
    assert len(street.rows) + street.radio.in_flight == sent
    street.after(10.0)
    assert street.radio.in_flight == 0
    assert len(street.rows) == sent
    statistics = street.radio.statistics()
    assert statistics.pending == 0
    assert statistics.received + sum(statistics.losses.values()) == statistics.potential_receptions
