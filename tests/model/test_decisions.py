"""Every decision under "Decisions that make it exact" (product.md) as a statement of its own.

What concerns the present is also asked of the matcher.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from nearcast.errors import InvalidEvent, InvalidTime
from nearcast.matching import Matcher
from nearcast.model.area import Area, Box, Circle, Polygon, area_from_geojson
from nearcast.model.delivery import Delivery, delivered, delivery, receivers
from nearcast.model.event import Event, Proximity
from nearcast.model.geometry import EARTH_RADIUS, Point, distance
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import TimeFrame
from nearcast.model.values import OneOf, Path, Range, Subtree

HOME = Point(49.8728, 8.6512)
NEARBY = Point(49.8730, 8.6512)  # 22 m north
FAR = Point(50.1, 8.7)
CAR, BUS, FOOT = Path.parse("/vehicle/car"), Path.parse("/vehicle/bus"), Path.parse("/foot")


def event(published: int = 100, **parts: Any) -> Event:
    return Event(**{"id": f"e{published}", "topic": "news", "published": published, **parts})


def history_of(*reports: tuple[Any, ...]) -> History:
    """A history of reports such as ``("moved", "ada", 10, HOME)``."""
    history = History()
    for name, *arguments in reports:
        getattr(history, name)(*arguments)
    return history


def now_receives(history: History, message: Event, client: str = "ada") -> bool:
    return delivered(history, message, client, as_of=message.published)


def subscriber(*, area: Area | None = None, at: Point | None = HOME, **parts: Any) -> tuple[History, Matcher]:
    """One client, ada, with one subscription: to the oracle and to the matcher."""
    history, matcher = History(), Matcher()
    subscription = Subscription(**{"topic": "#", "area": area, **parts})
    if at is not None:
        history.moved("ada", 10, at)
        matcher.move("ada", at.lat, at.lon)
    history.subscribed("ada", 10, subscription)
    matcher.subscribe("ada", subscription)
    return history, matcher


def both(pair: tuple[History, Matcher], message: Event) -> bool:
    """What the definition says; the matcher says the same."""
    history, matcher = pair
    verdict = now_receives(history, message)
    assert ("ada" in matcher.match(message)) == verdict
    assert matcher.explain(message, "ada").holds == verdict
    return verdict


# Known, not true


def test_a_report_counts_from_its_acceptance_until_the_next_one() -> None:
    history = history_of(
        ("subscribed", "ada", 0, Subscription(area=Circle(100))), ("moved", "ada", 10, HOME), ("moved", "ada", 20, FAR)
    )
    assert [now_receives(history, event(at, place=HOME)) for at in (9, 10, 19, 20)] == [False, True, True, False]


# Events without place


def test_events_without_place_pass_every_area_and_are_filtered_by_topic_and_predicate_alone() -> None:
    for at in (HOME, FAR, None):
        pair = subscriber(area=Circle(100), at=at, topic="news", where="severity > 2")
        assert both(pair, event(attributes={"severity": 3}))
        assert not both(pair, event(attributes={"severity": 1}))
        assert not both(pair, event(topic="weather", attributes={"severity": 3}))
    assert both(subscriber(area=Box(0, 0, 1, 1)), event())


# No known position


def test_without_a_known_position_relative_areas_and_reaches_are_false() -> None:
    assert not both(subscriber(area=Circle(2e7), at=None), event(place=HOME))
    assert not both(subscriber(at=None), event(reach=Circle(2e7, HOME)))
    assert both(subscriber(area=Circle(100, HOME), at=None), event(place=HOME)), "an absolute area needs no position"


def test_a_position_that_is_no_longer_known_is_not_known() -> None:
    history, matcher = pair = subscriber(area=Circle(100))
    assert both(pair, event(place=HOME))
    history.moved("ada", 110, None)
    matcher.forget_position("ada")
    assert not both(pair, event(120, place=HOME))


# Reach around the publisher


def test_a_reach_around_the_publisher_is_fixed_at_the_moment_of_publication() -> None:
    proximity = Proximity("news", Circle(100))
    reach = proximity.reach(HOME)
    assert reach == Circle(100, HOME)
    history, _ = pair = subscriber()
    history.moved("publisher", 105, FAR)
    assert both(pair, event(100, reach=reach))
    assert both(pair, event(110, reach=reach))


def test_publishing_a_relative_reach_without_a_position_is_an_error() -> None:
    with pytest.raises(InvalidEvent, match="relative"):
        event(reach=Circle(100))
    with pytest.raises(InvalidEvent, match="position is not known"):
        Proximity("news", Circle(100)).reach(None)


# Several contexts


def context_twins(contexts: dict[str, dict[str, Any]]) -> tuple[History, Matcher]:
    history, matcher = pair = subscriber()
    for name, attributes in contexts.items():
        history.registered("ada", 20, name, attributes)
        matcher.register_context("ada", name, attributes)
    return pair


def test_constraints_hold_within_one_context_never_across_their_union() -> None:
    both_terms = "transport = '/vehicle/car' AND role = 'guest'"
    apart = context_twins({"a": {"transport": CAR}, "b": {"role": "guest"}})
    assert not both(apart, event(to=both_terms))
    assert both(apart, event(to="role = 'guest'"))
    assert both(context_twins({"a": {"transport": CAR, "role": "guest"}, "b": {}}), event(to=both_terms))


@pytest.mark.parametrize(
    ("coarse", "possible", "impossible"),
    [
        ({"speed": Range(30, 60)}, ["speed > 50", "NOT speed > 50", "speed = 45"], ["speed > 60", "speed = 61"]),
        ({"way": OneOf({CAR, FOOT})}, ["under(way, '/vehicle')", "under(way, '/foot')"], ["under(way, '/vehicle/bus')"]),
        ({"way": Subtree(CAR)}, ["under(way, '/vehicle')", "NOT under(way, '/vehicle/motorized/car/red')"], ["under(way, '/foot')"]),
        ({"role": OneOf({"x", "y"})}, ["role = 'x'", "role = 'y'", "role <> 'x'"], ["role = 'z'"]),
        ({"position": Circle(500, HOME)}, ["S_DWITHIN(position, POINT(8.6512 49.8730), 5)"], ["S_DWITHIN(position, POINT(9 50), 5)"]),
    ],
    ids=["interval", "set of paths", "subtree", "set of texts", "area"],
)  # fmt: skip
def test_a_coarse_value_matches_when_it_possibly_matches(
    coarse: dict[str, Any], possible: list[str], impossible: list[str]
) -> None:
    pair = context_twins({"a": coarse})
    assert [both(pair, event(to=text)) for text in possible] == [True] * len(possible)
    assert [both(pair, event(to=text)) for text in impossible] == [False] * len(impossible)


# Temporal predicates


def here_between(a: int | None, b: int | None, relation: str = "overlaps", **parts: Any) -> Event:
    return event(**{"when": TemporalPredicate(relation, a, b), "reach": Circle(50, HOME), **parts})


def test_temporal_predicates_are_judged_on_maximal_intervals_not_on_single_reports() -> None:
    """Two reports inside the reach are one stay from 10 to 60, which contains 20 to 40; neither report alone does."""
    history = history_of(
        ("subscribed", "ada", 0, Subscription()), ("moved", "ada", 10, HOME), ("moved", "ada", 30, NEARBY),
        ("moved", "ada", 60, FAR),
    )  # fmt: skip
    assert now_receives(history, here_between(20, 40, "contains"))
    assert not now_receives(history, here_between(5, 40, "contains"))


def test_a_change_of_another_attribute_does_not_end_the_interval_of_a_conjunct() -> None:
    history = history_of(
        ("subscribed", "ada", 0, Subscription()),
        ("registered", "ada", 10, "me", {"way": CAR, "speed": 10}),
        ("registered", "ada", 30, "me", {"way": CAR, "speed": 50}),
        ("registered", "ada", 60, "me", {"way": FOOT}),
    )
    assert now_receives(history, here_between(20, 40, "contains", to="under(way, '/vehicle')", reach=None))
    assert not now_receives(history, here_between(20, 40, "contains", to="speed < 20", reach=None))


def test_losing_the_connection_keeps_the_context_until_the_session_expires_then_deregisters_it() -> None:
    history = history_of(
        ("moved", "ada", 10, HOME), ("registered", "ada", 10, "me", {"way": CAR}), ("subscribed", "ada", 10, Subscription()),
        ("disconnected", "ada", 50, 100),
    )  # fmt: skip
    for message in (event(149, to="way IS NOT NULL"), event(149, reach=Circle(10, HOME)), event(149)):
        assert now_receives(history, message)
    for message in (event(150, to="way IS NOT NULL"), event(150, reach=Circle(10, HOME)), event(150)):
        assert not now_receives(history, message)


def test_returning_before_the_session_expires_is_as_if_nothing_had_happened() -> None:
    history = history_of(
        ("moved", "ada", 10, HOME), ("subscribed", "ada", 10, Subscription()), ("accepts_addressed", "ada", 10, True),
        ("disconnected", "ada", 50, 100), ("connected", "ada", 120),
    )  # fmt: skip
    assert now_receives(history, event(500, reach=Circle(10, HOME)))
    history.unsubscribed("ada", 600, "")
    assert now_receives(history, event(700, to="position IS NOT NULL"))


def test_after_the_session_expired_nothing_of_it_is_left() -> None:
    history = history_of(
        ("moved", "ada", 10, HOME), ("subscribed", "ada", 10, Subscription()), ("accepts_addressed", "ada", 10, True),
        ("registered", "ada", 10, "me", {"way": CAR}), ("disconnected", "ada", 50, 100), ("connected", "ada", 200),
    )  # fmt: skip
    assert not now_receives(history, event(300))
    assert not now_receives(history, event(301, to="way IS NULL"))
    history.subscribed("ada", 400, Subscription())
    assert not now_receives(history, event(500, reach=Circle(10, HOME)))
    assert not now_receives(history, event(501, to="way IS NOT NULL"))


def test_historical_relevance_is_existential() -> None:
    """Of two stays, one within the asked time is enough."""
    history = history_of(
        ("subscribed", "ada", 0, Subscription()), ("moved", "ada", 10, HOME), ("moved", "ada", 20, FAR),
        ("moved", "ada", 60, HOME), ("moved", "ada", 90, FAR),
    )  # fmt: skip
    assert now_receives(history, here_between(9, 25, "during"))
    assert now_receives(history, here_between(55, 95, "during"))
    assert not now_receives(history, here_between(21, 59, "overlaps"))


# Past subscription


def test_a_past_subscription_looks_around_the_position_at_the_time_of_subscribing() -> None:
    past = Subscription(area=Circle(100), frame=TimeFrame(0, None))
    history = history_of(("moved", "ada", 10, HOME), ("moved", "ada", 150, FAR), ("subscribed", "ada", 200, past))
    assert not delivered(history, event(100, place=HOME), "ada", as_of=200)
    assert delivered(history, event(100, place=FAR), "ada", as_of=200)
    assert not delivered(history, event(100, place=FAR), "ada", as_of=199), "not before it subscribed"


def test_for_a_past_subscription_relevance_is_that_of_the_publication() -> None:
    past = Subscription(frame=TimeFrame(0, None))
    history = history_of(("moved", "ada", 10, HOME), ("moved", "ada", 150, FAR), ("subscribed", "ada", 200, past))
    assert delivered(history, event(100, reach=Circle(100, HOME)), "ada", as_of=200)
    assert not delivered(history, event(101, reach=Circle(100, FAR)), "ada", as_of=200)


def test_a_newcomer_gets_bound_events_of_the_past_only_if_the_temporal_predicate_admits_it() -> None:
    past = Subscription(frame=TimeFrame(0, None))
    history = history_of(("moved", "ada", 200, HOME), ("subscribed", "ada", 200, past))
    assert delivered(history, event(100), "ada", as_of=300), "bound by nothing"
    assert not delivered(history, event(101, reach=Circle(100, HOME)), "ada", as_of=300)
    assert not delivered(history, event(102, to="position IS NOT NULL"), "ada", as_of=300)
    assert delivered(history, here_between(100, None, published=103), "ada", as_of=300)


def test_a_past_subscription_gets_only_what_its_frame_names() -> None:
    history = history_of(("subscribed", "ada", 200, Subscription(frame=TimeFrame(50, 100))))
    assert [delivered(history, event(at), "ada", as_of=300) for at in (49, 50, 99, 100)] == [False, True, True, False]


# Historical or future message and subscription


def test_the_subscription_must_be_held_when_relevance_becomes_true() -> None:
    to_come = here_between(150, 180, "starts_in", published=100)
    base = [("subscribed", "ada", 0, Subscription()), ("moved", "ada", 160, HOME)]
    assert delivered(history_of(*base), to_come, "ada", as_of=180), "still there at 180: proven"
    assert not delivered(history_of(*base), to_come, "ada", as_of=179)
    assert not delivered(history_of(*base, ("unsubscribed", "ada", 170, "")), to_come, "ada", as_of=200)
    late = history_of(("moved", "ada", 160, HOME), ("subscribed", "ada", 190, Subscription()))
    assert not delivered(late, to_come, "ada", as_of=200), "a message to the future comes at its own moment"


def test_the_frame_of_the_subscription_tests_the_publication_also_of_a_message_to_the_future() -> None:
    to_come = here_between(150, 180, published=100)
    for frame, expected in ((TimeFrame(100, 101), True), (TimeFrame(140, 200), False)):
        history = history_of(("subscribed", "ada", 0, Subscription(frame=frame)), ("moved", "ada", 160, HOME))
        assert delivered(history, to_come, "ada", as_of=200) == expected


# Missing values


@pytest.mark.parametrize(
    ("where", "attributes", "accepted"),
    [
        ("NOT kind = 'ads'", {}, False),
        ("NOT kind = 'ads'", {"kind": "news"}, True),
        ("kind <> 'ads'", {}, False),
        ("kind IS NULL", {}, True),
        ("kind IS NULL", {"kind": ""}, False),
        ("kind = 'ads'", {"kind": 1}, False),
        ("NOT kind = 'ads'", {"kind": 1}, False),
        ("kind = 'ads' OR severity > 1", {"severity": 2}, True),
        ("kind = 'ads' AND severity > 1", {"severity": 2}, False),
        ("NOT (kind = 'ads' AND severity > 1)", {"severity": 1}, True),
    ],
)
def test_missing_values_and_type_mismatches_are_unknown_and_unknown_is_false_at_the_top(
    where: str, attributes: dict[str, Any], accepted: bool
) -> None:
    assert both(subscriber(where=where), event(attributes=attributes)) is accepted


def test_tags_are_a_closed_world() -> None:
    assert both(subscriber(where="NOT tagged('ads')"), event())
    assert not both(subscriber(where="NOT tagged('ads')"), event(tags=frozenset({"ads"})))


# Lifetime, unpublish


def test_lifetime_ends_delivery_and_history_and_never_widens_the_receivers() -> None:
    past = Subscription(frame=TimeFrame(0, None))
    brief, lasting = event(100, lifetime=50), event(101, lifetime=1_000)
    in_time, late = history_of(("subscribed", "ada", 149, past)), history_of(("subscribed", "ada", 150, past))
    assert delivered(in_time, brief, "ada", as_of=500)
    assert not delivered(late, brief, "ada", as_of=500)
    assert delivered(late, lasting, "ada", as_of=500)
    newcomer = history_of(("subscribed", "ada", 0, Subscription()), ("moved", "ada", 200, HOME))
    bound = event(102, reach=Circle(100, HOME), lifetime=1_000)
    assert not delivered(newcomer, bound, "ada", as_of=500), "who comes into the reach later was not meant"


def test_nothing_is_delivered_after_unpublishing_and_earlier_deliveries_stand() -> None:
    past = Subscription(frame=TimeFrame(0, None))
    history = history_of(
        ("subscribed", "ada", 50, past), ("subscribed", "bob", 200, past), ("unpublished", "e100", 150)
    )
    assert receivers(history, event(100), as_of=300) == {"ada"}


# Several subscriptions


def test_several_subscriptions_are_one_copy_with_all_identifiers_and_the_highest_quality_of_service() -> None:
    wants = [
        Subscription("#", id="a", qos=1),
        Subscription("news", id="b", qos=2),
        Subscription("other", id="c", qos=0),
    ]
    history, matcher = History(), Matcher()
    for subscription in wants:
        history.subscribed("ada", 0, subscription)
        matcher.subscribe("ada", subscription)
    copy = Delivery("ada", frozenset({"a", "b"}), 2)
    assert delivery(history, event(), "ada", as_of=100) == copy
    assert matcher.match(event()).deliveries() == [copy]
    assert matcher.match_batch([event()]).deliveries(0) == [copy]
    assert list(matcher.match(event())) == ["ada"]


def test_a_new_subscription_into_the_past_replays_for_itself() -> None:
    past = Subscription(frame=TimeFrame(0, None), id="past")
    history = history_of(("subscribed", "ada", 0, Subscription(id="first")), ("subscribed", "ada", 200, past))
    before, after = (delivery(history, event(100), "ada", as_of=at) for at in (199, 200))
    assert before == Delivery("ada", frozenset({"first"}), 0)
    assert after == Delivery("ada", frozenset({"first", "past"}), 0)


# Addressed without subscription


def test_who_accepts_addressed_events_needs_no_subscription_and_that_is_off_by_default() -> None:
    history, matcher = History(), Matcher()
    for client in ("ada", "bob"):
        history.moved(client, 0, HOME)
        matcher.move(client, HOME.lat, HOME.lon)
    history.accepts_addressed("ada", 10, True)
    matcher.accept_addressed("ada")
    addressed = event(topic="whatever", to="position IS NOT NULL")
    assert receivers(history, addressed, as_of=100) == {"ada"} == set(matcher.match(addressed))
    assert matcher.match(addressed).deliveries() == [Delivery("ada", frozenset(), 0)]
    reached = event(reach=Circle(10, HOME))
    assert receivers(history, reached, as_of=100) == frozenset() == set(matcher.match(reached)), (
        "a reach addresses nobody"
    )
    for switch in (matcher.accept_addressed, lambda client, accepts: history.accepts_addressed(client, 20, accepts)):
        switch("ada", False)
    assert not now_receives(history, addressed)
    assert list(matcher.match(addressed)) == []


def test_who_is_addressed_and_has_subscribed_gets_one_copy() -> None:
    matcher = Matcher()
    matcher.accept_addressed("ada")
    matcher.subscribe("ada", Subscription(id="s", qos=1))
    addressed = event(to="position IS NULL")
    assert matcher.match(addressed).deliveries() == [Delivery("ada", frozenset({"s"}), 1)]
    assert matcher.match_batch([addressed, addressed]).deliveries(1) == [Delivery("ada", frozenset({"s"}), 1)]
    assert list(matcher.match_batch([addressed])) == [["ada"]]


# Borders, cells, edges, the sphere


def test_borders_belong_to_the_area_and_to_the_reach() -> None:
    exactly = distance(HOME, NEARBY)
    for radius, inside in ((exactly, True), (math.nextafter(exactly, 0), False)):
        assert both(subscriber(area=Circle(radius)), event(place=NEARBY)) is inside
        assert both(subscriber(), event(reach=Circle(radius, NEARBY))) is inside
    assert both(subscriber(area=Box(8.0, 49.0, 8.6512, 49.8728)), event(place=HOME))


def test_cells_are_half_open_so_that_a_client_on_their_border_stands_in_exactly_one() -> None:
    for level in (11, 15, 20):
        size = 2**level * 360 / 2**32
        corner = Point(size * (1 << (28 - level)), size * (1 << (29 - level)))
        _, matcher = pair = subscriber(area=Circle(1.0), at=corner)
        assert both(pair, event(place=corner))
        for lat, lon in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            beside = Point(corner.lat + lat * 5e-6, corner.lon + lon * 5e-6)
            assert both(pair, event(place=beside))
            matcher.move("ada", beside.lat, beside.lon)
            assert list(matcher.match(event(place=corner))) == ["ada"]
            matcher.move("ada", corner.lat, corner.lon)
        assert matcher.statistics().subscriptions == 1


def test_polygon_edges_are_planar_in_longitude_and_latitude() -> None:
    """The great circle from (0 W, 60 N) to (60 E, 60 N) runs north of 60 N; the edge of a polygon does not."""
    south_of_60 = Polygon(((((0, 50), (60, 50), (60, 60), (0, 60), (0, 50)),),))
    for lat, inside in ((60.0, True), (60.001, False)):
        assert both(subscriber(area=south_of_60), event(place=Point(lat, 30))) is inside


def test_distances_are_great_circle_metres_on_the_sphere_of_radius_6371008_8() -> None:
    assert EARTH_RADIUS == 6_371_008.8
    degree = math.pi * 6_371_008.8 / 180
    assert distance(Point(0, 0), Point(0, 1)) == pytest.approx(degree, rel=1e-12)
    assert both(subscriber(at=Point(0, 0), area=Circle(degree + 1e-6)), event(place=Point(1, 0)))
    assert not both(subscriber(at=Point(0, 0), area=Circle(degree - 1e-6)), event(place=Point(1, 0)))


def test_positions_are_lat_lon_and_geojson_is_lon_lat() -> None:
    area = area_from_geojson({"type": "Polygon", "coordinates": [[[8, 49], [9, 49], [9, 50], [8, 50], [8, 49]]]})
    assert area.covers(Point(lat=49.5, lon=8.5))
    assert not area.covers(Point(lat=8.5, lon=49.5))


# Intervals, own events


def test_all_intervals_are_half_open() -> None:
    framed = Subscription(frame=TimeFrame(50, 100))
    history = history_of(("subscribed", "ada", 10, framed), ("registered", "bob", 20, "c", {"way": BUS}))
    assert [now_receives(history, event(at)) for at in (49, 50, 99, 100)] == [False, True, True, False]
    _, matcher = subscriber(frame=TimeFrame(50, 100))
    assert [list(matcher.match(event(at))) for at in (49, 50, 99, 100)] == [[], ["ada"], ["ada"], []]
    history.subscribed("bob", 20, Subscription())
    history.deregistered("bob", 30, "c")
    history.unsubscribed("bob", 40, "")
    assert [now_receives(history, event(at), "bob") for at in (19, 20, 39, 40)] == [False, True, True, False]
    assert [now_receives(history, event(at, to="way IS NOT NULL"), "bob") for at in (20, 29, 30)] == [True, True, False]
    with pytest.raises(InvalidTime):
        TimeFrame(50, 50)


def test_own_events_are_delivered_unless_no_local_is_set() -> None:
    assert both(subscriber(), event(publisher="ada"))
    assert not both(subscriber(no_local=True), event(publisher="ada"))
    assert both(subscriber(no_local=True), event(publisher="bob"))


# Identity


def test_contexts_are_recorded_under_an_opaque_identity() -> None:
    """Nothing reads a meaning into a client's id: the map to persons lives elsewhere."""
    history, matcher = History(), Matcher()
    for client in ("7f3a", "ada@example.org", "0", "#", "a/b"):
        history.subscribed(client, 0, Subscription())
        matcher.subscribe(client, Subscription())
    assert (
        receivers(history, event(), as_of=100)
        == {"7f3a", "ada@example.org", "0", "#", "a/b"}
        == set(matcher.match(event()))
    )
