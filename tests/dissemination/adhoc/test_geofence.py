"""Local events stay where somebody wants them."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.adhoc.test_flooding import CROWDS, FLOODING, SPREADING
from tests.dissemination.adhoc.test_gossip import spreading
from tests.dissemination.adhoc.village import AROUND, Village, of

from nearcast.dissemination.adhoc.carrier import AdHocSettings
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.runtime.legs import Leg
from nearcast.transition.specification import MechanismSpec

INTEREST = 125.0
LINE = [(80.0 * node, 0.0) for node in range(6)]


@given(CROWDS, st.sampled_from(SPREADING))
def test_nobody_outside_sends_a_local_event_on(places: list[tuple[float, float]], mechanism: MechanismSpec) -> None:
    village = Village(places, mechanism, subscriptions=[AROUND])
    village.after(0.3)
    village.publish(0, "e")
    village.after(1.0)
    for sender in village.senders("e"):
        assert math.dist(places[0], places[sender]) <= INTEREST
    heard = {client for _, event, client, *_ in village.rows["notifications"] if event == "e"}
    for node in village.reached("e"):
        assert math.dist(places[0], places[node]) <= INTEREST
    assert village.reached("e") <= {int(client[1:]) for client in heard}


def test_it_ends_with_those_who_want_it_and_their_neighbours() -> None:
    village = Village(LINE, FLOODING, subscriptions=[AROUND])
    village.publish(0, "e")
    village.after(1.0)
    assert village.senders("e") == [0, 1]
    assert village.reached("e") == {1}
    outcomes = {client: outcome for _, _, client, _, outcome, *_ in village.rows["notifications"]}
    assert outcomes == {"h1": "delivered", "h2": "unwanted"}
    assert village.total("fenced") == 1


@pytest.mark.parametrize("how", ["geofence switched off", "published to elsewhere"])
def test_without_a_fence_it_goes_on(how: str) -> None:
    settings = replace(AdHocSettings(FLOODING), geofence=how != "geofence switched off")
    village = Village(LINE, FLOODING, subscriptions=[AROUND], settings=settings)
    village.publish(0, "e", local=how != "published to elsewhere")
    village.after(1.0)
    assert village.senders("e") == [0, 1, 2, 3, 4, 5]
    assert village.reached("e") == {1}, "the last check is the same"


def test_a_subscription_to_something_else_does_not_let_it_through() -> None:
    other = Subscription("weather", area=Circle(INTEREST), id="other")
    village = Village(LINE, FLOODING, subscriptions=[other])
    village.publish(0, "e")
    village.after(1.0)
    assert village.senders("e") == [0]


def test_who_has_left_does_not_repeat_an_event_for_a_newcomer() -> None:
    """HYPERG keeps events for a while; meanwhile a host may walk away from where they matter."""
    village = Village([(0.0, 0.0), (60.0, 0.0), (400.0, 0.0)], of("HYPERG", keep=60.0), subscriptions=[AROUND])
    village.after(0.5)
    village.publish(0, "e")
    village.after(0.5)
    assert village.reached("e") == {1}
    # h1 goes to h2, which is far from where the event happened, and hears from it that it knows of nothing.
    walk = Leg.between(village.simulation.now(), (60.0, 0.0), (380.0, 0.0), 50.0)
    village.world.motion.move(1, lambda _random, _now: iter([walk]), Random(1))
    village.after(8.0)
    assert "h1" in spreading(village, 2).neighbours
    assert "e" in spreading(village, 1).kept
    assert village.total("repeated") == 0
    assert village.reached("e") == {1}
