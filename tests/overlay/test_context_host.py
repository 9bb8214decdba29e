"""Devices: several applications with several contexts, and the last check."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.overlay.routing_worlds import GivenTree, Wires

from nearcast.errors import UnknownName
from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.overlay.routing.access import PORT, Registration, Send
from nearcast.overlay.routing.context_host import ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.wire import routed
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World


class Town:
    """Two nodes, and devices that hear one of them."""

    def __init__(self) -> None:
        self.simulation = Simulation(3)
        self.wires = Wires(self.simulation)
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), 10)
        self.nodes = [Router(Reference(), settings=RoutingSettings()) for _ in range(2)]
        for number, router in enumerate(self.nodes):
            parts = [router, ContextNode("wired")]
            self.world.add(f"node{number}", lambda parts=parts: parts, [self.wires]).join()  # type: ignore[misc]
        for number, router in enumerate(self.nodes):
            router.tree_changed(GivenTree(f"node{number}", [("node0", "node1")]))
            router.joined(f"node{1 - number}")

    def device(self, name: str, node: str) -> ContextHost:
        host = ContextHost(node, "wired")
        self.world.add(name, lambda: [host], [self.wires]).join()
        return host

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.time + round(seconds * 1_000_000))

    def publish(self, node: int, name: str, to: str) -> None:
        self.nodes[node].publish(Event(name, "news", self.simulation.time, to=to))
        self.run(10)


def test_each_application_gets_what_is_for_one_of_its_contexts() -> None:
    town = Town()
    device = town.device("phone", "node0")
    work: list[str] = []
    home: list[str] = []
    at_work = device.application(lambda event: work.append(event.id))
    at_home = device.application(lambda event: home.append(event.id))
    at_work.register("me", {"role": "driver"})
    at_work.register("car", {"speed": 50})
    at_home.register("me", {"role": "guest"})
    town.run(10)
    town.publish(1, "e1", "role = 'driver'")
    town.publish(1, "e2", "role IN ('driver', 'guest')")
    town.publish(1, "e3", "role = 'driver' AND speed = 50")  # not by the union of two contexts
    assert (work, home) == (["e1", "e2"], ["e2"])
    at_work.deregister("me")
    town.run(10)
    town.publish(1, "e4", "role = 'driver'")
    assert (work, home) == (["e1", "e2"], ["e2"])


def test_what_an_access_medium_brings_for_others_reaches_no_application() -> None:
    town = Town()
    got: list[str] = []
    device = town.device("phone", "node0")
    device.application(lambda event: got.append(event.id)).register("me", {"role": "guest"})
    town.run(10)
    stray = routed(Event("e", "news", 0, to="role = 'driver'"), "node0")
    town.wires.links["node0"].post("phone", PORT, stray)
    town.run(5)
    assert (got, device.refused) == ([], 1)


def test_who_goes_to_another_node_is_found_there_and_who_falls_silent_is_forgotten() -> None:
    town = Town()
    got: list[str] = []
    device = town.device("phone", "node0")
    device.application(lambda event: got.append(event.id)).register("me", {"role": "guest"})
    town.run(10)
    device.move_to("node1")
    town.run(10)
    assert [node.statistics().local for node in town.nodes] == [0, 1]
    town.publish(0, "e1", "role = 'guest'")
    assert got == ["e1"]
    town.world.hosts["phone"].fail()
    town.run(60)
    assert [node.statistics().local for node in town.nodes] == [0, 0]


def test_registrations_that_were_lost_are_made_again() -> None:
    town = Town()
    device = town.device("phone", "node0")
    town.wires.loss = 1.0
    device.application(lambda _: None).register("me", {"role": "guest"})
    town.run(3)
    town.wires.loss = 0.0
    town.run(30)
    assert town.nodes[0].statistics().local == 1


def test_devices_send_messages_by_way_of_their_node() -> None:
    town = Town()
    got: list[Any] = []
    town.device("phone", "node0").application(got.append).register("me", {"role": "guest"})
    sender = town.device("tablet", "node1")
    town.run(10)
    sender.publish(Event("e", "news", 0, {"delay": 5}, to="role = 'guest'", payload=b"late"))
    town.run(10)
    assert [(event.id, event.payload, dict(event.attributes)) for event in got] == [("e", b"late", {"delay": 5})]


def test_a_context_that_is_not_there_cannot_change() -> None:
    with pytest.raises(UnknownName):
        Town().nodes[0].update("node0/5", {})


def again(town: Town) -> int:
    messages, _ = town.wires.links["node0"].books.get(("sent", "register again"), (0, 0))
    return messages


def test_a_context_whose_deregistration_was_lost_goes_all_the_same() -> None:
    town = Town()
    application = town.device("phone", "node0").application(lambda _: None)
    application.register("me", {"role": "guest"})
    application.register("car", {"speed": 5})
    town.run(10)
    town.wires.loss = 1.0
    application.deregister("car")
    town.run(3)
    town.wires.loss = 0.0
    town.run(60)
    asked = again(town)
    assert town.nodes[0].statistics().local == 1
    town.run(60)
    assert again(town) == asked


def test_a_device_that_returns_with_fewer_contexts_has_no_more() -> None:
    town = Town()
    lives: list[ContextHost] = []

    def build() -> list[ContextHost]:
        host = ContextHost("node0", "wired")
        application = host.application(lambda _: None)
        for number in range(1 if lives else 3):
            application.register(f"c{number}", {"number": number})
        lives.append(host)
        return [host]

    phone = town.world.add("phone", build, [town.wires])
    phone.join()
    town.run(10)
    assert town.nodes[0].statistics().local == 3
    phone.fail()
    town.run(2)
    phone.join()
    town.run(60)
    assert town.nodes[0].statistics().local == 1


def test_what_no_device_could_have_said_is_counted_and_changes_nothing() -> None:
    town = Town()
    town.run(1)
    sender = town.world.add("phone", list, [town.wires])
    sender.join()
    for message in (
        Registration(1, 1, {"a": None}),
        Send(msgspec.structs.replace(routed(Event("e", "news", 0, to="a = 1"), "phone"), to="a >>> 3")),
    ):
        town.wires.links["phone"].post("node0", PORT, message)
    town.run(5)
    node = town.world.hosts["node0"].host
    assert node is not None
    assert node.component(ContextNode).malformed == 2
    assert town.nodes[0].statistics().local == 0


def test_the_last_check_is_of_the_reach_as_well() -> None:
    town = Town()
    got: list[str] = []
    device = town.device("phone", "node0")
    device.application(lambda event: got.append(event.id)).register("me", {"position": Point(49.5, 8.5)})
    town.run(10)
    for name, reach in (("e1", Box(8.0, 49.0, 9.0, 50.0)), ("e2", Box(8.0, 47.0, 9.0, 48.0))):
        town.wires.links["node0"].post("phone", PORT, routed(Event(name, "news", 0, to="TRUE", reach=reach), "node0"))
        town.run(5)
    assert (got, device.refused) == (["e1"], 1)
