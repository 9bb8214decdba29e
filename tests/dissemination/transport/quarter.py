"""Hosts with Wi-Fi and Bluetooth, on networks that lose nothing."""

from __future__ import annotations

from collections.abc import Sequence

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.transport.local_link import LocalTransport
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
WIFI, BLUETOOTH = of("WIFI"), of("BLUETOOTH")
WIFI_RANGE, BLUETOOTH_RANGE = 88.0, 30.0
HOME = Point(49.8728, 8.6512)
NEWS = Subscription("news", id="all", no_local=True)


class Listener(Component):
    def __init__(self) -> None:
        self.got: list[str] = []

    def start(self, host: Host) -> None:
        host.component(CarriedEvents).subscribe(NEWS, lambda event: self.got.append(event.id))


class Quarter:
    """Hosts h0, h1, ... at these places; ``without`` have no Bluetooth."""

    def __init__(
        self,
        places: Sequence[tuple[float, float]],
        mechanism: MechanismSpec,
        *,
        transport: MechanismSpec = WIFI,
        without: Sequence[int] = (),
        seed: int = 1,
        agents: bool = False,
        join: bool = True,
    ) -> None:
        self.mechanism = mechanism
        self.transport = transport
        self.agents = agents
        self.count = len(places)
        self.published: list[str] = []
        self.simulation = Simulation(seed)
        self.world = World(self.simulation, Plane(HOME), self.count)
        motion = self.world.motion
        self.wifi = DiscNetwork(self.simulation, motion, WIFI_RANGE, check_wire=True)
        self.bluetooth = DiscNetwork(
            self.simulation, motion, BLUETOOTH_RANGE, delay=2_000, interface="bluetooth", check_wire=True
        )
        for node, place in enumerate(places):
            has = [self.wifi] if node in without else [self.wifi, self.bluetooth]
            interfaces = tuple(network.interface for network in has)
            self.world.add(f"h{node}", lambda interfaces=interfaces: self._build(interfaces), has)  # type: ignore[misc]
            motion.put(node, *place)
        if join:
            self.join(*range(self.count))

    def _build(self, interfaces: tuple[str, ...]) -> list[Component]:
        adhoc = AdHoc(AdHocSettings(self.mechanism))
        agent: list[Component] = [TransitionAgent("wifi")] if self.agents else []
        transport = LocalTransport(self.transport, interfaces)
        return [HostEngine(), *agent, transport, CarriedEvents([adhoc]), adhoc, Listener()]

    def join(self, *nodes: int) -> None:
        for node in nodes:
            self.world.hosts[f"h{node}"].join()

    def host(self, node: int) -> Host:
        host = self.world.hosts[f"h{node}"].host
        assert host is not None
        return host

    def of(self, node: int) -> LocalTransport:
        return self.host(node).component(LocalTransport)

    def got(self, node: int) -> list[str]:
        return self.host(node).component(Listener).got

    def publish(self, node: int) -> str:
        name = f"{node}/{len(self.published)}"
        self.published.append(name)
        place = self.world.plane.to_point(*self.world.motion.at(node))
        event = Event(name, "news", self.simulation.now(), publisher=f"h{node}", place=place)
        self.host(node).component(CarriedEvents).publish(event)
        return name

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def using(self) -> list[str]:
        return [str(self.of(node).running) for node in range(self.count)]

    def frames(self, interface: str, kind: str, direction: str = "sent") -> int:
        network = self.wifi if interface == "wifi" else self.bluetooth
        rows = [row for row in network.traffic() if (row.kind, row.direction) == (kind, direction)]
        return sum(row.messages for row in rows)
