"""Square cells: every place has one, and whoever asks for those around a circle misses none that the circle meets."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.filtering.places import away, town

from nearcast.errors import InvalidArea, InvalidPosition, InvalidScheme, UnknownName
from nearcast.filtering.tessellation import Cover, GeoBox, SquareGrid
from nearcast.model.geometry import Point, distance, distance_degrees

covers = st.sampled_from(["circle", "box"])
shares = st.floats(0.0, 1.0)
whole_earth = GeoBox(-85, -180, 85, 180)
POLES = Point(-90.0, 0.0), Point(90.0, 0.0)


@st.composite
def worlds(draw: st.DrawFn) -> GeoBox:
    """From a garden to a continent, at any latitude, also at the antimeridian."""
    height = 10 ** draw(st.floats(-3, 1))
    width = 10 ** draw(st.floats(-3, 1))
    south = draw(st.floats(-85, 85 - height))
    west = draw(st.floats(-180, 180 - width) | st.just(180 - width))
    return GeoBox(south, west, south + height, west + width)


@st.composite
def grids(draw: st.DrawFn) -> SquareGrid:
    return SquareGrid(draw(worlds()), draw(st.integers(1, 6)))


@st.composite
def points_in(draw: st.DrawFn, world: GeoBox) -> Point:
    u, v = draw(shares), draw(shares)
    return Point(
        min(world.north, world.south + u * (world.north - world.south)),
        min(world.east, world.west + v * (world.east - world.west)),
    )


def cell_size(grid: SquareGrid) -> float:
    """Metres of the shorter side of a cell in the middle."""
    south, west, north, east = grid.bounds(grid.cell_of(grid.world.center))
    return min(distance(Point(south, west), Point(north, west)), distance(Point(south, west), Point(south, east)))


def nearest(grid: SquareGrid, cell: str, point: Point) -> float:
    """Metres to the cell, by search: a cell at the border of the world reaches outwards."""
    south, west, north, east = grid.bounds(cell)
    column, row = map(int, cell.partition(":")[2].split(","))
    lowest, highest = south if row else -90.0, north if row < grid.factor - 1 else 90.0
    west, east = west if column else west - 30.0, east if column < grid.factor - 1 else east + 30.0
    turn = (point.lon - grid.world.center.lon + 180.0) % 360.0 - 180.0
    lon = min(max(grid.world.center.lon + turn, west), east)
    for _ in range(100):  # distance along one meridian has one minimum
        a, b = lowest + (highest - lowest) / 3, highest - (highest - lowest) / 3
        if distance_degrees(point.lat, point.lon, a, lon) < distance_degrees(point.lat, point.lon, b, lon):
            highest = b
        else:
            lowest = a
    return distance_degrees(point.lat, point.lon, (lowest + highest) / 2, lon)


@given(st.data(), grids())
def test_a_cell_is_around_a_circle_exactly_if_the_circle_meets_it(data: st.DataObject, grid: SquareGrid) -> None:
    point = data.draw(points_in(grid.world))
    home = grid.cell_of(point)
    for column in range(grid.factor):
        for row in range(grid.factor):
            cell = f"{grid.factor}:{column},{row}"
            apart = nearest(grid, cell, point)
            assert cell in grid.around(point, apart, "circle")
            # A circle that holds a pole gets all columns: too far out to be worth an exact answer.
            if cell != home and 0.1 < apart < min(distance(point, pole) for pole in POLES):
                assert cell not in grid.around(point, apart * 0.99999, "circle")


def test_a_circle_that_holds_a_pole_meets_all_columns() -> None:
    grid = SquareGrid(GeoBox(-84.0, 179.0, -74.0, 180.0), 3)
    assert grid.around(Point(-84.0, 179.0), 741_320.0, "circle") == tuple(
        f"3:{column},{row}" for column in range(3) for row in range(3)
    )


@given(st.data(), grids(), st.floats(0, 3), covers, shares, st.floats(0, 360))
def test_no_place_in_the_circle_lies_in_another_cell(
    data: st.DataObject, grid: SquareGrid, size: float, cover: Cover, share: float, bearing: float
) -> None:
    point = data.draw(points_in(grid.world))
    radius = size * cell_size(grid)
    place = away(point, bearing, share * radius)
    assume(distance(point, place) <= radius)
    assert grid.cell_of(place) in grid.around(point, radius, cover)


@given(
    st.builds(Point, st.floats(-90, 90), st.floats(-180, 180)),
    st.floats(0, 8).map(lambda exponent: 10**exponent),
    covers,
    st.floats(0, 1),
    st.floats(0, 360),
    st.sampled_from([whole_earth, town(1300), GeoBox(-20, 100, 20, 180), GeoBox(60, -180, 85, 20)]),
    st.integers(1, 40),
)
@example(Point(10, 179.999), 50_000.0, "circle", 0.9, 90.0, whole_earth, 36)
@example(Point(10, -179.999), 50_000.0, "box", 0.9, 270.0, whole_earth, 36)
@example(Point(89, 12), 500_000.0, "circle", 0.9, 0.0, whole_earth, 36)
def test_nobody_is_lost_who_strays_out_of_the_world_or_over_the_antimeridian(
    point: Point, radius: float, cover: Cover, share: float, bearing: float, world: GeoBox, factor: int
) -> None:
    grid = SquareGrid(world, factor)
    place = away(point, bearing, share * min(radius, 2e7))
    assume(distance(point, place) <= radius)
    around = grid.around(point, radius, cover)
    assert grid.cell_of(point) in around
    assert grid.cell_of(place) in around
    assert all(cell in grid for cell in around)


def test_a_circle_at_the_antimeridian_takes_cells_of_both_ends_and_no_others() -> None:
    grid = SquareGrid(whole_earth, 36)  # ten degrees wide
    around = grid.around(Point(2.3, 179.999), 50_000, "circle")
    assert {cell.partition(":")[2].split(",")[0] for cell in around} == {"0", "35"}
    assert around == grid.around(Point(2.3, 179.999), 50_000, "box")


@given(st.data(), grids(), st.floats(0.01, 3))
def test_the_box_takes_every_row_and_column_that_the_circle_takes_and_no_other(
    data: st.DataObject, grid: SquareGrid, size: float
) -> None:
    # A circle touches all four sides of its bounding box.
    point = data.draw(points_in(grid.world))
    assume(abs(point.lon) < 140)
    radius = size * cell_size(grid)
    circle = [cell.partition(":")[2].split(",") for cell in grid.around(point, radius, "circle")]
    columns, rows = {column for column, _ in circle}, {row for _, row in circle}
    assert grid.around(point, radius, "box") == tuple(
        sorted(f"{grid.factor}:{column},{row}" for column in columns for row in rows)
    )


@given(st.data(), grids(), st.floats(0, 3), covers)
def test_the_cells_of_a_smaller_circle_are_among_those_of_a_larger(
    data: st.DataObject, grid: SquareGrid, size: float, cover: Cover
) -> None:
    point = data.draw(points_in(grid.world))
    radius = size * cell_size(grid)
    assert set(grid.around(point, radius * data.draw(shares), cover)) <= set(grid.around(point, radius, cover))


@given(st.data(), grids(), st.floats(0, 3), covers)
def test_assigned_cells_suffice_until_one_is_missing(
    data: st.DataObject, grid: SquareGrid, size: float, cover: Cover
) -> None:
    point = data.draw(points_in(grid.world))
    radius = size * cell_size(grid)
    around = grid.around(point, radius, cover)
    assert list(around) == sorted(set(around))
    assert grid.covers(frozenset(around), point, radius, cover)
    assert grid.covers({*around, "7:6,6"}, point, radius, cover)
    missing = data.draw(st.sampled_from(around))
    assert not grid.covers(frozenset(around) - {missing}, point, radius, cover)


@given(st.data(), grids())
def test_a_place_lies_in_the_bounds_of_its_cell(data: st.DataObject, grid: SquareGrid) -> None:
    point = data.draw(points_in(grid.world))
    cell = grid.cell_of(point)
    south, west, north, east = grid.bounds(cell)
    # 180 is stored as -180, and where the border between two cells is, is known to the last digits only.
    lon = 180.0 if point.lon == -180.0 and east == 180.0 else point.lon
    assert south - 1e-12 <= point.lat <= north + 1e-12
    assert west - 1e-12 <= lon <= east + 1e-12
    assert cell in grid
    assert grid.contains(cell, point)
    assert grid.cell_of(grid.center(cell)) == cell


def test_cells_own_their_southern_and_western_border_and_tile_the_world() -> None:
    grid = SquareGrid(GeoBox(0, 0, 4, 8), 4)
    assert grid.cell_of(Point(1, 2)) == "4:1,1"
    assert grid.cell_of(Point(math.nextafter(1, 0), 2)) == "4:1,0"
    assert grid.cell_of(Point(1, math.nextafter(2, 0))) == "4:0,1"
    assert grid.cell_of(Point(4, 8)) == "4:3,3"
    assert grid.bounds("4:1,1") == (1, 2, 2, 4)
    assert grid.center("4:1,1") == Point(1.5, 3)
    assert grid.cells == 16


@pytest.mark.parametrize(
    ("place", "cell"),
    [
        (Point(-3, 4.1), "4:2,0"),
        (Point(80, 4.1), "4:2,3"),
        (Point(2.5, -20), "4:0,2"),
        (Point(2.5, 20), "4:3,2"),
        (Point(-3, -3), "4:0,0"),
        (Point(2.5, -170), "4:0,2"),
        (Point(2.5, -179), "4:3,2"),  # the middle of the world is at 4: this is 177 degrees east of it
    ],
)
def test_who_is_outside_belongs_to_the_nearest_border_cell(place: Point, cell: str) -> None:
    assert SquareGrid(GeoBox(0, 0, 4, 8), 4).cell_of(place) == cell


@pytest.mark.parametrize(
    "cell",
    [
        "5:5,0",
        "5:0,5",
        "4:0,0",
        "5:-1,0",
        "5:00,1",
        "5:0,0 ",
        "5:٣,0",
        "5:0",
        "0,0",
        "",
        "5:" + "9" * 5000 + ",0",
        None,
        3,
    ],
)
def test_what_is_no_cell_of_this_grid_is_not_taken_for_one(cell: Any) -> None:
    grid = SquareGrid(town(1300), 5)
    assert cell not in grid
    if isinstance(cell, str):
        with pytest.raises(UnknownName, match="no cell of a grid of factor 5"):
            grid.bounds(cell)


def test_grids_of_different_factors_have_no_cell_in_common() -> None:
    names = [set(SquareGrid(town(1300), factor).around(town(1300).center, 5000, "box")) for factor in range(1, 25)]
    assert sum(map(len, names)) == len(set.union(*names)) == sum(factor * factor for factor in range(1, 25))


@pytest.mark.parametrize("factor", [0, -1, 2.0, True, "5", None])
def test_a_grid_factor_is_a_positive_whole_number(factor: Any) -> None:
    with pytest.raises(InvalidScheme, match="grid factor"):
        SquareGrid(town(1300), factor)


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf])
def test_a_radius_that_cannot_be_is_refused(radius: float) -> None:
    grid = SquareGrid(town(1300), 5)
    with pytest.raises(InvalidPosition, match="radius"):
        grid.around(grid.world.center, radius, "box")
    with pytest.raises(InvalidPosition, match="radius"):
        grid.covers(frozenset(), grid.world.center, radius, "circle")


@pytest.mark.parametrize(
    ("corners", "error", "message"),
    [
        ((0, 170, 1, -170), InvalidArea, "antimeridian"),
        ((0, 5, 1, 5), InvalidArea, "antimeridian"),
        ((1, 0, 1, 1), InvalidArea, "north"),
        ((2, 0, 1, 1), InvalidArea, "north"),
        ((-86, 0, 1, 1), InvalidPosition, "south"),
        ((0, 0, 90, 1), InvalidPosition, "north"),
        ((0, 0, 1, 181), InvalidPosition, "east"),
        ((0, math.nan, 1, 1), InvalidPosition, "west"),
    ],
)
def test_a_world_that_cannot_be_cut_is_refused(
    corners: tuple[float, float, float, float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        GeoBox(*corners)
