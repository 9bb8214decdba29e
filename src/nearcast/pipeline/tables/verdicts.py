"""What becomes of each row of bronze: it goes to silver, is kept aside, is a copy of another, or was taken back."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.pipeline.cells import NO_CELL, coarse_cell
from nearcast.pipeline.tables.cleaning import reason, time_column
from nearcast.records.column import RecordTable

SILVER: Final = "silver"
ASIDE: Final = "aside"
DUPLICATE: Final = "duplicates"
UNPUBLISHED: Final = "unpublished"

EVENT_KEY: Final = ("event", "publisher")
"""Two publishers may give the same id."""

_COUNTED: Final = frozenset({"notifications", "gateways", "messages", "drops", "traffic", "energy", "metrics"})
"""Of these every row counts: two copies of a message in one microsecond are two messages."""


def key_of(table: RecordTable) -> tuple[str, ...] | None:
    """The columns in which duplicates agree: those that name an event; of what is a state, all; none where every row counts."""
    if table.name == "events":
        return EVENT_KEY
    return None if table.name in _COUNTED else table.column_names


def reason_column(table: RecordTable) -> str:
    """The column of bad rows that says why they are bad; ``drops`` has reasons of its own."""
    return "aside_reason" if "reason" in table.column_names else "reason"


def judged(
    rows: DataFrame,
    table: RecordTable,
    latest: Instant,
    *,
    known: DataFrame | None = None,
    unpublished: DataFrame | None = None,
) -> DataFrame:
    """The rows with their reason, ``verdict``, ``date`` and ``cell``; ``known`` are those of silver with which they may agree.

    Of several that agree the first one stays: of the journal, by offset; else by time.  What was unpublished is set apart before,
    so that whoever publishes the same id anew is heard.
    """
    found = rows if unpublished is None else gone_from(rows, unpublished)
    gone = F.lit(False) if unpublished is None else F.col("gone")
    why = reason_column(table)
    found = found.withColumn(why, reason(table, latest))
    found = found.withColumn("good", F.col(why).isNull() & ~gone)
    copies = F.lit(False)
    key = key_of(table)
    if key is not None:
        found = found.withColumn("copy", ~_is_first(table, key))
        copies = F.col("copy")
        if known is not None:
            found = agreeing(found, known, key)
            copies |= F.col("known")
    verdict = F.when(gone, UNPUBLISHED).when(F.col(why).isNotNull(), ASIDE).when(copies, DUPLICATE).otherwise(SILVER)
    return found.withColumn("verdict", verdict).select(*table.column_names, why, "verdict", *_partition_columns(table))


def _partition_columns(table: RecordTable) -> list[Column]:
    placed = {"lat", "lon"} <= set(table.column_names)
    cell = coarse_cell(F.col("lat"), F.col("lon")) if placed else F.lit(NO_CELL)
    return [F.to_date(time_column(table)).alias("date"), cell.alias("cell")]


def _is_first(table: RecordTable, key: tuple[str, ...]) -> Column:
    order = [F.col("good").desc(), F.col(time_column(table))]
    if "offset" in table.column_names:
        order.insert(1, F.col("offset").asc_nulls_last())
    return F.row_number().over(Window.partitionBy(*key).orderBy(*order)) == 1


def gone_from(events: DataFrame, unpublished: DataFrame) -> DataFrame:
    """The events with ``gone``: by offset; by id, up to the moment, only where no offset was recorded."""
    by_offset = (
        unpublished.where(F.col("published_offset").isNotNull())
        .select(F.col("published_offset").alias("offset"), F.lit(True).alias("gone_offset"))
        .distinct()
    )
    by_id = (
        unpublished.where(F.col("published_offset").isNull()).groupBy("event").agg(F.max("time").alias("gone_until"))
    )
    gone = F.coalesce("gone_offset", F.lit(False)) | F.coalesce(F.col("time") <= F.col("gone_until"), F.lit(False))
    joined = events.join(by_offset, "offset", "left").join(by_id, "event", "left")
    return joined.withColumn("gone", gone).select(*events.columns, "gone")


def agreeing(rows: DataFrame, known: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """The rows with ``known``: whether one of the others agrees with them; each of these stands once, so no row is doubled."""
    theirs = known.select(*(F.col(name).alias(f"known_{name}") for name in key), F.lit(True).alias("known"))
    agree = F.lit(True)
    for name in key:
        agree &= rows[name].eqNullSafe(theirs[f"known_{name}"])
    joined = rows.join(theirs, agree, "left")
    return joined.withColumn("known", F.coalesce("known", F.lit(False))).select(*rows.columns, "known")
