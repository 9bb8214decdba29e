"""A coordinator and some hosts that execute its plans, on a cellular network."""

from collections.abc import Sequence
from typing import Any

from tests.transition.mechanisms import RADIAL, SchemeHost

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BYPASS, CellularProfile
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.plan import PlanDone


class Town:
    def __init__(
        self,
        clients: int,
        profile: CellularProfile = BYPASS,
        *,
        coordinators: Sequence[str] = ("broker",),
        acknowledged: bool = True,
        seed: int = 1,
    ) -> None:
        self.transitions: list[tuple[Any, ...]] = []
        self.messages: list[tuple[Any, ...]] = []
        observers = Observers()
        observers.record("transitions", lambda *row: self.transitions.append(row))
        observers.record("messages", lambda *row: self.messages.append(row))
        self.simulation = Simulation(seed, observers=observers)
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), clients + len(coordinators))
        network = CellularNetwork(self.simulation, profile, infrastructure=coordinators, check_wire=True)
        self.acknowledged = acknowledged
        self.answers: list[tuple[str, PlanDone]] = []
        self.clients = [f"c{number}" for number in range(clients)]
        for name in self.clients:
            self.world.add(name, self._client, [network]).join()
        for name in coordinators:
            self.world.add(name, self._coordinator, [network]).join()

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def coordinator(self, name: str = "broker") -> TransitionCoordinator:
        host = self.world.hosts[name].host
        assert host is not None
        return host.component(TransitionCoordinator)

    def agent(self, name: str) -> TransitionAgent:
        host = self.world.hosts[name].host
        assert host is not None
        return host.component(TransitionAgent)

    def scheme(self, name: str, proxy: str = "scheme") -> str:
        """Which mechanism runs on a client."""
        host = self.world.hosts[name].host
        assert host is not None
        return str(host.component(HostEngine).engine.proxy(proxy).spec)  # type: ignore[union-attr]

    def schemes(self) -> list[str]:
        return [self.scheme(name) for name in self.clients]

    def count(self, kind: str) -> int:
        return sum(1 for row in self.messages if row[3] == kind)

    def _client(self) -> list[Component]:
        other = SchemeHost(name="other")
        return [HostEngine(), SchemeHost(RADIAL), other, TransitionAgent(acknowledge=self.acknowledged)]

    def _coordinator(self) -> list[Component]:
        coordinator = TransitionCoordinator(acknowledged=self.acknowledged)
        coordinator.done = lambda host, done: self.answers.append((host, done))
        return [coordinator]
