"""Areas as text: both directions, and what cannot be read."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import any_area

from nearcast.errors import InvalidArea
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.area_text import area_in, area_text
from nearcast.model.geometry import Point

texts = st.text(st.characters(codec="utf-8"), max_size=20)
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
