"""Delivery delay: seconds from publication to the first copy, over correct pairs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.metrics.distribution import band_columns


def delays(pairs: DataFrame) -> DataFrame:
    """The pairs that were reached, with a column ``seconds``."""
    reached = pairs.where(F.col("counted") & F.col("correct"))
    return reached.withColumn("seconds", F.col("delay") / MICROSECONDS)


def delay_totals(pairs: DataFrame) -> DataFrame:
    """One row with the fields of ``nearcast.metrics.DelayTotals``."""
    return delays(pairs).agg(F.count("*").alias("reached"), *band_columns(F.col("seconds")))


def delay_per_event(pairs: DataFrame) -> DataFrame:
    """``event, seconds``: the mean; no row for an event that reached nobody to whom it was due."""
    return delays(pairs).groupBy("event").agg(F.mean("seconds").alias("seconds"))


def delay_per_client(pairs: DataFrame) -> DataFrame:
    """``client, seconds``: the mean; no row for a client whom nothing reached that was due to it."""
    return delays(pairs).groupBy("client").agg(F.mean("seconds").alias("seconds"))
