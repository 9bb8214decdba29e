"""A scenario's world, put together: ground, networks, hosts, people, and when they come and go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, cast

from nearcast.dissemination.adhoc.carrier import LOCAL, AdHoc, AdHocSettings
from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker, Memory
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.dissemination.gateways.broker import ByGateways
from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.spreading import GATEWAY, GatewaySpreading, gateway_settings
from nearcast.dissemination.hybrid import MODES, HybridEvents
from nearcast.dissemination.publisher import EventService
from nearcast.dissemination.transport.local_link import TRANSPORT, LocalTransport
from nearcast.dissemination.transport.registry import Bluetooth
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.channels import UnknownChannels
from nearcast.filtering.missing import Strategy
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.time import MICROSECONDS
from nearcast.planning.adaptive import AdaptiveSchemes, AdaptiveSettings, alive_bytes
from nearcast.planning.adhoc_timetable import AdHocEntry, AdHocTimetable
from nearcast.planning.at_points import TransitionsAtPoints
from nearcast.planning.coexistence import Coexistence, CoexistenceSettings, Mechanisms
from nearcast.planning.expectations import Circumstances
from nearcast.planning.gateway_timetable import GatewayTimetable
from nearcast.planning.learning import LearnerSettings
from nearcast.planning.ruled import RuledSchemes
from nearcast.planning.timetable import Timetable, TimetableEntry
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import PORT_BYTES
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.population import Population
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.scenario.crowd import crowd_of
from nearcast.scenario.ground import ground_of
from nearcast.scenario.operations import Operation
from nearcast.scenario.planning_section import AdaptivePlanning, when_none_holds
from nearcast.scenario.replay import LoggedService
from nearcast.scenario.schema import Scenario
from nearcast.scenario.workload import Published
from nearcast.scenario.workloads import Workloads
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import NULL, MechanismSpec

BROKER: Final = "broker"
BROADCAST: Final = MechanismSpec("BROADCAST")
Log = Callable[[Operation], None]
"""Told of everything that applications do."""


BROKER_METRICS: Final = {
    "clients known to the broker": "clients",
    "events matched": "events",
    "match operations, as counted in the documents": "match_operations_counted",
    "match operations, as done": "match_operations_done",
    "messages to clients": "notifications",
    "messages to clients, by multicast": "multicasts",
    "schemes that go on for a while": "overlaps",
}
"""Metrics of every run with a broker, and what they are in its statistics; sums since its start but for the first and last."""

AT_POINTS: Final = "clients at attraction points"
"""A metric of runs with coexistence: as far as the broker knows."""


HEARD: Final = "events heard from gateways"
COPIES: Final = "copies heard from gateways"
MOST_COPIES: Final = "copies of an event heard from gateways, by who hears most"
"""Metrics of runs with gateways: sums over clients since these joined, of which ``COPIES`` holds the first ones as well; and the mean of
one client."""


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
        needed = scenario.networks
        self.cellular: Final = (
            CellularNetwork(self.simulation, scenario.cellular.profile(), infrastructure=[BROKER])
            if "cellular" in needed
            else None
        )
        self.radio: Final = (
            RadioNetwork(self.simulation, scenario.radio.profile(), self.world.motion) if "radio" in needed else None
        )
        self.bluetooth: Final = (
            RadioNetwork(
                self.simulation, scenario.bluetooth.profile(), self.world.motion, interface=Bluetooth.interface
            )
            if "radio" in needed and Bluetooth.interface in scenario.adhoc.interfaces
            else None
        )
        made = (self.cellular, self.radio, self.bluetooth)
        self.networks: Final = [network for network in made if network is not None]
        self._workloads: Final = Workloads(
            scenario,
            clients=self.names,
            random=self.simulation.random,
            plane=self.ground.plane,
            bounds=self.ground.bounds,
            points=self.ground.points,
            published=published,
        )
        self.territory: Final = self._territory()
        self._private: Final = self._those_in_private()
        self._memory: Final = Memory()
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
        else:
            for change in self._adhoc_entries():
                when = self.simulation.start + round(change.seconds * MICROSECONDS)
                self.simulation.at(when, self._initiate, change)
        self._population = Population(
            self.simulation,
            self.clients,
            self._scenario.population.schedule(),
            self.simulation.random.stream("population"),
        )

    def _territory(self) -> Territory:
        """The ground as filter schemes see it."""
        bounds, plane = self.ground.bounds, self.ground.plane
        low, high = plane.to_point(bounds.west, bounds.south), plane.to_point(bounds.east, bounds.north)
        zones = Zones(Zone(each.name, plane.to_point(each.x, each.y), each.radius) for each in self.ground.points)
        unknown = cast("UnknownChannels", self._scenario.transitions.unknown_channels)
        return Territory(GeoBox(low.lat, low.lon, high.lat, high.lon), zones, unknown)

    def _those_in_private(self) -> frozenset[str]:
        random = self.simulation.random.stream("privacy")
        return frozenset(random.sample(self.names, round(self._scenario.privacy.share * len(self.names))))

    def measure(self, observers: Observers) -> None:
        """The metrics that every run has."""
        observers.measure("clients up", lambda: sum(client.up for client in self.clients))
        observers.measure("callbacks waiting", lambda: self.simulation.statistics().waiting)
        for network in self.networks:
            observers.measure(f"{network.interface} messages in flight", partial(getattr, network, "in_flight"))
        if self.broker is not None:
            for name, part in BROKER_METRICS.items():
                observers.measure(name, lambda part=part: getattr(self._broker_half().statistics(), part))  # type: ignore[misc]
            if self._scenario.coexistence.inside is not None:
                observers.measure(AT_POINTS, lambda: self._broker_host().component(Coexistence).statistics().at_points)

        if self._has_gateways:
            observers.measure(HEARD, lambda: sum(events for events, _ in self._heard_from_gateways()))
            observers.measure(COPIES, lambda: sum(copies for _, copies in self._heard_from_gateways()))
            observers.measure(
                MOST_COPIES, lambda: max((copies / events for events, copies in self._heard_from_gateways()), default=0)
            )

    def _heard_from_gateways(self) -> list[tuple[int, int]]:
        """Of each client that has heard something: how many events, and how many copies of them."""
        hosts = [client.host for client in self.clients if client.host is not None]
        events = [host.component(GatewayClient).statistics().overheard for host in hosts]
        copies = [host.component(GatewaySpreading).statistics().copies for host in hosts]
        return [(heard, heard + more) for heard, more in zip(events, copies, strict=True) if heard]

    def notifications_sent(self) -> int:
        """By the broker; none without one."""
        return 0 if self.broker is None else self._broker_half().statistics().notifications

    def _client(self, name: str) -> Callable[[], list[Component]]:
        def build() -> list[Component]:
            cloud: list[Carrier] = []
            ad_hoc: list[Carrier] = []
            machinery: list[Component] = [HostEngine()]
            if self.cellular is not None:
                machinery.append(TransitionAgent(acknowledge=self._scenario.transitions.acknowledged))
                # Of gateways the registration tells both addresses.
                local = "wifi" if self.radio is not None and not self._has_gateways else None
                cloud.append(CloudClient(BROKER, self.territory, self._client_settings(name), local_interface=local))
            if self.bluetooth is not None:
                how = self._scenario.adhoc
                machinery.append(LocalTransport(how.transport.spec(), how.interfaces, self_healing=how.self_healing))
            if self.radio is not None:
                ad_hoc.append(AdHoc(self._adhoc_settings()))
            passing: list[Component] = []
            others: list[Carrier] = []
            if self._has_gateways:
                spreading = self._gateway_spreading()
                others.append(GatewayClient(BROKER, spreading))
                passing = [spreading, *others]
            service: EventService = HybridEvents(
                self._scenario.delivery.mechanism, ad_hoc=ad_hoc, cloud=cloud, others=others
            )
            if self._log is not None:
                service = LoggedService(service, self.simulation.start, self._log)
            return [*machinery, service, *cloud, *ad_hoc, *passing, *self._workloads.applications(name)]

        return build

    def _adhoc_settings(self) -> AdHocSettings:
        how, mechanism = self._scenario.adhoc, self._scenario.delivery.mechanism
        first = BROADCAST if mechanism in ("broadcast", "both") else how.mechanism.spec()
        return AdHocSettings(
            mechanism=self._running_first(first),
            geofence=how.geofence,
            self_healing=self._heals,
            foreign=how.foreign,
        )

    def _running_first(self, mechanism: MechanismSpec) -> MechanismSpec:
        """Where there are some at attraction points only, everybody starts as if it were at none."""
        return NULL if self._scenario.coexistence.inside else mechanism

    @property
    def _heals(self) -> bool:
        # Else points that are told by the broker what to run would hear something else from their neighbours.
        return self._scenario.adhoc.self_healing and not self._scenario.coexistence.tells_points()

    def _gateway_spreading(self) -> GatewaySpreading:
        how = self._scenario.adhoc
        return GatewaySpreading(
            gateway_settings(
                self._running_first(self._scenario.gateways.mechanism.spec()),
                self_healing=self._heals,
                foreign=how.foreign,
            )
        )

    def _adhoc_entries(self) -> list[AdHocEntry]:
        how = self._scenario.adhoc
        entries = [AdHocEntry(it.at, it.mechanism.spec(), it.initiators) for it in how.transition]
        others = how.transport_transition
        entries += [AdHocEntry(it.at, it.transport.spec(), it.initiators, TRANSPORT) for it in others]
        return entries

    def _initiate(self, change: AdHocEntry) -> None:
        """Without a broker: some of those who are up begin, and others follow."""
        up = [client.host for client in self.clients if client.host is not None]
        random = self.simulation.random.stream("ad hoc timetable", str(change.seconds))
        for host in random.sample(up, min(change.initiators or len(up), len(up))):
            for part in host.components:
                if (isinstance(part, AdHoc) and part.settings.name == change.proxy) or (
                    isinstance(part, LocalTransport) and change.proxy == TRANSPORT
                ):
                    part.initiate(change.mechanism)

    def _client_settings(self, name: str) -> ClientSettings:
        scenario = self._scenario
        return ClientSettings(
            scheme=scenario.privacy.scheme.spec() if name in self._private else scenario.scheme.spec(),
            pinned=name in self._private,
            confirms=scenario.transitions.overlap,
            resubscribes=not scenario.transitions.state_transfer,
            # Silent for two thirds of the time at most: the broker never takes who is up and connected for gone.
            keep_alive=scenario.delivery.forget_after / 3,
            piggyback=scenario.delivery.piggyback,
        )

    def _add_broker(self) -> SimulatedHost | None:
        return None if self.cellular is None else self.world.add(BROKER, self._broker_components, [self.cellular])

    def _broker_components(self) -> list[Component]:
        scenario, how = self._scenario, self._scenario.transitions
        settings = BrokerSettings(
            scheme=scenario.scheme.spec(),
            state_transfer=how.state_transfer,
            overlap=how.overlap,
            grace=how.grace,
            missing_context=cast("Strategy", how.missing_context),
            wait_at_most=how.wait_at_most,
            forget_after=scenario.delivery.forget_after,
        )
        gateways = None
        if self._has_gateways:
            gateways = ByGateways(scenario.gateway_settings())
        components: list[Component] = [
            HostEngine(),
            TransitionCoordinator(acknowledged=how.acknowledged),
            CloudBroker(self.territory, settings, self._memory, handing_over=gateways),
        ]
        if scenario.transition:
            entries = [TimetableEntry(each.at, each.scheme.spec(), each.share) for each in scenario.transition]
            components.append(Timetable(entries, self.simulation.start))
        changes = self._adhoc_entries()
        if changes:
            components.append(AdHocTimetable(changes, self.simulation.start))
        if gateways is not None and scenario.gateways.transition:
            passing = [each.planned() for each in scenario.gateways.transition]
            components.append(GatewayTimetable(passing, self.simulation.start, gateways))
        if scenario.rule:
            rules = [each.rule() for each in scenario.rule]
            components.append(RuledSchemes(rules, when_none_holds(scenario.rule, scenario.scheme)))
        if isinstance(scenario.planning, AdaptivePlanning):
            components.append(self._planner(scenario.planning))
        inside = MechanismSpec.of("ATTRACT", catch_all=False, extension=how.extension)
        if gateways is not None:
            inside = inside.changed("enable_updates", True)  # they are chosen by where they are (BYPASS.KOM 5.3.2)
        if scenario.coexistence.inside is not None:
            components.append(self._coexistence(inside, MechanismSpec(scenario.coexistence.inside), gateways))
        elif how.at_points:
            components.append(TransitionsAtPoints(self.territory.zones, inside, settings.scheme))
        return components

    def _coexistence(self, scheme: MechanismSpec, mode: MechanismSpec, gateways: ByGateways | None) -> Coexistence:
        scenario, how = self._scenario, self._scenario.coexistence
        passing = scenario.gateways.mechanism
        crowded = {LOCAL: scenario.adhoc.mechanism.spec()}
        otherwise = {} if how.otherwise is None else {LOCAL: how.otherwise.spec()}
        if gateways is not None:
            crowded[GATEWAY] = passing.spec()
            otherwise |= {GATEWAY: (how.gateways_otherwise or passing).spec()} if otherwise else {}
        settings = CoexistenceSettings(
            inside=scheme,
            outside=scenario.scheme.spec(),
            mode_outside=MechanismSpec(scenario.delivery.mechanism),
            crowded=Mechanisms(mode, tuple(crowded.items())),
            otherwise=Mechanisms(mode, tuple(otherwise.items())) if otherwise else None,
            rule=how.rule(),
            coordination=how.coordinated(),
        )
        return Coexistence(self.territory.zones, settings, gateways)

    @property
    def _has_gateways(self) -> bool:
        """Anywhere."""
        modes = (self._scenario.delivery.mechanism, self._scenario.coexistence.inside or "cloud")
        return any(MODES[mode].gateways for mode in modes)

    def _planner(self, planning: AdaptivePlanning) -> Component:
        scenario, overhead = self._scenario, self._scenario.cellular.overhead + PORT_BYTES
        learner = LearnerSettings(
            dwell=planning.dwell,
            target_recall=planning.target_recall,
            match_weight=planning.match_weight,
            keep_alive=scenario.delivery.forget_after / 3,
            alive_bytes=alive_bytes(overhead),
        )
        settings = AdaptiveSettings(
            candidates=tuple(each.spec() for each in planning.candidates),
            window=planning.window,
            learner=learner,
            circumstances=Circumstances(scenario.clients.location_interval, overhead=overhead),
        )
        return AdaptiveSchemes(self.territory, settings)

    def _broker_half(self) -> CloudBroker:
        return self._broker_host().component(CloudBroker)

    def _broker_host(self) -> Host:
        assert self.broker is not None
        assert self.broker.host is not None
        return self.broker.host
