"""Tags, messages of other schemes, messages that overtake each other, and messages that take others along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.dissemination.cloud_town import NEAR, PROFILE, CloudTown, Options

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.dissemination.cloud_messages import Alive, AllSubscriptions, Subscribe, SubscribeAgain
from nearcast.dissemination.wire import EventMessage, message_of, without_tag
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate, Joining
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile, Outage
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
RADIAL, EGRID = of("RADIAL"), of("EGRID")


def overhear(town: CloudTown) -> list[tuple[str, Any]]:
    """What the broker receives, from now on, with its sender."""
    heard: list[tuple[str, Any]] = []
    broker = town.cloud
    receive: Callable[[str, Any], None] = broker._receive

    def listen(sender: str, message: Any) -> None:
        heard.append((sender, message))
        receive(sender, message)

    port = broker._endpoint
    assert hasattr(port, "receive")
    port.receive = listen
    return heard


def carrier(town: CloudTown, node: int) -> CloudClient:
    host = town.hosts[node].host
    assert host is not None
    return host.component(CloudClient)


def test_everything_but_events_says_of_which_scheme_and_plan_its_sender_is() -> None:
    town = CloudTown([(0.0, 0.0), (50.0, 0.0)], Options(EGRID))
    heard = overhear(town)
    here, _ = town.join_all(NEAR)
    town.after(2.0)
    here.publish("e1")
    town.after(1.0)
    town.cloud.transition(RADIAL)
    town.after(2.0)
    here.publish("e2")
    town.after(7.0)
    tags = [(type(message), message.scheme, message.clock) for _, message in heard if hasattr(message, "scheme")]
    assert {(kind, "EGRID", 0) for kind in (Subscribe, AssignmentRequest)} <= set(tags)
    assert (ContextUpdate, "RADIAL", 1) in tags
    assert {tag[1:] for tag in tags} == {("EGRID", 0), ("RADIAL", 1)}


@pytest.mark.parametrize("scheme", [RADIAL, of("STE"), EGRID, of("ATTRACT"), of("MULTI")], ids=str)
@pytest.mark.parametrize("message", [ContextUpdate, AssignmentRequest])
def test_what_is_said_in_another_scheme_is_understood(scheme: MechanismSpec, message: type[Any]) -> None:
    town = CloudTown([(0.0, 0.0), (50.0, 0.0)], Options(scheme, fix_every=1000.0))
    here, _ = town.join_all(NEAR)
    town.after(2.0)
    there = town.world.plane.to_point(-550.0, 500.0)
    carrier(town, 1)._say(message(town.simulation.now(), there.lat, there.lon))
    town.after(1.0)
    assert town.context(1).position == there
    here.publish("here")
    here.publish("there", place=there, local=False)
    town.after(1.0)
    assert {event for event, client in town.reached() if client == "c1"} == {"there"}


def test_cells_that_a_client_has_joined_are_all_that_is_known_of_it() -> None:
    town = CloudTown([(0.0, 0.0), (50.0, 0.0)], Options(RADIAL, fix_every=1000.0))
    town.join_all(NEAR)
    town.after(2.0)
    carrier(town, 1)._say(Joining(town.simulation.now(), ("5:1,1",)))
    town.after(1.0)
    assert (town.context(1).position, town.context(1).channels) == (None, ("5:1,1",))
    assert town.rows["reports"][-1][1:] == ("c1", None, None)  # and whoever reads the records learns it


def test_what_publishers_tell_the_broker_is_not_passed_on() -> None:
    options = Options(EGRID, client=ClientSettings(EGRID, keep_alive=5.0, piggyback=3.0))
    town = CloudTown([(0.0, 0.0), (50.0, 0.0)], options)
    here, _ = town.join_all(NEAR)
    got: list[EventMessage] = []
    client = carrier(town, 1)
    client._endpoint.receive = lambda _sender, message: got.append(message)  # type: ignore[attr-defined]
    town.after(5.0)
    heard = overhear(town)
    town.put(0, 90.0, 0.0)  # into another cell: it has something to say
    town.after(1.05)
    here.publish("e1")
    town.after(1.0)
    [sent] = [message for _, message in heard if isinstance(message, EventMessage)]
    assert sent.context is not None
    assert (sent.channel, sent.context.scheme) == ("5:2,2", "EGRID")
    [passed_on] = [message for message in got if isinstance(message, EventMessage)]
    assert (passed_on.channel, passed_on.context) == (None, None)
    assert passed_on.id == sent.id


def test_what_carries_no_tag_is_passed_on_as_it_is() -> None:
    message = message_of(Event("e", "news", 0))
    assert without_tag(message) is message


# Assignments and plans


def assignment(clock: int, measured: int, channel: str) -> Assignment:
    return Assignment(measured, channel, (channel,), clock=clock, scheme="EGRID")


def test_an_assignment_that_overtakes_its_plan_is_kept_until_the_plan_comes() -> None:
    town = CloudTown([(0.0, 0.0)], Options(RADIAL, fix_every=1000.0))
    town.join_all(Subscription("news"))  # no area: it has no position to report, and asks for nothing
    town.after(1.0)
    client, host = carrier(town, 0), town.hosts[0].host
    assert host is not None
    # Of those that came too early, the one of the latest plan and position counts, in whatever order they come.
    for early in (
        assignment(2, 5, "5:1,1"),
        assignment(2, 7, "5:2,2"),
        assignment(2, 6, "5:3,3"),
        assignment(1, 9, "5:4,4"),
    ):
        client._receive("broker", early)
    assert town.client_half(0).channel() is None
    host.component(TransitionAgent).execute(ExecutionPlan(PlanId(2, "broker"), (Exchange("filter scheme", EGRID),)))
    assert (town.client_half(0).assigned, town.client_half(0).channel()) == (("5:2,2",), "5:2,2")


def test_an_assignment_of_an_earlier_plan_or_position_is_ignored() -> None:
    town = CloudTown([(0.0, 0.0)], Options(RADIAL, fix_every=1000.0))
    town.join_all(Subscription("news"))
    town.after(1.0)
    client, host = carrier(town, 0), town.hosts[0].host
    assert host is not None
    host.component(TransitionAgent).execute(ExecutionPlan(PlanId(2, "broker"), (Exchange("filter scheme", EGRID),)))
    client._receive("broker", assignment(2, 7, "5:2,2"))
    for late in (assignment(1, 9, "5:1,1"), assignment(0, 9, "5:1,1"), assignment(2, 6, "5:3,3")):
        client._receive("broker", late)
        assert town.client_half(0).assigned == ("5:2,2",)
    client._receive("broker", assignment(2, 7, "5:4,4"))  # the answer to the same question, asked again
    assert town.client_half(0).assigned == ("5:4,4",)


def test_requests_and_assignments_that_overtake_each_other_end_well() -> None:
    slow = BearerProfile(latency=Uniform(0.0, 3.0), bandwidth=None)
    town = CloudTown(6, Options(of("EGRID", factor=10), profile=CellularProfile(uplink=slow, downlink=slow)))
    town.wander(20.0)
    town.join_all(NEAR)
    town.after(60.0)
    for node in range(6):
        town.put(node, *town.world.motion.at(node))
    town.after(15.0)
    for node in range(6):
        at = town.world.plane.to_point(*town.world.motion.at(node))
        half, context = town.client_half(node), town.context(node)
        assert context.position is not None
        assert distance(context.position, at) <= 260.0  # it asks when it leaves its cells, not with every step
        assert half.assigned == context.channels
        assert half.own == town.half()._assign(context.position, 125.0).own  # type: ignore[attr-defined]
        assert half._cells.suffice(frozenset(half.assigned), at, 125.0)


# Piggybacking


def chatty(piggyback: float, **more: Any) -> CloudTown:
    """People who walk and talk, every second."""
    options = Options(RADIAL, client=ClientSettings(RADIAL, keep_alive=5.0, piggyback=piggyback), **more)
    town = CloudTown(8, options)
    town.wander(1.0)
    town.join_all(NEAR, Subscription("sport", id="sport"))
    town.after(0.5)
    for second in range(30):
        for name, application in town.applications.items():
            application.publish(f"{name}/{second}", "sport")
        town.after(1.0)
    return town


def test_context_that_goes_along_with_events_saves_bytes_and_loses_nothing() -> None:
    apart, together = chatty(0.0), chatty(2.0)
    assert together.reached() == apart.reached()
    messages, size = together.sent()
    assert messages < apart.sent()[0] - 8 * 25
    assert size < apart.sent()[1]
    assert together.sent("context")[0] < apart.sent("context")[0] / 20
    # The broker knows as much, and at most as much later as an event may take.
    assert len(together.rows["reports"]) >= len(apart.rows["reports"]) - 8
    saved = 1 - size / apart.sent()[1]
    assert 0.02 < saved < 0.5


def test_context_that_waits_in_vain_is_sent_by_itself_and_only_the_newest() -> None:
    options = Options(RADIAL, client=ClientSettings(RADIAL, keep_alive=5.0, piggyback=2.5))
    town = CloudTown([(0.0, 0.0)], options)
    town.join_all(NEAR)
    town.after(30.2)
    contexts, _ = town.sent("context")
    assert contexts == 10  # 31 fixes; the first of every three waits for 2.5 s
    assert town.context(0).measured == 29_000_000


def test_a_lost_subscription_is_noticed_by_what_goes_along_with_events_too() -> None:
    town = CloudTown(
        [(0.0, 0.0), (50.0, 0.0)],
        Options(
            RADIAL,
            client=ClientSettings(RADIAL, keep_alive=5.0, piggyback=2.0),
            profile=replace(PROFILE, outages=(Outage(0.0, 0.5, frozenset({"c1"})),)),
        ),
    )
    here, near = town.join_all(NEAR)
    for second in range(8):
        town.after(1.0)
        near.publish(f"own {second}", "other")
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]


def test_a_client_that_missed_a_plan_is_found_out_by_what_goes_along_with_its_events() -> None:
    options = Options(
        RADIAL,
        client=ClientSettings(RADIAL, keep_alive=5.0, piggyback=2.0),
        profile=replace(PROFILE, outages=(Outage(2.0, 3.0, frozenset({"c0"})),)),
    )
    town = CloudTown([(0.0, 0.0)], options)
    here = town.join(0, NEAR)
    town.after(2.0)
    town.cloud.transition(EGRID)
    assert town.broker.host is not None
    # The plan is lost, and nobody remembers to repeat it.
    town.broker.host.component(TransitionCoordinator).forget("c0")
    for second in range(5):
        town.after(1.0)
        here.publish(f"e{second}")
    town.after(1.0)
    assert type(town.client_half(0)).__name__ == "GridClient"


# Privacy


def test_of_a_private_client_the_broker_never_learns_more_than_cells() -> None:
    private = of("EGRID", private=True, factor=10)
    slow = BearerProfile(latency=Uniform(0.0, 3.0), bandwidth=None)
    town = CloudTown(6, Options(private, profile=CellularProfile(uplink=slow, downlink=slow)))
    heard = overhear(town)
    town.wander(15.0)
    town.join_all(NEAR)
    for second in range(60):
        town.after(1.0)
        town.applications[f"c{second % 6}"].publish(f"e{second}")
    town.after(5.0)
    cells = town.half()._cells.tessellation  # type: ignore[attr-defined]
    centers = {cells.center(f"10:{column},{row}") for column in range(10) for row in range(10)}
    kinds = {type(message) for _, message in heard}
    assert kinds == {Subscribe, Joining, EventMessage} | ({Alive} & kinds) | ({AllSubscriptions} & kinds)
    for _, message in heard:
        if isinstance(message, EventMessage):
            assert message.lat is not None
            assert message.lon is not None
            assert Point(message.lat, message.lon) in centers
            assert message.channel in cells
        context = getattr(message, "context", None)
        assert context is None or isinstance(context, Joining)
    assert town.rows["reports"] == []
    assert all(context.position is None for context in town.half().contexts.values())


def test_a_pinned_client_keeps_its_scheme_and_its_assignments_arrive_whatever_others_do() -> None:
    pinned = of("EGRID", factor=4)
    town = CloudTown([(0.0, 0.0), (50.0, 0.0)], Options(RADIAL))
    town.settings["c1"] = ClientSettings(pinned, pinned=True, keep_alive=5.0)
    here, near = town.join_all(NEAR)
    town.after(2.0)
    town.cloud.transition(of("GRID", factor=3))
    town.after(2.0)
    town.put(1, -590.0, 590.0)
    town.put(0, -595.0, 590.0)
    town.after(3.0)
    assert town.cloud.scheme_of("c1") == pinned
    assert "4:0,3" in town.client_half(1).assigned
    asked, _ = town.sent("assignment request", "c1")
    here.publish("e1")
    town.after(5.0)
    assert near.got == ["e1"]
    assert town.sent("assignment request", "c1")[0] == asked  # it was answered: it asks no more


def test_a_broker_asks_again_who_seems_to_hold_other_subscriptions() -> None:
    town = CloudTown([(0.0, 0.0)], Options(RADIAL))
    town.join_all(NEAR)
    town.after(2.0)
    broker: CloudBroker = town.cloud
    heard = overhear(town)
    broker._endpoint.send("c0", SubscribeAgain())
    town.after(1.0)
    [answer] = [message for _, message in heard if isinstance(message, AllSubscriptions)]
    assert [held.topic for held in answer.subscriptions_held] == ["news"]
    assert (answer.running, answer.pinned) == (RADIAL, None)
    assert answer.context is not None
