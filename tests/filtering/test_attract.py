"""ATTRACT: channels around attraction points."""

from __future__ import annotations

import pytest
from tests.filtering.clients import Walker
from tests.filtering.halves import TERRITORY, Ears, of, place

from nearcast.filtering.attract import OTHER
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec

# The fair reaches from -550 to -50, the market is a circle of 150 m around (0, 100), the station one of 100 m around (450, -400).
FAIR, MARKET, BOTH, STATION, NOWHERE = (-400, 0), (60, 120), (-90, 50), (450, -400), (500, 500)
ATTRACT = of("ATTRACT")


def half_with(spec: MechanismSpec, **people: tuple[float, float]) -> BrokerHalf:
    half = Ears().make(spec)
    for name, where in people.items():
        half.adopt(name, ClientContext())
        half.subscribe(name, Subscription("news", area=Circle(125.0)))
        here = place(*where)
        half.hear(name, AssignmentRequest(1, here.lat, here.lon))
    return half


def at(where: tuple[float, float]) -> Event:
    return Event("e", "news", 0, place=place(*where))


def test_who_is_at_several_points_joins_all_of_them() -> None:
    half = half_with(ATTRACT, ada=FAIR, bob=MARKET, cem=BOTH)
    assert half.contexts["cem"].channels == ("fair", "market")
    assert sorted(half.receivers(at(FAIR), None)) == ["ada", "cem"]
    assert sorted(half.receivers(at(MARKET), None)) == ["bob", "cem"]
    assert sorted(half.receivers(at(BOTH), None)) == ["ada", "bob", "cem"]
    assert half.receivers(at(STATION), None) == []


def test_between_the_points_there_is_one_channel_for_all_or_none() -> None:
    people = {"ada": FAIR, "dan": NOWHERE, "eve": (-500, 600)}
    caught = half_with(ATTRACT, **people)
    assert caught.contexts["dan"].channels == (OTHER,)
    assert sorted(caught.receivers(at((300, 0)), None)) == ["dan", "eve"]
    left = half_with(of("ATTRACT", catch_all=False), **people)
    assert left.contexts["dan"].channels == ()
    assert left.receivers(at((300, 0)), None) == []
    assert left.knows_place("dan")  # it is known to be nowhere, nothing is missing


def test_what_happens_just_outside_is_missed_inside_unless_channels_are_extended_by_the_radius() -> None:
    # 20 m inside the station's channel, and 20 m outside, at 40 m from each other.
    inside, outside = (450, -320), (450, -280)
    for extension, found in ((0.0, []), (30.0, ["ada"]), (125.0, ["ada"])):
        half = half_with(of("ATTRACT", extension=extension), ada=inside)
        assert half.receivers(at(outside), None) == found


@pytest.mark.parametrize("angle", range(0, 360, 30))
def test_the_ring_of_missed_events_around_a_point_closes_with_an_extension_of_the_radius(angle: int) -> None:
    import math

    east, north = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    inside = 450 + 99 * east, -400 + 99 * north
    missed = closed = 0
    for metres in range(10, 130, 10):
        event = at((450 + (99 + metres) * east, -400 + (99 + metres) * north))
        missed += not half_with(ATTRACT, ada=inside).receivers(event, None)
        if metres < 125:
            closed += not half_with(of("ATTRACT", extension=125.0), ada=inside).receivers(event, None)
    assert (missed, closed) == (12, 0)


def test_a_client_holds_the_geometry_and_asks_when_it_enters_or_leaves() -> None:
    walker = Walker(ATTRACT)
    assert len(walker.walk(*NOWHERE)) == 1
    walker.half.receive(Assignment(1, OTHER, (OTHER,), answers=True))
    assert walker.walk(300, 0) == []
    assert [type(message) for message in walker.walk(*MARKET)] == [AssignmentRequest]
    walker.half.receive(Assignment(walker.time, "market", ("market",), answers=True))
    assert walker.half.channel() == "market"
    assert walker.walk(50, 100) == []
    assert len(walker.walk(*BOTH)) == 1
    walker.half.receive(Assignment(walker.time, None, ("fair", "market"), answers=True))
    # An event belongs to both channels: its place says so, one channel could not.
    assert walker.half.channel() is None
    assert len(walker.walk(*FAIR)) == 1


def test_clients_report_their_positions_all_the_same_if_gateways_are_chosen_by_them() -> None:
    walker = Walker(of("ATTRACT", enable_updates=True))
    walker.walk(*FAIR)
    walker.half.receive(Assignment(1, "fair", ("fair",), answers=True))
    assert [type(message) for message in walker.walk(-410, 10)] == [ContextUpdate]
    assert [type(message) for message in walker.walk(*NOWHERE)] == [AssignmentRequest]
    walker.half.enable_updates = False
    walker.half.receive(Assignment(walker.time, OTHER, (OTHER,), answers=True))
    assert walker.walk(510, 500) == []


def test_who_publishes_at_two_points_is_told_to_let_the_place_decide() -> None:
    ears = Ears()
    half = ears.make(ATTRACT)
    half.adopt("ada", ClientContext())
    for time, (where, own) in enumerate(((FAIR, "fair"), (BOTH, None), (NOWHERE, OTHER))):
        here = place(*where)
        half.hear("ada", AssignmentRequest(time, here.lat, here.lon))
        assert ears.said[-1][1].channel == own


def test_there_are_as_many_match_operations_as_channels_and_few_that_are_done() -> None:
    ears = Ears()
    half = ears.make(ATTRACT)
    half.receivers(at(BOTH), None)
    assert (ears.tally.counted, ears.tally.done) == (len(TERRITORY.zones) + 1, 2)
    without = Ears()
    without.make(of("ATTRACT", catch_all=False)).receivers(at(NOWHERE), None)
    assert (without.tally.counted, without.tally.done) == (len(TERRITORY.zones), 0)
