"""A town with a broker, a radio and a plain one-hop broadcast to spread events by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, TypeVar

from tests.dissemination.cloud_town import BROKER, CLIENT, PLANE, QUICK, TERRITORY, Application

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.adhoc.messages import AdHocEvents, Hello
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.dissemination.cloud_client import CloudClient
from nearcast.dissemination.gateways.batteries import BATTERY
from nearcast.dissemination.gateways.broker import ByGateways
from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.registry import PROXY
from nearcast.dissemination.gateways.settings import GatewaySettings, GatewayStatistics
from nearcast.dissemination.gateways.spreading import GatewaySpreading, gateway_settings
from nearcast.dissemination.hybrid import HybridEvents
from nearcast.dissemination.wire import EventMessage
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Endpoint, Sending
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import CellularProfile
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Parcel
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import wifi_b
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

EVERYWHERE = Subscription("news", area=Circle(5_000.0), no_local=True)
"""Around the own position, so that it is reported; and for all that happens in the town."""

WIFI_PORT = 9
D = TypeVar("D", bound="DeafAtTimes")


class OneHop(Component):
    """Local spreading: a frame to each target, or one to whoever hears it."""

    def __init__(self, *, silent: bool = False) -> None:
        self.arrived: Callable[[EventMessage, int], None]
        self.spread_to: list[tuple[Address, ...] | None] = []
        self._silent = silent
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._endpoint = host.link("wifi").open(WIFI_PORT, self._receive, EventMessage)

    def spread(self, message: EventMessage, targets: tuple[Address, ...] | None) -> None:
        self.spread_to.append(targets)
        if self._silent:
            return
        if targets is None:
            self._endpoint.broadcast(message)
        else:
            self._endpoint.send_all(targets, message)

    def _receive(self, _sender: Address, message: EventMessage) -> None:
        self.arrived(message, 1)


class DeafAtTimes(AdHoc):
    """Some of what the radio has brought is lost all the same."""

    TO_INBOX: ClassVar = False  # each host loses something else

    loss = 0.0
    luck = Random(1)

    def _receive(self, sender: Address, message: AdHocEvents | Hello) -> None:
        if self.luck.random() >= self.loss:
            super()._receive(sender, message)


class DeafSpreading(GatewaySpreading, DeafAtTimes):
    pass


class Battery(Component):
    def __init__(self, remaining: float) -> None:
        self._remaining = remaining

    def start(self, host: Host) -> None:
        host.state.provide(BATTERY, lambda: self._remaining)


class LossyCellular(CellularNetwork):
    """Acknowledgements get lost, and nothing else."""

    loss = 0.0
    luck = Random(1)

    def transmit(self, parcel: Parcel) -> Sending:
        if parcel.kind == "got" and self.luck.random() < self.loss:
            self.lose(parcel, "by intention")
            return Sending.DROPPED
        return super().transmit(parcel)


@dataclass(frozen=True)
class Options:
    gateways: GatewaySettings | None = None
    profile: CellularProfile = CellularProfile(uplink=QUICK, downlink=QUICK)  # noqa: RUF009 - frozen
    acknowledgements_lost: float = 0.0
    silent: frozenset[str] = frozenset()
    """Hosts that spread nothing; with a mechanism, hosts that hear nothing."""

    without: frozenset[str] = frozenset()
    """Hosts that know nothing of gateways."""

    batteries: tuple[float, ...] = ()
    mechanism: MechanismSpec | None = None
    """By which gateways reach those near them; none: a plain one-hop broadcast."""

    local: MechanismSpec | None = None
    """By which hosts spread what they publish, beside the cloud; none: they do not."""

    unheard: float = 0.0
    """Share of frames that are lost where they should be heard, with a mechanism."""

    seed: int = 1


class GatewayTown:
    """People ``c0``, ``c1``, ... who stand in these places."""

    def __init__(self, people: Sequence[tuple[float, float]], options: Options | None = None) -> None:
        self.options = options or Options()
        self.rows: dict[str, list[tuple[Any, ...]]] = {
            name: [] for name in ("notifications", "gateways", "transitions", "messages")
        }
        observers = Observers()
        for table, rows in self.rows.items():
            observers.record(table, lambda *row, keep=rows.append: keep(row))
        self.simulation = Simulation(self.options.seed, observers=observers)
        self.world = World(self.simulation, PLANE, len(people) + 1)
        self.cellular = LossyCellular(self.simulation, self.options.profile, infrastructure=["broker"], check_wire=True)
        self.cellular.loss, self.cellular.luck = self.options.acknowledgements_lost, Random(self.options.seed)
        self.radio = RadioNetwork(self.simulation, wifi_b(), self.world.motion, check_wire=True)
        self.lives: dict[str, list[Application]] = {}
        self.hosts: list[SimulatedHost] = []
        for node, place in enumerate(people):
            name = f"c{node}"
            self.lives[name] = []
            build = lambda name=name: self._client(name)  # noqa: E731
            self.hosts.append(self.world.add(name, build, [self.cellular, self.radio]))
            self.world.motion.put(node, *place)
        self.handing_over: ByGateways
        self.broker = self.world.add("broker", self._broker, [self.cellular])
        self.broker.join()

    def join_all(self) -> None:
        for host in self.hosts:
            host.join()
        self.after(2.0)

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def at(self, seconds: float, do: Callable[[], None]) -> None:
        """So long from now."""
        self.simulation.at(self.simulation.now() + round(seconds * MICROSECONDS), lambda _: do(), None)

    def publish(self, node: int, name: str, payload: bytes = b"") -> None:
        self.lives[f"c{node}"][-1].publish(name, payload=payload)

    def got(self, name: str) -> dict[str, int]:
        """Who heard of the event, and how often, in all lives."""
        counts = {client: sum(life.got.count(name) for life in lives) for client, lives in self.lives.items()}
        return {client: count for client, count in counts.items() if count}

    def paths(self, name: str) -> dict[str, str]:
        return {row[2]: row[3] for row in self.rows["notifications"] if row[1] == name and row[4] != "duplicate"}

    def sent(self, kind: str) -> tuple[int, int]:
        """Messages and bytes, on the cellular network."""
        rows = [row for row in self.cellular.traffic() if (row.direction, row.kind) == ("sent", kind)]
        return sum(row.messages for row in rows), sum(row.bytes for row in rows)

    def statistics(self) -> GatewayStatistics:
        return self.handing_over.statistics()

    def exchange(self, spec: MechanismSpec) -> None:
        assert self.broker.host is not None
        self.broker.host.component(HostEngine).engine.execute(PROXY, spec)

    def proxy(self) -> Proxy[Any]:
        assert self.broker.host is not None
        found = self.broker.host.component(HostEngine).engine.proxy(PROXY)
        assert isinstance(found, Proxy)
        return found

    def component(self, node: int, kind: type[Any]) -> Any:
        host = self.hosts[node].host
        assert host is not None
        return host.component(kind)

    def _broker(self) -> list[Component]:
        self.handing_over = ByGateways(self.options.gateways)
        broker = CloudBroker(TERRITORY, BROKER, handing_over=self.handing_over)
        return [HostEngine(), TransitionCoordinator(), broker]

    def _client(self, name: str) -> list[Component]:
        cloud = CloudClient("broker", TERRITORY, CLIENT)
        application = Application([EVERYWHERE], 1.0)
        self.lives[name].append(application)
        machinery: list[Component] = [HostEngine(), TransitionAgent()]
        node = int(name[1:])
        if self.options.batteries:
            machinery.append(Battery(self.options.batteries[node]))
        if name in self.options.without:
            return [*machinery, CarriedEvents([cloud]), cloud, application]
        spreading = self._spreading(name)
        gateway = GatewayClient("broker", spreading, again=5.0)
        if self.options.local is None:
            return [*machinery, CarriedEvents([cloud, gateway]), cloud, spreading, gateway, application]
        by_radio = self._deaf(DeafAtTimes(AdHocSettings(self.options.local)), name)
        service = HybridEvents("gateway", ad_hoc=[by_radio], cloud=[cloud], others=[gateway])
        return [*machinery, service, cloud, by_radio, spreading, gateway, application]

    def _spreading(self, name: str) -> OneHop | DeafSpreading:
        if self.options.mechanism is None:
            return OneHop(silent=name in self.options.silent)
        return self._deaf(DeafSpreading(gateway_settings(self.options.mechanism)), name)

    def _deaf(self, carrier: D, name: str) -> D:
        carrier.loss = 1.0 if name in self.options.silent else self.options.unheard
        carrier.luck = Random(f"{self.options.seed} {name} {carrier.settings.name}")
        return carrier
