from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from nearcast.errors import InvalidPredicate, InvalidValue
from nearcast.model.content_filter import ContentFilter, Term
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.values import Range


def test_terms_become_the_predicate_that_cql2_reads() -> None:
    both = ContentFilter([("kind", "=", "jam"), ("severity", ">=", 3)])
    assert both.to_predicate() == parse("kind = 'jam' AND severity >= 3")
    either = ContentFilter([("kind", "=", "jam"), ("severity", ">=", 3)], mode="any")
    assert either.to_predicate() == parse("kind = 'jam' OR severity >= 3")
    assert ContentFilter([("speed", "range", (30, 60))]).to_predicate() == parse("speed BETWEEN 30 AND 60")
    assert ContentFilter([Term(None, "distance decreases")]).to_predicate() == parse("distance_decreases()")
    assert ContentFilter([("origin", "distance decreases")]).to_predicate() == parse("distance_decreases(origin)")


def test_a_range_includes_its_bounds() -> None:
    predicate = ContentFilter([("speed", "range", (30, 60.5))]).to_predicate()
    assert [evaluate(predicate, {"speed": speed}) for speed in (29, 30, 60.5, 61)] == [False, True, True, False]


def test_an_ambulance_warns_those_it_comes_nearer_to() -> None:
    predicate = ContentFilter([("kind", "=", "ambulance"), (None, "distance decreases")]).to_predicate()
    event = {"kind": "ambulance"}
    assert evaluate(predicate, event, lambda _property: True) is True
    assert evaluate(predicate, event, lambda _property: False) is False
    assert evaluate(predicate, event) is None


def test_instants_and_texts_have_ranges_too() -> None:
    morning, evening = datetime(2026, 11, 15, 6, tzinfo=UTC), datetime(2026, 11, 15, 18, tzinfo=UTC)
    assert evaluate(ContentFilter([("at", "range", (morning, evening))]).to_predicate(), {"at": morning}) is True
    assert evaluate(ContentFilter([("name", "range", ("a", "c"))]).to_predicate(), {"name": "d"}) is False


@pytest.mark.parametrize(
    ("term", "says"),
    [
        (
            ("a", "~", 1),
            "unknown operator '~' in a content filter; known: =, <>, <, <=, >, >=, range, distance decreases",
        ),
        (("", "=", 1), "needs the name of a parameter"),
        ((None, "=", 1), "needs the name of a parameter"),
        ((None, "distance decreases", 5), "takes no value, but it has 5"),
        (("a", "range", 5), r"is a pair \(low, high\), not 5"),
        (("a", "range", (5, 3)), "ends at 3, before its start 5"),
        (("a", "range", (5, "x")), "between two numbers, texts or instants"),
        (("a", "range", (False, True)), "between two numbers, texts or instants"),
        (("a", "=", Range(1, 2)), "compares with a plain value"),
    ],
)
def test_terms_that_cannot_be_are_refused(term: Any, says: str) -> None:
    with pytest.raises(InvalidPredicate, match=says):
        ContentFilter([term])


def test_values_are_checked_like_attributes() -> None:
    with pytest.raises(InvalidValue, match="attribute 'a' cannot be nan"):
        ContentFilter([("a", "=", float("nan"))])


def test_a_filter_has_terms_and_a_mode() -> None:
    with pytest.raises(InvalidPredicate, match="needs at least one term"):
        ContentFilter([])
    with pytest.raises(InvalidPredicate, match="'all' or 'any' of its terms hold, not 'most'"):
        ContentFilter([("a", "=", 1)], mode="most")  # type: ignore[arg-type]
