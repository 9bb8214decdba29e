"""Areas and attribute values as text: both directions, and what cannot be read."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.model.strategies import areas, paths, values

from nearcast.errors import InvalidArea, InvalidValue
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import Point
from nearcast.model.values import INTEGER_BITS, AttributeType, OneOf, Path, Range, register_type, unregister_type
from nearcast.mqtt.contract import area_in, area_text, value_in, value_text

degrees = st.floats(-80, 80)
points = st.builds(Point, degrees, degrees)
metres = st.floats(0, 1e6)
RING = ((0.0, 0.0), (100.5, 0.0), (0.0, 1e-3), (0.0, 0.0))
any_area: st.SearchStrategy[Area] = st.one_of(
    areas,
    st.builds(Circle, metres, st.none() | points),
    st.builds(Rectangle, metres, metres, st.none() | points),
    st.builds(lambda center: Outline(RING, center), st.none() | points),
    st.builds(lambda lat: Box(170, lat, -170, 85), degrees),
    st.just(Polygon((((RING),), (((-5.0, -5.0), (-4.0, -5.0), (-4.0, -4.0), (-5.0, -5.0)),)))),
)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2 ** (INTEGER_BITS - 1)), 2 ** (INTEGER_BITS - 1) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    texts.map(json.dumps),
    st.datetimes(timezones=st.just(UTC)),
    st.frozensets(texts.filter(bool), max_size=3),
    points,
    paths,
)
numbers = st.integers(-5, 5) | st.floats(-5, 5)


@given(any_area)
def test_an_area_comes_back_as_it_was(area: Area) -> None:
    assert area_in(area_text(area)) == area


@pytest.mark.parametrize(
    ("text", "area"),
    [
        ("500", Circle(500)),
        ("0.5", Circle(0.5)),
        ('{"circle": 500}', Circle(500)),
        ('{"circle": 500, "at": [8.65, 49.87]}', Circle(500, Point(49.87, 8.65))),
        ('{"rectangle": [300, 200]}', Rectangle(300, 200)),
        ('{"at": [8.65, 49.87], "rectangle": [300, 200]}', Rectangle(300, 200, Point(49.87, 8.65))),
        ('{"outline": [[0, 0], [9, 0], [0, 9], [0, 0]]}', Outline(((0, 0), (9, 0), (0, 9), (0, 0)))),
        ('{"box": [8, 49, 9, 50]}', Box(8, 49, 9, 50)),
        (
            '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}',
            Polygon(((((0, 0), (1, 0), (0, 1), (0, 0)),),)),
        ),
    ],
)
def test_every_form_of_the_contract_is_read(text: str, area: Area) -> None:
    assert area_in(text) == area


def test_a_circle_around_me_is_written_as_a_number() -> None:
    assert area_text(Circle(500)) == "500"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "500 m",
        "-1",
        "true",
        "null",
        '"500"',
        "[500]",
        "1e999",
        "1" + "0" * 400,
        "NaN",
        "{}",
        '{"circle": "500"}',
        '{"circle": 5, "box": [0, 0, 1, 1]}',
        '{"circle": 5, "colour": 1}',
        '{"circle": 5, "at": [8.65]}',
        '{"circle": 5, "at": [8.65, 149.87]}',
        '{"circle": 5, "at": "here"}',
        '{"rectangle": 5}',
        '{"rectangle": [5]}',
        '{"outline": [[0, 0], [9, 0], [0, 0]]}',
        '{"outline": [[0, 0, 0]]}',
        '{"outline": 4}',
        '{"box": [0, 1, 1, 0]}',
        '{"box": [0, 0, 1, 1], "at": [1, 1]}',
        '{"type": "Point", "coordinates": [1, 2]}',
        '{"type": "Polygon"}',
        '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0]]]}',
        '{"type": "Polygon", "coordinates": [[["a", 0], [1, 0], [1, 1], ["a", 0]]]}',
        '{"type": "Polygon", "coordinates": [7]}',
        "[" * 5_000,
        "\ud800",
    ],
    ids=lambda text: text[:40].encode("ascii", "replace").decode(),
)
def test_what_is_no_area_is_refused_with_a_class_of_ours(text: str) -> None:
    with pytest.raises(InvalidArea):
        area_in(text)


@given(
    st.recursive(
        st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
    )
)
def test_any_json_is_an_area_or_refused(tree: Any) -> None:
    with contextlib.suppress(InvalidArea):
        area_in(json.dumps(tree))


@given(
    st.one_of(
        scalars,
        values,
        any_area.filter(lambda area: not area.is_relative),
        st.tuples(numbers, numbers).map(lambda pair: Range(*sorted(pair))),
        st.frozensets(points, min_size=1, max_size=3).map(OneOf),
    )
)
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
    class Version:
        pass

    register_type(AttributeType("version", Version, lambda version: version))
    try:
        with pytest.raises(InvalidValue, match="'protocol'"):
            value_text("protocol", Version())
    finally:
        unregister_type("version")
    with pytest.raises(InvalidValue, match="65535"):
        value_text("long", "é" * 40_000)
