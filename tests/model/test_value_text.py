"""Attribute values as text and as JSON: both directions, and what others put into their properties."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.model.strategies import any_area, far_points, paths, values

from nearcast.errors import InvalidValue
from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.model.value_text import attributes_in, tree_in, tree_of_value, value_in, value_of_tree, value_text
from nearcast.model.values import (
    INTEGER_BITS,
    AttributeType,
    OneOf,
    Path,
    Range,
    Subtree,
    register_type,
    unregister_type,
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(-5, 5) | st.floats(-5, 5)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2 ** (INTEGER_BITS - 1)), 2 ** (INTEGER_BITS - 1) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    texts.map(json.dumps),
    st.datetimes(timezones=st.just(UTC)),
    st.frozensets(texts.filter(bool), max_size=3),
    far_points,
    paths,
)
any_value: st.SearchStrategy[Any] = st.one_of(
    scalars,
    values,
    any_area.filter(lambda area: not area.is_relative),
    st.tuples(numbers, numbers).map(lambda pair: Range(*sorted(pair))),
    st.frozensets(far_points, min_size=1, max_size=3).map(OneOf),
)


@given(any_value)
@example("5")
@example("true")
@example('"quoted"')
@example('{"path": "/a"}')
@example("nul\0")
@example(2.0)
@example(10**300 * 1.0)
def test_a_value_comes_back_with_its_type(value: Any) -> None:
    text = value_text("a", value)
    assert "\0" not in text, "MQTT forbids it"
    back = value_in(text)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("4.0", 4.0),
        ("-1e3", -1000.0),
        ("true", True),
        ("false", False),
        ('"4"', "4"),
        ("red", "red"),
        ("", ""),
        ("True", "True"),
        ("null", "null"),
        ("04", "04"),
        ("4 ", "4 "),
        ("1,5", "1,5"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
        ("9" * 30, "9" * 30),
        ("[1]", "[1]"),
        ("{", "{"),
        ('{"colour": "red"}', '{"colour": "red"}'),
        ('{"path": "no slash"}', '{"path": "no slash"}'),
        ('{"path": "/vehicle/car"}', Path(("vehicle", "car"))),
        ('{"point": [8.65, 49.87]}', Point(49.87, 8.65)),
        ('{"instant": "2026-11-15T09:30:00Z"}', datetime(2026, 11, 15, 9, 30, tzinfo=UTC)),
        ('{"tags": ["a", "b"]}', frozenset({"a", "b"})),
        ('{"one_of": [1, 2]}', OneOf([1, 2])),
        ('{"range": [1, 2.5]}', Range(1, 2.5)),
        ('{"below": "/vehicle"}', Subtree(Path(("vehicle",)))),
        ('{"below": 5}', '{"below": 5}'),
        ('{"area": {"circle": 5, "at": [1, 2]}}', Circle(5, Point(2, 1))),
        ('{"area": 500}', '{"area": 500}'),
    ],
)
def test_texts_stand_for_what_the_contract_says(text: str, value: Any) -> None:
    back = value_in(text)
    assert (back, type(back)) == (value, type(value))


@given(st.text(max_size=30))
def test_whatever_others_put_into_their_properties_can_be_read(text: str) -> None:
    value_in(text)


def test_what_cannot_be_sent_is_said() -> None:
    class Taste:
        pass

    register_type(AttributeType("taste", Taste, lambda taste: taste))
    try:
        with pytest.raises(InvalidValue, match=r"'soup'.*dataclass"):
            value_text("soup", Taste())
    finally:
        unregister_type("taste")
    with pytest.raises(InvalidValue, match="65535"):
        value_text("long", "é" * 40_000)


@given(st.text(max_size=30))
@example('{"type": "Point", "coordinates": [8.65, 49.87]}')
@example('{"path": 1}')
@example('{"area": 500}')
@example("9" * 30)
@example('"\\ud800"')
def test_a_text_as_json_stands_for_the_same_value(text: str) -> None:
    assert value_of_tree(tree_in(text)) == value_in(text)


named = st.dictionaries(st.sampled_from(["type", "geometry", "properties", "speed", "über"]), any_value)


@given(named)
@example({"type": "Feature"})
@example({"type": "Feature", "properties": 3})
def test_attributes_are_read_from_their_object_and_from_a_feature(attributes: dict[str, Any]) -> None:
    trees = {name: tree_of_value(name, value) for name, value in attributes.items()}
    feature = {"type": "Feature", "geometry": None, "properties": trees}
    assert attributes_in(msgspec.json.encode(trees).decode()) == attributes
    assert attributes_in(msgspec.json.encode(feature).decode()) == attributes


def test_where_there_are_no_attributes_none_are_read() -> None:
    assert attributes_in(None) == attributes_in("{}") == {}


@pytest.mark.parametrize("text", ["", "{", "3", "[]", "null", '"speed"', "{" * 5_000 + '"', '{"speed": null}'])
def test_what_are_no_attributes_is_said(text: str) -> None:
    with pytest.raises(InvalidValue):
        attributes_in(text)


@dataclass(frozen=True)
class Version:
    major: int
    minor: int = 0


def checked_version(version: Version) -> Version:
    if version.major < 0:
        raise ValueError("the parts of a version are not negative")
    return version


class Colour:
    """No dataclass: its type says how it is written."""

    def __init__(self, red: int) -> None:
        self.red = red

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colour) and other.red == self.red

    def __hash__(self) -> int:
        return hash(self.red)


@pytest.fixture
def _plug_ins() -> Iterator[None]:
    register_type(AttributeType("version", Version, checked_version))
    register_type(
        AttributeType(
            "colour",
            Colour,
            lambda colour: colour,
            write=lambda colour: hex(colour.red),
            read=lambda it: Colour(int(it, 16)),
        )
    )
    yield
    unregister_type("version")
    unregister_type("colour")


@pytest.mark.usefixtures("_plug_ins")
def test_values_of_plug_in_types_come_back() -> None:
    for value in (Version(2, 5), Colour(255), OneOf([Version(1), Version(2)]), OneOf([Colour(1), Colour(2)])):
        assert value_in(value_text("it", value)) == value
        assert value_of_tree(tree_of_value("it", value)) == value
        assert value_of_tree(msgspec.msgpack.decode(msgspec.msgpack.encode(tree_of_value("it", value)))) == value
    assert tree_of_value("it", Version(2, 5)) == {"typed": ["version", {"major": 2, "minor": 5}]}
    assert tree_of_value("it", Colour(255)) == {"typed": ["colour", "0xff"]}


@pytest.mark.usefixtures("_plug_ins")
@pytest.mark.parametrize(
    "tree",
    [
        ["version", {"major": "two"}],
        ["version", {}],
        ["version", {"major": -1}],
        ["version"],
        ["colour", "green"],
        ["colour", 7],
        ["integer", 7],
        ["unheard of", 7],
        [7, 7],
        {"version": 7},
    ],
)
def test_what_is_no_value_of_its_type_is_said_and_as_a_text_stands_for_itself(tree: Any) -> None:
    with pytest.raises(InvalidValue):
        value_of_tree({"typed": tree})
    text = json.dumps({"typed": tree})
    assert value_in(text) == text


def test_a_type_that_writes_what_nobody_can_send_is_said() -> None:
    register_type(AttributeType("colour", Colour, lambda colour: colour, write=lambda colour: object(), read=Colour))
    try:
        with pytest.raises(InvalidValue, match="'paint'"):
            value_text("paint", Colour(1))
    finally:
        unregister_type("colour")
