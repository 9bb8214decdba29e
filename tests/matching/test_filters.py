"""Distinct filters, numbered; stamps that mark what is known of the present event."""

from __future__ import annotations

import random

import numpy as np

from nearcast.matching import Matcher
from nearcast.matching.columns import STAMP
from nearcast.matching.filters import LAST_STAMP, FilterTable
from nearcast.model.area import Circle
from nearcast.model.cql2 import parse
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.topic import topic_matches


def test_equal_filters_are_one_until_their_last_holder_leaves() -> None:
    table = FilterTable()
    one = table.add("a/#", parse("x = 1"))
    assert table.add("a/#", parse("x = 1"), holders=2) == one
    assert table.add("a/#", None) != one
    assert (table.topic_filters, len(table.predicates)) == (1, 1)
    for _ in range(3):
        table.remove(one)
    assert len(table.predicates) == 0
    assert table.topic_filters == 1
    assert len(table) == 1


def test_topic_filters_are_found_by_topic_as_mqtt_matches_them() -> None:
    rng = random.Random(1)
    filters = ["#", "a/#", "a/b", "+/b", "a/+", "a/b/c", "+", "/a", "b/#"]
    table, held = FilterTable(), dict[str, int]()
    for _ in range(200):
        wanted = rng.choice(filters)
        if wanted in held:
            table.remove(held.pop(wanted))
        else:
            held[wanted] = table.add(wanted, None)
        for topic in ("a", "a/b", "a/b/c", "b", "/a", "b/b"):
            found = {int(number) for number in table.topics_matching(topic)}
            expected = {int(table.arrays.topic[number]) for text, number in held.items() if topic_matches(text, topic)}
            assert found == expected
    assert table.topic_filters == len(held)


def test_the_version_changes_with_every_topic_filter_that_comes_or_goes() -> None:
    table = FilterTable()
    versions = [table.version]
    number = table.add("a", None)
    versions.append(table.version)
    assert table.add("a", parse("x = 1")) != number
    assert table.version == versions[-1], "the same topic filter"
    table.remove(number)
    assert table.version == versions[-1]
    assert len(set(versions)) == 2


def test_when_stamps_run_out_everything_remembered_is_forgotten() -> None:
    table = FilterTable()
    table.add("a", None)
    table._stamp = LAST_STAMP - 10 * STAMP
    assert table.stamps(5) == LAST_STAMP - 10 * STAMP
    table.arrays.memo[0] = 77
    assert table.stamps(100) == STAMP
    assert (table.arrays.memo == -1).all()
    assert table.stamps(1) == 101 * STAMP


def test_answers_stay_right_while_the_stamps_run_out() -> None:
    matcher, home = Matcher(), Point(1, 1)
    matcher.move("ada", home.lat, home.lon)
    matcher.subscribe("ada", Subscription("a", area=Circle(10), where="x > 1"))
    matcher.subscribe("bob", Subscription("a", where="x > 2"))
    events = [Event(f"e{i}", "a" if i % 4 else "b", 0, place=home, attributes={"x": i % 5}) for i in range(40)]
    expected = [[c for c, least in (("ada", 1), ("bob", 2)) if i % 4 and i % 5 > least] for i in range(40)]
    matcher._filters._stamp = LAST_STAMP - 130 * STAMP
    for _ in range(8):
        assert [sorted(receivers) for receivers in matcher.match_batch(events)] == expected
        assert [sorted(matcher.match(event)) for event in events[:5]] == expected[:5]
    assert 0 < matcher._filters._stamp < LAST_STAMP // 2
    assert np.all(matcher._filters.arrays.memo < 2**31 - 1)
