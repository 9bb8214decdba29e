"""Who may address whom, and how much: refused where a message begins its way, and once more where it would be handed over."""

from __future__ import annotations

from typing import Any

import pytest
from tests.overlay.routing_worlds import GivenTree, Overlay, Wires

from nearcast.errors import Denied, InvalidSettings, QuotaExceeded, Refused
from nearcast.model.area import Box, Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.overlay.routing.context_host import ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.senders import EVERYWHERE, SenderRule, Senders
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

TOWN = Box(8.0, 49.0, 8.2, 49.2)
SQUARE = "S_WITHIN(position, BBOX(8.05, 49.05, 8.06, 49.06))"
ABROAD = "S_WITHIN(position, BBOX(2.05, 49.05, 2.06, 49.06))"
SECOND = 1_000_000


def message(to: str, name: str = "e") -> Event:
    return Event(name, "news", 0, to=to)


@pytest.mark.parametrize(
    ("to", "allowed"),
    [
        (SQUARE, True),
        (f"{SQUARE} AND age = 30", True),
        (f"{SQUARE} OR S_DWITHIN(position, POINT(8.1 49.1), 500)", True),
        (f"{SQUARE} OR {ABROAD}", False),
        (f"{SQUARE} AND {ABROAD}", True),  # nobody is in both
        (f"NOT {ABROAD}", False),
        (f"NOT {SQUARE}", False),
        ("S_WITHIN(home, BBOX(8.05, 49.05, 8.06, 49.06))", False),
        ("S_DISJOINT(position, BBOX(8.05, 49.05, 8.06, 49.06))", False),
        ("age = 30", False),
        ("TRUE", False),
    ],
)
def test_each_alternative_must_lie_in_the_area_that_a_sender_may_address(to: str, allowed: bool) -> None:
    senders = Senders([SenderRule(senders=("shop-*",), within=TOWN)])
    assert senders.may_address("shop-1", message(to)) is allowed
    assert not senders.may_address("somebody", message(to))
    if allowed:
        senders.admit("shop-1", message(to), 0)
    else:
        with pytest.raises(Denied, match="shop-1"):
            senders.admit("shop-1", message(to), 0)


def test_without_rules_everything_is_allowed_and_one_rule_must_allow_all_of_it() -> None:
    assert Senders().may_address("anybody", message("TRUE"))
    Senders().admit("anybody", message("TRUE"), 0)
    senders = Senders([SenderRule(senders=("shop",), within=TOWN), SenderRule(senders=("police", "fire-*"))])
    assert senders.may_address("fire-7", message("TRUE"))
    assert not senders.may_address("shop", message(f"{SQUARE} OR {ABROAD}"))


def test_so_many_messages_in_a_second() -> None:
    """The closed form of a bucket: the burst at once, and then one by one."""
    senders = Senders([SenderRule(senders=("*",), messages_per_second=2.0, burst=5.0)])
    sent = {"a": 0, "b": 0}
    for now in range(0, 20 * SECOND, SECOND // 10):
        for who in sent:
            try:
                senders.admit(who, message("TRUE"), now)
                sent[who] += 1
            except QuotaExceeded:
                pass
    assert sent == {"a": 10 + 39, "b": 10 + 39}
    assert senders.statistics().too_fast == 2 * (200 - 49)


def test_so_much_area_in_a_second() -> None:
    rule = SenderRule(senders=("*",), square_kilometres_per_second=10.0, burst=10.0)
    small, large = "S_DWITHIN(position, POINT(8.1 49.1), 1000)", "S_DWITHIN(position, POINT(8.1 49.1), 5000)"
    senders = Senders([rule])
    for _ in range(31):  # 3.14 square kilometres each, of 100
        senders.admit("a", message(small), 0)
    with pytest.raises(QuotaExceeded, match="smaller"):
        senders.admit("a", message(small), 0)
    senders.admit("b", message(large), 0)
    with pytest.raises(QuotaExceeded):
        senders.admit("b", message(large), 0)
    senders.admit("b", message(small), 0)
    senders.admit("c", message("age = 3"), 0)  # all that there is, and owed from then on
    with pytest.raises(QuotaExceeded):
        senders.admit("c", message(small), round(EVERYWHERE / 10 * SECOND) - 20 * SECOND)


def test_a_second_rule_may_help_where_the_first_is_used_up() -> None:
    rules = [
        SenderRule(senders=("*",), messages_per_second=1.0, burst=1.0),
        SenderRule(senders=("police",), messages_per_second=1.0, burst=1.0),
    ]
    senders = Senders(rules)
    for _ in range(2):
        senders.admit("police", message("TRUE"), 0)
    senders.admit("shop", message("TRUE"), 0)
    for who in ("police", "shop"):
        with pytest.raises(QuotaExceeded):
            senders.admit(who, message("TRUE"), 0)


def test_senders_that_rest_are_forgotten() -> None:
    senders = Senders([SenderRule(senders=("*",), messages_per_second=1.0, burst=1.0)])
    for number in range(1_000):
        senders.admit(f"sender {number}", message("TRUE"), number * SECOND // 4)
    assert senders.statistics().remembered < 20


def rules() -> Senders:
    return Senders([SenderRule(senders=("r000",), within=TOWN), SenderRule(senders=("r001",))])


def test_the_first_router_refuses_and_nothing_is_sent() -> None:
    overlay = Overlay(3, Reference, senders=rules)
    overlay.connect([(0, 1), (1, 2)])
    overlay.register(2, {"position": Point(49.055, 8.055), "age": 30})
    overlay.run(10)
    with pytest.raises(Denied):
        overlay.publish(0, "age = 30")
    with pytest.raises(Denied):
        overlay.publish(2, SQUARE)
    overlay.run(5)
    assert overlay.wires.copies == {}
    for sender, to in ((0, SQUARE), (1, "age = 30")):
        event = overlay.publish(sender, to)
        overlay.run(5)
        assert overlay.got(event) == overlay.expected(sender, event) != []


def test_a_router_that_does_not_refuse_helps_nobody() -> None:
    """The last one asks again."""
    made = iter([None, None, rules()])
    overlay = Overlay(3, Reference, senders=lambda: next(made))
    overlay.connect([(0, 1), (1, 2)])
    overlay.register(2, {"position": Point(49.055, 8.055), "age": 30})
    overlay.run(10)
    event = overlay.publish(0, "age = 30")
    overlay.run(5)
    assert overlay.got(event) == []
    assert overlay.routers[2].statistics().denied == 1


def test_a_device_is_known_by_its_address_whatever_it_says() -> None:
    simulation = Simulation(3)
    wires = Wires(simulation)
    world = World(simulation, Plane(Point(49.87, 8.65)), 4)
    router = Router(Reference(), senders=Senders([SenderRule(senders=("phone0",), messages_per_second=1.0, burst=2.0)]))
    node = ContextNode("wired")
    world.add("node", lambda: [router, node], [wires]).join()
    router.tree_changed(GivenTree("node", []))
    devices = [ContextHost("node", "wired") for _ in range(2)]
    for number, device in enumerate(devices):
        world.add(f"phone{number}", lambda device=device: [device], [wires]).join()  # type: ignore[misc]
    got: list[tuple[str, str | None]] = []
    devices[0].application(lambda event: got.append((event.id, event.publisher))).register("me", {"role": "guest"})
    simulation.run(5 * SECOND)
    devices[1].publish(Event("forged", "news", simulation.time, publisher="phone0", to="role = 'guest'"))
    for number in range(5):
        devices[0].publish(Event(f"e{number}", "news", simulation.time, publisher="mayor", to="role = 'guest'"))
    simulation.run(15 * SECOND)
    assert len(got) in (2, 3)  # as they arrive within a second
    assert {publisher for _, publisher in got} == {"phone0"}
    assert node.refused == 6 - len(got)
    assert "forged" not in dict(got)


@pytest.mark.parametrize(
    "wrong",
    [
        {"senders": ()},
        {"senders": ("*",), "within": Circle(50.0)},
        {"senders": ("*",), "messages_per_second": -1.0},
        {"senders": ("*",), "burst": 0.0},
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        SenderRule(**wrong)


def test_both_are_refusals_that_a_client_can_be_told_of() -> None:
    assert issubclass(Denied, Refused)
    assert issubclass(QuotaExceeded, Refused)
