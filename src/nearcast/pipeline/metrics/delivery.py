"""Recall, precision, false positives and false negatives: of events, of clients, of windows and of a whole run."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nearcast.metrics.windows import Windows
from nearcast.pipeline.metrics.columns import number, ratio
from nearcast.pipeline.metrics.windows import window_of

COUNTS: Final = ("due", "notified", "correct")
MEASURES: Final = (*COUNTS, "false_negatives", "false_positives", "recall", "precision")
"""Columns of all that is counted from pairs; false negatives are due and not notified, false positives the reverse."""


def measured(pairs: DataFrame, *by: str) -> DataFrame:
    """The pairs of each group, counted."""
    sums = [number(F.col("counted") & F.col(name)).alias(name) for name in COUNTS]
    return with_ratios(pairs.groupBy(*by).agg(*sums)).select(*by, *MEASURES)


def with_ratios(counts: DataFrame) -> DataFrame:
    """What follows from ``due``, ``notified`` and ``correct``."""
    due, notified, correct = (F.col(name) for name in COUNTS)
    return counts.withColumns(
        {
            "false_negatives": due - correct,
            "false_positives": notified - correct,
            "recall": ratio(correct, due),
            "precision": ratio(correct, notified),
        }
    )


def per_event(events: DataFrame, pairs: DataFrame) -> DataFrame:
    """A row for each of the events, which are those that the pairs were made of (``chosen``)."""
    counted = measured(pairs, "event").select("event", *COUNTS)
    filled = {name: F.coalesce(F.col(name), F.lit(0)) for name in COUNTS}
    rows = events.select("time", "event", "workload", "lat", "lon").join(counted, "event", "left").withColumns(filled)
    return with_ratios(rows).select("time", "event", "workload", "lat", "lon", *MEASURES)


def per_client(pairs: DataFrame) -> DataFrame:
    """A row for each client, over its own pairs."""
    return measured(pairs, "client")


def per_client_and_window(pairs: DataFrame, windows: Windows) -> DataFrame:
    """A row for each window and client that have a pair; a pair is in the window in which its event was published."""
    placed = pairs.withColumn("window", window_of(windows, F.col("time"))).where(F.col("window").isNotNull())
    return measured(placed, "window", "client").where((F.col("due") > 0) | (F.col("notified") > 0))


def totals(events: DataFrame, pairs: DataFrame, strays: DataFrame) -> DataFrame:
    """One row with the fields of ``nearcast.metrics.DeliveryTotals``, and false negatives and positives beside.

    Three kinds of rows are put below each other and counted at once: a join of sums with sums would be a cross join.
    """
    # Ratios and counts of both, as they are; the flag says whether the truth is known.
    known = events.select("event", F.col("receivers").isNotNull().alias("known"))
    of_events = (
        measured(pairs, "event").join(known, "event", "right").select(F.lit("event").alias("of"), "known", *MEASURES)
    )
    of_clients = per_client(pairs).select(F.lit("client").alias("of"), F.lit(True).alias("known"), *MEASURES)
    of_strays = strays.select(F.lit("stray").alias("of"))
    rows = of_events.unionByName(of_clients).unionByName(of_strays, allowMissingColumns=True)

    def only(kind: str, value: Column) -> Column:
        return F.when(F.col("of") == kind, value)

    summed = rows.agg(
        number((F.col("of") == "event") & F.col("known")).alias("events"),
        number((F.col("of") == "event") & ~F.col("known")).alias("events_without_truth"),
        number(F.col("of") == "stray").alias("strays"),
        *(F.coalesce(F.sum(only("event", F.col(name))), F.lit(0)).alias(name) for name in COUNTS),
        *(
            F.mean(only(kind, F.col(name))).alias(f"mean_{kind}_{name}")
            for kind in ("event", "client")
            for name in ("recall", "precision")
        ),
    )
    return with_ratios(summed)


def application_totals(pairs: DataFrame) -> DataFrame:
    """One row with the fields of ``nearcast.metrics.ApplicationTotals``."""
    counted, due, handed = F.col("counted"), F.col("due"), F.col("handed") > 0
    return pairs.agg(
        number(counted & due).alias("due"),
        number(counted & due & handed).alias("delivered"),
        number(counted & due & ~handed).alias("lost"),
        number(counted & ~due & handed).alias("extra"),
        number(F.col("own") & handed).alias("own"),
        number(F.col("handed") > 1).alias("doubled"),
    )
