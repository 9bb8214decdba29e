"""Who is told later than things come in cannot tell, and neither can anybody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.legs import Leg
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint
from nearcast.runtime.simulation import cellular
from nearcast.runtime.simulation.backlog import Backlog
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_foresight import ForeseenDownlinks
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World

CLIENTS = ("ada", "bob", "cleo", "dan")
PORT = 1
START = 1_800_000_000_000_000


class News(Message, frozen=True, tag="news"):
    text: str


class Order(Message, frozen=True, tag="order"):
    """Of a kind that is always told at once."""

    text: str


Deed = tuple[int, str]
"""After so many microseconds of its life a host does this."""


class Reader(Component):
    """Keeps a diary of what it hears and does."""

    def __init__(self, town: Town, deeds: list[Deed]) -> None:
        self.town, self.deeds, self.heard = town, deeds, 0
        self.port: Endpoint | None = None

    def start(self, host: Host) -> None:
        self.host = host
        self.do("open")
        for wait, deed in self.deeds:
            host.timers.after(wait / 1e6, lambda deed=deed: self.do(deed))  # type: ignore[misc]

    def do(self, deed: str) -> None:
        self.note("does", deed, self.heard)
        match deed:
            case "open" if self.port is None:
                self.port = self.host.link("cellular").open(PORT, lambda _, message: self.receive(message), News, Order)
                self.port.later(News, self, self.receive_all)
            case "close" if self.port is not None:
                self.port.close()
                self.port = None
            case "hurry" | "wait" if self.port is not None:
                self.port.later(News, self if deed == "wait" else None, self.receive_all)
            case "answer" if self.port is not None:
                self.port.send("broker", News(f"{self.host.name} has heard {self.heard}"))

    def receive(self, message: News | Order) -> None:
        self.heard += 1
        self.note("hears", message.text, self.town.world.motion.at(self.town.world.hosts[self.host.name].node))
        self.town.heard(self.host.now(), self.host.name, message.text)

    @staticmethod
    def receive_all(arrivals: Iterable[tuple[Reader, News]]) -> None:
        sizes = 0
        for reader, message in arrivals:
            reader.receive(message)
            sizes += 1
        reader.town.at_a_time.append(sizes)

    def note(self, *what: Any) -> None:
        self.town.diaries[self.host.name].append((self.host.now(), *what))


class Writer(Component):
    """In the core: sends, and hears what clients answer."""

    def __init__(self, town: Town, sendings: list[tuple[int, list[str], bool]]) -> None:
        self.town, self.sendings = town, sendings

    def start(self, host: Host) -> None:
        port = host.link("cellular").open(PORT, lambda *_: None, News)
        for number, (wait, receivers, order) in enumerate(self.sendings):
            message = Order(str(number)) if order else News(str(number))
            host.timers.after(wait / 1e6, lambda to=receivers, message=message: port.send_all(to, message))  # type: ignore[misc]


def wander(random: Random, start: Instant) -> Iterator[Leg]:
    place = (0.0, 0.0)
    while True:
        target = (random.uniform(-9, 9), random.uniform(-9, 9))
        leg = Leg.between(start, place, target, 200.0)
        yield leg
        start, place = leg.until, leg.end


Life = list[tuple[int, str, str]]
"""When, who, and whether it joins, leaves or fails."""


class Town:
    def __init__(
        self,
        profile: CellularProfile,
        sendings: list[tuple[int, list[str], bool]],
        deeds: dict[str, list[Deed]],
        life: Life,
        *,
        analyzed: bool = False,
    ) -> None:
        self.rows: dict[str, list[Any]] = {"messages": [], "drops": [], "heard": []}
        self.diaries: dict[str, list[Any]] = {name: [] for name in CLIENTS}
        self.samples: list[Any] = []
        self.at_a_time: list[int] = []
        observers = Observers()
        for table, rows in self.rows.items():
            observers.record(table, lambda *row, rows=rows: rows.append(row))
        if analyzed:
            observers.analyze("drops", lambda *_: None)
        self.simulation = Simulation(7, start=START, observers=observers)
        self.heard = observers.emitter("heard")
        self.network = CellularNetwork(self.simulation, profile, infrastructure=["broker"])
        self.world = World(self.simulation, Plane(Point(0, 0)), len(CLIENTS) + 1)
        for name in CLIENTS:
            host = self.world.add(name, lambda name=name: [Reader(self, deeds.get(name, []))], [self.network])  # type: ignore[misc]
            self.world.motion.move(host.node, wander, self.simulation.random.stream("mobility", name))
            host.join()
        self.world.add("broker", lambda: [Writer(self, sendings)], [self.network]).join()
        self.simulation.watch(0.037, lambda now: self.samples.append((now, *self.counts())))
        for when, name, change in life:
            self.simulation.at(START + when, self.change, (self.world.hosts[name], change))

    def change(self, what: tuple[SimulatedHost, str]) -> None:
        host, change = what
        {"join": host.join, "leave": host.leave, "fail": host.fail}[change]()

    def counts(self) -> tuple[int, ...]:
        """What is still to come; not how many callbacks there were, because to need fewer is the point."""
        return self.simulation.statistics().waiting, self.network.in_flight

    def run(self) -> list[Any]:
        self.simulation.run(START + 400_000)
        self.samples.append(self.counts())
        self.simulation.run(START + 3_000_000)
        return [self.rows, self.diaries, self.samples, list(self.network.traffic())]


@contextmanager
def stepped() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cellular, "stride_of", lambda _profile: 0)
        yield


PROFILES = st.builds(
    CellularProfile,
    downlink=st.builds(
        BearerProfile,
        latency=st.sampled_from([Uniform(0.001, 0.05), Uniform(0.02, 0.03)]),
        bandwidth=st.sampled_from([None, 1e5, 1e6]),
        queue_bytes=st.sampled_from([200, 100_000]),
        cell_bandwidth=st.sampled_from([None, 1e6]),
    ),
    uplink=st.builds(BearerProfile, latency=st.sampled_from([Uniform(0.0, 0.05)])),
    ordered=st.booleans(),
)
WHEN = st.integers(0, 500_000)
SENDINGS = st.lists(
    st.tuples(WHEN, st.lists(st.sampled_from([*CLIENTS, "nobody"]), max_size=6), st.sampled_from([False] * 4 + [True])),
    max_size=40,
)
DEEDS = st.dictionaries(
    st.sampled_from(CLIENTS),
    st.lists(st.tuples(WHEN, st.sampled_from(["open", "close", "hurry", "wait", "answer", "look"])), max_size=10),
)
LIVES = st.lists(
    st.tuples(WHEN, st.sampled_from(CLIENTS), st.sampled_from(["join", "leave", "fail", "join"])), max_size=6
)


@examples(30)
@given(PROFILES, SENDINGS, DEEDS, LIVES)
def test_later_is_the_same_as_at_once(
    profile: CellularProfile,
    sendings: list[tuple[int, list[str], bool]],
    deeds: dict[str, list[Deed]],
    life: Life,
) -> None:
    town = Town(profile, sendings, deeds, life)
    assert isinstance(town.network.downlinks, ForeseenDownlinks)
    later = town.run()
    watched = Town(profile, sendings, deeds, life, analyzed=True)
    assert watched.run() == later
    assert not watched.at_a_time
    with stepped():
        assert Town(profile, sendings, deeds, life).run() == later


MANY = [(wait, [*CLIENTS], False) for wait in range(0, 500_000, 5_000)]
PROFILE = CellularProfile(downlink=BearerProfile(latency=Uniform(0.02, 0.05)))


def test_many_are_told_at_a_time_and_whoever_does_something_knows_all_that_came_before() -> None:
    town = Town(PROFILE, MANY, {"bob": [(100_000, "look"), (300_000, "look")]}, [])
    town.run()
    # Somebody walks on every few milliseconds.
    assert sum(town.at_a_time) == len(town.rows["heard"]) == len(MANY) * len(CLIENTS)
    assert max(town.at_a_time) >= 8
    looks = [(time, heard) for time, what, *_, heard in town.diaries["bob"] if what == "does"]
    for time, heard in looks:
        assert heard == sum(when < time for when, what, *_ in town.diaries["bob"] if what == "hears")
    assert [row[0] for row in town.rows["heard"]] == sorted(row[0] for row in town.rows["heard"])
    assert [row[1] for row in town.rows["messages"]] == sorted(row[1] for row in town.rows["messages"])


def test_copies_that_are_told_leave_nothing_behind() -> None:
    town = Town(PROFILE, MANY, {}, [])
    town.run()
    assert isinstance(town.network.downlinks, ForeseenDownlinks)
    assert town.network.in_flight == 0
    assert town.simulation.statistics().waiting == len(CLIENTS), "each walks on, and nothing else is to come"
    assert len(town.network.downlinks._parcels) <= 10


class Lagging(Backlog):
    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.caught_up = simulation, list[tuple[Instant, Instant, int]]()

    def catch_up(self) -> None:
        self.caught_up.append(self.simulation.present)


def test_what_lags_behind_catches_up_before_whatever_does_not_happen_apart_and_before_anybody_looks() -> None:
    simulation = Simulation(1)
    backlog = simulation.backlog = Lagging(simulation)
    simulation.at(10, lambda _: None)
    simulation.at(20, lambda _: None, apart=True)
    simulation.at(30, lambda _: None)
    looked = list[int]()
    simulation.watch(0.000025, lambda _: looked.append(len(backlog.caught_up)))
    simulation.run(40)
    assert backlog.caught_up == [(10, 0, 1), (25, -1, -1), (30, 0, 3), (40, -1, -1)]
    assert looked == [2]
