"""Match operations per event, from counters that were sampled while the system ran."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nearcast.metrics.matching import EVENTS_MATCHED, OPERATIONS_COUNTED, OPERATIONS_DONE
from nearcast.metrics.windows import Windows
from nearcast.pipeline.metrics.columns import micros, ratio
from nearcast.pipeline.metrics.windows import all_windows, window_of_micros


def steps(metrics: DataFrame, windows: Windows, *names: str) -> DataFrame:
    """``metric, window, step``: by how much cumulative counters grew from sample to sample.

    A sample at the end of a window belongs to that window; a counter that falls has started anew from 0.
    """
    in_order = Window.partitionBy("metric").orderBy("time")
    growth = F.col("value") - F.coalesce(F.lag("value").over(in_order), F.lit(0.0))
    window = window_of_micros(windows, micros("time") - 1)
    return (
        metrics.where(F.col("metric").isin(*names))
        .withColumn("growth", growth)
        .select(
            "metric",
            window.alias("window"),
            F.when(F.col("growth") < 0, F.col("value")).otherwise(F.col("growth")).alias("step"),
        )
        .where(F.col("window").isNotNull())
    )


def increases(metrics: DataFrame, metric: str, windows: Windows) -> DataFrame:
    """``window, start, increase`` of a cumulative counter, for every window."""
    grown = steps(metrics, windows, metric).groupBy("window").agg(F.sum("step").alias("increase"))
    every = all_windows(metrics.sparkSession, windows).join(grown, "window", "left")
    return every.withColumn("increase", F.coalesce(F.col("increase"), F.lit(0.0)))


def match_operations(metrics: DataFrame, windows: Windows) -> DataFrame:
    """``window, start, events, counted, done, counted_per_event, done_per_event`` of every window."""
    names = {"events": EVENTS_MATCHED, "counted": OPERATIONS_COUNTED, "done": OPERATIONS_DONE}

    def of(metric: str) -> Column:
        return F.sum(F.when(F.col("metric") == metric, F.col("step")))

    grown = steps(metrics, windows, *names.values()).groupBy("window")
    summed = grown.agg(*(of(metric).alias(name) for name, metric in names.items()))
    every = all_windows(metrics.sparkSession, windows).join(summed, "window", "left")
    filled = every.withColumns({name: F.coalesce(F.col(name), F.lit(0.0)) for name in names})
    return filled.withColumns(
        {f"{name}_per_event": ratio(F.col(name), F.col("events")) for name in ("counted", "done")}
    )
