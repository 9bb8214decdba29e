"""RADIAL: the broker knows where everybody is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.clients import Walker
from tests.filtering.halves import Ears, of, place, places, subscriptions

from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.model.area import Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription

RADIAL = of("RADIAL")


def at(x: float, y: float) -> Event:
    return Event("e", "news", 100, place=place(x, y))


@given(
    st.lists(st.tuples(places, subscriptions), min_size=1, max_size=6),
    st.lists(st.builds(lambda where: Event("e", "news", 100, {"severity": 3}, place=where), places), min_size=1),
)
def test_with_fresh_positions_it_is_the_definition_of_delivery(
    people: list[tuple[Point, Subscription]], published: list[Event]
) -> None:
    half, history = Ears().make(RADIAL), History()
    for number, (here, subscription) in enumerate(people):
        name = f"c{number}"
        half.adopt(name, ClientContext())
        half.subscribe(name, subscription)
        half.hear(name, ContextUpdate(1, here.lat, here.lon))
        history.subscribed(name, 0, subscription)
        history.moved(name, 1, here)
    for event in published:
        assert set(half.receivers(event, None)) == receivers(history, event, event.published)


def test_the_same_subscription_matches_differently_when_the_variable_it_stands_on_has_changed() -> None:
    half = Ears().make(RADIAL)
    half.adopt("ada", ClientContext())
    half.subscribe("ada", Subscription("news", area=Circle(100.0)))
    assert half.receivers(at(0, 0), None) == []
    assert not half.knows_place("ada")
    for time, (x, found) in enumerate(((50, ["ada"]), (150, []), (0, ["ada"]))):
        here = place(x, 0)
        half.hear("ada", ContextUpdate(time, here.lat, here.lon))
        assert half.receivers(at(0, 0), None) == found


def test_an_older_report_changes_nothing_and_an_equally_old_one_does() -> None:
    half = Ears().make(RADIAL)
    half.adopt("ada", ClientContext())
    here, there = place(0, 0), place(500, 500)
    assert half.hear("ada", ContextUpdate(5, here.lat, here.lon))
    assert not half.hear("ada", AssignmentRequest(4, there.lat, there.lon))
    assert not half.hear("ada", Joining(4, ("5:0,0",)))
    assert half.contexts["ada"].position == here
    assert half.hear("ada", ContextUpdate(5, there.lat, there.lon))  # said again, or better
    assert half.contexts["ada"].position == there


def test_who_only_says_its_cells_has_no_position_any_more() -> None:
    half = Ears().make(RADIAL)
    half.adopt("ada", ClientContext())
    half.subscribe("ada", Subscription("news", area=Circle(100.0)))
    here = place(0, 0)
    half.hear("ada", ContextUpdate(1, here.lat, here.lon))
    half.hear("ada", Joining(2, ("5:2,2",)))
    assert half.receivers(at(0, 0), None) == []
    assert not half.knows_place("ada")


def test_adopting_somebody_again_replaces_what_was_known() -> None:
    ears = Ears()
    half = ears.make(RADIAL)
    subscription = Subscription("news", area=Circle(100.0))
    for _ in range(2):
        half.adopt("ada", ClientContext({"": subscription}, 1, position=place(0, 0)))
    half.receivers(at(0, 0), None)
    assert ears.tally.counted == 1
    half.adopt("ada", ClientContext())
    assert half.receivers(at(0, 0), None) == []
    assert ears.tally.counted == 1


def test_what_others_brought_is_copied() -> None:
    brought = ClientContext({"": Subscription("news")}, 1, position=place(0, 0))
    half = Ears().make(RADIAL)
    half.contexts = {"ada": brought}
    half.start_mechanism()
    half.unsubscribe("ada", "")
    half.hear("ada", Joining(2, ()))
    assert (list(brought.subscriptions), brought.position) == ([""], place(0, 0))


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({}, 9),
        ({"update": "distance", "distance": 25.0}, 3),  # 0, 30, 60
        ({"update": "frequency", "seconds": 4e-6}, 3),  # 1, 5, 9
        ({"update": "hybrid", "distance": 25.0, "seconds": 2e-6}, 5),
    ],
)
def test_clients_report_as_their_policy_says(parameters: dict[str, float], reported: int) -> None:
    walker = Walker(of("RADIAL", **parameters))
    for step in range(9):  # 10 m each
        walker.walk(10.0 * step, 0)
    assert len(walker.said) == reported
    assert all(isinstance(message, ContextUpdate) and not message.speed for message in walker.said)


def test_what_goes_along_with_a_subscription_counts_as_a_report() -> None:
    walker = Walker(of("RADIAL", update="frequency", seconds=3e-6))
    assert walker.half.piggyback() is None  # nothing is known yet
    assert len(walker.walk(0, 0)) == 1
    assert walker.walk(10, 0) == []
    assert isinstance(walker.half.piggyback(), ContextUpdate)
    assert walker.walk(20, 0) == walker.walk(30, 0) == []
    assert len(walker.walk(40, 0)) == 1


@pytest.mark.parametrize("confirms", [True, False])
def test_after_a_transition_it_reports_in_any_case(confirms: bool) -> None:
    walker = Walker(of("GRID"), confirms=confirms)
    walker.walk(0, 0)
    walker.said.clear()
    walker.become(RADIAL)
    assert [type(message) for message in walker.said] == [ContextUpdate]


def test_it_tells_clients_nothing() -> None:
    ears = Ears()
    half = ears.make(RADIAL)
    half.adopt("ada", ClientContext())
    here = place(0, 0)
    half.hear("ada", AssignmentRequest(1, here.lat, here.lon))
    half.bootstrap()
    assert ears.said == []
