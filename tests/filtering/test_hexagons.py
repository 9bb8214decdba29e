"""Hexagonal cells answer the same questions as square ones, with H3's own idea of where a place belongs."""

from __future__ import annotations

import math
from typing import Any

import h3
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.filtering.places import METRES_PER_DEGREE, away, town

from nearcast.errors import InvalidArea, InvalidPosition, InvalidScheme, UnknownName
from nearcast.filtering.hexagons import COARSEST, FINEST, HexagonGrid
from nearcast.filtering.tessellation import Cover, GeoBox
from nearcast.model.geometry import EARTH_RADIUS, Point, distance

points = st.builds(Point, st.floats(-85, 85), st.floats(-180, 180))
resolutions = st.integers(COARSEST, FINEST)
covers = st.sampled_from(["circle", "box"])
shares = st.floats(0.0, 1.0)
sizes = st.floats(0.0, 2.5)
WORLD = town(1300)


def edge(resolution: int) -> float:
    return float(h3.average_hexagon_edge_length(resolution, unit="m"))


def box_of(point: Point, radius: float) -> tuple[float, float]:
    """Half the height and half the width in degrees, by search for the easternmost place of the circle."""
    height = math.degrees(radius / EARTH_RADIUS)
    low, high = 0.0, 180.0
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if east_of(point, away(point, a, radius)) < east_of(point, away(point, b, radius)):
            low = a
        else:
            high = b
    return height, east_of(point, away(point, (low + high) / 2, radius))


def east_of(start: Point, place: Point) -> float:
    return (place.lon - start.lon + 180.0) % 360.0 - 180.0


@given(points, resolutions, sizes, shares, st.floats(0, 360), covers)
@example(Point(0.3, 179.9999), 9, 2.0, 1.0, 90.0, "box")
@example(Point(58.40, 10.54), 9, 2.0, 1.0, 30.0, "circle")  # next to one of H3's twelve pentagons
def test_no_place_in_the_circle_lies_in_another_cell(
    point: Point, resolution: int, size: float, share: float, bearing: float, cover: Cover
) -> None:
    grid = HexagonGrid(WORLD, resolution)
    radius = size * edge(resolution)
    place = away(point, bearing, share * radius)
    assume(distance(point, place) <= radius)
    around = grid.around(point, radius, cover)
    assert grid.cell_of(point) in around
    assert grid.cell_of(place) in around
    assert list(around) == sorted(set(around))


@given(points, resolutions, sizes, shares, shares)
def test_no_place_in_the_box_lies_in_another_cell(
    point: Point, resolution: int, size: float, up: float, right: float
) -> None:
    radius = size * edge(resolution)
    height, width = box_of(point, radius)
    assume(abs(point.lat) + height < 88)
    lon = point.lon + (2 * right - 1) * width
    place = Point(point.lat + (2 * up - 1) * height, (lon + 180.0) % 360.0 - 180.0)
    grid = HexagonGrid(WORLD, resolution)
    assert grid.cell_of(place) in grid.around(point, radius, "box")


def border_of(cell: str, steps: int) -> list[Point]:
    """Places along the great-circle arcs between its corners, and its middle."""
    corners = [Point(*corner) for corner in h3.cell_to_boundary(cell)]
    places = [Point(*h3.cell_to_latlng(cell))]
    for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
        va, vb = vector(a), vector(b)
        for step in range(steps):
            t = step / steps
            x, y, z = ((1 - t) * p + t * q for p, q in zip(va, vb, strict=True))
            places.append(Point(math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))))
    return places


def vector(point: Point) -> tuple[float, float, float]:
    lat, lon = math.radians(point.lat), math.radians(point.lon)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


STEPS = 100


def some_cell(data: st.DataObject, grid: HexagonGrid, point: Point) -> str:
    """One of the two rings around the point's own cell."""
    home = grid.cell_of(point)
    others: list[str] = sorted(set(h3.grid_disk(home, 2)) - {home})
    return data.draw(st.sampled_from(others))


@given(st.data(), points, resolutions)
def test_a_cell_is_around_a_circle_exactly_if_the_circle_meets_it(
    data: st.DataObject, point: Point, resolution: int
) -> None:
    grid = HexagonGrid(WORLD, resolution)
    cell = some_cell(data, grid, point)
    apart = min(distance(point, place) for place in border_of(cell, STEPS))
    assert cell in grid.around(point, apart, "circle")
    # The nearest place of the border is at most half a step from one of those: h off the foot of the perpendicular, a place
    # is farther by less than h * h / (2 * apart).  No edge is more than twice as long as the average.
    half_step = 2 * edge(resolution) / STEPS / 2
    assert cell not in grid.around(
        point, max(0.0, apart * 0.9999 - min(half_step, half_step**2 / apart) - 1e-5), "circle"
    )


@given(st.data(), points, resolutions)
def test_a_cell_is_around_a_box_exactly_if_the_box_meets_it(data: st.DataObject, point: Point, resolution: int) -> None:
    assume(abs(point.lat) < 80)
    grid = HexagonGrid(WORLD, resolution)
    cell = some_cell(data, grid, point)
    # The radius of the smallest circle whose box holds the place.
    needed = EARTH_RADIUS * min(
        max(
            math.radians(abs(place.lat - point.lat)),
            math.asin(math.sin(math.radians(abs(east_of(point, place)))) * math.cos(math.radians(point.lat))),
        )
        for place in border_of(cell, STEPS)
    )
    assert cell in grid.around(point, needed * (1 + 1e-9), "box")
    half_step = 2 * edge(resolution) / STEPS / 2
    assert cell not in grid.around(point, max(0.0, needed * 0.999 - 1.1 * half_step - 1e-5), "box")


@pytest.mark.parametrize("cell", ["84ef73bffffffff", "84018c7ffffffff", "84c7161ffffffff"])
def test_an_edge_may_bulge_into_a_box_that_holds_none_of_its_ends(cell: str) -> None:
    # These have edges of 20 to 30 km from west to east, which bulge by 41, 40 and 7 m towards the pole.
    grid = HexagonGrid(WORLD, 4)
    poleward = math.copysign(1.0, grid.center(cell).lat)
    summit = max(border_of(cell, 1000), key=lambda place: poleward * place.lat)
    assert min(distance(summit, Point(*corner)) for corner in h3.cell_to_boundary(cell)) > 1000
    beyond = Point(summit.lat + poleward * 19 / METRES_PER_DEGREE, summit.lon)
    assert cell in grid.around(beyond, 20, "box")
    assert cell not in grid.around(beyond, 18, "box")


@given(points, resolutions, sizes, covers)
def test_the_circle_takes_no_cell_that_the_box_does_not(
    point: Point, resolution: int, size: float, cover: Cover
) -> None:
    grid = HexagonGrid(WORLD, resolution)
    radius = size * edge(resolution)
    circle, box = grid.around(point, radius, "circle"), grid.around(point, radius, "box")
    assert set(circle) <= set(box)
    assert grid.covers(frozenset(box), point, radius, cover)
    assert grid.covers(frozenset(circle), point, radius, "circle")
    assert grid.covers(frozenset(circle), point, radius, "box") == (circle == box)
    assert not grid.covers(frozenset(circle) - {grid.cell_of(point)}, point, radius, cover)


@pytest.mark.parametrize("bearing", [0, 30, 77, 200])
@pytest.mark.parametrize("resolution", [4, 7, 9, 10])
def test_around_a_pentagon_nothing_is_missing(resolution: int, bearing: float) -> None:
    for pentagon in h3.get_pentagons(resolution):
        center = Point(*h3.cell_to_latlng(pentagon))
        point = away(center, bearing, 0.7 * edge(resolution))
        radius = 2.2 * edge(resolution)
        around = HexagonGrid(WORLD, resolution).around(point, radius, "circle")
        reached = {
            h3.latlng_to_cell(place.lat, place.lon, resolution)
            for share in (0.2, 0.4, 0.6, 0.8, 1.0)
            for place in (away(point, step, share * radius) for step in range(0, 360, 5))
        }
        assert reached <= set(around)


@given(points, resolutions, shares, st.floats(0, 360))
def test_a_place_lies_in_the_bounds_of_its_cell(point: Point, resolution: int, share: float, bearing: float) -> None:
    grid = HexagonGrid(WORLD, resolution)
    cell = grid.cell_of(point)
    place = away(grid.center(cell), bearing, share * edge(resolution))
    south, west, north, east = grid.bounds(cell)
    inside = west <= place.lon <= east if west <= east else place.lon >= west or place.lon <= east
    if grid.contains(cell, place):
        assert south - 1e-9 <= place.lat <= north + 1e-9
        assert inside or min(abs(place.lon - west), abs(place.lon - east)) < 1e-9
    # The bounding box is tight: some corner lies on each side of it, or an edge bulges over it.
    corners = h3.cell_to_boundary(cell)
    bulge = math.degrees(edge(resolution) ** 2 / EARTH_RADIUS**2) * math.tan(math.radians(min(88, abs(point.lat) + 1)))
    assert max(lat for lat, _ in corners) <= north + 1e-9 <= max(lat for lat, _ in corners) + bulge + 2e-9
    assert min(lat for lat, _ in corners) >= south - 1e-9 >= min(lat for lat, _ in corners) - bulge - 2e-9
    assert cell in grid


def test_the_cells_of_the_world_are_those_that_meet_its_box() -> None:
    for resolution in (7, 8, 9, 10):
        grid = HexagonGrid(WORLD, resolution)
        lats = [WORLD.south + (WORLD.north - WORLD.south) * step / 200 for step in range(201)]
        lons = [WORLD.west + (WORLD.east - WORLD.west) * step / 200 for step in range(201)]
        reached = {grid.cell_of(Point(lat, lon)) for lat in lats for lon in lons}
        # A raster of 6.5 m misses only cells that the box cuts by less than that.
        assert len(reached) <= grid.cells <= len(reached) + 3


def test_near_a_pole_a_circle_around_the_box_takes_its_place() -> None:
    grid = HexagonGrid(WORLD, 8)
    for point in (Point(89.9, 12.0), Point(-90, 0), Point(87.1, -70.0), Point(-88, 179.9)):
        around = grid.around(point, 5_000, "box")
        height = math.degrees(5_000 / EARTH_RADIUS)
        width = box_of(point, 5_000)[1] if abs(point.lat) + height < 90 else 180.0
        for up in (-1.0, -0.5, 0.0, 0.5, 1.0):
            for right in range(-10, 11):
                lat = max(-90.0, min(90.0, point.lat + up * height))
                lon = (point.lon + right / 10 * width + 180.0) % 360.0 - 180.0
                assert grid.cell_of(Point(lat, lon)) in around
        assert len(around) < 3 * math.pi * 15_000**2 / h3.average_hexagon_area(8, unit="m^2")


@pytest.mark.parametrize("resolution", [3, 16, 9.0, True, None])
def test_a_resolution_that_cannot_serve_is_refused(resolution: Any) -> None:
    with pytest.raises(InvalidScheme, match="resolution"):
        HexagonGrid(WORLD, resolution)


def test_a_world_of_half_the_earth_is_refused() -> None:
    with pytest.raises(InvalidArea, match="180 degrees"):
        HexagonGrid(GeoBox(-10, -90, 10, 90), 5)


def test_a_radius_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidPosition, match="radius"):
        HexagonGrid(WORLD, 9).around(WORLD.center, -1.0, "box")


def test_what_is_no_cell_of_this_resolution_is_not_taken_for_one() -> None:
    grid = HexagonGrid(WORLD, 9)
    cell = grid.cell_of(WORLD.center)
    assert cell in grid
    finer = HexagonGrid(WORLD, 10).cell_of(WORLD.center)
    for other in (
        finer,
        cell.upper(),
        "0" + cell,
        "0x" + cell,
        cell + " ",
        "5:0,0",
        "",
        "zzz",
        None,
        617700169958293503,
    ):
        assert other not in grid
    with pytest.raises(UnknownName, match="resolution 9"):
        grid.bounds(finer)
    with pytest.raises(UnknownName, match="resolution 9"):
        grid.center("5:0,0")
