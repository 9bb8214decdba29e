"""Subscriptions as SUBSCRIBE packets."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import any_area
from tests.mqtt.prefixes import with_prefix

from nearcast.errors import InvalidInput, InvalidProperty, InvalidTime, InvalidTopic
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, TimeFrame, duration, instant
from nearcast.mqtt.requests import (
    SubscriptionRequest,
    shared,
    subscription_id,
    subscription_request,
    unsubscribed_id,
)

NOW = instant("2026-11-15T09:30:00Z")
filters = st.sampled_from(["#", "traffic/#", "+/b", "a", "$SYS/#", "漢字/+"])
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
requests = st.builds(
    lambda topic, area, where, since, until, batch, name: SubscriptionRequest(
        topic, topic, None, area, where, since, until, batch, name, addressed=True
    ),
    filters,
    st.none() | any_area,
    st.sampled_from([None, "severity >= 3", "colour = 'it''s; 100%'", "TRUE"]),
    st.sampled_from([None, "-2h", "now", "..", "2026-11-14T00:00:00Z"]),
    st.sampled_from([None, "1h", "2030-01-01T00:00:00Z"]),
    st.none() | st.integers(1, 1_000_000),
    names,
)


@given(requests)
def test_a_request_comes_back_from_its_properties_and_from_the_prefix(request: SubscriptionRequest) -> None:
    back = subscription_request(request.topic, request.properties())
    assert back.properties() == request.properties()
    assert (back.topic, back.area, back.where, back.since, back.until, back.batch, back.name) == (
        request.topic,
        request.area,
        request.where,
        request.since,
        request.until,
        request.batch,
        request.name,
    )
    prefixed = subscription_request(with_prefix(request.topic, request.properties()))
    assert prefixed.topic == request.topic
    assert prefixed.properties() == request.properties()
    assert prefixed.addressed


@given(requests, st.integers(0, 2), st.booleans())
def test_a_resolved_request_asks_for_the_same_subscription_whenever_it_is_sent(
    request: SubscriptionRequest, qos: int, no_local: bool
) -> None:
    asked = request.subscription(NOW, qos, no_local=no_local)
    sent = subscription_request(request.topic, request.resolved(NOW).properties())
    assert sent.subscription(NOW + duration("1d"), qos, no_local=no_local) == asked


@given(filters, names, filters, names)
def test_each_filter_has_one_id_under_each_name(one: str, name: str, other: str, other_name: str) -> None:
    assert (subscription_id(one, name) == subscription_id(other, other_name)) == ((one, name) == (other, other_name))


def test_without_since_a_subscription_begins_now() -> None:
    request = subscription_request("traffic/#")
    assert not request.addressed
    assert not request.begins_in_the_past
    assert request.subscription(NOW) == Subscription("traffic/#", frame=TimeFrame(NOW), id="traffic/#")


def test_two_dots_mean_from_the_beginning() -> None:
    request = subscription_request("t", [("nc-since", "..")])
    assert request.begins_in_the_past
    assert request.subscription(NOW).frame == EVER
    assert request.resolved(NOW) == request


def test_the_example_of_the_contract_is_read() -> None:
    request = subscription_request("$near/area=500;since=-2h;where=severity%20%3E%3D%203/traffic/#")
    assert (request.topic, request.area, request.where, request.since) == (
        "traffic/#",
        Circle(500),
        "severity >= 3",
        "-2h",
    )
    assert request.subscription(NOW).frame.since == NOW - duration("2h")


def test_unsubscribing_names_what_was_subscribed() -> None:
    for topic_filter, properties in (
        ("a/#", []),
        ("a/#", [("nc-name", "mine")]),
        ("$share/g/a/#", []),
        ("$near/area=500/a/#", []),
        ("$near/area=500;name=mine/a/#", []),
        ("$share/g/$near/area=500/a/#", []),
    ):
        assert unsubscribed_id(topic_filter, properties) == subscription_request(topic_filter, properties).id


def test_a_shared_subscription_is_split() -> None:
    request = subscription_request("$share/consumers/$near/area=500/traffic/#", [("other", "program's")])
    assert (request.group, request.topic, request.area) == ("consumers", "traffic/#", Circle(500))
    assert shared("$share/g//a") == ("g", "/a")
    assert shared("$shared/a") == (None, "$shared/a")


@pytest.mark.parametrize(
    "topic_filter", ["$share", "$share/", "$share/g", "$share/g/", "$share//a", "$share/+/a", "$share/a#/b"]
)
def test_a_shared_subscription_needs_group_and_filter(topic_filter: str) -> None:
    with pytest.raises(InvalidTopic):
        shared(topic_filter)


@pytest.mark.parametrize(
    ("topic_filter", "properties", "message"),
    [
        ("a/#/b", [], "#"),
        ("a", [("nc-radius", "5")], "nc-area"),
        ("a", [("nc-place", "1,2")], "nc-area"),
        ("a", [("nc-area", "1"), ("nc-area", "2")], "twice"),
        ("$near/area=1/a", [("nc-area", "2")], "twice"),
        ("$near/severity=4/a", [], "no option"),
        ("$near/area=/a", [], "area"),
        ("$near/area=5", [], "topic"),
        ("$near/area=5/$share/g/a", [], "shared"),
        ("a", [("nc-batch", "0")], "nc-batch"),
        ("a", [("nc-batch", "many")], "nc-batch"),
        ("a", [("nc-batch", "²")], "nc-batch"),
        ("a", [("nc-batch", "99999999999")], "nc-batch"),
        ("a", [("nc-where", "severity >")], "filter"),
        ("a", [("nc-since", "yesterday")], "yesterday"),
        ("a", [("nc-until", "-1h")], "before|not after"),
    ],
)
def test_what_cannot_be_is_refused_and_says_so(
    topic_filter: str, properties: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        subscription_request(topic_filter, properties).subscription(NOW)


def test_errors_have_the_class_of_what_is_wrong() -> None:
    with pytest.raises(InvalidProperty):
        subscription_request("a", [("nc-batch", "-1")])
    with pytest.raises(InvalidTime):
        subscription_request("a", [("nc-since", "soon")]).resolved(NOW)
    with pytest.raises(InvalidProperty):
        unsubscribed_id("a", [("nc-area", "5")])


@given(
    st.text(max_size=30).map("$near/".__add__) | st.text(max_size=10),
    st.lists(st.tuples(st.just("nc-where"), st.text())),
)
def test_whatever_is_asked_for_is_a_subscription_or_refused(
    topic_filter: str, properties: list[tuple[str, str]]
) -> None:
    with contextlib.suppress(InvalidInput):
        subscription_request(topic_filter, properties).subscription(NOW)
