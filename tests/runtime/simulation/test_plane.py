"""The plane around an origin against ``model.geometry``: the origins include the poles and the antimeridian."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.model.geometry import Point, distance
from nearcast.runtime.simulation.plane import MOST_KNOWN, Bounds, Plane

ORIGINS = st.one_of(
    st.sampled_from(
        [Point(90, 0), Point(-90, 17), Point(0, 180), Point(49.87, -180), Point(0, 0), Point(89.99, 179.9)]
    ),
    st.builds(Point, st.floats(-90, 90), st.floats(-180, 180)),
)
NEAR = st.floats(-7_000, 7_000)  # so that nothing is further than 10 km from the origin
DARMSTADT = Point(49.8728, 8.6512)


@given(ORIGINS, NEAR, NEAR)
def test_there_and_back(origin: Point, x: float, y: float) -> None:
    plane = Plane(origin)
    assert plane.to_xy(plane.to_point(x, y)) == pytest.approx((x, y), abs=1e-5)


@given(ORIGINS, NEAR, NEAR)
@example(Point(49.87, 8.65), 0.0, 0.0)
def test_the_distance_from_the_origin_is_true(origin: Point, x: float, y: float) -> None:
    point = Plane(origin).to_point(x, y)
    assert distance(origin, point) == pytest.approx(math.hypot(x, y), rel=1e-9, abs=1e-5)


@given(ORIGINS, NEAR, NEAR, NEAR, NEAR)
def test_within_10_km_distances_are_true_to_one_in_a_million(
    origin: Point, x1: float, y1: float, x2: float, y2: float
) -> None:
    plane = Plane(origin)
    metres = distance(plane.to_point(x1, y1), plane.to_point(x2, y2))
    # Degrees are doubles: near the antimeridian one step of them is 3 µm.
    assert metres == pytest.approx(math.hypot(x2 - x1, y2 - y1), rel=1e-6, abs=1e-5)


def test_a_point_that_is_known_is_where_it_is_also_after_many_others() -> None:
    plane = Plane(DARMSTADT)
    points = [Point(49.0 + number / 10_000, 8.0) for number in range(MOST_KNOWN + 2)]
    for point in [*points, *points]:
        assert plane.known_xy(point) == plane.to_xy(point)


def test_east_is_east_and_north_is_north() -> None:
    plane = Plane(DARMSTADT)
    assert distance(plane.to_point(0, 0), DARMSTADT) < 1e-8
    north, east = plane.to_point(0, 1_000), plane.to_point(1_000, 0)
    assert north.lat > DARMSTADT.lat
    assert north.lon == pytest.approx(DARMSTADT.lon, abs=1e-12)
    assert east.lon > DARMSTADT.lon
    # A great circle that leaves to the east bends towards the equator: by d² tan(lat) / 2R.
    bend = math.degrees(1_000**2 * math.tan(math.radians(DARMSTADT.lat)) / 2 / 6_371_008.8**2)
    assert DARMSTADT.lat - east.lat == pytest.approx(bend, rel=1e-3)


def test_crossing_the_antimeridian() -> None:
    plane = Plane(Point(0, 179.999))
    point = plane.to_point(1_000, 0)
    assert -180 <= point.lon < -179.99
    assert plane.to_xy(point) == pytest.approx((1_000, 0), abs=1e-6)


@given(ORIGINS, st.lists(st.tuples(NEAR, NEAR), min_size=1, max_size=20))
@example(Point(0.0, 179.999), [(1_000.0, 0.0)])
@example(Point(0.0, -179.999), [(-1_000.0, 0.0)])
def test_many_places_at_once_are_where_each_of_them_is(origin: Point, places: list[tuple[float, float]]) -> None:
    plane = Plane(origin)
    x, y = np.array(places, dtype=np.float64).T
    lat, lon = plane.degrees(x, y)
    points = [plane.to_point(*place) for place in places]
    assert lat.tolist() == pytest.approx([point.lat for point in points], abs=1e-10)
    for one, point in zip(lon.tolist(), points, strict=True):
        assert -180 <= one < 180
        # Around the globe, -180 and 180 are the same; at the pole, all longitudes are.
        apart = math.radians((one - point.lon + 180) % 360 - 180)
        assert abs(apart) * math.cos(math.radians(point.lat)) < 1e-12
    back_x, back_y = plane.metres(lat, lon)
    assert back_x.tolist() == pytest.approx(x.tolist(), abs=1e-5)
    assert back_y.tolist() == pytest.approx(y.tolist(), abs=1e-5)


@given(ORIGINS, st.lists(st.builds(Point, st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=10))
def test_metres_of_many_places_are_the_offsets_of_each(origin: Point, points: list[Point]) -> None:
    plane = Plane(origin)
    lat, lon = np.array([(point.lat, point.lon) for point in points]).T
    x, y = plane.metres(lat, lon)
    for number, point in enumerate(points):
        far = distance(origin, point)
        if far > 2e7:
            continue  # near the antipode every direction is right
        assert (x[number], y[number]) == pytest.approx(plane.to_xy(point), rel=1e-6, abs=1e-2 + far * 1e-7)


def test_bounds_around_the_origin() -> None:
    bounds = Bounds.around(1_300, 700)
    assert bounds == (-650, -350, 650, 350)
    assert (bounds.width, bounds.height) == (1_300, 700)
    assert bounds.contains(650, -350)
    assert bounds.contains(0, 0)
    assert not bounds.contains(650.1, 0)
    assert not bounds.contains(0, 350.1)
