"""Merging is a join: the order does not matter, and neither does doing it twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.overlay.contexts import RELEASES, any_values, plug_ins
from tests.overlay.test_possible import members

from nearcast.errors import InvalidValue
from nearcast.model.area import Box, Circle
from nearcast.model.geometry import Point
from nearcast.model.values import OneOf, Path, Range, Subtree
from nearcast.overlay.values.coarse import Coarse, coarse, merged, merged_all
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.registry import register_kind, unregister_kind

FEW = Limits(3)


@pytest.fixture(autouse=True, scope="module")
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


@examples(150)
@given(members, st.randoms(use_true_random=False))
def test_an_aggregate_depends_on_its_members_and_not_on_their_order(
    contexts: list[dict[str, Any]], random: Any
) -> None:
    group = [coarse(context) for context in contexts]
    whole = merged_all(group, FEW)
    shuffled = group + random.choices(group, k=2)
    random.shuffle(shuffled)
    assert merged_all(shuffled, FEW) == whole
    left, right = merged_all(group[:2], FEW), merged_all(group[2:] or group[:1], FEW)
    halves = None if left is None or right is None else merged(left, right, FEW)
    assert halves == whole


@given(any_values)
def test_alone_everything_stays_as_it_is(value: Any) -> None:
    assert merged(coarse({"a": value}), coarse({"a": value}), FEW) == coarse({"a": value})


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


def path(text: str) -> Path:
    return Path.parse(text)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 2], OneOf([1, 2])),
        ([1, 2, 5, 3], Range(1, 5)),
        ([Range(3, 6), 5], Range(3, 6)),
        ([Range(3, 6), 9, 1], Range(1, 9)),
        ([1, 2.5], Range(1, 2.5)),
        ([at(1), at(2)], OneOf([at(1), at(2)])),
        ([at(1), at(2), at(3), at(9)], Range(at(1), at(9))),
        (["x", "y"], OneOf(["x", "y"])),
        (["x", "y", "z", "w"], None),
        (["x", 1], None),
        ([True, 1], None),
        ([True, False], OneOf([True, False])),
        ([path("/v/car"), path("/v/bus")], OneOf([path("/v/car"), path("/v/bus")])),
        ([path("/v/car"), path("/v/bus"), path("/v"), path("/v/car/red")], Subtree(path("/v"))),
        ([Subtree(path("/v/car/red")), path("/v/car/blue")], Subtree(path("/v/car"))),
        ([path("/v"), "/v"], None),
        ([Point(1, 2), Point(3, 0)], Box(0, 1, 2, 3)),
        ([Point(1, 2), Box(0, 0, 1, 1), Point(0, 0)], Box(0, 0, 2, 1)),
        ([Point(1, 179), Point(1, -179)], Box(-179, 1, 179, 1)),
        ([Box(170, 0, -170, 1), Point(0, 0)], Box(-180, 0, 180, 1)),
        ([Circle(5, Point(1, 1)), Circle(5, Point(1, 1))], Circle(5, Point(1, 1))),
        ([frozenset("a"), frozenset("b")], OneOf([frozenset("a"), frozenset("b")])),
    ],
)
def test_each_kind_has_its_merge(values: list[Any], expected: Any) -> None:
    whole = merged_all([coarse({"a": value}) for value in values], FEW)
    assert whole == (None if expected is None else Coarse({"a": expected}))


def test_truth_and_numbers_differ_also_where_python_sees_no_difference() -> None:
    assert coarse({"a": True}) != coarse({"a": 1})
    assert coarse({"a": 1.0}) != coarse({"a": 1})
    assert coarse({"a": 1}) == coarse({"a": 1})
    assert hash(coarse({"a": 1})) == hash(coarse({"a": 1}))
    assert Coarse({"a": 1}, frozenset("a")) != coarse({"a": 1})


def test_bad_registrations_are_refused() -> None:
    with pytest.raises(InvalidValue, match="'release' has a kind already"):
        register_kind("release", RELEASES)
    with pytest.raises(InvalidValue, match="'integer'"):
        unregister_kind("integer")
    with pytest.raises(InvalidValue, match="from 1 to 1024 values, not 0"):
        Limits(0)
