"""Two rectangles in degrees meet as their drawings do, although nothing is drawn."""

from __future__ import annotations

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.affinity import translate

from nearcast.model.area import Box
from nearcast.model.geometry import Point
from nearcast.model.shapes import bounds_of, intersects, lon_lat

LONGITUDES = st.one_of(st.sampled_from((-180.0, -179.5, -1.0, 0.0, 1.0, 179.5, 180.0)), st.floats(-180, 180))
LATITUDES = st.one_of(st.sampled_from((-90.0, -1.0, 0.0, 1.0, 90.0)), st.floats(-90, 90))


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    west, east = draw(LONGITUDES), draw(LONGITUDES)
    south, north = sorted((draw(LATITUDES), draw(LATITUDES)))
    return Box(west, south, east, north)


@given(boxes(), boxes())
def test_boxes_meet_as_their_drawings_do(one: Box, other: Box) -> None:
    shape, drawn = lon_lat(one), lon_lat(other)
    expected = any(
        shapely.intersects(shape, translate(drawn, turn) if turn else drawn) for turn in (0.0, 360.0, -360.0)
    )
    assert intersects(one, other) == expected


@given(boxes().filter(lambda box: box.west <= box.east))
def test_bounds_are_those_of_the_drawing(box: Box) -> None:
    assert bounds_of(box) == lon_lat(box).bounds


@pytest.mark.parametrize("west", [179.0, 180.0])
@pytest.mark.parametrize("east", [-179.0, -180.0])
@pytest.mark.parametrize("north", [10.0, 11.0])
def test_a_box_across_the_antimeridian_is_somewhere_however_thin_it_is(west: float, east: float, north: float) -> None:
    box = Box(west, 10.0, east, north)
    _, south, _, top = bounds_of(box)
    assert (south, top) == (10.0, north)
    assert box.covers(Point(10.0, 180.0))
    assert intersects(box, Box(179.5, 9.0, 180.0, 12.0))
    assert intersects(box, Box(-180.0, 9.0, -179.5, 12.0))
    assert not intersects(box, Box(0.0, 9.0, 1.0, 12.0))
