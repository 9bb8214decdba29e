"""Points, distances and the plane around an anchor."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.errors import InvalidPosition
from nearcast.model.geometry import (
    EARTH_RADIUS,
    HALF_CIRCUMFERENCE,
    Point,
    checked_metres,
    circle_bounds,
    distance,
    offset,
)

points = st.builds(Point, lat=st.floats(-90, 90), lon=st.floats(-180, 180))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Point(0, 0), Point(0, 90), HALF_CIRCUMFERENCE / 2),
        (Point(0, 0), Point(0, 180), HALF_CIRCUMFERENCE),
        (Point(90, 0), Point(-90, 123), HALF_CIRCUMFERENCE),
        (Point(90, 17), Point(0, -60), HALF_CIRCUMFERENCE / 2),
        (Point(90, 17), Point(90, -60), 0.0),
        (Point(12, 179.5), Point(12, -179.5), None),
        (Point(10, 5), Point(11, 5), math.radians(1) * EARTH_RADIUS),
        (Point(45, 0), Point(45, 180), HALF_CIRCUMFERENCE / 2),
    ],
)
def test_distance_agrees_with_closed_forms(a: Point, b: Point, expected: float | None) -> None:
    if expected is None:  # one degree of a small circle, as a chord through the sphere
        chord = 2 * math.cos(math.radians(12)) * math.sin(math.radians(0.5))
        expected = 2 * EARTH_RADIUS * math.asin(chord / 2)
    assert distance(a, b) == pytest.approx(expected, rel=1e-12, abs=1e-6)


@given(points, points)
def test_distance_is_symmetric_and_never_beyond_half_the_earth(a: Point, b: Point) -> None:
    assert 0.0 <= distance(a, b) <= HALF_CIRCUMFERENCE
    assert distance(a, b) == distance(b, a)
    assert distance(a, a) == 0.0


@given(points, points)
def test_distance_agrees_with_the_angle_between_vectors(a: Point, b: Point) -> None:
    cross = math.dist(_vector(a), _vector(b))
    assert distance(a, b) == pytest.approx(2 * EARTH_RADIUS * math.asin(min(1.0, cross / 2)), rel=1e-9, abs=1.0)


def _vector(p: Point) -> tuple[float, float, float]:
    lat, lon = math.radians(p.lat), math.radians(p.lon)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


@given(points, points)
def test_an_offset_is_as_long_as_the_distance(anchor: Point, point: Point) -> None:
    assert math.hypot(*offset(anchor, point)) == pytest.approx(distance(anchor, point), rel=1e-9, abs=1e-6)


def test_an_offset_points_east_and_north() -> None:
    east, north = offset(Point(0, 179.999), Point(0, -179.999))
    assert east == pytest.approx(math.radians(0.002) * EARTH_RADIUS, rel=1e-9)
    assert north == pytest.approx(0, abs=1e-6)
    east, north = offset(Point(10, 20), Point(9, 20))
    assert east == pytest.approx(0, abs=1e-6)
    assert north == pytest.approx(-math.radians(1) * EARTH_RADIUS)


def test_longitude_180_and_minus_180_are_one_meridian() -> None:
    assert Point(5, 180) == Point(5, -180)


@pytest.mark.parametrize(
    ("lat", "lon"),
    [(90.0001, 0), (-91, 0), (0, 180.5), (math.nan, 0), (0, math.nan), (math.inf, 0), (0, -math.inf), ("1", 0), (True, 0), (None, 0)],
)  # fmt: skip
def test_a_point_that_is_not_on_earth_is_refused(lat: Any, lon: Any) -> None:
    with pytest.raises(InvalidPosition, match=r"latitude|longitude"):
        Point(lat, lon)


@pytest.mark.parametrize("metres", [math.nan, math.inf, -1, "5", True, None])
def test_metres_are_finite_and_not_negative(metres: Any) -> None:
    with pytest.raises(InvalidPosition, match="radius"):
        checked_metres(metres, "radius")
    assert checked_metres(0, "radius") == 0.0
    with pytest.raises(InvalidPosition, match="positive"):
        checked_metres(0, "radius", positive=True)


@given(points, points)
@example(Point(-17, 179.9999), Point(-17, -179.9999))
@example(Point(89.999, 10), Point(89.999, -170))
def test_the_box_of_a_circle_holds_every_point_of_its_border(center: Point, point: Point) -> None:
    south, west, north, east = circle_bounds(center, distance(center, point))
    assert south <= point.lat <= north
    assert (west <= point.lon <= east) if west <= east else (point.lon >= west or point.lon <= east)


def test_the_box_of_a_circle_is_no_larger_than_needed() -> None:
    market = Point(49.8728, 8.6512)
    south, west, north, east = circle_bounds(market, 125.0)
    assert distance(Point(south, market.lon), Point(north, market.lon)) == pytest.approx(250.0, abs=1e-3)
    assert distance(Point(market.lat, west), Point(market.lat, east)) == pytest.approx(250.0, abs=1e-3)
