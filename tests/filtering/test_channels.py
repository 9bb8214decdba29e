"""Channels: what they cost, what becomes of outdated ones, and what one message to all of a channel would save."""

from __future__ import annotations

from random import Random

import pytest
from tests.filtering.halves import TERRITORY, Ears, of, place

from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import AssignmentRequest
from nearcast.filtering.scheme import Territory
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec

NEAR = Subscription("news", area=Circle(125.0))


def crowded(ears: Ears, spec: MechanismSpec, people: int, subscription: Subscription = NEAR) -> BrokerHalf:
    half, random = ears.make(spec), Random(7)
    for number in range(people):
        name, here = f"c{number}", place(random.uniform(-640, 640), random.uniform(-640, 640))
        half.adopt(name, ClientContext())
        half.subscribe(name, subscription)
        half.hear(name, AssignmentRequest(1, here.lat, here.lon))
    return half


def at(x: float, y: float, topic: str = "news") -> Event:
    return Event("e", topic, 0, place=place(x, y))


@pytest.mark.parametrize("name", ["GRID", "EGRID"])
@pytest.mark.parametrize("people", [10, 300])
def test_a_grid_costs_as_many_operations_as_it_has_cells_whoever_is_there(name: str, people: int) -> None:
    ears = Ears()
    half = crowded(ears, of(name), people)
    for _ in range(10):
        half.receivers(at(5, 5), None)
    assert ears.tally.counted == 10 * 25  # as the documents count them
    assert ears.tally.done == 10  # one look-up each
    half.subscribe("c0", Subscription("sport", id="everywhere"))
    half.receivers(at(5, 5), None)
    assert (ears.tally.counted, ears.tally.done) == (275, 12)  # and one for those who want it from everywhere


@pytest.mark.parametrize("people", [10, 300])
def test_radial_costs_one_operation_for_each_located_subscription_but_few_distances_are_measured(people: int) -> None:
    ears = Ears()
    half = crowded(ears, of("RADIAL"), people)
    half.subscribe("c0", Subscription("sport", id="everywhere"))  # needs no distance
    half.subscribe("c1", Subscription("sport", area=Circle(10.0), id="second"))
    half.receivers(at(5, 5), None)
    assert ears.tally.counted == people + 1
    assert 0 < ears.tally.done <= people + 1
    half.unsubscribe("c1", "second")
    half.forget("c2")
    half.receivers(at(5, 5), None)
    assert ears.tally.counted == people + 1 + people - 1


def test_one_message_to_a_whole_channel_is_counted_beside_one_to_each_client() -> None:
    grid, radial = Ears(), Ears()
    in_cell = crowded(grid, of("EGRID"), 300).receivers(at(5, 5), None)
    in_circle = crowded(radial, of("RADIAL"), 300).receivers(at(5, 5), None)
    assert (len(in_cell) > 30, grid.tally.multicasts) == (True, 1)
    assert radial.tally.multicasts == len(in_circle) > 3
    crowded(grid, of("EGRID"), 300).receivers(at(5, 5, "sport"), None)
    assert grid.tally.multicasts == 1  # nobody wants it: nothing is sent
    alone = Ears()
    everywhere = crowded(alone, of("GRID"), 2, Subscription("news"))
    everywhere.receivers(at(5, 5), None)
    assert alone.tally.multicasts == 1


# What publishers put on their events


@pytest.mark.parametrize(("unknown", "found"), [("place", ["ada"]), ("discard", [])])
def test_an_event_of_an_outdated_channel_is_looked_up_by_its_place_or_discarded(unknown: str, found: list[str]) -> None:
    territory = Territory(TERRITORY.box, TERRITORY.zones, unknown)  # type: ignore[arg-type]
    half = Ears(territory).make(of("GRID"))
    half.adopt("ada", ClientContext())
    half.subscribe("ada", NEAR)
    here = place(0, 0)
    half.hear("ada", AssignmentRequest(1, here.lat, here.lon))
    assert half.receivers(at(0, 0), "10:4,4") == found
    assert half.receivers(at(0, 0), None) == ["ada"]  # who publishes elsewhere has no channel
    # A known one is believed where the document's way is taken; by its place, an event says itself where it happened.
    assert half.receivers(at(0, 0), "5:0,0") == found
    assert half.receivers(at(0, 0), "5:2,2") == ["ada"]


def test_wildcards_hide_what_servers_keep_for_themselves_in_channels_too() -> None:
    half = Ears().make(of("GRID"))
    half.adopt("ada", ClientContext())
    half.subscribe("ada", Subscription("#", area=Circle(125.0)))
    half.subscribe("ada", Subscription("+/load", id="anywhere"))
    here = place(0, 0)
    half.hear("ada", AssignmentRequest(1, here.lat, here.lon))
    assert half.receivers(at(0, 0, "$SYS/load"), None) == []
    assert half.receivers(at(0, 0, "my/load"), None) == ["ada"]
    half.subscribe("ada", Subscription("$SYS/#", area=Circle(125.0), id="system"))
    assert half.receivers(at(0, 0, "$SYS/load"), None) == ["ada"]
