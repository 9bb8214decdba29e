"""What all networks share, seen through the plainest of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from nearcast.errors import InvalidInput, ObserverActed, UnknownName
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint, Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SENT, Network, Parcel, SimulatedLink, Traffic

OVERHEAD = 10


class Hello(Message, frozen=True, array_like=True, tag="hello"):
    name: str


class Bye(Message, frozen=True, array_like=True, tag="bye"):
    pass


class Wrong(Message, frozen=True, array_like=True, tag="wrong"):
    """Its field is declared as what it is not: only the codec would notice."""

    number: int


class Pipe(Network):
    """Everything arrives a second later: at the host it is for, or at all others."""

    def __init__(self, simulation: Simulation, *, local: bool = True, check_wire: bool = False) -> None:
        super().__init__(simulation, "pipe", local=local, overhead=OVERHEAD, check_wire=check_wire)
        self.switches: list[tuple[str, bool]] = []
        self.sent = self.ended = 0

    @property
    def in_flight(self) -> int:
        return self.sent - self.ended

    def transmit(self, parcel: Parcel) -> Sending:
        self.sent += 1
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self.simulation.at(parcel.sent + MICROSECONDS, self._end, parcel)
        return Sending.ACCEPTED

    def switched(self, link: SimulatedLink, on: bool) -> None:
        self.switches.append((link.address, on))

    def _end(self, parcel: Parcel) -> None:
        self.ended += 1
        if parcel.receiver is not None:
            self.arrive(parcel, self.links[parcel.receiver])
            return
        others = [link for link in self.links.values() if link is not parcel.sender]
        self.note(parcel, "broadcast", sum(self.hand_over(parcel, link) for link in others))


class Rig:
    def __init__(self, *, local: bool = True, check_wire: bool = False) -> None:
        self.messages: list[tuple[Any, ...]] = []
        self.drops: list[tuple[Any, ...]] = []
        observers = Observers()
        observers.record("messages", lambda *row: self.messages.append(row))
        observers.record("drops", lambda *row: self.drops.append(row))
        self.simulation = Simulation(1, observers=observers)
        self.network = Pipe(self.simulation, local=local, check_wire=check_wire)
        self.got: list[tuple[str, str, Message]] = []
        self.links = {name: self.network.attach(name, node) for node, name in enumerate(("ada", "bob", "cleo"))}
        for link in self.links.values():
            link.switch(on=True)

    def open(self, name: str, port: int = 1, *kinds: type[Message]) -> Endpoint:
        return self.links[name].open(
            port, lambda sender, message: self.got.append((name, sender, message)), *(kinds or (Hello, Bye))
        )

    def run(self, seconds: float = 2.0) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))


def test_a_message_arrives_at_the_same_port_of_the_receiver() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.open("bob")
    rig.open("bob", 2)
    rig.open("cleo")
    hello = Hello("ada")
    assert ada.send("bob", hello) is Sending.ACCEPTED
    assert not rig.got
    assert rig.network.in_flight == 1
    rig.run()
    assert rig.got == [("bob", "ada", hello)]
    assert rig.got[0][2] is hello  # as the frozen object it is


def test_the_row_of_a_message_says_when_by_whom_and_how_large() -> None:
    rig = Rig()
    ada, hello = rig.open("ada"), Hello("ada")
    rig.open("bob")
    rig.run(1)
    ada.send("bob", hello)
    rig.run()
    size = len(encoded(hello)) + 1 + OVERHEAD
    assert rig.messages == [(MICROSECONDS, 2 * MICROSECONDS, "pipe", "hello", "ada", "bob", size, "received", 1)]
    assert not rig.drops


def test_books_count_messages_and_bytes_by_direction_and_kind() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.open("bob")
    for message in (Hello("a"), Hello("abc"), Bye()):
        ada.send("bob", message)
    rig.run()
    hellos = sum(len(encoded(Hello(name))) + 11 for name in ("a", "abc"))
    bye = len(encoded(Bye())) + 11
    assert sorted(rig.network.traffic(), key=str) == sorted(
        [
            Traffic("pipe", direction, kind, host, messages, size)
            for direction, host in (("sent", "ada"), ("received", "bob"))
            for kind, messages, size in (("hello", 2, hellos), ("bye", 1, bye))
        ],
        key=str,
    )


def test_a_broadcast_reaches_all_who_listen_and_is_one_message() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.open("bob")
    ada.broadcast(Bye())
    rig.run()
    assert rig.got == [("bob", "ada", Bye())]
    assert [row[5:] for row in rig.messages] == [(None, len(encoded(Bye())) + 11, "broadcast", 1)]
    assert [row[2:5] for row in rig.drops] == [("cleo", "bye", "nobody listens")]


def test_a_network_that_is_not_local_has_no_broadcast() -> None:
    with pytest.raises(InvalidInput, match="pipe reaches hosts by address only"):
        Rig(local=False).open("ada").broadcast(Bye())


def test_kinds_that_a_port_does_not_know_are_dropped_and_counted() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.open("bob", 1, Hello)
    ada.send("bob", Bye())
    ada.send("cleo", Bye())
    rig.run()
    assert not rig.got
    size = len(encoded(Bye())) + 11
    assert rig.drops == [(MICROSECONDS, "pipe", name, "bye", "nobody listens", 1, size) for name in ("bob", "cleo")]
    assert [row[7:] for row in rig.messages] == [("nobody listens", 0)] * 2
    assert not [traffic for traffic in rig.network.traffic() if traffic.direction == "received"]


def test_a_link_that_is_down_drops_what_it_is_given() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.links["ada"].switch(on=False)
    assert ada.send("bob", Bye()) is Sending.DROPPED
    assert [row[2:5] for row in rig.drops] == [("ada", "bye", "link down")]
    assert list(rig.network.traffic()) == []


def test_a_host_that_is_down_when_a_message_arrives_does_not_get_it() -> None:
    rig = Rig()
    ada = rig.open("ada")
    rig.open("bob")
    ada.send("bob", Bye())
    rig.run(0.5)
    rig.links["bob"].switch(on=False)
    rig.run()
    assert not rig.got
    assert [row[2:5] for row in rig.drops] == [("bob", "bye", "receiver down")]


def test_ports_close_with_the_link_and_can_be_opened_again() -> None:
    rig = Rig()
    ada = rig.open("ada")
    old = rig.open("bob")
    rig.links["bob"].switch(on=False)
    rig.links["bob"].switch(on=True)
    ada.send("bob", Bye())
    rig.run()
    assert [row[4] for row in rig.drops] == ["nobody listens"]
    rig.open("bob", 1, Bye)
    old.close()  # what was closed long ago does not close its successor
    ada.send("bob", Bye())
    rig.run()
    assert rig.got == [("bob", "ada", Bye())]
    assert rig.network.switches == [("ada", True), ("bob", True), ("cleo", True), ("bob", False), ("bob", True)]


def test_a_closed_port_receives_nothing() -> None:
    rig = Rig()
    ada, bob = rig.open("ada"), rig.open("bob")
    bob.close()
    bob.close()
    ada.send("bob", Bye())
    rig.run()
    assert not rig.got
    rig.open("bob")


@pytest.mark.parametrize("port", [-1, 256])
def test_ports_are_bytes(port: int) -> None:
    with pytest.raises(InvalidInput, match="outside 0 to 255"):
        Rig().open("ada", port)


def test_a_port_is_for_some_kind_of_message() -> None:
    with pytest.raises(InvalidInput, match="port 1 was opened for no kind"):
        Rig().links["ada"].open(1, print)


def test_a_port_that_is_open_is_not_opened_again() -> None:
    rig = Rig()
    rig.open("ada", 0)
    rig.open("ada", 255)
    with pytest.raises(InvalidInput, match="port 255 of pipe is open already on host 'ada'"):
        rig.open("ada", 255)


def test_check_wire_sends_messages_through_the_codec() -> None:
    rig = Rig(check_wire=True)
    ada, hello = rig.open("ada"), Hello("ada")
    rig.open("bob")
    ada.send("bob", hello)
    rig.run()
    assert rig.got == [("bob", "ada", hello)]
    assert rig.got[0][2] is not hello


def test_check_wire_finds_what_would_not_survive_the_wire() -> None:
    wrong: Any = Wrong("not a number")  # type: ignore[arg-type]
    careless, careful = Rig(), Rig(check_wire=True)
    for rig in (careless, careful):
        ada = rig.open("ada", 1, Wrong)
        rig.open("bob", 1, Wrong)
        ada.send("bob", wrong)
    careless.run()
    assert careless.got == [("bob", "ada", wrong)]
    with pytest.raises(msgspec.ValidationError):
        careful.run()


def test_observers_do_not_send() -> None:
    rig = Rig()
    ada = rig.open("ada")
    told: list[Sending] = []
    rig.simulation.watch(1.0, lambda _: told.append(ada.send("bob", Bye())))
    with pytest.raises(ObserverActed, match="send a message"):
        rig.run()
    assert not told


def test_two_hosts_of_one_name_are_refused() -> None:
    with pytest.raises(UnknownName, match="'ada' on pipe already"):
        Rig().network.attach("ada", 7)


def test_a_reply_from_within_a_callback_is_sent_at_that_instant() -> None:
    rig = Rig()
    ada = rig.open("ada")
    told: list[Sending] = []
    port = rig.links["bob"].open(1, lambda sender, _: told.append(port.send(sender, Bye())), Hello)
    ada.send("bob", Hello("ada"))
    rig.run(5)
    assert rig.got == [("ada", "bob", Bye())]
    assert [row[:2] for row in rig.messages if row[3] == "bye"] == [(MICROSECONDS, 2 * MICROSECONDS)]


@pytest.mark.parametrize("word", ["open", "close"])
def test_observers_do_not_open_and_close_ports(word: str) -> None:
    rig = Rig()
    ada = rig.open("ada")
    act: Callable[[], object] = ada.close if word == "close" else partial(rig.open, "ada", 7)

    def look(_now: int) -> None:
        act()

    rig.simulation.watch(1.0, look)
    with pytest.raises(ObserverActed, match=f"{word} a port"):
        rig.run()
