"""Frames for tests: made of Arrow tables, of rows or of recordings, read again, and compared as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from nearcast import records
from nearcast.model.time import instant, to_datetime
from nearcast.records.arrow import plain_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
TOLERANCE = 1e-9
BEGINNING: Final = 1_767_225_600_000_000
"""2026-01-01: midnight, so that windows begin there."""


def at(seconds: float) -> datetime:
    """So long after the beginning."""
    return to_datetime(BEGINNING + round(seconds * 1e6))


def frame(spark: SparkSession, columns: Any) -> DataFrame:
    """A frame of an Arrow table, or of its columns by name."""
    return spark.createDataFrame(columns if isinstance(columns, pa.Table) else pa.table(columns))


def plain_table(name: str, content: list[Row] | pa.Table) -> pa.Table:
    """A record table as Spark would read it: of these rows, or of one as recordings keep it."""
    schema = plain_schema(records.table(name))
    return content.cast(schema) if isinstance(content, pa.Table) else pa.Table.from_pylist(content, schema)


def table_frame(spark: SparkSession, name: str, content: list[Row] | pa.Table) -> DataFrame:
    return spark.createDataFrame(plain_table(name, content))


def recorded(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return table_frame(spark, name, records.read(folder, name))


def rows(found: DataFrame, *order: str) -> list[Row]:
    """All rows, in the order of these columns."""
    return [row.asDict(recursive=True) for row in found.orderBy(*order).collect()]


def rows_of(frame: DataFrame) -> list[Row]:
    """Instants as microseconds, whatever the zone of this machine."""
    return rows_of_arrow(frame.toArrow())


def rows_of_arrow(table: Any) -> list[Row]:
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def assert_same_rows(found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> None:
    """In any order, real numbers within 1e-9."""
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
