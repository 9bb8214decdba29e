"""What a record says stands in the columns of its table."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from hypothesis import example, given
from hypothesis import strategies as st
from tests.clocks import START

from nearcast.broker.presence import Presence
from nearcast.journal.entries import NAMES, ContextEntry, EventEntry, Record
from nearcast.journal.rows import ROWS
from nearcast.matching import Matcher
from nearcast.model.value_text import attributes_in, value_in, value_of_tree, value_text
from nearcast.model.values import OneOf, Path, Range, Subtree
from nearcast.records import table

values = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8).filter(lambda text: "\0" not in text),
    st.sampled_from(["12", "true", '"', '{"path": 1', '{"foo": 1}', "{}", "-", "1 ", "t", '{"a": 1, "b": 2}']),
    st.sampled_from(
        [Path.parse("/vehicle/car"), OneOf([1, 2]), Range(1, 5), Subtree(Path.parse("/vehicle")), frozenset({"a", "b"})]
    ),
)


def row_of(record: Record) -> dict[str, Any]:
    name, row = ROWS[type(record)]
    return dict(zip(table(name).column_names, row(7, record), strict=True))


def written_by(act: Callable[[Presence, Any], None]) -> Record:
    """The record that the broker writes of what a client reports."""
    journal = Mock()
    presence = Presence(journal, Matcher(), lambda: START)
    act(presence, SimpleNamespace(client="ada", identity="p", durable=True))
    ((record,),) = journal.write.call_args.args
    assert isinstance(record, ContextEntry)
    return record


@given(st.dictionaries(st.sampled_from(["speed", "kind", "über"]), values, min_size=1))
def test_the_attributes_of_an_event_are_read_from_its_row_as_those_of_a_context_are(attributes: dict[str, Any]) -> None:
    wire = tuple((name, value_text(name, value)) for name, value in attributes.items())
    found = json.loads(row_of(EventEntry("e", "t", START, attributes=wire))["attributes"])
    assert {name: value_of_tree(tree) for name, tree in found.items()} == attributes


@given(st.dictionaries(st.sampled_from(["type", "geometry", "speed", "über"]), values))
@example({"type": "Feature"})
def test_a_context_that_the_broker_keeps_is_read_from_its_row(attributes: dict[str, Any]) -> None:
    kept = written_by(lambda presence, session: presence.registered(session, "car", attributes))
    row = row_of(kept)
    assert attributes_in(row["attributes"]) == attributes
    assert {name: value_of_tree(tree) for name, tree in json.loads(row["attributes"]).items()} == attributes, (
        "an object of attributes, as the table says"
    )


def test_a_context_that_is_gone_has_no_attributes() -> None:
    assert row_of(written_by(lambda presence, session: presence.registered(session, "car", None)))["attributes"] is None


@given(
    st.text(max_size=12)
    | st.sampled_from(
        [
            '{"path": "a"}',
            '{"path": 1}',
            '{"type": "Point", "coordinates": [8, 49]}',
            '{"x": 1}',
            "1e5",
            "1e400",
            str(2**63),
            "[1]",
            "null",
            '"a"',
            '{"tags": ["a"]}',
        ]
    )
)
def test_whatever_text_came_on_the_wire_becomes_an_attribute(text: str) -> None:
    found = json.loads(row_of(EventEntry("e", "t", START, attributes=(("a", text),)))["attributes"])
    assert value_of_tree(found["a"]) == value_in(text)


def test_what_an_event_does_not_have_is_null() -> None:
    row = row_of(EventEntry("e", "t", START))
    assert {name for name, value in row.items() if value is not None} == {
        *("time", "event", "topic", "bytes", "receivers", "payload", "offset")
    }


def test_every_kind_of_record_has_a_table() -> None:
    assert set(ROWS) == set(NAMES)
