"""Visits of areas on a way, against the way looked at in many places."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import EARTH_RADIUS, Point, offset
from nearcast.model.passage import Passing, passages, visits

LOOKS = 200

RING = ((0.0, 0.0), (300.0, 0.0), (300.0, 300.0), (200.0, 300.0), (200.0, 100.0), (100.0, 100.0), (100.0, 300.0), (0.0, 300.0), (0.0, 0.0))  # fmt: skip
"""A U: a straight way may visit it twice."""


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Area, Point, Point]:
    """An area somewhere on the earth, and a way near it."""
    lat = draw(st.sampled_from([0.0, 49.87, -33.9, 70.0, 84.0]))
    lon = draw(st.sampled_from([0.0, 8.65, 179.9995, -180.0, -179.9995]))
    center = Point(lat, lon)
    kind = draw(st.integers(0, 4))
    size = draw(st.sampled_from([0.5, 20.0, 150.0, 2_000.0]))
    degrees = math.degrees(size / EARTH_RADIUS)
    wide = degrees / math.cos(math.radians(lat))
    area: Area
    if kind == 0:
        area = Circle(size, center)
    elif kind == 1:
        area = Rectangle(size, 2 * size, center)
    elif kind == 2:
        scale = size / 300.0
        area = Outline(tuple((scale * (east - 150), scale * (north - 150)) for east, north in RING), center)
    elif kind == 3:
        area = Box(_wrapped(center.lon - wide), lat - degrees, _wrapped(center.lon + wide), lat + degrees)
    else:
        inland = min(max(center.lon, -179.0), 179.0) if abs(center.lon) > 179 else center.lon
        center = Point(lat, inland)
        ring = tuple((inland + wide * (east - 150) / 150, lat + degrees * (north - 150) / 150) for east, north in RING)
        area = Polygon(((ring,),))
    reach = st.floats(-3.0, 3.0, allow_nan=False) | st.sampled_from([0.0, 1.0, -1.0])

    def place() -> Point:
        return Point(lat + degrees * draw(reach), _wrapped(center.lon + wide * draw(reach)))

    return area, place(), place()


def _wrapped(lon: float) -> float:
    return lon - 360.0 if lon > 180.0 else lon + 360.0 if lon < -180.0 else lon


def _between(area: Area, start: Point, end: Point, share: float) -> Point | tuple[float, float]:
    """A place on the way, in the plane of the area."""
    if isinstance(area, (Circle, Rectangle, Outline)):
        center = area.fixed_center()
        (x0, y0), (x1, y1) = offset(center, start), offset(center, end)
        return x0 + share * (x1 - x0), y0 + share * (y1 - y0)
    step = end.lon - start.lon
    step += 360.0 if step < -180.0 else -360.0 if step > 180.0 else 0.0
    return Point(start.lat + share * (end.lat - start.lat), _wrapped(start.lon + share * step))


def _margin(area: Area, start: Point, end: Point, share: float) -> float | None:
    """How far inside (positive) a place of the way surely is, in metres; None: too near to the border to tell."""
    import shapely

    at = _between(area, start, end, share)
    if isinstance(at, tuple):
        if isinstance(area, Circle):
            margin = area.radius - math.hypot(*at)
        elif isinstance(area, Rectangle):
            margin = min(area.width / 2 - abs(at[0]), area.height / 2 - abs(at[1]))
        else:
            assert isinstance(area, Outline)
            away = float(shapely.distance(area.shape.boundary, shapely.points(*at)))
            margin = away if shapely.covers(area.shape, shapely.points(*at)) else -away
        return margin if abs(margin) > 1e-6 else None
    assert isinstance(area, (Box, Polygon))
    away = min(
        float(shapely.distance(area.shape.boundary, shapely.points(at.lon + shift, at.lat))) for shift in (0, 360, -360)
    )
    # A box across the antimeridian has a seam there, which is no border.
    return None if away < 1e-10 else (away if area.covers(at) else -away)


@given(worlds())
def test_a_visit_is_where_the_area_covers_the_way(world: tuple[Area, Point, Point]) -> None:
    area, start, end = world
    found = visits(area, start, end)
    assert list(found) == sorted(found)
    assert all(0.0 <= entered <= left <= 1.0 for entered, left in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))
    for look in range(LOOKS + 1):
        share = look / LOOKS
        margin = _margin(area, start, end, share)
        if margin is None:
            continue
        near = 1e-9
        inside = any(entered - near <= share <= left + near for entered, left in found)
        surely = any(entered + near <= share <= left - near for entered, left in found)
        assert inside if margin > 0 else not surely, (share, margin, found)


@given(worlds())
def test_at_both_ends_the_definition_decides(world: tuple[Area, Point, Point]) -> None:
    area, start, end = world
    found = visits(area, start, end)
    assert (bool(found) and found[0][0] == 0.0) == area.covers(start)
    assert (bool(found) and found[-1][1] == 1.0) == area.covers(end)


@given(worlds())
def test_whoever_enters_leaves_before_it_enters_again(world: tuple[Area, Point, Point]) -> None:
    area, start, end = world
    inside = area.covers(start)
    for passage in passages(area, start, end):
        if passage.kind is Passing.ENTER:
            assert not inside
            inside = True
        elif passage.kind is Passing.LEAVE:
            assert inside
            inside = False
    assert inside == area.covers(end)


@given(worlds())
def test_the_way_back_is_the_same_way(world: tuple[Area, Point, Point]) -> None:
    area, start, end = world
    there, back = visits(area, start, end), visits(area, end, start)
    turned = [(1 - left, 1 - entered) for entered, left in reversed(back)]
    long = [visit for visit in there if visit[1] - visit[0] > 1e-6]
    assert [visit for visit in turned if visit[1] - visit[0] > 1e-6] == [
        pytest.approx(visit, abs=1e-6) for visit in long
    ]


def test_a_car_between_two_reports_crosses_a_crossing() -> None:
    crossing = Circle(20, Point(49.87, 8.65))
    found = passages(crossing, Point(49.87, 8.64), Point(49.87, 8.66))
    assert [passage.kind for passage in found] == [Passing.ENTER, Passing.LEAVE, Passing.CROSS]
    assert found[0].share == pytest.approx(0.5, abs=0.02)


def test_a_straight_way_may_visit_twice() -> None:
    u = Outline(RING, Point(49.87, 8.65))
    east = 300 / (math.radians(1) * EARTH_RADIUS * math.cos(math.radians(49.87)))
    north = 200 / (math.radians(1) * EARTH_RADIUS)
    assert len(visits(u, Point(49.87 + north, 8.65 - east), Point(49.87 + north, 8.65 + 2 * east))) == 2


def test_who_stands_still_neither_enters_nor_leaves() -> None:
    here = Point(49.87, 8.65)
    assert visits(Circle(5, here), here, here) == ((0.0, 1.0),)
    assert passages(Circle(5, here), here, here) == ()
    assert visits(Circle(5, Point(49.88, 8.65)), here, here) == ()
