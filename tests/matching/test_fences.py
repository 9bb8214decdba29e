"""The index of fences says what the definition says, whatever was put in, taken out and built meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidArea
from nearcast.matching.fences import RECENT, FenceIndex
from nearcast.model.area import Area, Box, Circle, Polygon, Rectangle
from nearcast.model.geometry import Point
from nearcast.model.passage import Visit, visits

Way = tuple[Point, Point]


@st.composite
def fences(draw: st.DrawFn, lat: float, lon: float) -> Area:
    def near(value: float, limit: float) -> float:
        return min(limit, max(-limit, value + draw(st.floats(-0.02, 0.02))))

    center = Point(near(lat, 90), near(lon, 180))
    size = draw(st.sampled_from([0.0, 0.01, 5.0, 100.0, 900.0, 60_000.0, 15_000_000.0]))
    match draw(st.integers(0, 3)):
        case 0:
            return Circle(size, center)
        case 1:
            return Rectangle(min(size, 1e6), min(2 * size, 1e6), center)
        case 2:
            south, north = sorted((center.lat, near(lat, 90)))
            west, east = sorted((center.lon, near(lon, 180)))
            return Box(west, south, east, north)
        case _:
            west, south = min(center.lon, 179.9), min(center.lat, 89.9)
            return polygon(west, south)


def polygon(west: float, south: float) -> Polygon:
    return Polygon(((((west, south), (west + 0.01, south), (west, south + 0.01), (west, south)),),))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[int, Area], list[int], list[Way]]:
    lat = draw(st.sampled_from([0.0, 49.87, -79.99, 89.99, -90.0]))
    lon = draw(st.sampled_from([8.65, 179.99, -179.99]))
    count = draw(st.sampled_from([1, 5, RECENT + 20]))
    areas: dict[int, Area] = {}
    for number in range(count):
        area = draw(fences(lat, lon)) if number < 6 else Circle(50 + number, Point(lat, lon))
        areas[number] = area
    gone = draw(st.lists(st.sampled_from(range(count)), unique=True, max_size=count - 1))
    step = st.floats(-0.03, 0.03)

    def place() -> Point:
        if draw(st.integers(0, 9)) == 0:
            return Point(draw(st.floats(-90, 90)), draw(st.floats(-180, 180)))
        east = lon + draw(step)
        return Point(
            min(90.0, max(-90.0, lat + draw(step))), east - 360 if east > 180 else east + 360 if east < -180 else east
        )

    ways = [(place(), place()) for _ in range(draw(st.integers(1, 4)))]
    return areas, gone, ways


def found_by(index: FenceIndex[int], ways: list[Way]) -> dict[tuple[int, int], tuple[Visit, ...]]:
    lat, lon, end_lat, end_lon = (
        np.array(column) for column in zip(*((a.lat, a.lon, b.lat, b.lon) for a, b in ways), strict=True)
    )
    found = {(passed.way, passed.key): passed.visits for passed in index.passed(lat, lon, end_lat, end_lon)}
    columns = index.passages(lat, lon, end_lat, end_lon)
    rows = zip(*(column.tolist() for column in columns[:4]), strict=True)
    assert sorted((way, columns.keys[fence], (entered, left)) for way, fence, entered, left in rows) == sorted(
        (*pair, visit) for pair, there in found.items() for visit in there
    )
    return found


def due(areas: dict[int, Area], ways: list[Way]) -> dict[tuple[int, int], tuple[Visit, ...]]:
    found = {(number, key): visits(area, *way) for number, way in enumerate(ways) for key, area in areas.items()}
    return {pair: there for pair, there in found.items() if there and there != ((0.0, 1.0),)}


def same(found: dict[tuple[int, int], tuple[Visit, ...]], wanted: dict[tuple[int, int], tuple[Visit, ...]]) -> None:
    assert found.keys() == wanted.keys()
    for pair, there in wanted.items():
        for one, other in zip(found[pair], there, strict=True):
            assert one == pytest.approx(other, abs=1e-3)
            assert (one[0] > 0.0, one[1] < 1.0) == (other[0] > 0.0, other[1] < 1.0)


@given(worlds())
@settings(deadline=None)
def test_the_index_equals_the_definition(world: tuple[dict[int, Area], list[int], list[Way]]) -> None:
    areas, gone, ways = world
    index: FenceIndex[int] = FenceIndex()
    for key, area in areas.items():
        index.put(key, area)
    same(found_by(index, ways), due(areas, ways))
    for key in gone:
        assert index.remove(key)
        del areas[key]
    same(found_by(index, ways), due(areas, ways))
    assert len(index) == len(areas)


@given(worlds())
@settings(deadline=None)
def test_those_that_cover_a_place_are_found(world: tuple[dict[int, Area], list[int], list[Way]]) -> None:
    areas, gone, ways = world
    index: FenceIndex[int] = FenceIndex()
    for key, area in areas.items():
        index.put(key, area)
    for key in gone:
        index.remove(key)
        del areas[key]
    for place in [place for way in ways for place in way]:
        assert sorted(index.covering(place)) == sorted(key for key, area in areas.items() if area.covers(place))


def test_a_fence_that_is_replaced_is_the_new_one() -> None:
    index: FenceIndex[str] = FenceIndex()
    index.put("gate", Circle(10, Point(49.87, 8.65)))
    index.put("gate", Circle(10, Point(49.97, 8.65)))
    assert len(index) == 1
    way = (np.array([v]) for v in (49.869, 8.65, 49.871, 8.65))
    assert list(index.passed(*way)) == []
    assert not index.remove("door")


def test_more_is_found_than_there_was_room_for() -> None:
    index: FenceIndex[int] = FenceIndex()
    for number in range(3_000):
        index.put(number, Circle(100 + number / 100, Point(49.87, 8.65)))
    ways = [(Point(49.86, 8.65), Point(49.87, 8.65)), (Point(49.87, 8.65), Point(49.88, 8.65))]
    assert len(found_by(index, ways)) == 6_000


def test_areas_that_move_are_no_fences() -> None:
    with pytest.raises(InvalidArea, match="anchor"):
        FenceIndex[str]().put("me", Circle(10))
