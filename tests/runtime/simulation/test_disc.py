"""A radio without contention: everybody within its range, and nobody else."""

from __future__ import annotations

from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.links import SENT, UNKNOWN_RECEIVER
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Endpoint, Sending
from nearcast.runtime.simulation.disc import OUT_OF_RANGE, DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import FOREVER, Leg
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World


class Text(Message, frozen=True, tag="text"):
    text: str


class Listener(Component):
    def __init__(self) -> None:
        self.heard: list[tuple[int, Address, str]] = []
        self.endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self.endpoint = host.link("wifi").open(7, self._receive, Text)

    def _receive(self, sender: Address, message: Text) -> None:
        self.heard.append((self._host.now(), sender, message.text))


class Street:
    def __init__(self, *places: float) -> None:
        self.rows: list[tuple[object, ...]] = []
        observers = Observers()
        observers.record("messages", lambda *row: self.rows.append(row))
        self.simulation = Simulation(1, observers=observers)
        self.world = World(self.simulation, Plane(Point(53.0, -6.0)), len(places))
        self.radio = DiscNetwork(self.simulation, self.world.motion, 200.0, delay=1_000, check_wire=True)
        self.listeners = [Listener() for _ in places]
        for number, (place, listener) in enumerate(zip(places, self.listeners, strict=True)):
            self.world.motion.put(number, place, 0.0)
            self.world.add(str(number), lambda it=listener: [it], [self.radio]).join()  # type: ignore[misc]

    def run(self) -> list[int]:
        """Who has heard anything."""
        self.simulation.run(self.simulation.now() + 2_000)
        return [number for number, listener in enumerate(self.listeners) if listener.heard]


def test_a_broadcast_reaches_whoever_is_within_the_range_and_takes_its_time() -> None:
    street = Street(0.0, 199.9, 200.0, 200.1, -150.0)
    assert street.listeners[0].endpoint.broadcast(Text("hello")) is Sending.ACCEPTED
    assert street.radio.in_flight == 1
    assert street.run() == [1, 2, 4]
    assert street.listeners[1].heard == [(1_000, "0", "hello")]
    assert street.radio.in_flight == 0
    assert [row[7:] for row in street.rows] == [(SENT, 3)]
    assert [(row.kind, row.messages) for row in street.radio.traffic() if row.direction == SENT] == [("text", 1)]


def test_range_is_that_of_the_moment_at_which_it_is_sent() -> None:
    street = Street(0.0, 199.9)
    leg = Leg(0, int(FOREVER), 199.9, 0.0, 1_000.0, 0.0)
    street.world.motion.move(1, lambda _random, _start: iter([leg]), street.simulation.random.stream("move"))
    street.listeners[0].endpoint.broadcast(Text("goodbye"))
    assert street.run() == [1]
    street.listeners[0].endpoint.broadcast(Text("again"))
    street.run()
    assert len(street.listeners[1].heard) == 1


def test_who_is_down_hears_nothing() -> None:
    street = Street(0.0, 100.0, 150.0)
    street.world.hosts["1"].fail()
    street.listeners[0].endpoint.broadcast(Text("hello"))
    assert street.run() == [2]


def test_an_addressed_message_reaches_one_or_nobody() -> None:
    street = Street(0.0, 100.0, 150.0, 400.0)
    send = street.listeners[0].endpoint.send
    assert send("2", Text("you")) is Sending.ACCEPTED
    assert send("3", Text("too far")) is Sending.DROPPED
    assert send("nobody", Text("who")) is Sending.DROPPED
    assert street.run() == [2]
    assert [row[7] for row in street.rows] == [OUT_OF_RANGE, UNKNOWN_RECEIVER, SENT]
