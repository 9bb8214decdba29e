"""A scenario's world, put together: ground, networks, hosts, people, and when they come and go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.dissemination.broadcast import Broadcast
from nearcast.dissemination.carrier import CarriedEvents, Carrier
from nearcast.dissemination.cloud import CloudBroker, CloudClient
from nearcast.dissemination.publisher import EventService
from nearcast.runtime.host import Component
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.population import Population
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.scenario.crowd import crowd_of
from nearcast.scenario.ground import ground_of
from nearcast.scenario.operations import Operation
from nearcast.scenario.replay import LoggedService
from nearcast.scenario.schema import NETWORKS, Scenario
from nearcast.scenario.workload import Published
from nearcast.scenario.workloads import Workloads

BROKER: Final = "broker"
Log = Callable[[Operation], None]
"""Told of everything that applications do."""


class Assembly:
    """Everything in place; nobody has joined yet.  Clients are nodes 0, 1, ... in the order of ``names``."""

    def __init__(
        self, scenario: Scenario, seed: int, observers: Observers, published: Published, log: Log | None = None
    ) -> None:
        self._scenario: Final = scenario
        self._log: Final = log
        self.ground: Final = ground_of(scenario)
        self.simulation: Final = Simulation(seed, start=scenario.run.start, observers=observers)
        self.names: Final = scenario.clients.names()
        self.world: Final = World(
            self.simulation, self.ground.plane, len(self.names) + 1, sensor_errors=scenario.clients.errors()
        )
        needed = NETWORKS[scenario.delivery.mechanism]
        self.cellular: Final = (
            CellularNetwork(self.simulation, scenario.cellular.profile(), infrastructure=[BROKER])
            if "cellular" in needed
            else None
        )
        self.radio: Final = (
            RadioNetwork(self.simulation, scenario.radio.profile(), self.world.motion) if "radio" in needed else None
        )
        self.networks: Final = [network for network in (self.cellular, self.radio) if network is not None]
        self._workloads: Final = Workloads(
            scenario,
            clients=self.names,
            random=self.simulation.random,
            plane=self.ground.plane,
            bounds=self.ground.bounds,
            points=self.ground.points,
            published=published,
        )
        self.clients: Final = [self.world.add(name, self._client(name), self.networks) for name in self.names]
        self.broker: Final = self._add_broker()

    def begin(self) -> None:
        """Let people move, and the broker and the first clients join."""
        streams = self.simulation.random
        crowd = crowd_of(self._scenario, self.ground, streams.stream("mobility"))
        for node, name in enumerate(self.names):
            self.world.motion.move(node, crowd(node), streams.stream("mobility", name))
        if self.broker is not None:
            self.broker.join()
        self._population = Population(
            self.simulation,
            self.clients,
            self._scenario.population.schedule(),
            self.simulation.random.stream("population"),
        )

    def measure(self, observers: Observers) -> None:
        """The metrics that every run has."""
        observers.measure("clients up", lambda: sum(client.up for client in self.clients))
        observers.measure("callbacks waiting", lambda: self.simulation.statistics().waiting)
        for network in self.networks:
            observers.measure(f"{network.interface} messages in flight", partial(getattr, network, "in_flight"))
        if self.broker is not None:
            observers.measure("clients known to the broker", lambda: self._broker_half().statistics().clients)

    def notifications_sent(self) -> int:
        """By the broker; none without one."""
        return 0 if self.broker is None else self._broker_half().statistics().notifications

    def _client(self, name: str) -> Callable[[], list[Component]]:
        def build() -> list[Component]:
            carriers: list[Carrier] = []
            if self.cellular is not None:
                # Silent for two thirds of the time at most: the broker never takes who is up and connected for gone.
                carriers.append(CloudClient(BROKER, keep_alive=self._scenario.delivery.forget_after / 3))
            if self.radio is not None:
                carriers.append(Broadcast())
            service: EventService = CarriedEvents(carriers)
            if self._log is not None:
                service = LoggedService(service, self.simulation.start, self._log)
            return [service, *carriers, *self._workloads.applications(name)]

        return build

    def _add_broker(self) -> SimulatedHost | None:
        if self.cellular is None:
            return None
        forget_after = self._scenario.delivery.forget_after
        return self.world.add(BROKER, lambda: [CloudBroker(forget_after=forget_after)], [self.cellular])

    def _broker_half(self) -> CloudBroker:
        assert self.broker is not None
        assert self.broker.host is not None
        return self.broker.host.component(CloudBroker)
