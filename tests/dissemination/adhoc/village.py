"""Hosts that spread events from one to the other, on a network that loses nothing unless a test says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.adhoc.messages import AdHocEvents, Hello
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.publisher import LocationRequest
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SENT, Network, Parcel, SimulatedLink
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
HOME = Point(49.8728, 8.6512)
RANGE = 88.0
AIRTIME = 1_000
EVERYWHERE = Subscription("news", id="all", no_local=True)
AROUND = Subscription("news", area=Circle(125), id="near", no_local=True)

Place = tuple[float, float]


@dataclass(frozen=True)
class Frame:
    """What somebody has sent."""

    time: int
    sender: int
    receiver: str | None
    events: tuple[tuple[str, int], ...]
    """Ids and hops; none: a hello."""

    mechanism: str


class Meadow(Network):
    """Whoever is in range hears a frame a millisecond later; what is lost, and who is in range, a test may say."""

    def __init__(self, simulation: Simulation, hears: Callable[[int, int], bool], *, check_wire: bool) -> None:
        super().__init__(simulation, "wifi", local=True, overhead=0, check_wire=check_wire)
        self.hears = hears
        self.lost: Callable[[int, int], bool] = lambda _sender, _receiver: False
        self.delay: Callable[[], int] = lambda: AIRTIME
        self.frames: list[Frame] = []

    @property
    def in_flight(self) -> int:
        return 0

    def transmit(self, parcel: Parcel) -> Sending:
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        message = parcel.message
        assert isinstance(message, AdHocEvents | Hello)
        carried = message.carried if isinstance(message, AdHocEvents) else ()
        events = tuple((each.event.id, each.hops) for each in carried)
        mechanism = str(message.mark.mechanism)
        self.frames.append(Frame(self.simulation.now(), parcel.sender.node, parcel.receiver, events, mechanism))
        for link in self.links.values():
            meant = parcel.receiver in {None, link.address}
            if meant and link is not parcel.sender and self.hears(parcel.sender.node, link.node):
                self.simulation.at(self.simulation.now() + self.delay(), self._arrive, (parcel, link))
        return Sending.ACCEPTED

    def _arrive(self, what: tuple[Parcel, SimulatedLink]) -> None:
        parcel, link = what
        if not self.lost(parcel.sender.node, link.node):
            self.hand_over(parcel, link)


class Listener(Component):
    """Subscribes when it starts, remembers what it is told."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.subscriptions = subscriptions
        self.got: list[str] = []

    def start(self, host: Host) -> None:
        self.host = host
        self.events = host.component(CarriedEvents)
        for subscription in self.subscriptions:
            self.events.subscribe(subscription, lambda event: self.got.append(event.id), LocationRequest(3_600.0))


class Village:
    """Hosts h0, h1, ... at these places, all alike."""

    def __init__(
        self,
        places: Sequence[Place],
        mechanism: MechanismSpec,
        *,
        edges: Iterable[tuple[int, int]] | None = None,
        subscriptions: Sequence[Subscription] = (EVERYWHERE,),
        settings: AdHocSettings | None = None,
        seed: int = 1,
        check_wire: bool = False,
        agents: bool = False,
        join: bool = True,
    ) -> None:
        """``edges``: who hears whom; without them, whoever is in range."""
        self.settings = replace(settings or AdHocSettings(mechanism), mechanism=mechanism)
        self.subscriptions = subscriptions
        self.agents = agents
        self.places = places
        self.rows: dict[str, list[tuple[Any, ...]]] = {"notifications": [], "transitions": []}
        observers = Observers()
        for table, rows in self.rows.items():
            observers.record(table, lambda *row, keep=rows.append: keep(row))
        self.simulation = Simulation(seed, observers=observers)
        self.world = World(self.simulation, Plane(HOME), len(places))
        pairs = None if edges is None else {frozenset(edge) for edge in edges}
        self.network = self._network(pairs, check_wire=check_wire)
        for node, place in enumerate(places):
            self.world.add(f"h{node}", self._build, [self.network])
            self.world.motion.put(node, *place)
        if join:
            self.join(*range(len(places)))

    def _network(self, pairs: set[frozenset[int]] | None, *, check_wire: bool) -> Any:
        def hears(sender: int, receiver: int) -> bool:
            if pairs is not None:
                return frozenset((sender, receiver)) in pairs
            return math.dist(self.world.motion.at(sender), self.world.motion.at(receiver)) <= RANGE

        return Meadow(self.simulation, hears, check_wire=check_wire)

    def _build(self) -> list[Component]:
        adhoc = AdHoc(self.settings)
        agent: list[Component] = [TransitionAgent("wifi")] if self.agents else []
        return [HostEngine(), *agent, CarriedEvents([adhoc]), adhoc, Listener(self.subscriptions)]

    def join(self, *nodes: int) -> None:
        for node in nodes:
            self.world.hosts[f"h{node}"].join()

    def host(self, node: int) -> Host:
        host = self.world.hosts[f"h{node}"].host
        assert host is not None
        return host

    def adhoc(self, node: int) -> AdHoc:
        return self.host(node).component(AdHoc)

    def listener(self, node: int) -> Listener:
        return self.host(node).component(Listener)

    def exchange(self, node: int, mechanism: MechanismSpec) -> None:
        self.host(node).component(HostEngine).engine.execute(self.settings.name, mechanism)

    def event(self, node: int, name: str, **more: Any) -> Event:
        place = self.world.plane.to_point(*self.world.motion.at(node))
        return Event(name, "news", self.simulation.now(), publisher=f"h{node}", place=place, **more)

    def publish(self, node: int, name: str, *, local: bool = True, **more: Any) -> None:
        self.host(node).component(CarriedEvents).publish(self.event(node, name, **more), local=local)

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def reached(self, name: str) -> set[int]:
        """Who got the event."""
        up = [node for node in range(len(self.places)) if self.world.hosts[f"h{node}"].up]
        return {node for node in up if name in self.listener(node).got}

    @property
    def frames(self) -> list[Frame]:
        """With events."""
        frames: list[Frame] = self.network.frames
        return [frame for frame in frames if frame.events]

    def senders(self, name: str) -> list[int]:
        """In the order in which they sent that event, its publisher first."""
        return [frame.sender for frame in self.frames if name in dict(frame.events)]

    def total(self, what: str) -> int:
        return sum(getattr(self.adhoc(node).statistics(), what) for node in range(len(self.places)))


def chain(length: int) -> list[tuple[int, int]]:
    return [(node, node + 1) for node in range(length - 1)]


def star(leaves: int) -> list[tuple[int, int]]:
    """Around host 0."""
    return [(0, leaf) for leaf in range(1, leaves + 1)]


def clique(nodes: Iterable[int]) -> list[tuple[int, int]]:
    listed = list(nodes)
    return [(one, other) for one in listed for other in listed if one < other]


def nowhere(count: int) -> list[Place]:
    """For networks whose edges are given: all hosts at one place."""
    return [(0.0, 0.0)] * count


def scattered(random: Random, count: int, side: float) -> list[Place]:
    return [(random.uniform(0.0, side), random.uniform(0.0, side)) for _ in range(count)]


def connected_to(node: int, places: Sequence[Place]) -> set[int]:
    """Who can be reached from a host over hops within the range."""
    found, open_ends = {node}, [node]
    while open_ends:
        here = places[open_ends.pop()]
        near = {other for other, place in enumerate(places) if math.dist(here, place) <= RANGE} - found
        found |= near
        open_ends += near
    return found
