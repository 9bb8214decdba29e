"""Messages to the past over routers that find out themselves who is linked with whom, on wires that lose some."""

from __future__ import annotations

from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.routing.context_host import ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.temporal.entity import Entity
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.overlay.temporal.trusted_node import TrustedNode
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.overlay.topology.topology import Topology
from nearcast.runtime.host import Component
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.wired import Wire, WiredNetwork
from nearcast.runtime.simulation.world import World

SIZE = 10


class Land:
    """Routers in a row; the first is a trusted node."""

    def __init__(self) -> None:
        self.simulation = Simulation(4, start=1_767_225_600 * MICROSECONDS)
        plane = Plane(Point(48.78, 9.18))
        self.world = World(self.simulation, plane, 2 * SIZE)
        self.wires = WiredNetwork(self.simulation, Wire(loss=0.05))
        self.settings = TopologySettings(contacts=("r0", "r1"), most_links=4, wanted_links=2)
        self.places = {f"r{number}": plane.to_point(1_000.0 * number, 0.0) for number in range(SIZE)}
        self.got: list[str] = []
        for name in self.places:
            self.world.add(name, lambda name=name: self._parts(name), [self.wires]).join()  # type: ignore[misc]

    def _parts(self, name: str) -> list[Component]:
        place = self.places[name]
        area = Box(place.lon - 0.005, place.lat - 0.005, place.lon + 0.005, place.lat + 0.005)
        parts: list[Component] = [Topology(self.settings, place), Router(Reference()), ContextNode("wired")]
        parts.append(TemporalRouter(area=area))
        return [*parts, TrustedNode()] if name == "r0" else parts

    def run(self, seconds: float) -> int:
        self.simulation.run(self.simulation.time + round(seconds * MICROSECONDS))
        return self.simulation.time

    def person(self, name: str, router: str) -> None:
        device = ContextHost(router, "wired", companion=Entity(name, "r0"))
        application = device.application(lambda event: self.got.append(f"{name} {event.id}"))
        application.register("me", {"role": "guest", "position": self.places[router]})
        self.world.add(f"phone of {name}", lambda: [device], [self.wires]).join()

    def publish(self, router: str, event: Event) -> None:
        host = self.world.hosts[router].host
        assert host is not None
        host.component(Router).publish(event)


def test_after_losses_and_failures_all_who_were_there_are_found() -> None:
    land = Land()
    land.run(40)
    for name, router in (("ada", "r2"), ("bob", "r5"), ("cyd", "r8")):
        land.person(name, router)
    began = land.run(60)
    ended = land.run(30)

    def event(name: str) -> Event:
        when = TemporalPredicate("overlaps", began, ended)
        return Event(name, "news", land.simulation.time, to="role = 'guest'", when=when)

    land.publish("r9", event("e1"))
    land.run(60)
    assert sorted(land.got) == ["ada e1", "bob e1", "cyd e1"]
    # One router fails: its archive is away with it, the others are found all the same, by another way.
    land.world.hosts["r4"].fail()
    land.run(2)
    land.publish("r7", event("e2"))
    land.run(90)
    assert sorted(land.got)[1::2] == ["ada e2", "bob e2", "cyd e2"]
