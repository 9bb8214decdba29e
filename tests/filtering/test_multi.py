"""MULTI: ATTRACT at the points and RADIAL everywhere else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.clients import Walker
from tests.filtering.halves import ZONES, Ears, Step, World, of, place, play, steps

from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate
from nearcast.filtering.multi import MultiBroker
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription

FAIR, MARKET, STATION, NOWHERE = (-400, 0), (60, 120), (450, -400), (500, 500)
MULTI = of("MULTI")


def broker() -> tuple[Ears, MultiBroker]:
    ears = Ears()
    half = ears.make(MULTI)
    assert isinstance(half, MultiBroker)
    half.adopt("ada", ClientContext())
    half.subscribe("ada", Subscription("news", area=Circle(125.0)))
    return ears, half


def update(time: int, where: tuple[float, float]) -> ContextUpdate:
    here = place(*where)
    return ContextUpdate(time, here.lat, here.lon)


def request(time: int, where: tuple[float, float]) -> AssignmentRequest:
    here = place(*where)
    return AssignmentRequest(time, here.lat, here.lon)


def at(x: float, y: float) -> Event:
    return Event("e", "news", 0, place=place(x, y))


@given(st.lists(steps, max_size=14))
def test_each_client_is_in_exactly_one_half_the_right_one(script: list[Step]) -> None:
    half = Ears().make(MULTI)
    assert isinstance(half, MultiBroker)
    play(half, World(), script)
    attract, radial = half._attract.contexts, half._radial.contexts
    assert not attract.keys() & radial.keys()
    assert attract.keys() | radial.keys() == half.contexts.keys()
    for name, context in half.contexts.items():
        inside = context.position is not None and bool(ZONES.at(context.position))
        assert (name in attract) is inside
        assert (attract if inside else radial)[name] is context


def test_inside_the_channel_counts_and_outside_the_distance() -> None:
    _, half = broker()
    half.hear("ada", update(1, FAIR))
    assert half.receivers(at(-100, 0), None) == ["ada"]  # 300 m away, in the same channel
    half.hear("ada", request(2, NOWHERE))
    assert half.receivers(at(500, 400), None) == ["ada"]
    assert half.receivers(at(500, 370), None) == []
    half.hear("ada", update(3, (450, -290)))  # 10 m outside the station
    assert half.receivers(at(450, -310), None) == ["ada"]


def test_who_comes_to_a_point_is_assigned_and_who_leaves_is_told_that_it_has_no_channel() -> None:
    ears, half = broker()
    half.hear("ada", update(1, NOWHERE))
    assert ears.said == []  # RADIAL tells clients nothing
    half.hear("ada", update(2, FAIR))
    assert ears.said.pop() == ("ada", Assignment(2, "fair", ("fair",)))
    half.hear("ada", request(3, MARKET))
    assert ears.said.pop() == ("ada", Assignment(3, "market", ("market",), answers=True))
    half.hear("ada", request(4, NOWHERE))
    assert ears.said.pop() == ("ada", Assignment(4, None, (), answers=True))
    half.hear("ada", request(5, NOWHERE))  # the answer was lost
    assert ears.said.pop() == ("ada", Assignment(5, None, (), answers=True))
    assert ears.said == []


def test_a_client_reports_in_the_open_and_is_silent_in_a_channel() -> None:
    ears, half = broker()
    walker = Walker(MULTI)
    way = [NOWHERE, (480, 480), FAIR, (-390, 10), (-380, 20), MARKET, (70, 130), NOWHERE, (490, 490)]
    said = []
    for where in way:
        said.append([type(message).__name__ for message in walker.walk(*where)])
        for message in walker.said[-len(said[-1]) :] if said[-1] else ():
            half.hear("ada", message)
        for _, answer in ears.said:
            walker.half.receive(answer)
        ears.said.clear()
    report, ask = ["ContextUpdate"], ["AssignmentRequest"]
    assert said == [report, report, report, [], [], ask, [], ask, report]
    assert walker.half.channel() is None


def test_with_updates_enabled_it_reports_in_a_channel_too() -> None:
    walker = Walker(of("MULTI", enable_updates=True))
    walker.walk(*FAIR)
    walker.half.receive(Assignment(1, "fair", ("fair",)))
    assert [type(message) for message in walker.walk(-390, 10)] == [ContextUpdate]


def test_who_is_greeted_after_a_transition_is_who_has_a_channel() -> None:
    ears, half = broker()
    half.adopt("bob", ClientContext())
    half.hear("ada", update(1, FAIR))
    half.hear("bob", update(1, NOWHERE))
    ears.said.clear()
    other = ears.make(of("MULTI", extension=1.0))
    other.contexts = dict(half.contexts)
    other.start_mechanism()
    other.bootstrap()
    assert [client for client, _ in ears.said] == ["ada"]


def test_subscriptions_follow_a_client_from_half_to_half() -> None:
    _, half = broker()
    for time, where in enumerate((FAIR, NOWHERE, MARKET, NOWHERE, STATION)):
        half.hear("ada", update(time, where))
        assert half.receivers(at(*where), None) == ["ada"]
        matchers = half._attract._matcher, half._radial._matcher
        holds = ["ada" in matcher and matcher.subscriptions("ada") != [] for matcher in matchers]
        assert holds == [where != NOWHERE, where == NOWHERE]
    half.unsubscribe("ada", "")
    assert half.receivers(at(*STATION), None) == []
