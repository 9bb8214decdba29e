from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from nearcast.errors import InvalidInput, ObserverActed, UnknownName
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Accuracy
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Leg
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.runtime.state import Information

MOOD = Information("mood", str)


class Tick(Message, frozen=True, array_like=True, tag="tick"):
    life: int


class Goodbye(Message, frozen=True, array_like=True, tag="goodbye"):
    pass


class Phone(Component):
    """Sends a tick to the broker every second, and a goodbye when it leaves."""

    made = 0

    def __init__(self, log: list[str]) -> None:
        type(self).made += 1
        self.number = type(self).made
        self.log = log

    def start(self, host: Host) -> None:
        self.log.append(f"{host.name} starts at {host.now() / MICROSECONDS:g}")
        self.host = host
        self.port = host.link("cellular").open(1, self.received, Tick)
        self.heard: list[int] = []
        self.draws = [host.random("draws").random() for _ in range(3)]
        host.timers.every(1.0, self.tick)
        host.state.provide(MOOD, lambda: f"phone {self.number}")

    def tick(self) -> None:
        self.port.send("broker", Tick(self.number))

    def received(self, sender: str, tick: Tick) -> None:
        self.heard.append(tick.life)

    def stop(self) -> None:
        self.log.append(f"{self.host.name} stops")
        self.port.send("broker", Goodbye())


class Broker(Component):
    def start(self, host: Host) -> None:
        self.heard: list[tuple[str, str]] = []
        self.port = host.link("cellular").open(1, self.received, Tick, Goodbye)

    def received(self, sender: str, message: Message) -> None:
        self.heard.append((sender, type(message).__name__))


class Town:
    """A broker and a phone."""

    def __init__(self) -> None:
        Phone.made = 0
        self.clients: list[tuple[Any, ...]] = []
        self.log: list[str] = []
        self.phones: list[Phone] = []
        observers = Observers()
        observers.record("clients", lambda *row: self.clients.append(row))
        self.simulation = Simulation(1, observers=observers)
        self.network = CellularNetwork(self.simulation, infrastructure={"broker"})
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), 3)
        self.broker = Broker()
        self.world.add("broker", lambda: [self.broker], [self.network]).join()
        self.phone = self.world.add("ada", self.build, [self.network])

    def build(self) -> Sequence[Component]:
        self.phones.append(Phone(self.log))
        return self.phones[-1:]

    def run(self, seconds: float) -> None:
        self.simulation.run(round(seconds * MICROSECONDS))


def test_a_host_is_away_until_it_joins() -> None:
    town = Town()
    town.run(5)
    assert not town.phone.up
    assert not town.phones
    town.phone.join()
    assert town.phone.up
    assert town.log == ["ada starts at 5"]
    town.run(8)
    assert town.broker.heard == [("ada", "Tick")] * 2


def test_joining_twice_or_leaving_twice_is_nothing() -> None:
    town = Town()
    town.phone.leave()
    town.phone.fail()
    town.phone.join()
    town.phone.join()
    assert len(town.phones) == 1
    town.phone.leave()
    town.phone.leave()
    town.phone.fail()
    assert [row[1:] for row in town.clients] == [("broker", "joined"), ("ada", "joined"), ("ada", "left")]


def test_who_leaves_has_the_last_word_and_is_heard() -> None:
    town = Town()
    town.phone.join()
    town.run(1.5)
    town.phone.leave()
    town.run(10)
    assert town.log == ["ada starts at 0", "ada stops"]
    assert town.broker.heard == [("ada", "Tick"), ("ada", "Goodbye")]
    assert town.network.statistics().refused == {}


def test_who_fails_says_nothing_more() -> None:
    town = Town()
    town.phone.join()
    town.run(1.5)
    town.phone.fail()
    town.run(10)
    assert town.log == ["ada starts at 0"]
    assert town.broker.heard == [("ada", "Tick")]


def test_who_returns_remembers_nothing_and_draws_new_numbers() -> None:
    town = Town()
    for second in (1, 2):
        town.phone.join()
        town.run(second)
        town.phone.fail()
    town.phone.join()
    first, second_phone, third = town.phones
    assert first is not second_phone is not third
    assert len({tuple(phone.draws) for phone in town.phones}) == 3
    assert [row[1:] for row in town.clients[1:]] == [
        ("ada", "joined"),
        ("ada", "failed"),
        ("ada", "returned"),
        ("ada", "failed"),
        ("ada", "returned"),
    ]


def test_ports_are_opened_again_and_timers_of_a_former_life_are_gone() -> None:
    town = Town()
    town.phone.join()
    town.run(1.5)
    town.phone.fail()
    town.phone.join()
    town.run(3.9)
    # One tick in the first life at 1 s; in the second, at 2.5 and 3.5 s.
    assert len(town.broker.heard) == 3
    town.broker.port.send("ada", Tick(77))
    town.run(5)
    assert town.phones[0].heard == []
    assert town.phones[1].heard == [77]


def test_people_move_whether_their_hosts_are_up_or_not() -> None:
    town = Town()

    def walk(random: Random, start: Instant) -> Iterator[Leg]:
        yield Leg.between(start, (0, 0), (100, 0), 1.0)

    town.world.motion.move(town.phone.node, walk, Random(1))
    town.run(10)
    assert town.world.motion.at(town.phone.node) == pytest.approx((10, 0))
    town.phone.join()
    assert town.phone.host is not None
    sensor = town.phone.host.sensor
    assert sensor is not None
    fix = sensor.fix()
    assert fix is not None
    assert town.world.plane.to_xy(fix.position) == pytest.approx((10, 0), abs=1e-6)
    assert fix.speed == pytest.approx(1.0)
    assert fix.heading == pytest.approx(90.0)


def test_sensors_err_as_the_world_says() -> None:
    simulation = Simulation(1)
    world = World(simulation, Plane(Point(0, 0)), 1, sensor_errors=dict.fromkeys(Accuracy, 30.0))
    host = world.add("ada", list, [])
    host.join()
    assert host.host is not None
    assert host.host.sensor is not None
    fix = host.host.sensor.fix()
    assert fix is not None
    assert fix.accuracy == 30.0
    assert fix.position != Point(0, 0)


def test_hosts_have_names_of_their_own_and_there_is_room_for_so_many() -> None:
    town = Town()
    with pytest.raises(UnknownName, match="'ada' already"):
        town.world.add("ada", list, [])
    town.world.add("bob", list, [])
    with pytest.raises(UnknownName, match="room for 3 hosts; 'cleo'"):
        town.world.add("cleo", list, [])
    assert list(town.world.hosts) == ["broker", "ada", "bob"]
    assert [host.node for host in town.world.hosts.values()] == [0, 1, 2]


def test_others_are_asked_through_global_knowledge_and_answer_after_the_call() -> None:
    town, answers = Town(), list[str]()
    town.phone.join()
    broker = town.world.hosts["broker"].host
    assert broker is not None
    assert not broker.state.request(MOOD, answers.append)
    assert broker.state.request(MOOD, answers.append, remote=True)
    assert broker.state.request(MOOD, answers.append, about="ada", remote=True)
    assert broker.state.request(MOOD, answers.append, about="nobody", remote=True)
    assert not answers
    town.run(1)
    assert answers == ["phone 1", "phone 1"]


def test_who_is_away_is_not_asked() -> None:
    town, answers = Town(), list[str]()
    town.phone.join()
    town.phone.fail()
    broker = town.world.hosts["broker"].host
    assert broker is not None
    broker.state.request(MOOD, answers.append, remote=True)
    broker.state.request(MOOD, answers.append, about="ada", remote=True)
    town.run(1)
    assert not answers


@pytest.mark.parametrize("act", ["join", "leave", "fail"])
def test_observers_let_nobody_come_or_go(act: str) -> None:
    observers, hosts = Observers(), list[SimulatedHost]()
    observers.measure("meddler", lambda: getattr(hosts[0], act)() or 0.0)
    simulation = Simulation(1, observers=observers)
    world = World(simulation, Plane(Point(0, 0)), 1)
    hosts.append(world.add("ada", list, []))
    if act != "join":
        hosts[0].join()
    simulation.watch(1.0, lambda _: observers.sample().clear())
    with pytest.raises(ObserverActed, match=f"let a host {act}"):
        simulation.run(2 * MICROSECONDS)
    assert hosts[0].up == (act != "join")


def test_a_port_that_two_components_want_is_an_error_that_names_the_host() -> None:
    town = Town()
    town.world.add("bob", lambda: [Phone([]), Phone([])], [town.network])
    with pytest.raises(InvalidInput, match="open already on host 'bob'"):
        town.world.hosts["bob"].join()
