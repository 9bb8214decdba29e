"""How much is sent, and to how many, by window of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.pipeline.observation.windows import bounds_first, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fan_out(events: DataFrame, seconds: float) -> DataFrame:
    """Receivers per event: ``since, until, events, deliveries, mean, median, p95, most``; of a stream as well.

    Events whose receivers are not known (null) do not count.
    """
    known = events.where(F.col("receivers").isNotNull()).select("time", F.size("receivers").alias("receivers"))
    counted = known.groupBy(windowed(seconds)).agg(
        F.count("*").alias("events"),
        F.sum("receivers").alias("deliveries"),
        F.mean("receivers").alias("mean"),
        F.percentile("receivers", F.lit(0.5)).alias("median"),
        F.percentile("receivers", F.lit(0.95)).alias("p95"),
        F.max("receivers").alias("most"),
    )
    return bounds_first(counted)


def load(events: DataFrame, reports: DataFrame, seconds: float) -> DataFrame:
    """What the broker has to do; of streams as well.

    ``since, until, events, reports, deliveries, bytes_in, bytes_out`` (payloads as published, and as delivered to every receiver),
    then per second ``messages_in_rate`` (events and reports), ``messages_out_rate``, ``bytes_in_rate`` and ``bytes_out_rate``.
    """
    none = F.lit(0).cast("long")
    receivers = F.size(F.coalesce("receivers", F.array().cast("array<string>"))).cast("long")
    published = events.select(
        "time",
        F.lit(1).cast("long").alias("events"),
        none.alias("reports"),
        receivers.alias("deliveries"),
        F.col("bytes").alias("bytes_in"),
        (F.col("bytes") * receivers).alias("bytes_out"),
    )
    reported = reports.select(
        "time",
        none.alias("events"),
        F.lit(1).cast("long").alias("reports"),
        *(none.alias(name) for name in ("deliveries", "bytes_in", "bytes_out")),
    )
    sums = ("events", "reports", "deliveries", "bytes_in", "bytes_out")
    counted = (
        published.unionByName(reported).groupBy(windowed(seconds)).agg(*(F.sum(name).alias(name) for name in sums))
    )
    rates = {
        "messages_in_rate": F.col("events") + F.col("reports"),
        "messages_out_rate": F.col("deliveries"),
        "bytes_in_rate": F.col("bytes_in"),
        "bytes_out_rate": F.col("bytes_out"),
    }
    return bounds_first(counted).withColumns({name: value / F.lit(float(seconds)) for name, value in rates.items()})
