"""Random contexts for the tests of coarse contexts, and a plug-in type among their values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.model.strategies import any_area, far_points, names, values

from nearcast.model.predicate import Comparison, Custom, Literal, Predicate, Property
from nearcast.model.values import AttributeType, Value, register_type, unregister_type
from nearcast.overlay.values.kinds import AttributeKind, Extent, Limits
from nearcast.overlay.values.registry import register_kind, unregister_kind


@dataclass(frozen=True)
class Shade:
    """Of a plug-in that knows nothing of aggregation."""

    grey: int


@dataclass(frozen=True)
class Release:
    """Of a plug-in that has coarse values of its own: all releases from one to another."""

    first: int
    last: int


def shade_is_darker(shade: Shade, than: Any) -> bool:
    return shade.grey > int(than)


def release_comes_before(release: Release, other: Any) -> bool:
    return release.last < int(other)


def merge_releases(a: Any, b: Any, _limits: Limits) -> Release:
    return Release(min(a.first, b.first), max(a.last, b.last))


def release_extents(value: Any) -> tuple[Extent]:
    return ((float(value.first), float(value.last)),)


def release_possible(op: str, value: Any, constant: Any, negated: bool) -> bool:
    try:
        bound = int(constant)
    except (TypeError, ValueError):
        return False
    if op == "comes_before":
        return bool(value.last >= bound if negated else value.first < bound)
    if op == "=":
        return bool(
            value.first != value.last or value.first != bound if negated else value.first <= bound <= value.last
        )
    return False


RELEASES = AttributeKind("release", merge_releases, release_extents, possible=release_possible)


@contextmanager
def plug_ins() -> Iterator[None]:
    """Both types are known."""
    register_type(AttributeType("shade", Shade, lambda shade: shade, {"darker": shade_is_darker}))
    register_type(
        AttributeType(
            "release",
            Release,
            lambda release: release,
            {"comes_before": release_comes_before, "=": lambda release, other: release.first == int(other)},
        )
    )
    register_kind("release", RELEASES)
    try:
        yield
    finally:
        unregister_kind("release")
        unregister_type("release")
        unregister_type("shade")


shades: st.SearchStrategy[Value] = st.builds(Shade, st.integers(0, 3))
releases: st.SearchStrategy[Value] = st.integers(0, 3).map(lambda number: Release(number, number))
_plug_in_values = st.one_of(shades, releases)
any_values: st.SearchStrategy[Value] = st.one_of(
    values, values, _plug_in_values, far_points, any_area.filter(lambda area: not area.is_relative)
)
plug_in_atoms: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Custom, st.sampled_from(["darker", "comes_before"]), names, st.sampled_from([0, 1, 2, 3, "x"])),
    st.builds(Comparison, st.just("="), names.map(Property), st.integers(0, 3).map(Literal)),
)
