"""A small town with a broker, any filter scheme and people who stand or wander."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.dissemination.publisher import LocationRequest
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.client_half import ClientHalf
from nearcast.filtering.context import ClientContext
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Cancellable
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile
from nearcast.runtime.simulation.distributions import Constant
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Leg
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import ParallelProxy, Proxy
from nearcast.transition.specification import MechanismSpec

HOME = Point(49.8728, 8.6512)
PLANE = Plane(HOME)
HALF_WIDTH = 650.0
QUICK = BearerProfile(latency=Constant(0.1), bandwidth=None)
PROFILE = CellularProfile(uplink=QUICK, downlink=QUICK)

_corner, _opposite = PLANE.to_point(-HALF_WIDTH, -HALF_WIDTH), PLANE.to_point(HALF_WIDTH, HALF_WIDTH)
ZONES = Zones([Zone("fair", PLANE.to_point(-300, 0), 200.0), Zone("market", PLANE.to_point(0, 0), 200.0)])
TERRITORY = Territory(GeoBox(_corner.lat, _corner.lon, _opposite.lat, _opposite.lon), ZONES)

RADIAL = MechanismSpec("RADIAL")
BROKER = BrokerSettings(RADIAL, forget_after=20.0)
CLIENT = ClientSettings(RADIAL, keep_alive=5.0)
NEAR = Subscription("news", area=Circle(125.0), no_local=True)


class Wandering:
    """From one random place of the town to the next, at one speed."""

    def __init__(self, speed: float) -> None:
        self.speed = speed

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:
        now, (x, y) = start, _somewhere(random)
        while True:
            to_x, to_y = _somewhere(random)
            seconds = math.hypot(to_x - x, to_y - y) / self.speed
            until = now + round(seconds * MICROSECONDS)
            yield Leg(now, until, x, y, (to_x - x) / seconds, (to_y - y) / seconds)
            now, x, y = until, to_x, to_y


def _somewhere(random: Random) -> tuple[float, float]:
    return random.uniform(-HALF_WIDTH, HALF_WIDTH), random.uniform(-HALF_WIDTH, HALF_WIDTH)


@dataclass(frozen=True)
class Options:
    scheme: MechanismSpec = RADIAL
    broker: BrokerSettings = BROKER
    client: ClientSettings = CLIENT
    territory: Territory = TERRITORY
    profile: CellularProfile = PROFILE
    fix_every: float = 1.0
    seed: int = 1


class Application(Component):
    """Subscribes when it starts, remembers what it is told."""

    def __init__(self, subscriptions: Sequence[Subscription], fix_every: float) -> None:
        self.subscriptions = subscriptions
        self.got: list[str] = []
        self.held: list[Cancellable] = []
        self._request = LocationRequest(fix_every)
        self._host: Host
        self._events: CarriedEvents

    def start(self, host: Host) -> None:
        self._host, self._events = host, host.component(CarriedEvents)
        for subscription in self.subscriptions:
            self.subscribe(subscription)

    def subscribe(self, subscription: Subscription) -> None:
        # Nobody needs to know the own position for a subscription without an area.
        request = self._request if subscription.area else None
        self.held.append(self._events.subscribe(subscription, lambda event: self.got.append(event.id), request))

    def publish(self, name: str, topic: str = "news", *, local: bool = True, **more: Any) -> Event:
        assert self._host.sensor is not None
        more.setdefault("place", self._host.sensor.position())
        event = Event(name, topic, self._host.now(), publisher=self._host.name, **more)
        self._events.publish(event, local=local)
        return event

    def inbox(self) -> CarriedEvents:
        return self._events


class CloudTown:
    """People ``c0``, ``c1``, ... and a broker."""

    def __init__(self, people: Sequence[tuple[float, float]] | int, options: Options | None = None) -> None:
        self.options = options or Options()
        self.rows: dict[str, list[tuple[Any, ...]]] = {
            name: [] for name in ("notifications", "reports", "subscriptions", "transitions")
        }
        observers = Observers()
        for table, rows in self.rows.items():
            observers.record(table, lambda *row, keep=rows.append: keep(row))
        number = people if isinstance(people, int) else len(people)
        self.simulation = Simulation(self.options.seed, observers=observers)
        self.world = World(self.simulation, PLANE, number + 1)
        self.cellular = CellularNetwork(
            self.simulation, self.options.profile, infrastructure=["broker"], check_wire=True
        )
        self.applications: dict[str, Application] = {}
        self.settings: dict[str, ClientSettings] = {}
        """Of those who differ."""

        self.hosts: list[SimulatedHost] = []
        for node in range(number):
            name = f"c{node}"
            self.hosts.append(self.world.add(name, lambda name=name: self._client(name), [self.cellular]))  # type: ignore[misc]
            if not isinstance(people, int):
                self.world.motion.put(node, *people[node])
        self.broker = self.world.add("broker", self._broker, [self.cellular])
        self.broker.join()

    def join(self, node: int, *subscriptions: Subscription) -> Application:
        name = f"c{node}"
        self.applications[name] = Application(subscriptions, self.options.fix_every)
        self.hosts[node].join()
        return self.applications[name]

    def join_all(self, *subscriptions: Subscription) -> list[Application]:
        return [self.join(node, *subscriptions) for node in range(len(self.hosts))]

    def wander(self, speed: float) -> None:
        for node in range(len(self.hosts)):
            self.world.motion.move(node, Wandering(speed), Random(f"{self.options.seed}/{node}"))

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def put(self, node: int, x: float, y: float) -> None:
        self.world.motion.put(node, x, y)

    @property
    def cloud(self) -> CloudBroker:
        assert self.broker.host is not None
        return self.broker.host.component(CloudBroker)

    def half(self) -> BrokerHalf:
        """The broker's, if there is but one scheme."""
        assert self.broker.host is not None
        proxy = self.broker.host.component(HostEngine).engine.proxy(PROXY)
        assert isinstance(proxy, ParallelProxy)
        [half] = proxy.instances.values()
        assert isinstance(half, BrokerHalf)
        return half

    def context(self, node: int) -> ClientContext:
        return self.half().contexts[f"c{node}"]

    def client_half(self, node: int) -> Any:
        host = self.hosts[node].host
        assert host is not None
        proxy = host.component(HostEngine).engine.proxy(PROXY)
        assert isinstance(proxy, Proxy)
        assert isinstance(proxy.active, ClientHalf)
        return proxy.active

    def sent(self, kind: str | None = None, host: Address | None = None) -> tuple[int, int]:
        """Messages and bytes."""
        rows = [
            row
            for row in self.cellular.traffic()
            if row.direction == "sent" and kind in (None, row.kind) and host in (None, row.host)
        ]
        return sum(row.messages for row in rows), sum(row.bytes for row in rows)

    def reached(self) -> set[tuple[str, str]]:
        """Events with those to whom they came, whether these still wanted them or not."""
        return {(row[1], row[2]) for row in self.rows["notifications"] if row[4] != "duplicate"}

    def _broker(self) -> list[Component]:
        settings = replace(self.options.broker, scheme=self.options.scheme)
        return [HostEngine(), TransitionCoordinator(), CloudBroker(self.options.territory, settings)]

    def _client(self, name: str) -> list[Component]:
        settings = self.settings.get(name) or replace(self.options.client, scheme=self.options.scheme)
        carrier = CloudClient("broker", self.options.territory, settings)
        return [HostEngine(), TransitionAgent(), CarriedEvents([carrier]), carrier, self.applications[name]]


def chatter(town: CloudTown, seconds: int, radius: float) -> set[tuple[str, str]]:
    """Somebody publishes every second; answers who was that near, the publisher left out."""
    random, concerned = Random(f"chatter {town.options.seed}"), set()
    for second in range(seconds):
        town.after(1.0)
        node = random.randrange(len(town.hosts))
        event = town.applications[f"c{node}"].publish(f"e{second}")
        x, y = town.world.motion.at(node)
        for other in range(len(town.hosts)):
            other_x, other_y = town.world.motion.at(other)
            if other != node and math.hypot(x - other_x, y - other_y) <= radius - 0.01:
                concerned.add((event.id, f"c{other}"))
    town.after(2.0)
    return concerned
