"""An explanation names the term that decides, as data and as text, and agrees with the definition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nearcast.model.area import Box, Circle
from nearcast.model.delivery import delivered
from nearcast.model.event import Event
from nearcast.model.explanation import Explanation, explain
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import TimeFrame
from nearcast.model.values import Path

HOME, THERE = Point(0, 0), Point(0, 0.001)  # 111 m


def event(**parts: Any) -> Event:
    return Event(**{"id": "e", "topic": "traffic/jam", "published": 100, "place": THERE, **parts})


def history(**parts: Any) -> History:
    past = History()
    past.moved("ada", 10, HOME)
    past.subscribed("ada", 10, Subscription(**{"topic": "traffic/#", "id": "s", **parts}))
    past.registered("ada", 10, "me", {"way": Path.parse("/foot")})
    return past


def failing(explanation: Explanation) -> set[str]:
    """Terms that fail though all of which they are made hold."""
    if not explanation.holds and all(part.holds for part in explanation.parts):
        return {explanation.term}
    return {term for part in explanation.parts if not part.holds for term in failing(part)}


@pytest.mark.parametrize(
    ("subscription", "parts", "term", "words"),
    [
        ({"topic": "weather"}, {}, "topic", "'traffic/jam' against 'weather'"),
        ({"area": Circle(50)}, {}, "area", "111.2 m from the centre, radius 50 m"),
        ({"area": Box(1, 1, 2, 2)}, {}, "area", "middle of the box"),
        ({"frame": TimeFrame(200, 300)}, {}, "frame", "published 1970-01-01T00:00:00.000100Z"),
        ({"no_local": True}, {"publisher": "ada"}, "no-local", "published by 'ada'"),
        ({"where": "severity >= 3"}, {"attributes": {"severity": 2}}, "content", "severity"),
        ({}, {"reach": Circle(50, THERE)}, "reach", "the client is 111.2 m from the centre"),
        ({}, {"to": "under(way, '/vehicle')"}, "content", "way"),
    ],
)
def test_the_term_that_fails_is_named_with_its_reason(
    subscription: dict[str, Any], parts: dict[str, Any], term: str, words: str
) -> None:
    told = explain(history(**subscription), event(**parts), "ada", as_of=100)
    assert not told
    assert term in failing(told)
    assert words in told.text()
    assert "is not delivered" in str(told)


def test_the_failing_comparison_of_a_formula_is_shown_with_the_value() -> None:
    past = history(where="kind = 'jam' AND severity >= 3")
    told = explain(past, event(attributes={"kind": "jam", "severity": 2}), "ada", as_of=100).text()
    assert "severity >= 3" in told
    assert any(line.strip().startswith("no") and "severity" in line for line in told.splitlines())
    assert any(line.strip().startswith("yes") and "kind" in line for line in told.splitlines())


def test_an_explanation_is_plain_data_too() -> None:
    told = explain(history(), event(), "ada", as_of=100)
    assert told
    data = json.loads(json.dumps(told.as_dict()))
    assert data["holds"] is True
    assert [part["term"] for part in data["parts"]] == ["relevance", "interest"]


def test_what_is_missing_is_said() -> None:
    past = History()
    past.connected("ada", 0)
    assert "no subscription" in explain(past, event(), "ada", 100).text()
    assert "the client's position is not known" in explain(past, event(reach=Circle(5, HOME)), "ada", 100).text()
    past.subscribed("ada", 0, Subscription(area=Circle(5)))
    assert "the client's position is not known" in explain(past, event(), "ada", 100).text()
    assert "the event has no place" in explain(past, event(place=None), "ada", 100).text()
    assert "accepts addressed" not in explain(past, event(), "ada", 100).text()
    assert "does not accept" in explain(past, event(to="way IS NULL"), "ada", 100).text()
    assert "the client has no context" in explain(History(), event(to="way IS NULL"), "ada", 100).text()


@pytest.mark.parametrize("as_of", [99, 100, 149, 150, 180, 400])
@pytest.mark.parametrize("relation", ["overlaps", "during", "contains", "after", "before"])
def test_it_agrees_with_the_definition_also_about_other_times(relation: str, as_of: int) -> None:
    past = history()
    past.moved("ada", 120, THERE)
    past.moved("ada", 170, HOME)
    for message in (
        event(when=TemporalPredicate(relation, 150, 160), reach=Circle(20, THERE)),
        event(when=TemporalPredicate(relation, 110, 200), to="under(way, '/foot')"),
        event(lifetime=30, when=TemporalPredicate(relation, 20, 130)),
    ):
        told = explain(past, message, "ada", as_of)
        assert told.holds == delivered(past, message, "ada", as_of)
        assert relation in told.text()
        assert "interval" in told.text() or "there was none" in told.text()
