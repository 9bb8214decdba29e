"""Whole frames are compared: rows in any order, real numbers within 1e-9."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from nearcast.model.time import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = dict[str, Any]
TOLERANCE = 1e-9


def rows_of(frame: DataFrame) -> list[Row]:
    """Instants as microseconds, whatever the zone of this machine."""
    return rows_of_arrow(frame.toArrow())


def rows_of_arrow(table: Any) -> list[Row]:
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def assert_same_rows(found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> None:
    mine, theirs = sorted(found, key=_order), sorted(expected, key=_order)
    assert len(mine) == len(theirs), (mine, theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert one.keys() == other.keys()
        different = {name: (one[name], other[name]) for name in one if not _same(one[name], other[name])}
        assert not different, (different, one)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)


def _plain(value: Any) -> Any:
    return instant(value) if isinstance(value, datetime) else value


def _order(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    # By what is exact first: real numbers may differ in their last digit and would then be sorted apart.
    exact = [(name, f"{value!s:>24}") for name, value in sorted(row.items()) if not isinstance(value, float)]
    return [*exact, *((name, f"{value:.6f}") for name, value in sorted(row.items()) if isinstance(value, float))]
