"""Events, proximities and subscriptions: what they keep, and what they refuse."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from nearcast.errors import (
    FormulaTooLarge,
    InvalidEvent,
    InvalidInput,
    InvalidPredicate,
    InvalidSubscription,
    InvalidTopic,
)
from nearcast.model.area import Box, Circle
from nearcast.model.cql2 import parse
from nearcast.model.event import Event, Proximity
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import to_datetime

HOME = Point(49.8728, 8.6512)


def event(**parts: Any) -> Event:
    return Event(**{"id": "e", "topic": "t", "published": 0, **parts})


def test_a_filter_sees_attributes_tags_instant_and_place() -> None:
    message = event(published=5, attributes={"a": 1}, tags=frozenset({"x"}), place=HOME)
    assert message.properties() == {"a": 1, "tags": {"x"}, "published": to_datetime(5), "place": HOME}
    assert "place" not in event().properties()
    assert event().properties()["tags"] == frozenset()


def test_an_event_shares_nothing_with_what_it_was_made_of() -> None:
    attributes = {"a": 1}
    message = event(attributes=attributes)
    attributes["a"] = 2
    assert message.attributes["a"] == 1
    with pytest.raises(TypeError):
        message.attributes["a"] = 3  # type: ignore[index]


def test_addressing_is_parsed_split_from_its_temporal_predicate_and_kept_in_normal_form() -> None:
    message = event(to="a = 1 AND (b = 2 OR c = 3) AND overlaps(time, '1970-01-01T00:00:00Z', '..')")
    assert message.when == TemporalPredicate("overlaps", 0, None)
    assert message.conjuncts == (
        (parse("a = 1"), parse("b = 2")),
        (parse("a = 1"), parse("c = 3")),
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"id": ""},
        {"topic": ""},
        {"topic": "a/#"},
        {"published": 10**18},
        {"attributes": {"": 1}},
        {"attributes": {"place": HOME}},
        {"attributes": {"tags": {"x"}}},
        {"attributes": {"published": 1}},
        {"attributes": {"a": float("nan")}},
        {"attributes": {"a": ...}},
        {"attributes": {"a": None}},
        {"tags": frozenset({""})},
        {"reach": Circle(5)},
        {"lifetime": 0},
        {"lifetime": -1},
        {"lifetime": True},
        {"lifetime": "5m"},
        {"lifetime": float("nan")},
        {"tags": "jam"},
        {"place": (49.8, 8.6)},
        {"reach": 500},
        {"when": "overlaps"},
        {"to": 5},
        {"published": 1.5},
        {"published": None},
        {"to": "a ="},
        {"to": "sounds(a, 1)"},
        {"to": "overlaps(time, '1970-01-01T00:00:00Z', '..')", "when": TemporalPredicate("overlaps", 0, None)},
    ],
    ids=str,
)
def test_an_event_that_contradicts_itself_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        event(**parts)


def test_a_stationary_proximity_stays_and_a_moving_one_goes_with_its_producer() -> None:
    there = Point(10, 10)
    assert not Proximity("t", Circle(5), HOME).moves
    assert Proximity("t", Circle(5), HOME).reach(there) == Circle(5, HOME)
    assert Proximity("t", Circle(5)).moves
    assert Proximity("t", Circle(5)).reach(there) == Circle(5, there)
    assert Proximity("t", Box(0, 0, 1, 1)).reach(None) == Box(0, 0, 1, 1)
    with pytest.raises(InvalidEvent, match="absolute"):
        Proximity("t", Circle(5, HOME), HOME)
    with pytest.raises(InvalidTopic):
        Proximity("t/+", Circle(5))


def test_the_filter_of_a_subscription_may_be_text() -> None:
    assert Subscription(where="a = 1").where == parse("a = 1")


@pytest.mark.parametrize("topic", ["", "a/#/b", "a+", "$share/g/a"])
def test_a_topic_filter_that_mqtt_forbids_is_refused(topic: str) -> None:
    with pytest.raises(InvalidTopic):
        Subscription(topic)


@pytest.mark.parametrize("qos", [-1, 3, 1.5, None])
def test_a_quality_of_service_that_mqtt_does_not_know_is_refused(qos: Any) -> None:
    with pytest.raises(InvalidSubscription):
        Subscription(qos=qos)


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="sounds"):
        Subscription(where="sounds(kind, 'loud')")


def test_a_formula_that_explodes_in_normal_form_is_refused_and_the_bound_is_named() -> None:
    explosive = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20))
    with pytest.raises(FormulaTooLarge, match="256"):
        Subscription(where=explosive)
    with pytest.raises(FormulaTooLarge, match="256"):
        event(to=explosive)


def test_an_event_takes_a_written_instant_and_any_collection_of_tags() -> None:
    written = event(published="1970-01-01T00:00:01Z", tags=["x", "x"])
    assert written == event(published=to_datetime(1_000_000), tags={"x"})
    assert (written.published, written.tags) == (1_000_000, frozenset({"x"}))


def test_bounds_in_the_addressing_may_be_relative_to_the_publication() -> None:
    for published in (10**9, 2 * 10**9):
        recent = event(published=published, to="a = 1 AND overlaps(time, '-10m', 'now')")
        assert recent.when == TemporalPredicate("overlaps", published - 600_000_000, published)


def test_events_and_subscriptions_can_be_replaced_compared_and_pickled() -> None:
    message = event(to="a = 1 OR b = 2", attributes={"a": 1}, tags={"x"}, place=HOME)
    assert replace(replace(message, topic="u"), topic="t") == message
    copy = pickle.loads(pickle.dumps(message))  # noqa: S301 - our own
    assert (copy, copy.conjuncts) == (message, message.conjuncts)
    subscription = Subscription(where="a = 1", area=Circle(5))
    assert replace(replace(subscription, topic="u"), topic="#") == subscription
    assert pickle.loads(pickle.dumps(subscription)) == subscription  # noqa: S301 - our own


def test_an_event_for_everybody_is_the_same_without_what_its_sender_demands() -> None:
    here = Point(49.87, 8.65)
    bound = Event(
        "e", "a", 5, {"n": 1}, ["t"], b"x", "me", here, Circle(10, here), "overlaps(time, '-1h', 'now') AND n = 1"
    )
    plain = Event("e", "a", 5, {"n": 1}, ["t"], b"x", "me", here)
    assert bound.for_everybody() == plain
    assert bound.for_everybody().conjuncts == ()
    assert plain.for_everybody() is plain
