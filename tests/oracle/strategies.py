"""Random worlds for the comparison of the matcher with the definition of delivery.

A world is a handful of points that make trouble together, the areas around and through them, and what can be said of
events and clients there.  Everything is drawn from small pools, so that equal things, borders and hits are common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.cql2 import parse
from nearcast.model.geometry import HALF_CIRCUMFERENCE, Point, distance
from nearcast.model.predicate import And, Comparison, DistanceDecreases, Literal, Not, Or, Predicate, Property, Spatial
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame
from nearcast.model.values import OneOf, Path, Range, Subtree

BEGINNING: Final = 1_767_225_600 * MICROSECONDS  # 2026-01-01
CLIENTS: Final = ("ada", "bob", "cyd", "dot", "eve")
UNIT: Final = 360.0 / 2**32
"""Degrees of the grid's unit."""


@st.composite
def sometimes(draw: st.DrawFn, some: st.SearchStrategy[Any], of: int = 3, otherwise: Any = None) -> Any:
    """``some`` once in ``of`` times.  ``one_of`` would count the branches inside ``some`` one by one."""
    return draw(some) if draw(st.integers(1, of)) == of else otherwise


@dataclass(frozen=True)
class World:
    name: str
    points: tuple[Point, ...]

    @property
    def radii(self) -> tuple[float, ...]:
        """Fixed ones, and the exact distances between points: the border belongs to the area."""
        exact = {distance(a, b) for a in self.points[:6] for b in self.points[:6]}
        return (*sorted(exact), *_RADII)


_RADII: Final = (
    0.0, 0.001, 5.0, 19.0, 60.0, 150.0, 700.0, 5_000.0, 250_000.0, 2e6, 9e6,
    HALF_CIRCUMFERENCE / 2, HALF_CIRCUMFERENCE - 0.01, HALF_CIRCUMFERENCE, 3e7,
)  # fmt: skip


def _point(lat: float, lon: float) -> Point:
    lat = max(-90.0, min(90.0, lat))
    return Point(lat, (lon + 180.0) % 360.0 - 180.0)


def _around(lat: float, lon: float, step: float) -> tuple[Point, ...]:
    """Nine points, a step of degrees apart, and two that are a little beside them."""
    wide = step / max(0.001, math.cos(math.radians(lat)))
    nine = [_point(lat + i * step, lon + j * wide) for i in (0, 1, -1) for j in (0, 1, -1)]
    return (*nine, _point(lat + 0.37 * step, lon - 0.61 * wide), _point(lat + step / 1000, lon + wide / 999))


def _on_borders(lat: float, lon: float) -> tuple[Point, ...]:
    """Corners of cells of several levels, and points half a unit and one unit beside them."""
    points = []
    for level in (11, 12, 14, 16):
        size = 2**level * UNIT
        south, west = math.floor(lat / size) * size, math.floor(lon / size) * size
        points += [_point(south, west), _point(south, west - UNIT), _point(south - UNIT, west + UNIT / 2)]
    return tuple(points)


WORLDS: Final = (
    World("neighbourhood", _around(49.8728, 8.6512, 0.0005)),
    World("one spot", (Point(49.8728, 8.6512),)),
    World("city", _around(-33.9, 151.2, 0.02)),
    World("antimeridian", _around(-17.0, 180.0, 0.0004)),
    World("north pole", (Point(90.0, 0.0), Point(90.0, 77.0), *_around(89.9999, -120.0, 0.00007))),
    World("south pole", (Point(-90.0, 0.0), *_around(-89.999, 30.0, 0.0009), *_around(-89.99999, 179.9, 0.00001)[:4])),
    World("cell borders", _on_borders(48.0, 11.0)),
    World("cell borders at zero", (*_on_borders(0.0, 0.0), *_on_borders(0.0, -180.0)[:4])),
    World("earth", tuple(_point(lat, lon) for lat, lon in (
        (0, 0), (0, 180), (0, 90), (45, 45), (-45, -135), (90, 0), (-90, 0), (60, 10), (-60, -170), (10, -100),
        (1e-7, 179.9999999), (64, 25),
    ))),
)  # fmt: skip


# Areas


def _square(south: float, west: float, side: float) -> list[tuple[float, float]]:
    return [(west, south), (west + side, south), (west + side, south + side), (west, south + side), (west, south)]


def _possible(make: Callable[[], Area]) -> list[Area]:
    """An area, unless it would reach beyond the last degree."""
    try:
        return [make()]
    except ValueError:
        return []


@cache
def fixed_areas(world: World) -> tuple[Area, ...]:
    areas: list[Area] = []
    first = world.points[0]
    for i, p in enumerate(world.points[:5]):
        q = world.points[(i + 1) % len(world.points)]
        side = max(0.0004, abs(p.lat - q.lat))
        areas += [Circle(radius, p) for radius in world.radii[i::4]]
        areas += [Rectangle(120.0, 40.0, p), Rectangle(2e5, 3e6, p), Outline(_OUTLINE, p)]
        areas += _possible(lambda p=p, side=side: Box(p.lon, p.lat, _east(p.lon, side), min(90.0, p.lat + side)))  # type: ignore[misc]
        areas += _possible(lambda p=p, side=side: Polygon(((tuple(_square(p.lat, p.lon, side)),),)))  # type: ignore[misc]
        areas += _possible(lambda p=p, side=side: _with_hole(p, side))  # type: ignore[misc]
    areas += [Box(-180.0, -90.0, 180.0, 90.0), Box(179.99, -90.0, -179.99, 90.0), Box(-180.0, first.lat, 0.0, 90.0)]
    areas.append(Polygon(((((-180, -90), (180, -90), (180, 90), (-180, 90), (-180, -90)),),)))
    return tuple(areas)


def _east(lon: float, side: float) -> float:
    east = lon + side
    return east - 360.0 if east > 180.0 else east


def _with_hole(p: Point, side: float) -> Polygon:
    """Two squares; the corner and the middle of the hole in the first are likely places of events."""
    outer, hole = _square(p.lat - side, p.lon - side, 2 * side), _square(p.lat - side / 2, p.lon - side / 2, side / 2)
    beside = _square(p.lat + 2 * side, p.lon, side)
    return Polygon(((tuple(outer), tuple(hole)), (tuple(beside),)))


_OUTLINE: Final = ((-60.0, -60.0), (90.0, 0.0), (0.0, 20.0), (-60.0, 200.0), (-60.0, -60.0))


@cache
def relative_areas(world: World) -> tuple[Area, ...]:
    shapes: list[Area] = [Rectangle(100.0, 112.0), Rectangle(0.0, 3e7), Rectangle(4e4, 4e4), Outline(_OUTLINE)]
    shapes.append(Outline(tuple((east * 40_000, north * 40_000) for east, north in _OUTLINE)))
    return (*(Circle(radius) for radius in world.radii), *shapes)


# What is said of events


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


_CONTENT: Final = (
    "severity >= 3", "severity = 2", "severity < 2.5", "severity <> 3", "severity BETWEEN 2 AND 4", "severity = 'jam'",
    "kind = 'jam'", "kind <> 'ads'", "kind IN ('jam', 'Ads')", "severity IN (1, 2.5, 4)", "kind < 'b'",
    "flag = TRUE", "flag = FALSE", "severity IS NULL", "kind IS NULL", "flag IS NOT NULL", "unheard = 1",
    "due > TIMESTAMP('2026-01-01T00:00:10Z')", "due = TIMESTAMP('2026-01-01T00:00:05Z')",
    "kind LIKE 'a%'", "casei(kind) = casei('ADS')", "severity * 2 > 5", "severity + level = 5", "level <= severity",
    "tagged('x')", "A_CONTAINS(tags, ('x', 'y'))", "A_OVERLAPS(tags, ('y'))", "under(way, '/v')", "way = '/v/car'",
    "T_AFTER(published, TIMESTAMP('2026-01-01T00:00:20Z'))", "T_BEFORE(due, TIMESTAMP('2026-01-01T00:00:07Z'))",
    "place IS NULL", "goal IS NULL", "severity IN (1, 'jam')", "big > 9007199254740992",
)  # fmt: skip


@cache
def _content_atoms(world: World) -> tuple[Predicate, ...]:
    spatial = [Spatial("s_within", "place", area) for area in fixed_areas(world)[:12:3]]
    spatial.append(Spatial("s_within", "goal", Circle(world.radii[-8], world.points[-1])))
    others = (DistanceDecreases(), DistanceDecreases("goal"), Comparison("=", Property("big"), Literal(2**53 + 1)))
    return (*(parse(text) for text in _CONTENT), *spatial, *others)


def formulas(atoms: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    pair = st.tuples(atoms, atoms)
    return st.one_of(
        atoms,
        atoms,
        atoms.map(Not),
        pair.map(And),
        pair.map(Or),
        st.tuples(atoms.map(Not), atoms, atoms).map(And),
        st.tuples(pair.map(Or), pair.map(And)).map(Or),
        pair.map(Or).map(Not),
    )


@cache
def predicates(world: World) -> st.SearchStrategy[Predicate]:
    return formulas(st.sampled_from(_content_atoms(world)))


plain_attributes: Final = st.fixed_dictionaries(
    {},
    optional={
        "severity": st.sampled_from([1, 2, 2.5, 3, 4]),
        "kind": st.sampled_from(["jam", "ads", "Ads", ""]),
        "level": st.sampled_from([2.0, 2.5]),
        "due": st.sampled_from([at(5), at(6), at(11)]),
    },
)
"""What also fits into columns."""


@cache
def attributes(world: World) -> st.SearchStrategy[dict[str, Any]]:
    some = world.points[:4]
    rich = st.fixed_dictionaries(
        {},
        optional={
            "severity": st.sampled_from([1, 2.5, 3, True, "jam", Range(2, 5), OneOf({1, 4})]),
            "kind": st.sampled_from(["jam", "Ads", 2, Path.parse("/jam"), OneOf({"ads", "jam"})]),
            "flag": st.booleans(),
            "way": st.sampled_from([Path.parse("/v/car"), Path.parse("/w"), "/v/car"]),
            "goal": st.sampled_from(some),
            "big": st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1]),
        },
    )
    return st.one_of(plain_attributes, plain_attributes, plain_attributes, plain_attributes, rich)


# What is said of clients

context_values: Final[Mapping[str, tuple[Any, ...]]] = {
    "transport": (
        Path.parse("/v/car"), Path.parse("/v"), Path.parse("/foot"), "/v/car",
        OneOf({Path.parse("/foot"), Path.parse("/v/bus")}), Subtree(Path.parse("/v")),
    ),
    "speed": (30, 50, 50.5, Range(30, 60), OneOf({30, 80}), "fast", 2**53 + 1),
    "role": ("driver", "Guest", "", OneOf({"driver", "guest"}), True),
    "active": (True, False, 1),
    "groups": (frozenset(), frozenset({"a"}), frozenset({"a", "b"})),
}  # fmt: skip

_ADDRESSING: Final = (
    "under(transport, '/v')", "under(transport, '/v/car')", "transport = '/v/car'", "transport IS NULL",
    "speed > 50", "speed <= 50", "speed = 50", "speed <> 30", "speed IN (30, 80)", "speed BETWEEN 40 AND 55",
    "role = 'driver'", "role <> 'driver'", "role IN ('guest', 'driver')", "role LIKE 'G%'", "casei(role) = casei('GUEST')",
    "role IS NULL", "active = TRUE", "active = 1", "speed + 20 > 60", "A_CONTAINS(groups, ('a', 'b'))", "position IS NULL",
    "speed IS NOT NULL",
)  # fmt: skip


@cache
def addressing(world: World) -> st.SearchStrategy[Predicate]:
    areas = fixed_areas(world)
    spatial = [Spatial("s_within", "position", area) for area in areas[::5]]
    spatial += [Spatial("s_disjoint", "position", areas[1]), Spatial("s_intersects", "position", areas[-1])]
    large = Comparison("=", Property("speed"), Literal(2**53 + 1))
    return formulas(st.sampled_from([*(parse(text) for text in _ADDRESSING), *spatial, large]))


@cache
def contexts(world: World) -> st.SearchStrategy[dict[str, Any]]:
    optional = {name: st.sampled_from(values) for name, values in context_values.items()}
    areas = [area for area in fixed_areas(world) if isinstance(area, (Circle, Polygon, Box))]
    optional["position"] = st.sampled_from([*world.points[:3], *areas[::4]])
    return st.fixed_dictionaries({}, optional=optional)


# Subscriptions

frames: Final = st.one_of(
    st.tuples(st.integers(0, 40), st.integers(1, 30)).map(
        lambda pair: TimeFrame(BEGINNING + pair[0] * MICROSECONDS, BEGINNING + (pair[0] + pair[1]) * MICROSECONDS)
    ),
    st.integers(0, 40).map(lambda second: TimeFrame(None, BEGINNING + second * MICROSECONDS)),
)
topic_filters: Final = st.sampled_from(["#", "#", "a/#", "a/b", "+/b", "a/+", "other"])
topics: Final = st.sampled_from(["a/b", "a/b", "a", "a/c", "b/b"])


@cache
def areas_of_interest(world: World) -> st.SearchStrategy[Area | None]:
    circles = [area for area in relative_areas(world) if isinstance(area, Circle)]
    return st.one_of(
        st.none(),
        st.sampled_from(circles),
        st.sampled_from(relative_areas(world)),
        st.sampled_from(fixed_areas(world)),
    )


@cache
def subscriptions(world: World) -> st.SearchStrategy[Subscription]:
    return st.builds(
        Subscription,
        topic=topic_filters,
        where=sometimes(predicates(world), 2),
        area=areas_of_interest(world),
        frame=sometimes(frames, 4, EVER),
        id=st.sampled_from(["", "s", "t"]),
        qos=st.integers(0, 2),
        no_local=sometimes(st.just(True), 4, False),
    )


# Operations: a name and its arguments


@cache
def _event(world: World) -> st.SearchStrategy[dict[str, Any]]:
    places = st.sampled_from(world.points)
    return st.fixed_dictionaries(
        {
            "topic": topics,
            "attributes": attributes(world),
            "tags": st.sampled_from([frozenset()] * 6 + [frozenset({"x"}), frozenset({"x", "y"})]),
            "publisher": st.sampled_from([None, "ada", "bob", "outsider"]),
            "place": st.one_of(places, places, places, st.none()),
            "reach": sometimes(st.sampled_from(fixed_areas(world))),
            "to": sometimes(addressing(world), 4),
        },
    )


@cache
def operations(world: World) -> st.SearchStrategy[tuple[Any, ...]]:
    client = st.sampled_from(CLIENTS)
    place = st.sampled_from(world.points)
    context = st.sampled_from(["here", "there"])
    events = st.tuples(
        st.just("publish"), st.lists(_event(world), min_size=1, max_size=4), st.sampled_from(["events", "columns"])
    )
    subscribing = st.tuples(st.just("subscribe"), client, subscriptions(world))
    frequent = (events, events, subscribing, subscribing, st.tuples(st.just("move"), client, place))
    rare = (
        st.tuples(st.just("move_many"), st.lists(st.tuples(client, place), min_size=1, max_size=6)),
        st.tuples(st.just("subscribe_many"), st.lists(client, min_size=1, unique=True), subscriptions(world)),
        st.tuples(st.just("unsubscribe"), client, st.sampled_from(["", "s", "t"])),
        st.tuples(st.just("forget_position"), client),
        st.tuples(st.just("remove_client"), client),
        st.tuples(st.just("register"), client, context, contexts(world)),
        st.tuples(st.just("register"), client, context, contexts(world)),
        st.tuples(st.just("deregister"), client, context),
        st.tuples(st.just("accept_addressed"), client, st.booleans()),
    )
    return st.sampled_from((*frequent, *frequent, *rare)).flatmap(lambda kind: kind)


def scripts(world: World, size: int = 30) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """All clients stand somewhere and want something; then whatever may happen happens."""
    start = st.tuples(
        *(
            st.tuples(st.just("begin"), st.just(client), st.sampled_from(world.points), subscriptions(world))
            for client in CLIENTS[:3]
        )
    )
    last = st.tuples(st.just("publish"), st.lists(_event(world), min_size=2, max_size=5), st.just("events"))
    return st.tuples(start, st.lists(operations(world), min_size=8, max_size=size), last).map(
        lambda parts: [*parts[0], *parts[1], parts[2]]
    )
