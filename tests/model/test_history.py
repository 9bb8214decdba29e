"""The past as it was accepted: step functions of reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidContext, InvalidEvent, InvalidInput, UnknownName
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT, POSITION, History, Timeline
from nearcast.model.subscription import Subscription

HOME, AWAY = Point(1, 1), Point(2, 2)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers()), max_size=10))
def test_a_timeline_shows_the_last_change_up_to_a_time(changes: list[tuple[int, int]]) -> None:
    timeline, accepted = Timeline(initially=-1), dict[int, int]()
    for at, value in sorted(changes, key=lambda change: change[0]):
        timeline.set(at, value)
        accepted[at] = value
    for time in range(-1, 22):
        expected = [value for at, value in accepted.items() if at <= time]
        assert timeline.at(time) == (expected[-1] if expected else -1)
    assert timeline.changes() == tuple(accepted)


def test_what_was_foreseen_is_struck_out_by_what_comes() -> None:
    timeline = Timeline(initially=0)
    timeline.set(100, 5)
    timeline.set(50, 1)
    assert timeline.at(200) == 1
    timeline.set(300, 2)
    timeline.strike_out(200)
    assert timeline.at(400) == 1


def test_reports_of_one_client_come_in_the_order_of_time() -> None:
    history = History()
    history.moved("ada", 10, HOME)
    with pytest.raises(InvalidContext, match="comes after"):
        history.moved("ada", 9, AWAY)
    history.moved("bob", 9, AWAY)
    history.moved("ada", 10, AWAY)
    assert history.client("ada").position.at(10) == AWAY, "of two reports at one instant the second counts"


def test_a_client_without_registered_contexts_has_its_position_as_context() -> None:
    history = History()
    assert list(history.client("ada").contexts_at(5)) == []
    history.connected("ada", 10)
    assert list(history.client("ada").contexts_at(9)) == []
    assert list(history.client("ada").contexts_at(10)) == [(IMPLICIT_CONTEXT, {})]
    history.moved("ada", 20, HOME)
    assert list(history.client("ada").contexts_at(20)) == [(IMPLICIT_CONTEXT, {POSITION: HOME})]


def test_contexts_show_the_position_unless_they_name_one_of_their_own() -> None:
    history = History()
    history.moved("ada", 10, HOME)
    history.registered("ada", 20, "a", {"speed": 5})
    history.registered("ada", 20, "b", {POSITION: AWAY})
    assert dict(history.client("ada").contexts_at(20)) == {"a": {POSITION: HOME, "speed": 5}, "b": {POSITION: AWAY}}
    history.registered("ada", 30, "a", {"role": "x"})
    assert dict(history.client("ada").contexts_at(30))["a"] == {POSITION: HOME, "role": "x"}, "replaced, not merged"
    history.deregistered("ada", 40, "a")
    assert [name for name, _ in history.client("ada").contexts_at(40)] == ["b"]


def test_subscribing_again_under_the_same_id_replaces() -> None:
    history = History()
    history.subscribed("ada", 10, Subscription("a", id="s"))
    history.subscribed("ada", 20, Subscription("b", id="s"))
    first, second = history.client("ada").held
    assert (first.active(19), first.active(20), second.active(20)) == (True, False, True)


def test_the_previous_event_is_the_last_of_the_same_publisher_and_topic() -> None:
    history = History()
    for number, (publisher, topic) in enumerate([("ada", "t"), ("bob", "t"), ("ada", "u"), ("ada", "t")]):
        history.published(Event(f"e{number}", topic, number, publisher=publisher))
    last = history.events()[-1]
    before = history.previous(last)
    assert before is not None
    assert before.id == "e0"
    assert history.previous(before) is None
    assert history.previous(Event("x", "t", 99)) is None, "nobody is no publisher"


def test_unpublishing_counts_once() -> None:
    history = History()
    history.unpublished("e", 10)
    history.unpublished("e", 20)
    assert history.unpublished_at("e") == 10


def test_what_is_refused_changes_nothing() -> None:
    history = History()
    with pytest.raises(UnknownName):
        history.unsubscribed("ada", 10, "s")
    with pytest.raises(UnknownName):
        history.deregistered("ada", 10, "c")
    with pytest.raises(InvalidContext):
        history.registered("ada", 10, "", {})
    with pytest.raises(InvalidInput):
        history.registered("ada", 10, "c", {"a": float("nan")})
    assert history.clients() == ()
    history.published(Event("e", "t", 0))
    with pytest.raises(InvalidEvent, match="already"):
        history.published(Event("e", "t", 1))
    assert len(history.events()) == 1


def test_a_return_before_the_last_report_is_refused_and_strikes_nothing_out() -> None:
    history = History()
    history.moved("ada", 10, HOME)
    history.moved("ada", 20, AWAY)
    history.disconnected("ada", 30, 1_000)
    with pytest.raises(InvalidContext, match="comes after"):
        history.connected("ada", 15)
    assert history.client("ada").position.at(25) == AWAY
    assert history.client("ada").position.at(1_030) is None
    with pytest.raises(InvalidInput, match="cannot end"):
        history.disconnected("bob", 10, -5)
    assert history.clients() == ("ada",)


def test_who_lost_its_connection_must_connect_before_it_reports() -> None:
    history = History()
    history.moved("ada", 10, HOME)
    history.disconnected("ada", 20, 1_000)
    with pytest.raises(InvalidContext, match="must connect"):
        history.moved("ada", 30, AWAY)
    assert history.client("ada").position.at(30) == HOME
    history.connected("ada", 40)
    history.moved("ada", 50, AWAY)
    assert history.client("ada").position.at(5_000) == AWAY
