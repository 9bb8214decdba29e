"""Column expressions that all metrics share; null stands for what has no value, as NaN does in ``nearcast.metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nearcast.model.time import TimeFrame


def micros(time: Column | str) -> Column:
    """An instant as the model counts it: whole microseconds since 1970."""
    return F.unix_micros(F.col(time) if isinstance(time, str) else time)


def instant(microseconds: Column) -> Column:
    return F.timestamp_micros(microseconds)


def ratio(numerator: Column, denominator: Column) -> Column:
    """Null where there is nothing to divide by."""
    return F.when(denominator != 0, numerator / denominator)


def number(flag: Column) -> Column:
    """How many rows have the flag; 0 also of no row."""
    return F.coalesce(F.count_if(flag), F.lit(0))


def within(frame: TimeFrame, time: Column) -> Column:
    """Whether an instant is in the time frame."""
    inside = F.lit(True)
    if frame.since is not None:
        inside &= micros(time) >= frame.since
    if frame.until is not None:
        inside &= micros(time) < frame.until
    return inside


def looked_up(values: Mapping[str, str], key: Column, otherwise: str) -> Column:
    """What the mapping says of the key."""
    if not values:
        return F.lit(otherwise)
    known = F.create_map(*(F.lit(word) for word in chain.from_iterable(values.items())))
    return F.coalesce(F.element_at(known, key), F.lit(otherwise))


def numbered(spark: SparkSession, count: int, name: str) -> DataFrame:
    """A row for each of 0, 1, ...: what has none of its own shall appear all the same."""
    return spark.range(count).select(F.col("id").alias(name))
