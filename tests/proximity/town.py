"""Devices that announce, subscribe and raise, over radios without contention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.broker import ProximityBroker
from nearcast.proximity.event_type import EventType
from nearcast.proximity.linked_uplink import LinkedUplink
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.host import Component
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import FOREVER
from nearcast.runtime.simulation.network import Network, SimulatedLink
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine

HOME = Point(53.3545, -6.2846)
PLANE = Plane(HOME)
BROKER = "broker"
WARNING = EventType.of("traffic/warning", {"severity": "integer"})
SLOW = BearerProfile(latency=Uniform(0.05, 0.3), bandwidth=None)


class CutDisc(DiscNetwork):
    """Between some devices there is a wall; and some messages are lost."""

    cut: Callable[[str, str], bool] = staticmethod(lambda _a, _b: False)

    def neighbours(self, sender: SimulatedLink) -> list[SimulatedLink]:
        return [link for link in super().neighbours(sender) if not self.cut(sender.address, link.address)]


class Town:
    """A device for each name, where it stands; metres east and north of home."""

    def __init__(
        self,
        places: Mapping[str, tuple[float, float]],
        settings: ProximitySettings | None = None,
        *,
        seed: int = 1,
        radius: float = 200.0,
        check_wire: bool = True,
        uplink: bool = False,
        radio: Callable[[Simulation, World], Network] | None = None,
        settings_of: Mapping[str, ProximitySettings] | None = None,
    ) -> None:
        settings, others = settings or ProximitySettings(), settings_of or {}
        self.got: dict[str, list[Event]] = {name: [] for name in places}
        self.raised: list[Event] = []
        self.simulation = Simulation(seed, observers=Observers())
        self.world = World(self.simulation, PLANE, len(places) + 1)
        self.disc = CutDisc(self.simulation, self.world.motion, radius, check_wire=check_wire)
        self.radio: Network = self.disc if radio is None else radio(self.simulation, self.world)
        self.cellular = CellularNetwork(
            self.simulation, CellularProfile(uplink=SLOW, downlink=SLOW), check_wire=check_wire
        )
        self.services: dict[str, ProximityService] = {}
        for name, (x, y) in places.items():
            build = self._builder(name, others.get(name, settings), uplink=uplink)
            host = self.world.add(name, build, [self.radio, self.cellular])
            self.world.motion.put(host.node, x, y)
        self.broker = ProximityBroker()
        self.world.add(BROKER, lambda: [self.broker], [self.cellular])
        if uplink:
            self.world.hosts[BROKER].join()
        for name in places:
            self.world.hosts[name].join()

    def _builder(self, name: str, settings: ProximitySettings, *, uplink: bool) -> Callable[[], Sequence[Component]]:
        def build() -> Sequence[Component]:
            link = LinkedUplink(BROKER) if uplink else None
            self.services[name] = service = ProximityService(settings, link)
            return [HostEngine(), *([link] if link else []), service]

        return build

    # What happens

    def __getitem__(self, name: str) -> ProximityService:
        return self.services[name]

    @property
    def now(self) -> float:
        return self.simulation.now() / MICROSECONDS

    def run(self, seconds: float) -> None:
        """Go on for so long."""
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def at(self, seconds: float, action: Callable[[], Any]) -> None:
        """Do that so many seconds after the start."""
        self.simulation.at(round(seconds * MICROSECONDS), lambda _: action())

    def raise_at(self, seconds: float, name: str, subject: str, parameters: Mapping[str, object]) -> None:
        """An event so many seconds after the start; it is kept in ``raised``."""
        self.at(seconds, lambda: self.raised.append(self[name].raise_event(subject, parameters)))

    def put(self, name: str, x: float, y: float) -> None:
        self.world.motion.put(self.world.hosts[name].node, x, y)

    def drive(self, name: str, start: tuple[float, float], velocity: tuple[float, float]) -> None:
        """From there, straight ahead, for ever."""
        leg = Leg(self.simulation.now(), int(FOREVER), *start, *velocity)
        self.move(name, lambda _random, _start: iter([leg]))

    def move(self, name: str, model: MobilityModel) -> None:
        self.world.motion.move(self.world.hosts[name].node, model, self.simulation.random.stream("move", name))

    def place(self, name: str) -> Point:
        return PLANE.to_point(*self.world.motion.at(self.world.hosts[name].node))

    def listen(self, name: str, subject: str = WARNING.subject, content: Any = None, **more: Any) -> None:
        """Subscribe, and keep what comes in ``got``."""
        self[name].subscribe(subject, self.got[name].append, content, **more)

    def ids(self, name: str) -> list[str]:
        return [event.id for event in self.got[name]]

    def sent(self, kind: str) -> int:
        """Messages of that kind on the radio."""
        return sum(row.messages for row in self.radio.traffic() if row.kind == kind and row.direction == "sent")


def at(x: float, y: float) -> Point:
    return PLANE.to_point(x, y)
