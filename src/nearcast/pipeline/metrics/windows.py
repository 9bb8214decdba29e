"""Windows of time (``nearcast.metrics.Windows``) as columns, and how a value is spread within each of them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.metrics.columns import instant, micros, numbered
from nearcast.pipeline.metrics.distribution import band_columns


def window_of(windows: Windows, time: Column) -> Column:
    """The number of the window of an instant; null outside of all."""
    return window_of_micros(windows, micros(time))


def window_of_micros(windows: Windows, time: Column) -> Column:
    inside = (time >= windows.since) & (time < windows.until)
    return F.when(inside, F.floor((time - windows.since) / F.lit(windows.length)).cast("long"))


def window_start(windows: Windows, window: Column) -> Column:
    return instant(windows.since + window * windows.length)


def window_seconds(windows: Windows, window: Column) -> Column:
    """How long a window is: the last may be shorter."""
    start = windows.since + window * windows.length
    return (F.least(start + windows.length, F.lit(windows.until)) - start) / MICROSECONDS


def all_windows(spark: SparkSession, windows: Windows) -> DataFrame:
    """``window, start``: all of them, whatever lies within."""
    return numbered(spark, windows.count, "window").withColumn("start", window_start(windows, F.col("window")))


def bands(frame: DataFrame, windows: Windows, value: str) -> DataFrame:
    """``window, start, count, mean, p5, p25, p50, p75, p95`` of the values in each window; the frame has a column ``window``."""
    shown = F.col("value")
    values = frame.select("window", F.nanvl(F.col(value).cast("double"), F.lit(None).cast("double")).alias("value"))
    found = (
        values.where(F.col("window").isNotNull())
        .groupBy("window")
        .agg(F.count(shown).alias("count"), *band_columns(shown))
    )
    every = all_windows(frame.sparkSession, windows).join(found, "window", "left")
    return every.withColumn("count", F.coalesce(F.col("count"), F.lit(0)))
