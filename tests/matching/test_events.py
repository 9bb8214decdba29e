"""Batches of events in columns: what they say and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearcast.errors import HistoryNeeded, InvalidEvent, InvalidInput, InvalidPosition
from nearcast.matching import EventBatch, Matcher, Texts
from nearcast.model.area import Circle, Polygon
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import to_datetime


def batch(size: int = 2, **columns: Any) -> EventBatch:
    return EventBatch(
        **{
            "published": np.arange(size, dtype=np.int64),
            "lat": np.zeros(size),
            "lon": np.zeros(size),
            "topics": ("a",),
            "topic": np.zeros(size, np.int32),
            **columns,
        }
    )


def test_the_properties_of_a_row_are_those_of_the_event_it_stands_for() -> None:
    columns = batch(
        lat=np.array([1.0, np.nan]),
        lon=np.array([2.0, np.nan]),
        attributes={
            "n": np.array([1, 2]),
            "f": np.array([0.5, np.nan]),
            "b": np.array([True, False]),
            "s": Texts(np.array([-1, 0], np.int32), ("x",)),
            "t": np.array(["1970-01-01T00:00:01", "NaT"], "datetime64[s]"),
        },
    )
    first = Event("e", "a", 0, attributes={"n": 1, "f": 0.5, "b": True, "t": to_datetime(1_000_000)}, place=Point(1, 2))
    second = Event("e", "a", 1, attributes={"n": 2, "b": False, "s": "x"})
    assert [columns.properties(i) for i in (0, 1)] == [first.properties(), second.properties()]
    assert [type(value) for value in columns.properties(0).values()] == [type(v) for v in first.properties().values()]
    of_events = EventBatch.of([first, second])
    assert of_events.properties(1) == second.properties()
    assert [of_events.place(0), of_events.place(1)] == [Point(1, 2), None]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"lat": np.zeros(3)}, InvalidEvent),
        ({"lat": np.zeros((2, 2))}, InvalidEvent),
        ({"lat": np.array(["x", "y"])}, InvalidEvent),
        ({"topic": np.zeros(2)}, InvalidEvent),
        ({"attributes": {"x": [1, 2]}}, InvalidEvent),
        ({"attributes": {"x": np.zeros((2, 2))}}, InvalidEvent),
        ({"topic": np.zeros(1, np.int32)}, InvalidEvent),
        ({"topic": np.array([0, 1], np.int32)}, InvalidEvent),
        ({"topic": np.array([0, -1], np.int32)}, InvalidEvent),
        ({"lat": np.array([0, 91.0])}, InvalidPosition),
        ({"lon": np.array([0, 181.0])}, InvalidPosition),
        ({"lat": np.array([0, np.nan])}, InvalidPosition),
        ({"lon": np.array([0, np.inf])}, InvalidPosition),
        ({"publishers": ["x"]}, InvalidEvent),
        ({"attributes": {"x": np.zeros(5)}}, InvalidEvent),
        ({"attributes": {"x": np.array(["a", "b"])}}, InvalidEvent),
        ({"attributes": {"x": np.array([None, 1], object)}}, InvalidEvent),
        ({"attributes": {"place": np.zeros(2)}}, InvalidEvent),
        ({"attributes": {"x": Texts(np.array([0, 1], np.int32), ("a",))}}, InvalidEvent),
        ({"attributes": {"x": Texts(np.array([0, -2], np.int32), ("a",))}}, InvalidEvent),
        ({"reaches": {2: Circle(5, Point(0, 0))}}, InvalidEvent),
        ({"reaches": {0: Circle(5)}}, InvalidEvent),
        ({"addressing": {-1: ()}}, InvalidEvent),
    ],
    ids=str,
)
def test_columns_that_do_not_fit_together_are_refused(columns: dict[str, Any], error: type[InvalidInput]) -> None:
    with pytest.raises(error):
        batch(**columns)


def test_longitude_180_is_the_antimeridian_also_in_columns() -> None:
    matcher = Matcher()
    west = ((-180.0, 0.0), (-179.0, 0.0), (-179.0, 2.0), (-180.0, 2.0), (-180.0, 0.0))
    matcher.subscribe("ada", Subscription(area=Polygon(((west,),))))
    matches = matcher.match_batch(batch(lat=np.ones(2), lon=np.array([180.0, -180.0])))
    assert list(matches) == [["ada"], ["ada"]]


@pytest.mark.parametrize(
    ("where", "column", "expected"),
    [
        ("x = 9007199254740992", np.array([2**53, 2**53 + 1]), [True, False]),
        ("x > 9007199254740992", np.array([2**53, 2**53 + 1]), [False, True]),
        ("x = 2", np.array([2, 3], np.uint8), [True, False]),
        ("x = 0.5", np.array([0.5, 0.25], np.float32), [True, False]),
        ("x = 'a'", np.array([1.0, np.nan]), [False, False]),
        ("x IS NULL", np.array([1.0, np.nan]), [False, True]),
        ("x IS NULL", np.array(["NaT", "1970-01-01"], "datetime64[D]"), [True, False]),
        ("x = TRUE", np.array([True, False]), [True, False]),
        ("x = 1", np.array([True, False]), [False, False]),
        ("NOT x = 'a'", Texts(np.array([-1, 0], np.int32), ("b",)), [False, True]),
        ("x = TIMESTAMP('2026-01-01T00:00:00Z')", np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]"), [True, False]),
        ("x > TIMESTAMP('9000-01-01T00:00:00.000001Z')", np.array(["9000-01-01T00:00:00.000001", "9000-01-01T00:00:00.000002"], "datetime64[us]"), [False, True]),
    ],
    ids=str,
)  # fmt: skip
def test_columns_are_filtered_as_values(where: Any, column: Any, expected: list[bool]) -> None:
    matcher = Matcher()
    matcher.subscribe("ada", Subscription(where=where))
    matches = matcher.match_batch(batch(attributes={"x": column}))
    assert [bool(receivers) for receivers in matches] == expected


def test_an_empty_batch_has_no_receivers() -> None:
    matcher = Matcher()
    matcher.subscribe("ada", Subscription())
    assert list(matcher.match_batch(batch(0))) == []
    assert list(matcher.match_batch([])) == []


def test_the_present_cannot_answer_questions_about_other_times() -> None:
    matcher = Matcher()
    asked = Event("e", "a", 0, when=TemporalPredicate("before", 0, 1))
    with pytest.raises(HistoryNeeded, match="'e'"):
        matcher.match(asked)
    with pytest.raises(HistoryNeeded, match="'e'"):
        matcher.match_batch([asked])
    assert matcher.statistics().events == 0
