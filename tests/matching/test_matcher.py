"""The matcher as a whole: numbers, statistics, and refusals that change nothing.

That its answers are right is for tests/oracle to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import HistoryNeeded, InvalidContext, InvalidInput, NearcastError, UnknownName
from nearcast.matching import Matcher
from nearcast.matching.matcher import MANY
from nearcast.model.area import Circle, Outline, Polygon
from nearcast.model.delivery import Delivery
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.model.time import TimeFrame

HOME = Point(49.8728, 8.6512)


def event(**parts: Any) -> Event:
    return Event(**{"id": "e", "topic": "t", "published": 0, "place": HOME, **parts})


def populated() -> Matcher:
    matcher = Matcher()
    numbers = matcher.add_clients(["ada", "bob", "cyd"], [HOME.lat] * 3, [HOME.lon] * 3)
    matcher.subscribe_many(numbers, Subscription("#", area=Circle(100), id="s"))
    matcher.subscribe("bob", Subscription("t", where="x > 1", id="more"))
    matcher.register_context("ada", "me", {"role": "guest"})
    return matcher


def test_numbers_of_clients_that_went_are_given_to_those_who_come() -> None:
    matcher = populated()
    gone = int(matcher.numbers(["bob"])[0])
    matcher.remove_client("bob")
    assert matcher.ids[gone] is None
    assert sorted(matcher.match(event(attributes={"x": 2}))) == ["ada", "cyd"]
    (number,) = matcher.add_clients(["dot"])
    assert number == gone
    assert sorted(matcher.match(event(attributes={"x": 2}))) == ["ada", "cyd"], "nothing of bob is left to dot"
    assert matcher.subscriptions("dot") == []
    assert list(matcher.match(event(to="role = 'guest'"))) == ["ada"]
    assert sorted(matcher.match(event(reach=Circle(10, HOME)))) == ["ada", "cyd"]


def test_numbers_of_subscriptions_are_used_again() -> None:
    matcher = populated()
    for i in range(50):
        matcher.subscribe("dot", Subscription("t", id="x", qos=i % 3))
        (copy,) = (copy for copy in matcher.match(event(place=None)).deliveries() if copy.client == "dot")
        assert copy == Delivery("dot", frozenset({"x"}), i % 3)
        matcher.unsubscribe("dot", "x")
    assert matcher._subscribers._items <= 6
    assert matcher.statistics().subscriptions == 4


def test_subscribing_again_under_the_same_id_replaces() -> None:
    matcher = populated()
    matcher.subscribe("ada", Subscription("other", id="s"))
    assert sorted(matcher.match(event())) == ["bob", "cyd"]
    assert matcher.subscriptions("ada") == [Subscription("other", id="s")]


class Counting(Matcher):
    """Counts the subscriptions that it looks at."""

    looked_at = 0

    def _id_of(self, item: int) -> str:
        self.looked_at += 1
        return super()._id_of(item)


def test_whoever_holds_many_subscriptions_does_not_wait_longer_for_the_next_one() -> None:
    matcher = Counting()
    for number in range(1000):
        matcher.subscribe("ada", Subscription("t", id=str(number)))
    assert matcher.looked_at < 100, "they were looked at until there was a table of them"
    for number in range(1000):
        matcher.unsubscribe("ada", str(number))
    assert matcher.looked_at < 1100, "each to leave the table"
    assert not matcher._with_many


@given(st.lists(st.tuples(st.sampled_from(["+", "-", "gone"]), st.integers(0, 2 * MANY)), max_size=150))
def test_many_subscriptions_of_a_client_come_and_go_each_by_its_id(steps: list[tuple[str, int]]) -> None:
    matcher, held = populated(), {}
    for step, (what, number) in enumerate(steps):
        if what == "+":
            held[str(number)] = Subscription("t", id=str(number), frame=TimeFrame(-step - 1, None))
            matcher.subscribe("dot", held[str(number)])
        elif what == "-" and held.pop(str(number), None) is not None:
            matcher.unsubscribe("dot", str(number))
        elif what == "-" and "dot" in matcher:
            with pytest.raises(UnknownName):
                matcher.unsubscribe("dot", str(number))
        elif what == "gone" and not number and "dot" in matcher:
            matcher.remove_client("dot")
            held.clear()
    found = matcher.subscriptions("dot") if "dot" in matcher else []
    assert {each.id: each for each in found} == held
    assert matcher.statistics().subscriptions == 4 + len(held)


def test_what_a_client_holds_is_told_as_it_was_given() -> None:
    held = [
        Subscription("#", area=Circle(12.5), id="a", frame=TimeFrame(5, None), qos=2),
        Subscription("a/+", where="x = 1", area=Circle(3, HOME), id="b", no_local=True),
        Subscription("a", area=Outline(((0, 0), (1, 0), (1, 1), (0, 0))), id="c", frame=TimeFrame(None, 7)),
    ]
    matcher = Matcher()
    for subscription in held:
        matcher.subscribe("ada", subscription)
    assert sorted(matcher.subscriptions("ada"), key=lambda s: s.id) == held


def test_statistics_say_what_is_held_and_what_was_done() -> None:
    matcher = populated()
    before = matcher.statistics()
    assert (before.clients, before.subscriptions, before.contexts) == (3, 4, 1)
    assert (before.topic_filters, before.predicates, before.events, before.matches) == (2, 1, 0, 0)
    assert before.filters == 2
    assert before.cells == 1
    matcher.match(event(attributes={"x": 2}))
    matcher.match_batch([event(), event(topic="u")])
    after = matcher.statistics()
    assert (after.events, after.matches) == (3, 4 + 3 + 3)
    assert after.candidates >= 9
    assert after.cells_visited > 0
    matcher.remove_client("bob")
    assert matcher.statistics().predicates == 0
    assert matcher.statistics().topic_filters == 1


def test_results_that_outgrow_their_room_are_complete() -> None:
    matcher = Matcher()
    count = 9_000
    numbers = matcher.add_clients([f"c{i}" for i in range(count)], np.full(count, HOME.lat), np.full(count, HOME.lon))
    matcher.subscribe_many(numbers, Subscription(area=Circle(10)))
    matcher.subscribe_many(numbers[:3_000], Subscription(where="kind LIKE 'a%'", id="open"))
    matcher.subscribe_many(
        numbers[:2_000], Subscription(area=Outline(((-9, -9), (9, -9), (0, 9), (-9, -9))), id="shape")
    )
    events = [event(attributes={"kind": "ads"}), event(place=Point(0, 0)), event(), event(reach=Circle(5, HOME))]
    matches = matcher.match_batch(events)
    assert [len(matches[i]) for i in range(4)] == [count, 0, count, count]
    assert len(set(matches[0])) == count
    assert sum(len(copy.subscriptions) for copy in matches.deliveries(0)) == count + 3_000 + 2_000
    assert len(matcher.match(events[0])) == count


def test_many_equal_subscriptions_at_a_border_leave_room_for_those_who_come_after() -> None:
    """Each of them is written by itself there, more than there are entries; what is written next needs room too."""
    matcher, client = Matcher(), Point(HOME.lat + 0.001, HOME.lon)
    border = distance(HOME, client) + 0.003
    matcher.move("ada", client.lat, client.lon)
    for i in range(63):
        matcher.subscribe("ada", Subscription(area=Circle(border), id=f"s{i}"))
    numbers = matcher.add_clients([f"c{i}" for i in range(300)], np.full(300, client.lat), np.full(300, client.lon))
    matcher.subscribe_many(numbers, Subscription(where="x = 1", area=Circle(1.2 * border)))
    matches = matcher.match_batch([event(attributes={"x": 1})])
    assert sorted(matches[0]) == sorted(["ada", *(f"c{i}" for i in range(300))])
    (copy,) = (copy for copy in matches.deliveries(0) if copy.client == "ada")
    assert len(copy.subscriptions) == 63


def test_equal_circles_in_different_places_are_told_apart() -> None:
    matcher = Matcher()
    matcher.move("ada", 0.0, 0.0)
    for name, center in (("here", HOME), ("there", Point(10, 10)), ("around", None)):
        matcher.subscribe("ada", Subscription(area=Circle(500, center), id=name))
    for place, name in ((HOME, "here"), (Point(10, 10), "there"), (Point(0, 0), "around")):
        (copy,) = matcher.match(event(place=place)).deliveries()
        assert copy.subscriptions == {name}


def test_a_question_about_another_time_is_not_explained_from_the_present() -> None:
    with pytest.raises(HistoryNeeded):
        populated().explain(event(to="overlaps(time, '-1h', 'now')"), "ada")


def test_an_event_knows_nobody_far_away() -> None:
    assert list(populated().match(event(place=Point(0, 0)))) == []


# Refusals


def _self_crossing() -> Polygon:
    return Polygon(((((0, 0), (1, 1), (1, 0), (0, 1), (0, 0)),),))


REFUSED: dict[str, Callable[[Matcher], object]] = {
    "latitude out of range": lambda m: m.move("ada", 90.5, 0),
    "latitude out of range, unknown client": lambda m: m.move("new", -91, 0),
    "longitude out of range": lambda m: m.move("ada", 0, 180.5),
    "position is NaN": lambda m: m.move("ada", math.nan, 0),
    "longitude is NaN": lambda m: m.move("ada", 0, math.nan),
    "position is infinite": lambda m: m.move("new", 0, math.inf),
    "one of many latitudes out of range": lambda m: m.move_many(m.numbers(["ada", "bob"]), [0, 91], [0, 0]),
    "one of many positions is NaN": lambda m: m.move_many(m.numbers(["ada", "bob"]), [0, math.nan], [0, math.nan]),
    "fewer positions than clients": lambda m: m.move_many(m.numbers(["ada", "bob"]), [0], [0]),
    "a number of nobody": lambda m: m.move_many(np.array([0, 99], np.int32), [0, 0], [0, 0]),
    "a negative number": lambda m: m.move_many(np.array([0, -1], np.int32), [0, 0], [0, 0]),
    "a position that is no number": lambda m: m.move("new", "1", 0),  # type: ignore[arg-type]
    "a number beyond 32 bits": lambda m: m.move_many(np.array([2**32]), [0], [0]),
    "half a number": lambda m: m.move_many(np.array([0.5]), [0], [0]),
    "one text for many ids": lambda m: m.add_clients("new"),
    "a topic for a subscription": lambda m: m.subscribe("new", "traffic/#"),  # type: ignore[arg-type]
    "a radius for an area": lambda m: m.subscribe("new", Subscription(area=500)),  # type: ignore[arg-type]
    "two times for a frame": lambda m: m.subscribe("new", Subscription(frame=(1, 2))),  # type: ignore[arg-type]
    "a number for a filter": lambda m: m.subscribe("new", Subscription(where=5)),  # type: ignore[arg-type]
    "a pair for a centre": lambda m: m.subscribe("new", Subscription(area=Circle(5, (1, 2)))),  # type: ignore[arg-type]
    "new clients at a bad place": lambda m: m.add_clients(["new", "newer"], [0, 95], [0, 0]),
    "new clients without longitudes": lambda m: m.add_clients(["new"], [0]),
    "a client twice": lambda m: m.add_clients(["new", "new"]),
    "a client that is known": lambda m: m.add_clients(["new", "ada"]),
    "infinite radius": lambda m: m.subscribe("new", Subscription(area=Circle(math.inf))),
    "radius is NaN": lambda m: m.subscribe("ada", Subscription(area=Circle(math.nan), id="s")),
    "unclosed polygon": lambda m: m.subscribe(
        "ada", Subscription(area=Polygon(((((0, 0), (1, 0), (1, 1), (0, 1)),),)))
    ),
    "self-crossing polygon": lambda m: m.subscribe("new", Subscription(area=_self_crossing())),
    "unknown operator": lambda m: m.subscribe("new", Subscription(where="sounds(x, 1)")),
    "syntax error": lambda m: m.subscribe("ada", Subscription(where="x >", id="s")),
    "unknown attribute type in a context": lambda m: m.register_context("new", "c", {"a": ...}),
    "unknown attribute type in a known context": lambda m: m.register_context("ada", "me", {"b": 1, "a": ...}),
    "NaN in a context": lambda m: m.register_context("new", "c", {"a": math.nan}),
    "a context without a name": lambda m: m.register_context("new", "", {}),
    "unknown attribute type in an event": lambda m: m.match(event(attributes={"a": ...})),
    "exploding formula": lambda m: m.subscribe(
        "new",
        Subscription(where=" AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(12))),
    ),
    "time frame that ends before it starts": lambda m: m.subscribe("new", Subscription(frame=TimeFrame(5, 4))),
    "topic filter that MQTT forbids": lambda m: m.subscribe("new", Subscription("a/#/b")),
    "relative reach": lambda m: m.match(event(reach=Circle(5))),
    "no such client": lambda m: m.remove_client("nobody"),
    "position of nobody": lambda m: m.forget_position("nobody"),
    "no such subscription": lambda m: m.unsubscribe("ada", "nothing"),
    "no such context": lambda m: m.deregister_context("bob", "me"),
    "subscription for a number of nobody": lambda m: m.subscribe_many(
        np.array([0, 77], np.int32), Subscription(id="n")
    ),
    "subscription that one holds already": lambda m: m.subscribe_many(m.numbers(["ada"]), Subscription(id="s")),
    "subscription twice for one": lambda m: m.subscribe_many(np.array([0, 0], np.int32), Subscription(id="n")),
}


def answers(matcher: Matcher) -> list[Any]:
    asked = [
        event(attributes={"x": 2}),
        event(to="role = 'guest'"),
        event(reach=Circle(10, HOME)),
        event(place=Point(0, 0)),
    ]
    return [sorted(matcher.match(message).deliveries(), key=lambda copy: copy.client) for message in asked]


def holdings(matcher: Matcher) -> tuple[Any, ...]:
    s = matcher.statistics()
    return s.clients, s.subscriptions, s.contexts, s.filters, s.topic_filters, s.predicates, s.cells, tuple(matcher.ids)


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_gets_a_clear_error_and_changes_nothing(refused: Callable[[Matcher], object]) -> None:
    matcher = populated()
    told, held = answers(matcher), holdings(matcher)
    done = matcher.statistics()
    with pytest.raises((InvalidInput, UnknownName)) as error:
        refused(matcher)
    assert isinstance(error.value, NearcastError)
    assert len(str(error.value)) > 10
    assert matcher.statistics() == done
    assert holdings(matcher) == held
    assert answers(matcher) == told


def test_the_number_of_a_client_that_went_is_refused() -> None:
    matcher = populated()
    numbers = matcher.numbers(["bob"])
    matcher.remove_client("bob")
    with pytest.raises(UnknownName):
        matcher.move_many(numbers, [0], [0])
    with pytest.raises(UnknownName):
        matcher.subscribe_many(numbers, Subscription())
    matcher.add_clients(["dot"])
    assert "dot" not in matcher.match(event())


def test_the_bound_of_normal_forms_is_in_the_message() -> None:
    with pytest.raises(InvalidInput, match="256"):
        REFUSED["exploding formula"](Matcher())


def test_subscribing_nobody_leaves_nothing_behind() -> None:
    matcher = populated()
    held = holdings(matcher)
    matcher.subscribe_many(np.zeros(0, np.int32), Subscription("new/topic", where="y = 1"))
    assert holdings(matcher) == held


def test_a_known_id_cannot_be_added_again() -> None:
    with pytest.raises(InvalidContext, match="'ada' is known already"):
        populated().add_clients(["ada"])


def test_the_way_of_a_client_is_kept_only_as_far_as_directions_need_it() -> None:
    matcher = Matcher()
    matcher.subscribe("ada", Subscription(where="distance_decreases()"))
    matcher.move("ada", 0.0, 5.0)
    matcher.match(event(id="old", publisher="bob", place=Point(0, 0)))
    for i in range(2_000):
        matcher.move("ada", 0.0, 6.0 + i / 1_000)
        matcher.match(event(id=f"e{i}", publisher="cyd", place=Point(0, 0)))
    assert len(matcher._approach._tracks[int(matcher.numbers(["ada"])[0])]) < 300
    matcher.move("ada", 0.0, 4.9)
    assert list(matcher.match(event(id="new", publisher="bob", place=Point(0, 0)))) == ["ada"]
