"""Bytes and kbit/s, seen from the clients: what they sent and received, and what it was for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nearcast.metrics.traffic import BROKER, DOWNLOAD, KIND_CLASSES, OTHER, UPLOAD
from nearcast.metrics.windows import Windows
from nearcast.pipeline.metrics.columns import looked_up, ratio
from nearcast.pipeline.metrics.windows import all_windows, window_of, window_seconds


def carried(
    traffic: DataFrame,
    *,
    by: Sequence[str] = (),
    classes: Mapping[str, str] = KIND_CLASSES,
    broker: str = BROKER,
) -> DataFrame:
    """``interface, direction, class, messages, bytes, share`` of all clients together in the whole run, from the table ``traffic``.

    ``by``: further columns of the table, of whose values each has its own rows and shares.
    """
    rows = traffic.where(F.col("host") != broker).select(
        *by,
        "interface",
        F.when(F.col("direction") == "sent", UPLOAD).otherwise(DOWNLOAD).alias("direction"),
        looked_up(classes, F.col("kind"), OTHER).alias("class"),
        F.col("messages").alias("copies"),
        "bytes",
    )
    return traffic_totals(rows, *by)


def flows(
    messages: DataFrame,
    clients: DataFrame,
    *,
    classes: Mapping[str, str] = KIND_CLASSES,
    broker: str = BROKER,
) -> DataFrame:
    """``time, client, interface, direction, class, bytes, copies``: the table ``messages``, seen from one of the ends.

    ``clients`` has a column ``client``; messages of others are left out, as are those between brokers.  A client that is
    null: whoever heard a broadcast, together.  ``bytes`` are those of all copies.
    """
    who = clients.select("client").distinct().where(F.col("client") != broker)
    kind_class = looked_up(classes, F.col("kind"), OTHER).alias("class")
    refused = (F.col("time") == F.col("ended")) & (F.col("received") == 0) & (F.col("outcome") != "sent")
    sent = messages.where(~refused).select(
        "time",
        F.col("sender").alias("client"),
        "interface",
        F.lit(UPLOAD).alias("direction"),
        kind_class,
        F.col("bytes"),
        F.lit(1).cast("long").alias("copies"),
    )
    arrived = messages.where(F.col("received") > 0).select(
        F.col("ended").alias("time"),
        F.col("receiver").alias("client"),
        "interface",
        F.lit(DOWNLOAD).alias("direction"),
        kind_class,
        (F.col("bytes") * F.col("received")).alias("bytes"),
        F.col("received").alias("copies"),
    )
    heard = arrived.where(F.col("client").isNull())
    return sent.unionByName(arrived).join(who, "client", "left_semi").unionByName(heard)


def traffic_totals(flows: DataFrame, *by: str) -> DataFrame:
    """As ``carried``, of flows."""
    summed = flows.groupBy(*by, "interface", "direction", "class").agg(
        F.sum("copies").alias("messages"), F.sum("bytes").alias("bytes")
    )
    together = F.sum("bytes").over(Window.partitionBy(*by, "interface", "direction"))
    return summed.withColumn("share", ratio(F.col("bytes"), together))


def total_rates(flows: DataFrame, windows: Windows) -> DataFrame:
    """``window, start, kilobits_per_second`` of all these flows together in every window, broadcasts included."""
    summed = flows.groupBy(window_of(windows, F.col("time")).alias("window")).agg(F.sum("bytes").alias("bytes"))
    every = all_windows(flows.sparkSession, windows).join(summed, "window", "left")
    return every.select("window", "start", _rate(windows).alias("kilobits_per_second"))


def rates(flows: DataFrame, clients: DataFrame, windows: Windows) -> DataFrame:
    """``window, client, kilobits_per_second`` of every client in every window, 0 for who was silent."""
    every_window = F.explode(F.sequence(F.lit(0).cast("long"), F.lit(windows.count - 1).cast("long"))).alias("window")
    every = clients.select("client").distinct().select("client", every_window)
    summed = flows.groupBy(window_of(windows, F.col("time")).alias("window"), "client").agg(
        F.sum("bytes").alias("bytes")
    )
    return every.join(summed, ["window", "client"], "left").select(
        "window", "client", _rate(windows).alias("kilobits_per_second")
    )


def _rate(windows: Windows) -> Column:
    return F.coalesce(F.col("bytes"), F.lit(0)) * 8.0 / 1000.0 / window_seconds(windows, F.col("window"))
