"""A small world in which everything that could differ between two runs does happen; prints a digest of its rows.

``python small_world.py [watched]``: 20 hosts that talk at random through the cellular network, walk, fail and return.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Accuracy, Fix
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile, Intermittence, Outage
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Leg
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World

HOSTS = [f"host-{number}" for number in range(20)]
SECONDS = 30
BEARER = BearerProfile(bandwidth=1e4, queue_bytes=400, loss=0.05, cell_bandwidth=1e5, cell_queue_bytes=700)
PROFILE = CellularProfile(
    uplink=BEARER, downlink=BEARER, outages=(Outage(5, 6),), intermittence=Intermittence(8.0, 1.0)
)
TABLES = ("messages", "drops", "clients")


class Chat(Message, frozen=True, array_like=True, tag="chat"):
    hops: int
    position: tuple[float, float]
    payload: bytes


class Talker(Component):
    """Says something to somebody now and then; passes on what it hears to somebody else."""

    def start(self, host: Host) -> None:
        self.host = host
        self.random = host.random("talk")
        self.port = host.link("cellular").open(3, self.heard, Chat)
        self.position = (0.0, 0.0)
        assert host.sensor is not None
        host.sensor.request(1.0, self.moved, Accuracy.LOW, first=self.random.random())
        self.talk()

    def talk(self) -> None:
        self.say(4)
        self.host.timers.after(self.random.expovariate(2.0), self.talk)

    def say(self, hops: int) -> None:
        self.port.send(self.random.choice(HOSTS), Chat(hops, self.position, bytes(self.random.randrange(200))))

    def heard(self, sender: str, chat: Chat) -> None:
        if chat.hops:
            self.say(chat.hops - 1)

    def moved(self, fix: Fix) -> None:
        self.position = (fix.position.lat, fix.position.lon)


def wander(random: Random, start: Instant) -> Iterator[Leg]:
    place = (random.uniform(-500, 500), random.uniform(-500, 500))
    while True:
        target = (random.uniform(-500, 500), random.uniform(-500, 500))
        leg = Leg.between(start, place, target, random.uniform(10, 20))
        yield leg
        start, place = leg.until, leg.end


def run(*, watched: bool, seed: int = 1) -> tuple[str, Counter[str]]:
    """A digest of all that happened, and how many messages ended how."""
    digest, outcomes, seen = hashlib.sha256(), Counter[str](), list[str]()

    def record(table: str, *row: Any) -> None:
        digest.update(repr((table, row)).encode())
        if table == "messages":
            outcomes[row[7]] += 1

    observers = Observers()
    for table in TABLES:
        observers.record(table, lambda *row, table=table: record(table, *row))
        if watched:
            observers.analyze(table, lambda *row: seen.append(repr(row)))
    simulation = Simulation(seed, start=1_700_000_000 * MICROSECONDS, observers=observers)
    network = CellularNetwork(simulation, PROFILE, check_wire=watched)
    world = World(simulation, Plane(Point(49.87, 8.65)), len(HOSTS), sensor_errors=dict.fromkeys(Accuracy, 10.0))
    if watched:
        observers.measure("up", lambda: sum(host.up for host in world.hosts.values()))
        observers.measure("in flight", lambda: network.statistics().in_flight)
        observers.measure("east", lambda: world.motion.at(3)[0])
        simulation.watch(0.7, lambda _: observers.sample().clear())
        simulation.watch(1.0, lambda _: None)
    for name in HOSTS:
        host = world.add(name, lambda: [Talker()], [network])
        world.motion.move(host.node, wander, simulation.random.stream("mobility", name))
        host.join()
    churn = simulation.random.stream("churn")

    def turn(_: None) -> None:
        host = world.hosts[churn.choice(HOSTS)]
        if churn.random() < 0.5:
            host.leave()
        else:
            host.fail()
        simulation.at(simulation.now() + churn.randrange(3 * MICROSECONDS), rejoin, host)
        simulation.at(simulation.now() + churn.randrange(MICROSECONDS), turn)

    def rejoin(host: SimulatedHost) -> None:
        host.join()

    turn(None)
    simulation.run(simulation.start + SECONDS * MICROSECONDS)
    digest.update(repr([world.motion.at(host.node) for host in world.hosts.values()]).encode())
    digest.update(repr(list(network.traffic())).encode())
    return digest.hexdigest(), outcomes


if __name__ == "__main__":
    name, counts = run(watched="watched" in sys.argv[1:])
    print(name, *(f"{outcome}: {count}" for outcome, count in counts.items()), sep="\n")
