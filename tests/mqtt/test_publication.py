"""Events as PUBLISH packets: what a publisher says, what a receiver is told."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import areas, names, predicates, properties, values
from tests.mqtt.prefixes import with_prefix

from nearcast.errors import InvalidEvent, InvalidInput, InvalidPredicate, InvalidProperty
from nearcast.model.area import Box, Circle, Rectangle
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.predicate import Predicate, Spatial
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS, instant
from nearcast.mqtt.publication import (
    delivered_event,
    delivery_properties,
    is_plain,
    message_expiry,
    properties_of,
    publication,
)

NOW = instant("2026-11-15T09:30:00Z")
HERE = Point(49.8728, 8.6512)
topics = st.sampled_from(["traffic/jam", "a", "a//b", "$SYS/x", "漢字", "/"])
temporals = st.builds(
    lambda relation, a, length: TemporalPredicate(relation, a, None if length is None else a + length),
    st.sampled_from(["overlaps", "during", "t_intersects", "contains"]),
    st.integers(0, 2 * NOW),
    st.none() | st.integers(0, NOW),
)


events = st.builds(
    Event,
    id=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    topic=topics,
    published=st.integers(0, 2 * NOW),
    attributes=st.dictionaries(names, values, max_size=3),
    tags=st.frozensets(st.sampled_from(["x", "é", "a,b"])),
    payload=st.binary(max_size=5),
    publisher=st.none() | st.just("ada"),
    place=st.none() | st.builds(Point, st.floats(-90, 90), st.floats(-180, 180)),
    reach=st.none() | areas,
    when=st.none() | temporals,
    lifetime=st.none() | st.integers(1, 10 * MICROSECONDS),
)


@given(predicates, properties())
def test_addressing_is_sent_as_text_that_means_the_same(predicate: Predicate, context: dict[str, Any]) -> None:
    sent = properties_of(Event("e", "t", 0, to=predicate))
    read = publication("t", b"", sent).event("e", 0, None, None).to
    assert read is not None
    assert evaluate(read, context) is evaluate(predicate, context)


@given(events)
def test_a_receiver_gets_the_event_that_was_published(event: Event) -> None:
    expiry = message_expiry(event, event.published)
    received = delivered_event(
        event.topic, event.payload, delivery_properties(event), expiry, id="other", received=event.published
    )
    for part in ("id", "topic", "published", "attributes", "tags", "payload", "place", "reach", "to", "when"):
        assert getattr(received, part) == getattr(event, part)
    if event.lifetime is not None:
        assert received.lifetime is not None
        assert 0 <= received.lifetime - event.lifetime < MICROSECONDS, "rounded up to whole seconds"


@given(events)
def test_what_is_sent_by_properties_or_by_the_prefix_is_the_same_publication(event: Event) -> None:
    properties = properties_of(event)
    direct = publication(event.topic, event.payload, properties)
    prefixed = publication(with_prefix(event.topic, properties), event.payload)
    assert msgspec.structs.replace(prefixed, prefixed=False) == direct
    made = direct.event("other", event.published, event.publisher, None)
    assert made == Event(
        event.id,
        event.topic,
        event.published,
        event.attributes,
        event.tags,
        event.payload,
        event.publisher,
        event.place,
        event.reach,
        event.to,
        event.when,
    )


def test_a_prefix_written_by_hand_is_read() -> None:
    read = publication("$near/place=49.87,8.65;severity=4;tag=a;tag=b%3B/traffic/jam", b"x")
    assert (read.topic, read.payload, read.place, read.tags) == ("traffic/jam", b"x", Point(49.87, 8.65), ("a", "b;"))
    assert read.attributes == {"severity": 4}
    assert read.addressed


def test_a_prefix_without_options_still_speaks_to_nearcast() -> None:
    read = publication("$near//traffic/jam", b"")
    assert (read.topic, read.addressed) == ("traffic/jam", True)


def test_plain_messages_are_told_apart() -> None:
    assert is_plain("a/b", [])
    assert not is_plain("a/b", [("severity", "4")])
    assert not is_plain("$near/severity=4/a", [])
    assert not is_plain("$nearcast/position", [])
    assert not publication("a/b", b"", [("severity", "4")]).addressed
    assert publication("a/b", b"", [("nc-tag", "x")]).addressed
    assert publication("a/b", b"", [("nc-id", "x")]).addressed


def test_here_is_where_the_publisher_is() -> None:
    read = publication("t", b"", [("nc-place", "here")])
    assert read.event("e", NOW, "ada", HERE).place == HERE
    with pytest.raises(InvalidEvent, match=r"\$nearcast/position"):
        read.event("e", NOW, "ada", None)


def test_a_reach_around_the_publisher_is_anchored_where_it_is() -> None:
    read = publication("t", b"", [("nc-reach", "800")])
    assert read.event("e", NOW, "ada", HERE).reach == Circle(800, HERE)
    with pytest.raises(InvalidEvent, match="around the publisher"):
        read.event("e", NOW, "ada", None)


def test_an_announced_reach_counts_unless_the_message_names_one() -> None:
    assert publication("t", b"").event("e", NOW, "ada", HERE, Circle(50)).reach == Circle(50, HERE)
    own = publication("t", b"", [("nc-reach", '{"box": [8, 49, 9, 50]}')])
    assert own.event("e", NOW, "ada", HERE, Circle(50)).reach == Box(8, 49, 9, 50)


def test_an_id_of_the_publisher_counts() -> None:
    assert publication("t", b"").event("given", NOW, None, None).id == "given"
    assert publication("t", b"", [("nc-id", "mine")]).event("given", NOW, None, None).id == "mine"


def test_times_in_the_addressing_are_relative_to_the_publication() -> None:
    expected = TemporalPredicate("overlaps", NOW - 600 * MICROSECONDS, NOW)
    for said in (
        [("nc-when", "overlaps(time, '-10m', 'now')")],
        [("nc-to", "under(transport, '/vehicle') AND overlaps(time, '-10m', 'now')")],
    ):
        assert publication("t", b"", said).event("e", NOW, None, None).when == expected


def test_message_expiry_is_the_lifetime() -> None:
    event = publication("t", b"", expiry=5).event("e", NOW, None, None)
    assert event.lifetime == 5 * MICROSECONDS
    assert message_expiry(event, NOW) == 5
    assert message_expiry(event, NOW + 1) == 5
    assert message_expiry(event, NOW + 4 * MICROSECONDS) == 1
    assert message_expiry(event, NOW + 5 * MICROSECONDS) == 0
    assert message_expiry(publication("t", b"").event("e", NOW, None, None), NOW) is None


def test_a_plain_message_is_delivered_without_any_property() -> None:
    event = delivered_event("t", b"x", [], None, id="mine", received=NOW)
    assert event == Event("mine", "t", NOW, payload=b"x")


def test_names_that_filters_use_otherwise_are_no_attributes_but_no_error_either() -> None:
    read = publication("t", b"", [("place", "Berlin"), ("tags", "x"), ("published", "?"), ("", "y"), ("colour", "red")])
    assert read.attributes == {"colour": "red"}
    assert read.event("e", NOW, None, None).attributes == {"colour": "red"}


def test_of_an_attribute_that_is_repeated_the_last_counts() -> None:
    assert publication("t", b"", [("a", "1"), ("a", "2")]).attributes == {"a": 2}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ([("nc-plase", "1,2")], "nc-place"),
        ([("nc-published", "2026-11-15T09:30:00Z")], "known: nc-channel"),
        ([("nc-area", "500")], "known: nc-channel"),
        ([("nc-id", "a"), ("nc-id", "b")], "twice"),
        ([("nc-id", "")], "empty"),
        ([("nc-place", "there")], "lat,lon"),
        ([("nc-reach", "far")], "no area"),
        ([("nc-when", "severity > 3")], "nc-to"),
        ([("nc-when", "overlaps(time, '-10m', 'now') AND a = 1")], "nc-to"),
        ([("nc-to", "severity >")], "cannot be read"),
        ([("nc-to", "overlaps(time, '-1m', 'now')"), ("nc-when", "overlaps(time, '-1m', 'now')")], "keep one"),
        ([("nc-tag", "")], "tags"),
    ],
)
def test_what_cannot_be_is_refused_and_says_so(properties: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        publication("t", b"", properties).event("e", NOW, None, HERE)


@pytest.mark.parametrize(
    "topic",
    ["$near/", "$near/a=1", "$near/a=1/", "$near/a/t", "$near/=1/t", "$near/a=%/t", "$near/a=%zz/t", "$near/a=%ff/t"],
)
def test_a_prefix_that_cannot_be_read_is_refused(topic: str) -> None:
    with pytest.raises(InvalidProperty):
        publication(topic, b"")


@given(
    st.text(max_size=30).map("$near/".__add__) | topics,
    st.lists(
        st.tuples(st.sampled_from(["nc-place", "nc-reach", "nc-to", "nc-when", "nc-id", "x"]), st.text(max_size=20))
    ),
)
def test_whatever_is_sent_is_an_event_or_refused(topic: str, properties: Any) -> None:
    with contextlib.suppress(InvalidInput):
        publication(topic, b"", properties, 5).event("e", NOW, None, HERE)


def test_addressing_without_a_text_is_refused_when_it_is_sent() -> None:
    event = Event("e", "t", 0, to=Spatial("s_within", "position", Rectangle(5, 5, HERE)))
    with pytest.raises(InvalidPredicate, match="cannot be sent"):
        properties_of(event)
