"""Nobody is missed: what one member matches, the aggregate possibly matches (Contextcast, Def. 4.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.strategies import (
    any_area,
    areas,
    atoms,
    far_points,
    formulas,
    instants,
    numbers,
    one_of,
    paths,
    points,
    ranges,
    subtrees,
    tags,
    texts,
)
from tests.oracle.strategies import WORLDS, fixed_areas
from tests.overlay.contexts import Release, Shade, plug_in_atoms, plug_ins, releases, shades

from nearcast.model.area import Area, Box, Circle, Outline, Rectangle
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.geometry import EARTH_RADIUS, Point, distance
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import SPATIAL_OPERATORS, Not, Predicate, Spatial
from nearcast.model.values import OneOf, Path, Range, Subtree
from nearcast.overlay.values.coarse import Coarse, coarse, merged_all
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.places import bounds, distance_to
from nearcast.overlay.values.possible import addressed, possible


@pytest.fixture(autouse=True, scope="module")
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


def of_one_kind(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Members whose attribute ``a`` can be merged more often than not; ``b`` mostly too."""
    member = st.fixed_dictionaries({}, optional={"a": kind, "b": kind | numbers, "tags": tags})
    return st.lists(member, min_size=1, max_size=5)


absolute = any_area.filter(lambda area: not area.is_relative)
KINDS = {
    "numbers": st.one_of(numbers, ranges.filter(lambda r: not hasattr(r.low, "year")), st.just(OneOf([1, 2]))),
    "instants": instants,
    "texts": texts,
    "truth": st.booleans(),
    "places": st.one_of(points, areas),
    "far places": st.one_of(far_points, absolute),
    "paths": st.one_of(paths, subtrees),
    "tags": tags,
    "shades": shades,
    "releases": releases,
    "anything": st.one_of(one_of, ranges, texts, numbers, points),
}
members = st.sampled_from(sorted(KINDS)).flatmap(lambda name: of_one_kind(KINDS[name]))
filters = formulas(st.one_of(atoms, atoms, plug_in_atoms), max_leaves=6)


@examples(250)
@given(members, filters, st.integers(1, 4))
def test_whoever_matches_is_not_missed_in_an_aggregate(
    contexts: list[dict[str, Any]], predicate: Predicate, largest_set: int
) -> None:
    whole = merged_all(map(coarse, contexts), Limits(largest_set))
    assume(whole is not None)
    assert whole is not None
    if any(evaluate(predicate, context) is True for context in contexts):
        assert possible(predicate, whole)
        assert addressed(disjunctive_normal_form(predicate), whole)


@examples(200)
@given(st.data(), st.sampled_from(SPATIAL_OPERATORS), st.booleans())
def test_nobody_is_missed_at_borders_poles_and_the_antimeridian(data: st.DataObject, op: str, negated: bool) -> None:
    world = data.draw(st.sampled_from(WORLDS))
    somewhere = st.sampled_from([*world.points, *fixed_areas(world)])
    contexts = [{"p": place} for place in data.draw(st.lists(somewhere, min_size=1, max_size=3))]
    targets: list[Point | Area] = [*world.points, *fixed_areas(world)]
    target = data.draw(st.sampled_from(targets))
    atom: Predicate = Spatial(op, "p", target)
    predicate = Not(atom) if negated else atom
    whole = merged_all(map(coarse, contexts), Limits())
    assert whole is not None
    if any(evaluate(predicate, context) is True for context in contexts):
        assert possible(predicate, whole)


@examples(150)
@given(st.data())
def test_whoever_is_in_a_service_area_is_not_missed_behind_it(data: st.DataObject) -> None:
    """Service areas hide exact positions: the area must stand for every point that it covers."""
    world = data.draw(st.sampled_from(WORLDS))
    area, target = data.draw(st.sampled_from(fixed_areas(world))), data.draw(st.sampled_from(fixed_areas(world)))
    point = data.draw(st.sampled_from(world.points))
    assume(area.covers(point))
    for op in SPATIAL_OPERATORS:
        for predicate in (Spatial(op, "p", target), Not(Spatial(op, "p", target))):
            if evaluate(predicate, {"p": point}) is True:
                assert possible(predicate, coarse({"p": area}))


LARGE = (
    Rectangle(4e5, 4e5, Point(65, 10)),
    Rectangle(3e6, 1e6, Point(-50, 179)),
    Circle(9e5, Point(80, 0)),
    Outline(((-3e5, -3e5), (3e5, -3e5), (0, 5e5), (-3e5, -3e5)), Point(70, 20)),
)


@pytest.mark.parametrize("area", LARGE, ids=repr)
def test_whoever_is_near_the_border_of_a_large_area_is_not_missed(area: Area) -> None:
    """Shapes in metres are drawn in degrees with straight edges, which they do not quite have: up there, and when large."""
    west, south, east, north = bounds(area)
    steps = [step / 40 for step in range(41)]
    grid = [Point(south + y * (north - south), west + x * (east - west)) for y in steps for x in steps]
    inside = [point for point in grid if area.covers(point)]
    assert len(inside) > 50
    for point in inside:
        near = Box(point.lon, point.lat, point.lon, point.lat)
        assert possible(Spatial("s_within", "p", near), coarse({"p": area})), "behind a service area"
        beside = Point(point.lat, point.lon + 1e-4 if point.lon < 179 else point.lon - 1e-4)
        pair = merged_all([coarse({"p": point}), coarse({"p": beside})], Limits())
        assert pair is not None
        assert possible(Spatial("s_within", "p", area), pair), "as the target"


@pytest.mark.parametrize("radius", [5e3, 2e4, 9.9e4])
@pytest.mark.parametrize("lat", [0.0, 48.8, 74.9])
def test_whoever_is_at_the_border_of_a_circle_is_not_missed(radius: float, lat: float) -> None:
    """In degrees, with 64 corners, slivers of a circle are outside its drawing."""
    area = Circle(radius, Point(lat, 9.0))
    for step in range(720):
        point = at_bearing(Point(lat, 9.0), radius * (1 - 1e-9), step * math.pi / 360)
        if area.covers(point):
            target = Box(point.lon, point.lat, point.lon, point.lat)
            assert possible(Spatial("s_within", "p", target), coarse({"p": area}))


def at_bearing(start: Point, metres: float, bearing: float) -> Point:
    angle, lat = metres / EARTH_RADIUS, math.radians(start.lat)
    north = math.asin(math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing))
    east = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * math.sin(north)
    )
    return Point(math.degrees(north), start.lon + math.degrees(east))


def test_beyond_the_pole_the_middle_of_a_parallel_is_farthest() -> None:
    center = Point(60.0, 10.0)
    members = [Point(77.0, lon) for lon in (-175.0, -165.0, -170.0)]
    far = [distance(center, member) for member in members]
    circle = Circle((far[0] + far[2]) / 2, center)
    assert far[2] > circle.radius > far[0]
    whole = merged_all([coarse({"p": member}) for member in members], Limits())
    assert whole is not None
    assert possible(Not(Spatial("s_within", "p", circle)), whole)


@given(far_points, st.lists(far_points, min_size=2, max_size=2), st.floats(0, 1), st.floats(0, 1))
def test_the_distance_to_a_rectangle_is_that_to_its_nearest_point(
    point: Point, corners: list[Point], across: float, up: float
) -> None:
    a, b = corners
    west, east = sorted((a.lon, b.lon))
    south, north = sorted((a.lat, b.lat))
    inside = Point(min(north, south + up * (north - south)), min(east, west + across * (east - west)))
    assert distance_to((west, south, east, north), point) <= distance(point, inside) + 1e-3


@given(absolute, far_points)
def test_bounds_hold_all_points(area: Area, point: Point) -> None:
    for at in (point, area.fixed_center()):
        if area.covers(at):
            west, south, east, north = bounds(area)
            assert west <= at.lon <= east
            assert south <= at.lat <= north


def says(text: str, context: Coarse) -> bool:
    return possible(parse(text), context)


def test_what_some_member_lacks_may_be_there_or_not() -> None:
    group = merged_all([coarse({"age": 20}), coarse({"age": 30, "role": "guest"})], Limits())
    assert group == Coarse({"age": OneOf([20, 30]), "role": "guest"}, frozenset({"role"}))
    assert says("role IS NULL", group)
    assert says("role = 'guest'", group)
    assert not says("role = 'driver'", group)
    assert not says("age IS NULL", group)
    assert not says("NOT role IS NULL AND age > 30", group)


def test_what_is_coarse_beyond_recognition_is_possible_and_what_is_missing_is_not() -> None:
    group = Coarse({"speed": Range(3, 9), "way": Subtree(Path.parse("/v"))})
    assert says("speed + 1 = 400", group), "arithmetic on an interval"
    assert says("1 / (speed - 4) IS NULL", group), "somebody's speed may be 4"
    assert says("1 / (speed - 4) IS NOT NULL", group)
    assert not says("1 / speed IS NULL", group)
    assert not says("speed = 400", group)
    assert not says("speed = 'fast'", group)
    assert not says("height + 1 = 4", group)
    assert not says("height = 4", group)
    assert says("height IS NULL", group)
    many = OneOf(range(65))
    assert says("a > b", Coarse({"a": many, "b": many}))
    assert says("p = q", Coarse({"p": Box(0, 0, 1, 1), "q": Circle(5, Point(0, 0))}))


def test_places_are_compared_with_a_margin_and_no_more() -> None:
    here = Coarse({"p": Box(8.0, 49.0, 8.1, 49.1)})
    assert says("S_WITHIN(p, BBOX(8.1, 49.1, 9, 50))", here)
    assert not says("S_WITHIN(p, BBOX(8.11, 49.0, 9, 50))", here)
    assert says("S_DWITHIN(p, POINT(8.2 49.05), 7300)", here)
    assert not says("S_DWITHIN(p, POINT(8.2 49.05), 7200)", here)
    assert not says("NOT S_WITHIN(p, BBOX(7, 48, 9, 50))", here)
    assert says("NOT S_WITHIN(p, BBOX(8.01, 48, 9, 50))", here)
    assert not says("NOT S_DWITHIN(p, POINT(8.05 49.05), 10000)", here)
    assert not possible(Spatial("s_within", "p", Rectangle(1000, 1000, Point(49.2, 8.05))), here)


def test_a_plug_in_judges_its_own_coarse_values() -> None:
    group = Coarse({"build": Release(3, 7)})
    assert says("comes_before(build, 5)", group)
    assert says("NOT comes_before(build, 5)", group)
    assert not says("comes_before(build, 3)", group)
    assert not says("build = 8", group)
    assert says("build IN (1, 7)", group)
    assert not says("build IS NULL", group)
    shade = Coarse({"shade": OneOf([Shade(1), Shade(3)])})
    assert says("darker(shade, 2)", shade)
    assert not says("darker(shade, 3)", shade)
