"""Frames for tests: small ones, made of Arrow tables or of recordings."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nearcast import records
from nearcast.model.time import to_datetime
from nearcast.records.arrow import plain_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGINNING: Final = 1_767_225_600_000_000
"""2026-01-01: midnight, so that windows begin there."""


def at(seconds: float) -> datetime:
    """So long after the beginning."""
    return to_datetime(BEGINNING + round(seconds * 1e6))


def frame(spark: SparkSession, columns: Any) -> DataFrame:
    """A frame of an Arrow table, or of its columns by name."""
    import pyarrow as pa

    return spark.createDataFrame(columns if isinstance(columns, pa.Table) else pa.table(columns))


def table_frame(spark: SparkSession, name: str, table: Any) -> DataFrame:
    """A record table as Spark would read it."""
    return spark.createDataFrame(table.cast(plain_schema(records.table(name))))


def recorded(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return table_frame(spark, name, records.read(folder, name))


def rows(found: DataFrame, *order: str) -> list[dict[str, Any]]:
    """All rows, in the order of these columns."""
    return [row.asDict(recursive=True) for row in found.orderBy(*order).collect()]
