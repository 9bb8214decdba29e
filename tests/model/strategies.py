"""Random values, properties and predicates for the tests of the model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import Point
from nearcast.model.predicate import (
    ARITHMETIC_OPERATORS,
    SPATIAL_OPERATORS,
    TAG_OPERATORS,
    And,
    Arithmetic,
    Comparison,
    Constant,
    DistanceDecreases,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Property,
    Spatial,
    TagTest,
    Temporal,
    Under,
)
from nearcast.model.temporal import CQL2_RELATIONS
from nearcast.model.values import COMPARISONS, OneOf, Path, Range, Subtree

# Few values and few names, so that equal ones and borders are common.
NAMES = ("a", "b", "c", "my attr")
names = st.sampled_from(NAMES)
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1.5, 2.0]))
texts = st.sampled_from(["", "x", "X", "xy", "é", "it's", "/v", "/v/car", "%"])
instants = st.integers(0, 4).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=n))
points = st.builds(Point, lat=st.integers(-2, 2), lon=st.integers(-2, 2))
paths = st.lists(st.sampled_from(["v", "car"]), max_size=2).map(lambda segments: Path(tuple(segments)))
tags = st.frozensets(st.sampled_from(["x", "y"]))


def _box(west: int, south: int, width: int, height: int) -> Box:
    return Box(west, south, west + width, south + height)


def _triangle(lon: int, lat: int, size: int) -> Polygon:
    return Polygon(((((lon, lat), (lon + size, lat), (lon, lat + size), (lon, lat)),),))


boxes = st.builds(_box, st.integers(-2, 1), st.integers(-2, 1), st.integers(0, 2), st.integers(0, 2))
areas: st.SearchStrategy[Area] = st.one_of(
    boxes,
    st.builds(_triangle, st.integers(-2, 1), st.integers(-2, 1), st.integers(1, 3)),
    st.builds(Rectangle, st.sampled_from([0, 300_000]), st.sampled_from([0, 300_000]), points),
    st.builds(Circle, st.sampled_from([0, 50_000, 200_000]), points),
)
degrees = st.floats(-80, 80)
far_points = st.builds(Point, degrees, degrees)
metres = st.floats(0, 1e6)
_RING = ((0.0, 0.0), (100.5, 0.0), (0.0, 1e-3), (0.0, 0.0))
any_area: st.SearchStrategy[Area] = st.one_of(
    areas,
    st.builds(Circle, metres, st.none() | far_points),
    st.builds(Rectangle, metres, metres, st.none() | far_points),
    st.builds(lambda center: Outline(_RING, center), st.none() | far_points),
    st.builds(lambda lat: Box(170, lat, -170, 85), degrees),
    st.just(Polygon(((_RING,), (((-5.0, -5.0), (-4.0, -5.0), (-4.0, -4.0), (-5.0, -5.0)),)))),
)
"""Of every kind, of any size, here and there, relative ones too."""
plain_values: st.SearchStrategy[Any] = st.one_of(numbers, texts, st.booleans(), instants, points, paths, tags)
ranges = st.one_of(
    st.tuples(numbers, numbers).map(lambda pair: Range(min(pair), max(pair))),
    st.tuples(instants, instants).map(lambda pair: Range(min(pair), max(pair))),
)
one_of = st.one_of(
    *(
        st.frozensets(kind, min_size=1, max_size=3).map(OneOf)
        for kind in (st.integers(-3, 3), texts, st.booleans(), points, paths, instants)
    ),
)
subtrees = paths.map(Subtree)
values: st.SearchStrategy[Any] = st.one_of(plain_values, plain_values, ranges, one_of, subtrees, areas)


def properties(value: st.SearchStrategy[Any] = values) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names, value).flatmap(lambda given: tags.map(lambda held: {**given, "tags": held}))


constants = st.one_of(numbers, texts, st.booleans(), instants)
literals = constants.map(Literal)
operands = st.one_of(
    names.map(Property),
    st.builds(Function, st.sampled_from(["casei", "accenti"]), names.map(Property)),
    st.builds(Arithmetic, st.sampled_from(ARITHMETIC_OPERATORS), names.map(Property), numbers.map(Literal)),
)
open_instants = st.one_of(st.none(), instants)


@st.composite
def temporals(draw: st.DrawFn) -> Temporal:
    start, end = draw(open_instants), draw(open_instants)
    if start is not None and end is not None and start > end:
        start, end = end, start
    return Temporal(draw(st.sampled_from(sorted(CQL2_RELATIONS))), draw(names), start, end)


# Circles are written as S_DWITHIN only; other relations to them have no text.
spatials = st.one_of(
    st.builds(
        Spatial,
        st.sampled_from(SPATIAL_OPERATORS),
        names,
        st.one_of(points, boxes, areas.filter(lambda a: isinstance(a, Polygon))),
    ),
    st.builds(Spatial, st.just("s_within"), names, areas.filter(lambda area: not isinstance(area, Rectangle))),
)
atoms: st.SearchStrategy[Predicate] = st.one_of(
    st.booleans().map(Constant),
    st.builds(Comparison, st.sampled_from(COMPARISONS), operands, st.one_of(literals, names.map(Property))),
    st.builds(Comparison, st.sampled_from(COMPARISONS), names.map(Property), literals),
    st.builds(In, operands, st.frozensets(literals, min_size=1, max_size=3)),
    st.builds(
        Like, operands.filter(lambda o: not isinstance(o, Arithmetic)), st.sampled_from(["x%", "_", "%'%", "\\%"])
    ),
    st.builds(IsNull, operands),
    st.builds(Under, names, paths),
    spatials,
    temporals(),
    st.builds(
        TagTest, st.sampled_from(TAG_OPERATORS), st.just("tags"), st.frozensets(st.sampled_from(["x", "y"]), min_size=1)
    ),
    st.builds(DistanceDecreases, st.one_of(st.none(), names)),
)


def formulas(leaves: st.SearchStrategy[Predicate] = atoms, max_leaves: int = 12) -> st.SearchStrategy[Predicate]:
    def extend(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(leaves, extend, max_leaves=max_leaves)


predicates = formulas()
