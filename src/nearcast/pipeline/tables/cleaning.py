"""What makes a row bad, as one column expression, from what the record tables say of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.records import column as records
from nearcast.records.column import Kind, RecordTable

_FRAMES: Final = (("frame_since", "frame_until"), ("since", "until"), ("time", "ended"))
"""Of these, the second may not lie before the first."""


def time_column(table: RecordTable) -> str:
    """The column that says when: the first instant."""
    return next(column.name for column in table.columns if column.kind is Kind.INSTANT)


def reason(table: RecordTable, latest: Instant) -> Column:
    """Why a row is bad, in words, several separated by semicolons; null of a good one.

    ``latest``: what is later than this has not happened yet.
    """
    problems = [F.when(wrong, words) for wrong, words in _problems(table, latest)]
    said = F.concat_ws("; ", *problems)
    return F.when(said != "", said)


def _problems(table: RecordTable, latest: Instant) -> Iterator[tuple[Column, Column]]:
    names = set(table.column_names)
    for column in table.columns:
        value = F.col(column.name)
        if not column.nullable:
            yield value.isNull(), F.lit(f"{column.name} is missing")
        yield from _of_kind(column, value)
        if column.choices:
            unknown = F.concat(F.lit(f"{column.name} '"), value, F.lit("' is not known"))
            yield ~value.isin(*column.choices), unknown
    when = time_column(table)
    yield F.unix_micros(F.col(when)) > latest, F.lit(f"{when} is in the future")
    if {"lat", "lon"} <= names:
        yield F.col("lat").isNull() != F.col("lon").isNull(), F.lit("lat or lon is missing")
    for since, until in _FRAMES:
        if {since, until} <= names:
            yield F.col(until) < F.col(since), F.lit(f"{until} is before {since}")


def _of_kind(column: records.Column, value: Column) -> Iterator[tuple[Column, Column]]:
    match column.kind:
        case Kind.REAL:
            finite = F.abs(value) < float("inf")  # false of NaN, too: Spark takes it for larger than anything
            yield ~finite, F.lit(f"{column.name} is not a number")
            yield from _bounds(column, F.when(finite, value))
        case Kind.WHOLE:
            yield from _bounds(column, value)
        case Kind.INSTANT:
            yield from _bounds(column, F.unix_micros(value))
        case Kind.TEXT | Kind.NAME if not column.nullable:
            yield value == "", F.lit(f"{column.name} is empty")
        case _:
            pass


def _bounds(column: records.Column, value: Column) -> Iterator[tuple[Column, Column]]:
    instant = column.kind is Kind.INSTANT
    if column.minimum is not None:
        yield (
            value < column.minimum,
            F.lit(f"{column.name} is before the year 1" if instant else f"{column.name} is below {column.minimum:g}"),
        )
    if column.maximum is not None:
        yield (
            value > column.maximum,
            F.lit(f"{column.name} is after the year 9999" if instant else f"{column.name} is above {column.maximum:g}"),
        )
