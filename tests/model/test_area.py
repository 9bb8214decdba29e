"""Areas: what they cover, where their borders are, what encloses them, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidArea, InvalidInput, InvalidPosition
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle, area_from_geojson, area_to_geojson
from nearcast.model.geometry import HALF_CIRCUMFERENCE, Point, distance

HOME = Point(49.8728, 8.6512)
SQUARE = ((0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (0.0, 0.0))
HOLE = ((0.5, 0.5), (1.5, 0.5), (1.5, 1.5), (0.5, 1.5), (0.5, 0.5))
METRES = ((-10.0, -10.0), (10.0, -10.0), (0.0, 20.0), (-10.0, -10.0))

points = st.builds(Point, lat=st.floats(-90, 90), lon=st.floats(-180, 180))
metres = st.one_of(st.floats(0, 1_000), st.floats(0, 3e7))


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    south, north = sorted([draw(st.floats(-90, 90)), draw(st.floats(-90, 90))])
    return Box(draw(st.floats(-180, 180)), south, draw(st.floats(-180, 180)), north)


@st.composite
def triangles(draw: st.DrawFn) -> Polygon:
    corners = [(draw(st.floats(-180, 180)), draw(st.floats(-90, 90))) for _ in range(3)]
    try:
        return Polygon((((*corners, corners[0]),),))
    except InvalidArea:
        return Polygon(((SQUARE, HOLE),))


fixed: st.SearchStrategy[Area] = st.one_of(
    st.builds(Circle, metres, points),
    st.builds(Rectangle, metres, metres, points),
    st.builds(
        lambda scale, at: Outline(tuple((e * scale, n * scale) for e, n in METRES), at), st.floats(0.1, 1e6), points
    ),
    boxes(),
    triangles(),
)


def beside(area: Area) -> st.SearchStrategy[Point]:
    """Points anywhere, and points near the corners of what the area may cover."""
    center = area.fixed_center()
    near = st.builds(
        lambda north, east: Point(
            max(-90.0, min(90.0, center.lat + north)), (center.lon + east + 180.0) % 360.0 - 180.0
        ),
        st.floats(-1, 1),
        st.floats(-1, 1),
    )
    edges: list[Point] = [center]
    if isinstance(area, Box):
        edges += [Point(lat, lon) for lat in (area.south, area.north) for lon in (area.west, area.east)]
    if isinstance(area, Polygon):
        edges += [Point(lat, lon) for lon, lat in area.coordinates[0][0]]
    return st.one_of(points, near, st.sampled_from(edges))


@given(st.data())
@settings(max_examples=500)
def test_the_bounding_radius_encloses_everything_that_is_covered(data: st.DataObject) -> None:
    area = data.draw(fixed)
    point = data.draw(beside(area))
    if area.covers(point):
        assert distance(area.fixed_center(), point) <= area.bounding_radius()


@given(boxes())
@example(Box(-180, -90, 180, 90))
@example(Box(170, 80, 169, 90))
@example(Box(-90, -10, 90, 60))
def test_the_bounding_radius_of_a_box_reaches_its_corners_and_edges(box: Box) -> None:
    width = (box.east - box.west) % 360 or (360 if box.east != box.west else 0)
    for i in range(9):
        for j in range(9):
            lat = min(box.north, box.south + (box.north - box.south) * i / 8)
            lon = (box.west + width * j / 8 + 180) % 360 - 180
            assert distance(box.fixed_center(), Point(lat, lon)) <= box.bounding_radius() + 1e-6


@given(fixed)
def test_an_absolute_area_stays_where_it_is(area: Area) -> None:
    assert not area.is_relative
    assert area.anchored(HOME) == area


@pytest.mark.parametrize("area", [Circle(10), Rectangle(10, 20), Outline(METRES)], ids=lambda area: type(area).__name__)
def test_a_relative_area_becomes_absolute_by_anchoring(area: Area) -> None:
    assert area.is_relative
    there = area.anchored(HOME)
    assert not there.is_relative
    assert there.covers(HOME)
    assert there.fixed_center() == HOME
    with pytest.raises(InvalidArea, match="relative"):
        area.covers(HOME)


def test_the_border_of_a_circle_belongs_to_it() -> None:
    there = Point(49.8731, 8.6520)
    exactly = distance(HOME, there)
    assert Circle(exactly, HOME).covers(there)
    assert not Circle(math.nextafter(exactly, 0), HOME).covers(there)
    assert Circle(0, HOME).covers(HOME)
    assert Circle(HALF_CIRCUMFERENCE, Point(10, 20)).covers(Point(-10, -160))


def test_a_rectangle_is_measured_east_and_north() -> None:
    area = Rectangle(200, 50, Point(0, 0))
    degree = HALF_CIRCUMFERENCE / 180
    assert area.covers(Point(0, 99.9 / degree))
    assert not area.covers(Point(0, 100.1 / degree))
    assert area.covers(Point(24.9 / degree, 0))
    assert not area.covers(Point(25.1 / degree, 0))


def test_an_outline_may_be_concave_and_lie_beside_its_centre() -> None:
    area = Outline(((100, 0), (300, 0), (300, 200), (200, 50), (100, 200), (100, 0)), Point(0, 179.999))
    degree = HALF_CIRCUMFERENCE / 180
    east = (179.999 + 200 / degree + 180) % 360 - 180
    assert area.covers(Point(25 / degree, east))
    assert not area.covers(Point(100 / degree, east))
    assert not area.covers(Point(0, 179.999))


def test_a_box_may_cross_the_antimeridian() -> None:
    area = Box(170, -10, -170, 10)
    assert area.covers(Point(0, 180))
    assert area.covers(Point(10, 170))
    assert area.covers(Point(-10, -170))
    assert not area.covers(Point(0, 0))
    assert not area.covers(Point(0, 169.999))
    assert Box(170, 0, 180, 1).covers(Point(0, -180)), "-180 is 180"


def test_a_polygon_has_holes_whose_borders_belong_to_it() -> None:
    area = Polygon(((SQUARE, HOLE),))
    assert area.covers(Point(0.25, 0.25))
    assert area.covers(Point(0.5, 1.0))
    assert not area.covers(Point(1.0, 1.0))
    assert area.covers(Point(2.0, 2.0))
    assert not area.covers(Point(2.0, 2.0000001))


def test_a_polygon_that_is_cut_at_the_antimeridian_covers_both_sides() -> None:
    west = ((178.0, 0.0), (180.0, 0.0), (180.0, 2.0), (178.0, 2.0), (178.0, 0.0))
    east = ((-180.0, 0.0), (-179.0, 0.0), (-179.0, 2.0), (-180.0, 2.0), (-180.0, 0.0))
    both = area_from_geojson({"type": "MultiPolygon", "coordinates": [[west], [east]]})
    assert all(both.covers(Point(1, lon)) for lon in (178, 179.5, 180, -180, -179))
    assert not both.covers(Point(1, 0))
    assert Polygon(((west,),)).covers(Point(1, -180))


def test_geojson_survives_a_round_trip() -> None:
    area = Polygon(((SQUARE, HOLE),))
    assert area_from_geojson(area_to_geojson(area)).shape.equals(area.shape)
    assert area_to_geojson(Box(0, 0, 1, 1))["type"] == "Polygon"
    with pytest.raises(InvalidArea, match="no exact GeoJSON"):
        area_to_geojson(Circle(5, HOME))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Circle(math.inf), "finite"),
        (lambda: Circle(math.nan), "finite"),
        (lambda: Circle(-1), "not negative"),
        (lambda: Rectangle(1, math.inf), "finite"),
        (lambda: Outline(((0, 0), (1, 0), (1, 1))), "four"),
        (lambda: Outline(((0, 0), (1, 0), (1, 1), (0, 1))), "not closed"),
        (lambda: Outline(((0, 0), (1, 1), (1, 0), (0, 1), (0, 0))), "simple"),
        (lambda: Outline(((0, 0), (1, math.nan), (1, 0), (0, 0))), "finite"),
        (lambda: Box(0, 5, 1, 4), "south"),
        (lambda: Box(0, 0, 181, 1), "outside"),
        (lambda: Polygon(((SQUARE[:-1],),)), "not closed"),
        (lambda: Polygon(((((0, 0), (1, 1), (1, 0), (0, 1), (0, 0)),),)), "simple"),
        (lambda: Polygon(((((0, 0), (1, 1), (2, 2), (0, 0)),),)), "simple|nothing"),
        (lambda: Polygon(()), "at least one ring"),
        (lambda: Polygon(((((0, 0), (1, 0), (1, 91), (0, 0)),),)), "latitude"),
        (lambda: area_from_geojson({"type": "Point", "coordinates": [1, 2]}), "no area"),
        (lambda: area_from_geojson({"type": "Polygon"}), "no list"),
        (lambda: area_from_geojson({"type": "Polygon", "coordinates": [1, 2]}), "nested"),
        (
            lambda: area_from_geojson({"type": "Polygon", "coordinates": [[[1], [2], [3], [1]]]}),
            "longitude and latitude",
        ),
    ],
)
def test_an_area_that_cannot_be_is_refused_with_a_reason(make: Any, message: str) -> None:
    with pytest.raises((InvalidArea, InvalidPosition), match=message):
        make()


@pytest.mark.parametrize("ring", [None, 5, ((0, 0), None), (("a", "b"),) * 4, ((0, 0, 0),) * 4])
def test_an_outline_of_something_else_is_refused(ring: Any) -> None:
    with pytest.raises(InvalidInput):
        Outline(ring)
