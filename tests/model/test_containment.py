"""Whether an area surely lies in another one: no point of it may lie outside."""

import math
from collections.abc import Callable, Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.containment import surely_within
from nearcast.model.geometry import EARTH_RADIUS, Point

HERE = Point(49.87, 8.65)


def towards(start: Point, bearing: float, metres: float) -> Point:
    """Where a walk along a great circle ends."""
    lat, angle = math.radians(start.lat), metres / EARTH_RADIUS
    sine = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing)
    turn = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * max(-1.0, min(1.0, sine))
    )
    lon = (start.lon + math.degrees(turn) + 180.0) % 360.0 - 180.0
    return Point(math.degrees(math.asin(max(-1.0, min(1.0, sine)))), lon)


points = st.builds(Point, st.floats(-89, 89), st.floats(-180, 180))
LARGE = st.floats(1.0, 1e7)


@st.composite
def regions(draw: st.DrawFn, center: Point, sizes: st.SearchStrategy[float] = LARGE) -> Area:
    """A permitted area around a centre."""
    size = draw(sizes)
    match draw(st.integers(0, 4)):
        case 0:
            return Circle(size, center)
        case 1:
            return Rectangle(size, draw(sizes), center)
        case 2:
            ring = ((-size, -size), (size, -size / 2), (size / 3, size), (-size, -size))
            return Outline(ring, center)
        case 3:
            height = draw(st.floats(0.01, 40))
            width = draw(st.floats(0.01, 170))
            west, east = (center.lon - width + 180) % 360 - 180, (center.lon + width + 180) % 360 - 180
            return Box(west, max(-90.0, center.lat - height), east, min(90.0, center.lat + height))
        case _:
            d = draw(st.floats(0.01, 20))
            assume(abs(center.lon) + d <= 180 and abs(center.lat) + d <= 90)
            lon, lat = center.lon, center.lat
            ring = ((lon - d, lat - d), (lon + d, lat - d / 2), (lon + d / 3, lat + d), (lon - d, lat - d))
            return Polygon(((ring,),))


def border(center: Point, radius: float, steps: int = 720) -> Iterator[Point]:
    # A hair inside: what lies on the border itself is a question of rounding.
    return (towards(center, math.tau * step / steps, radius * (1 - 1e-6)) for step in range(steps))


def largest(fits: Callable[[float], bool]) -> float:
    """The largest radius that fits, where smaller ones fit too; 0 if none does."""
    low, high = 0.0, 5e6
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@given(st.data(), points, st.floats(0, 2 * math.pi), st.floats(0, 1))
def test_the_largest_circle_that_surely_lies_within_has_no_point_outside(
    data: st.DataObject, center: Point, bearing: float, share: float
) -> None:
    permitted = data.draw(regions(center))
    inner = towards(center, bearing, share * permitted.bounding_radius())
    radius = largest(lambda radius: surely_within(permitted, Circle(radius, inner)))
    assert radius == 0.0 or all(permitted.covers(point) for point in border(inner, radius))


@given(st.data(), st.builds(Point, st.floats(-60, 60), st.floats(-170, 170)), st.floats(0, 2 * math.pi))
def test_hardly_a_circle_that_lies_within_is_refused(data: st.DataObject, center: Point, bearing: float) -> None:
    permitted, inner = data.draw(regions(center, st.floats(1.0, 1e5))), towards(center, bearing, 200.0)
    assume(permitted.covers(inner))
    radius = largest(lambda radius: all(permitted.covers(point) for point in border(inner, radius, 60)))
    assume(1.0 < radius < 3e5)
    assert surely_within(permitted, Circle(0.99 * radius, inner))


@pytest.mark.parametrize(
    "permitted",
    [
        Circle(1_000, HERE),
        Rectangle(2_000, 2_000, HERE),
        Box(8.636, 49.861, 8.664, 49.879),
        Outline(((-1000, -1000), (1000, -1000), (1000, 1000), (-1000, 1000), (-1000, -1000)), HERE),
    ],
    ids=lambda area: type(area).__name__,
)
def test_the_border_is_where_it_is_drawn(permitted: Area) -> None:
    assert surely_within(permitted, Circle(990, HERE))
    assert not surely_within(permitted, Circle(1_030, HERE))
    assert surely_within(permitted, HERE)
    assert not surely_within(permitted, Point(49.9, 8.65))


def test_boxes_and_polygons_are_compared_exactly() -> None:
    city = Box(8.5, 49.8, 8.8, 50.0)
    assert surely_within(city, city)
    ring = ((8.5, 49.8), (8.8, 49.8), (8.8, 50.0), (8.5, 49.8))
    assert surely_within(city, Polygon(((ring,),)))
    assert not surely_within(city, Box(8.5, 49.8, 8.8, 50.001))


@given(st.data(), st.data())
def test_of_two_boxes_one_lies_within_if_all_points_of_its_border_do(one: st.DataObject, two: st.DataObject) -> None:
    degrees = st.integers(-6, 6).map(lambda step: step * 30.0)

    def box(data: st.DataObject) -> Box:
        south, north = sorted(data.draw(st.lists(st.sampled_from((-60.0, 0.0, 60.0)), min_size=2, max_size=2)))
        return Box(data.draw(degrees), south, data.draw(degrees), north)

    outer, inner = box(one), box(two)
    width = inner.east - inner.west + (360.0 if inner.west > inner.east else 0.0)
    # Borders lie at whole multiples of 30 degrees: a tenth of that beside each, on the inner side, tells all.
    longitudes = [inner.west + step * 3.0 for step in range(round(width / 3.0) + 1)]
    points = [Point(lat, (lon + 180) % 360 - 180) for lat in (inner.south, inner.north) for lon in longitudes]
    assert surely_within(outer, inner) == all(outer.covers(point) for point in points)


@pytest.mark.parametrize(
    ("permitted", "expected"),
    [
        (Box(-1, 50, 1, 70), EARTH_RADIUS * math.asin(math.cos(math.radians(60)) * math.sin(math.radians(1)))),
        (Box(-90, 50, 90, 70), EARTH_RADIUS * math.radians(10)),
        (Box(-180, 40, 180, 90), EARTH_RADIUS * math.radians(20)),
    ],
    ids=["as far as the meridian", "as far as the parallel", "beyond the pole"],
)
def test_the_largest_circle_in_a_box_goes_as_far_as_its_border(permitted: Box, expected: float) -> None:
    found = largest(lambda radius: surely_within(permitted, Circle(radius, Point(60, 0))))
    assert found == pytest.approx(expected, rel=1e-6)


@given(points, st.floats(0, 1e7))
def test_everything_lies_within_the_world(center: Point, radius: float) -> None:
    world = Box(-180, -90, 180, 90)
    assert surely_within(world, Circle(radius, center))
    assert surely_within(world, Box(170, -10, -170, 10))


def test_an_area_may_cross_the_antimeridian() -> None:
    pacific = Box(170, -20, -170, 20)
    assert surely_within(pacific, Circle(50_000, Point(0, 179.9)))
    assert surely_within(pacific, Circle(50_000, Point(0, -179.9)))
    assert not surely_within(pacific, Circle(50_000, Point(0, -169.9)))


def test_around_a_pole_every_longitude_is_needed() -> None:
    assert surely_within(Box(-180, 80, 180, 90), Circle(10_000, Point(89.99, 0)))
    assert not surely_within(Box(-90, 80, 90, 90), Circle(10_000, Point(89.99, 0)))


def test_between_the_corners_of_its_drawing_a_circle_near_a_pole_does_not_stick_out() -> None:
    # Straight lines between so few corners bend inwards there by more than what the drawing is wider.
    center, radius = Point(75.0, 0.0), 1.4e6
    corners = [towards(center, math.tau * step / 64, 1.0045 * radius) for step in range(65)]
    permitted = Polygon(((tuple((corner.lon, corner.lat) for corner in (*corners[:-1], corners[0])),),))
    assert not all(permitted.covers(point) for point in border(center, radius))
    assert not surely_within(permitted, Circle(radius, center))
