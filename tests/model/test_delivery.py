"""When interest and relevance meet: moments, lifetimes, and temporal predicates decided at the right instant."""

from __future__ import annotations

from typing import Any

import pytest

from nearcast.model.area import Circle
from nearcast.model.delivery import Validity, delivered, exists, receivers, relevant_moments, validities
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import TimeFrame

HOME, NEAR, FAR = Point(0, 0), Point(0, 0.0001), Point(0, 5)


def event(published: int = 100, **parts: Any) -> Event:
    return Event(**{"id": "e", "topic": "t", "published": published, **parts})


def about(relation: str, a: int | None, b: int | None, z: int = 0, **parts: Any) -> Event:
    return event(**{"when": TemporalPredicate(relation, a, b, z), "reach": Circle(50, HOME), **parts})


def stays(*spans: tuple[int, int | None], subscribed: int = 0) -> History:
    """A subscriber that stands in the middle of the reach during these spans and far away otherwise."""
    history = History()
    history.subscribed("ada", subscribed, Subscription())
    for start, end in spans:
        history.moved("ada", start, HOME)
        if end is not None:
            history.moved("ada", end, FAR)
    return history


def first_delivery(history: History, message: Event, last: int = 400) -> int | None:
    """The first instant at which the client has got the event; from then on it keeps it."""
    got = [at for at in range(last + 1) if delivered(history, message, "ada", as_of=at)]
    assert got == list(range(got[0], last + 1)) if got else True
    return got[0] if got else None


@pytest.mark.parametrize(
    ("relation", "a", "b", "spans", "decided"),
    [
        # Published at 100; about the past: decided at once.
        ("overlaps", 20, 40, [(10, 30)], 100),
        ("before", 50, 60, [(10, 50)], 100),
        ("before", 49, 60, [(10, 50)], None),
        # About the present and the future: as soon as nothing can change it any more.
        ("overlaps", 90, 120, [(110, None)], 110),
        ("overlaps", 150, 180, [(110, None)], 150),
        ("overlaps", 150, 180, [(110, 150)], None),
        ("overlaps", 150, 180, [(110, 151)], 150),
        ("after", 150, 180, [(181, None)], 181),
        ("after", 150, 180, [(180, None)], None),
        ("during", 110, 200, [(120, 150)], 150),
        ("during", 110, 200, [(120, None)], None),
        ("contains", 110, 200, [(50, None)], 200),
        ("contains", 110, 200, [(50, 200)], None),
        ("starts_in", 110, 150, [(120, None)], 150),
        ("ends_in", 110, 150, [(50, 130)], 130),
        ("ends_in", 110, 150, [(50, 151)], None),
        ("excludes", 110, 150, [(120, 130), (200, None)], 200),
        ("t_during", 110, 200, [(120, 150)], 150),
    ],
)
def test_a_temporal_predicate_is_decided_at_the_right_instant(
    relation: str, a: int, b: int, spans: list[tuple[int, int | None]], decided: int | None
) -> None:
    assert first_delivery(stays(*spans), about(relation, a, b)) == decided


def test_validities_are_maximal_and_one_for_each_context_and_conjunct() -> None:
    history = History()
    history.moved("ada", 10, HOME)
    history.registered("ada", 10, "me", {"speed": 10})
    history.moved("ada", 20, NEAR)
    history.registered("ada", 30, "me", {"speed": 60})
    history.moved("ada", 40, FAR)
    history.moved("ada", 50, HOME)
    message = about("overlaps", 0, 1, to="speed < 50 OR speed > 5")
    found = list(validities(message, history.client("ada"), as_of=60))
    assert found == [Validity(10, 30), Validity(10, 40), Validity(50, None)]


def test_what_was_not_known_yet_is_not_seen() -> None:
    history = stays((110, 150))
    message = about("overlaps", 0, 400)
    assert list(relevant_moments(history, message, history.client("ada"), as_of=109)) == []
    assert list(relevant_moments(history, message, history.client("ada"), as_of=110)) == [110]


def test_an_event_exists_from_its_publication_until_its_lifetime_ends_or_it_is_unpublished() -> None:
    history = History()
    message = event(100, lifetime=50)
    assert [exists(history, message, at) for at in (99, 100, 149, 150)] == [False, True, True, False]
    history.unpublished("e", 120)
    assert [exists(history, message, at) for at in (119, 120)] == [True, False]


def test_a_message_to_the_future_does_not_outlive_its_lifetime() -> None:
    to_come = about("overlaps", 150, 180, lifetime=20)
    assert first_delivery(stays((110, None)), to_come) is None
    assert first_delivery(stays((110, None)), about("overlaps", 150, 180, lifetime=51)) == 150


def test_before_its_publication_nothing_is_delivered() -> None:
    assert first_delivery(stays((10, None)), event(100)) == 100
    assert first_delivery(stays((10, 30)), about("overlaps", 20, 40)) == 100


def test_a_past_subscription_gets_the_past_when_it_subscribes() -> None:
    history = History()
    history.subscribed("ada", 200, Subscription(frame=TimeFrame(50, None)))
    assert first_delivery(history, event(100)) == 200
    assert first_delivery(history, event(49)) is None
    assert first_delivery(history, event(250)) == 250


def test_unsubscribing_ends_delivery_and_not_what_was_delivered() -> None:
    history = History()
    history.subscribed("ada", 10, Subscription())
    history.unsubscribed("ada", 110, "")
    assert first_delivery(history, event(100)) == 100
    assert first_delivery(history, event(110)) is None


def test_an_unknown_client_receives_nothing() -> None:
    assert not delivered(History(), event(), "nobody", as_of=1_000)
    assert receivers(History(), event(), as_of=1_000) == frozenset()


def test_distance_decreases_compares_with_the_event_before() -> None:
    history = History()
    history.moved("ada", 0, HOME)
    history.subscribed("ada", 0, Subscription(where="distance_decreases()"))
    places = [Point(0, 4), Point(0, 3), Point(0, 3), Point(0, 5), Point(0, 1)]
    events = [Event(f"e{i}", "t", 10 + i, publisher="car", place=place) for i, place in enumerate(places)]
    for message in events:
        history.published(message)
    got = [delivered(history, message, "ada", message.published) for message in events]
    assert got == [False, True, False, False, True], "the first one has no direction yet; equally near is not nearer"


def test_contexts_that_come_and_go_do_not_end_an_interval_of_the_reach_alone() -> None:
    history = History()
    history.subscribed("ada", 0, Subscription())
    history.moved("ada", 10, HOME)
    history.registered("ada", 20, "trip", {"role": "x"})
    history.registered("ada", 30, "other", {"role": "y"})
    history.deregistered("ada", 30, "trip")
    history.deregistered("ada", 40, "other")
    history.moved("ada", 60, FAR)
    assert list(validities(about("during", 15, 50), history.client("ada"), 100)) == [Validity(10, 60)]
    assert not delivered(history, about("during", 15, 50), "ada", as_of=100)
    assert delivered(history, about("during", 5, 70), "ada", as_of=100)


def test_a_subscription_replaced_at_once_was_never_held_and_replays_nothing() -> None:
    history = History()
    history.subscribed("ada", 200, Subscription("t", id="s"))
    history.subscribed("ada", 200, Subscription("other", id="s"))
    assert not delivered(history, event(), "ada", as_of=300)


def test_what_is_unpublished_at_once_reaches_nobody_not_even_the_addressed() -> None:
    history = History()
    history.registered("ada", 10, "me", {"role": "x"})
    history.accepts_addressed("ada", 10, True)
    message = event(to="role = 'x'")
    assert delivered(history, message, "ada", as_of=100)
    history.unpublished("e", 100)
    assert not delivered(history, message, "ada", as_of=100)
