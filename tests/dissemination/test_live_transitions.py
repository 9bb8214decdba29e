"""The halves that the simulator tests, on real sockets: schemes are exchanged while events are on their way."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable

from tests.runtime.live.virtual import live, started
from tests.waiting import free_port, until

from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.filtering.attraction import Zones
from nearcast.filtering.location import LocationRequest
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import FedPosition, LiveRuntime, UdpNetwork
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

RADIAL, EGRID = MechanismSpec("RADIAL"), MechanismSpec.of("EGRID", factor=10)
HERE = Point(49.8728, 8.6512)
TERRITORY = Territory(GeoBox(HERE.lat - 0.01, HERE.lon - 0.01, HERE.lat + 0.01, HERE.lon + 0.01), Zones([]))
NORTH = {"ada": 0.0, "bob": 0.0005, "eve": 0.0010, "ian": 0.0050}
"""Degrees; a thousandth is 111 m."""


class Application(Component):
    """Subscribes to what is near, and remembers what it is told."""

    def __init__(self, got: Counter[tuple[str, str]]) -> None:
        self._got = got
        self.host: Host

    def start(self, host: Host) -> None:
        self.host = host
        near = Subscription("news", area=Circle(125), no_local=True)
        host.component(CarriedEvents).subscribe(near, self._note, LocationRequest(0.05))

    def publish(self, number: int) -> None:
        event = Event(
            f"{self.host.name}/{number}",
            "news",
            self.host.now(),
            publisher=self.host.name,
            place=Point(HERE.lat + NORTH[self.host.name], HERE.lon),
        )
        self.host.component(CarriedEvents).publish(event, local=True)

    def _note(self, event: Event) -> None:
        self._got[event.id, self.host.name] += 1


def test_live_schemes_are_exchanged_and_every_event_arrives_once() -> None:
    async def story() -> None:
        got: Counter[tuple[str, str]] = Counter()
        runtime, port = LiveRuntime(), free_port(socket.SOCK_DGRAM)

        def broker() -> list[Component]:
            return [HostEngine(), TransitionCoordinator(), CloudBroker(TERRITORY, BrokerSettings(RADIAL))]

        def client() -> list[Component]:
            cloud = CloudClient(f"127.0.0.1:{port}", TERRITORY, ClientSettings(RADIAL))
            return [HostEngine(), TransitionAgent(), CarriedEvents([cloud]), cloud, Application(got)]

        runtime.add("broker", broker, [UdpNetwork("cellular", port=port)])
        for name, north in NORTH.items():
            position = FedPosition(runtime.clock)
            position.update(HERE.lat + north, HERE.lon, accuracy=1.0)
            runtime.add(name, client, [UdpNetwork("cellular")], position=position.fix)
        running = await started(runtime)

        def of(name: str, kind: type[Component]) -> Component:
            host = runtime.hosts[name].host
            assert host is not None
            return host.component(kind)

        cloud = of("broker", CloudBroker)
        assert isinstance(cloud, CloudBroker)
        await until(lambda: len(cloud.clients) == len(NORTH), running)
        await asyncio.sleep(0.3)  # every position is known by then
        published = 0
        for scheme in (None, EGRID, RADIAL, EGRID):
            if scheme is not None:
                cloud.transition(scheme)
            for _ in range(40):
                published += 1
                for name in NORTH:
                    application = of(name, Application)
                    assert isinstance(application, Application)
                    application.publish(published)
                await asyncio.sleep(0.005)
            await until(_all_run(runtime, scheme or RADIAL), running)
        wanted = {
            (f"{sender}/{number}", receiver): 1
            for number in range(1, published + 1)
            for sender, there in NORTH.items()
            for receiver, here in NORTH.items()
            if sender != receiver and abs(there - here) < 0.00112
        }
        await until(lambda: len(got) >= len(wanted), running)
        assert got == wanted
        runtime.stop()
        await running

    live(story)


def _all_run(runtime: LiveRuntime, scheme: MechanismSpec) -> Callable[[], bool]:
    def answer() -> bool:
        hosts = [runtime.hosts[name].host for name in NORTH]
        return all(
            host and host.component(HostEngine).engine.proxy("filter scheme").spec == scheme  # type: ignore[union-attr]
            for host in hosts
        )

    return answer
