"""Acknowledged hop by hop, messages arrive once each, whatever the wires lose, delay and reorder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.routing_worlds import GivenTree, Overlay, Wires

from nearcast.errors import InvalidSettings
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.overlay.assurance import AssuranceSettings, Assured
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.context_host import ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.messages import PORT
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.wire import routed
from nearcast.runtime.messages import encoded
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

ASSURED = RoutingSettings(assurance=AssuranceSettings())


def chain(
    size: int, routing: RoutingSettings | None, knowledge: Callable[[], Knowledge] = Reference, seed: int = 1
) -> Overlay:
    """Everybody knows everything, and from then on a third of all that is sent is lost."""
    overlay = Overlay(size, knowledge, settings=routing, seed=seed)
    overlay.connect((number, number + 1) for number in range(size - 1))
    for router in range(size):
        overlay.register(router, {"a": router % 2})
    overlay.run(60)
    overlay.wires.loss = 0.33
    return overlay


def told(overlay: Overlay, messages: int, size: int) -> tuple[int, int]:
    """Deliveries that should be, and those that were; nothing twice, nothing else."""
    events = [(number % size, overlay.publish(number % size, f"a = {number % 2}")) for number in range(messages)]
    overlay.run(120)
    wanted = made = 0
    for sender, event in events:
        expected, got = overlay.expected(sender, event), overlay.got(event)
        assert len(got) == len(set(got))
        assert set(got) <= set(expected)
        wanted, made = wanted + len(expected), made + len(got)
    return wanted, made


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8)
def test_over_wires_that_lose_a_third_everybody_gets_every_message_once(
    knowledge: Callable[[], Knowledge], seed: int
) -> None:
    overlay = chain(5, ASSURED, knowledge, seed)
    wanted, made = told(overlay, 12, 5)
    assert wanted == made
    statistics = [router.statistics().assurance for router in overlay.routers]
    assert all(each.waiting == each.given_up == 0 for each in statistics)
    assert sum(each.resent for each in statistics) > 0
    assert sum(each.repeated for each in statistics) > 0  # an acknowledgement was lost, or late


def test_without_it_some_are_missed() -> None:
    wanted, made = told(chain(5, None), 12, 5)
    assert made < wanted


def test_where_nothing_is_lost_each_link_carries_a_message_and_an_acknowledgement() -> None:
    overlay = chain(5, RoutingSettings(assurance=AssuranceSettings(first=3.0)))
    overlay.wires.loss = 0.0
    wanted, made = told(overlay, 6, 5)
    assert wanted == made
    statistics = [router.statistics().assurance for router in overlay.routers]
    assert sum(each.sent for each in statistics) == sum(router.statistics().forwarded for router in overlay.routers)
    assert sum(each.resent + each.repeated for each in statistics) == 0


def test_who_does_not_ask_for_it_acknowledges_all_the_same() -> None:
    choices = iter([ASSURED, None])
    overlay = Overlay(2, Reference)
    for router in overlay.routers:
        router._endpoint._settings = (next(choices) or RoutingSettings()).assurance  # type: ignore[misc]
    overlay.connect([(0, 1)])
    overlay.register(1, {"a": 1})
    overlay.run(20)
    event = overlay.publish(0, "a = 1")
    overlay.run(5)
    assert overlay.got(event) == overlay.expected(0, event)
    assert overlay.routers[0].statistics().assurance.waiting == 0


def test_pauses_grow_and_in_the_end_it_is_given_up() -> None:
    overlay = chain(2, RoutingSettings(assurance=AssuranceSettings(give_up=40.0)))
    overlay.wires.loss = 1.0
    overlay.publish(0, "a = 1")
    overlay.run(39)
    statistics = overlay.routers[0].statistics().assurance
    # After 0.5, 1, 2, 4, 4, ... seconds, each up to a fifth longer.
    assert 10 <= statistics.resent <= 12
    assert (statistics.waiting, statistics.given_up) == (1, 0)
    overlay.run(20)
    statistics = overlay.routers[0].statistics().assurance
    assert (statistics.waiting, statistics.given_up) == (0, 1)


def test_a_number_is_taken_once_however_long_it_is_sent_again() -> None:
    overlay = chain(2, ASSURED)
    handle = overlay.routers[0].statistics().received
    overlay.wires.loss = 0.0
    body = encoded(routed(Event("e", "news", 0, to="a = 0"), "r001"))
    overlay.delivered["e"] = []
    for _ in range(5):  # longer than messages are remembered by their names
        overlay.wires.links["r001"].post("r000", PORT, Assured(7, 5, body))
        overlay.run(100)
    assert overlay.routers[0].statistics().received == handle + 1
    overlay.wires.links["r001"].post("r000", PORT, Assured(8, 8, body))
    overlay.run(5)
    overlay.wires.links["r001"].post("r000", PORT, Assured(7, 5, body))
    overlay.run(5)
    assert overlay.routers[0].statistics().received == handle + 2


def test_what_a_neighbour_that_is_gone_has_not_acknowledged_takes_another_way() -> None:
    overlay = Overlay(3, Reference, settings=ASSURED)
    overlay.connect([(0, 1), (1, 2)])
    overlay.register(2, {"a": 1})
    overlay.run(30)
    overlay.wires.loss = 1.0
    event = overlay.publish(0, "a = 1")
    overlay.run(10)
    overlay.wires.loss = 0.0
    overlay.connect([(0, 2)])  # router 1 has failed
    overlay.run(10)
    assert overlay.got(event) == overlay.expected(0, event) != []
    assert overlay.routers[0].statistics().assurance.waiting == 0


def test_what_cannot_be_read_is_acknowledged_and_counted() -> None:
    overlay = chain(2, ASSURED)
    overlay.wires.loss = 0.0
    overlay.wires.links["r001"].post("r000", PORT, Assured(1, 0, b"nonsense"))
    overlay.wires.links["r001"].post("r000", PORT, Assured(2, 0, encoded(Assured(3, 0, b""))))
    overlay.run(5)
    assert overlay.routers[0].statistics().assurance.malformed == 2
    wanted, made = told(overlay, 2, 2)
    assert wanted == made


def test_from_one_device_to_another_nothing_is_lost() -> None:
    simulation = Simulation(5)
    wires = Wires(simulation)
    world = World(simulation, Plane(Point(49.87, 8.65)), 10)
    routers = [Router(Reference(), settings=ASSURED) for _ in range(2)]
    for number, router in enumerate(routers):
        parts = [router, ContextNode("wired", assurance=AssuranceSettings())]
        world.add(f"node{number}", lambda parts=parts: parts, [wires]).join()  # type: ignore[misc]
    for number, router in enumerate(routers):
        router.tree_changed(GivenTree(f"node{number}", [("node0", "node1")]))
        router.joined(f"node{1 - number}")
    devices = [ContextHost(f"node{number}", "wired", assurance=AssuranceSettings()) for number in range(2)]
    for number, device in enumerate(devices):
        world.add(f"phone{number}", lambda device=device: [device], [wires]).join()  # type: ignore[misc]
    got: list[str] = []
    devices[1].application(lambda event: got.append(event.id)).register("me", {"role": "guest"})
    simulation.run(20_000_000)
    wires.loss = 0.33
    for number in range(20):
        devices[0].publish(Event(f"e{number}", "news", simulation.time, to="role = 'guest'"))
    simulation.run(simulation.time + 100_000_000)
    assert sorted(got) == sorted(f"e{number}" for number in range(20))


@pytest.mark.parametrize(
    "wrong", [{"first": 0.0}, {"growth": 0.5}, {"give_up": 0.0}, {"first": 9.0}, {"most_waiting": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSettings):
        AssuranceSettings(**wrong)  # type: ignore[arg-type]
