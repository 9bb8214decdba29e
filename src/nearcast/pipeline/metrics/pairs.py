"""Every event with every client that it concerns, as ``nearcast.metrics.pairs`` defines it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nearcast.metrics.pairs import DELIVERED
from nearcast.model.time import EVER, TimeFrame
from nearcast.pipeline.metrics.columns import within

_EVENT: Final = ("event", "time", "publisher", "truth_known")


def chosen(events: DataFrame, *, frame: TimeFrame = EVER, workload: str | None = None) -> DataFrame:
    """The events that were published within the frame and made by the workload; by any unless said."""
    wanted = within(frame, F.col("time"))
    return events.where(wanted if workload is None else wanted & (F.col("workload") == workload))


def pairs(
    events: DataFrame, notifications: DataFrame, *, frame: TimeFrame = EVER, workload: str | None = None
) -> DataFrame:
    """A row for each pair: ``event, client, time, own, due, notified, handed, delay, counted, correct``.

    ``time`` is when the event was published, ``delay`` microseconds to the first copy that reached the client, or null.
    Ids of events are unique within a recording: measure one recording at a time.
    """
    published = chosen(events, frame=frame, workload=workload).withColumn("truth_known", F.col("receivers").isNotNull())
    due = published.select(
        *_EVENT,
        F.explode("receivers").alias("client"),
        F.lit(True).alias("due"),
        F.lit(0).alias("handed"),
        F.lit(None).cast("long").alias("delay"),
    )
    reached = notifications.select("event", "client", "outcome", "delay").join(published.select(*_EVENT), "event")
    notified = reached.select(
        *_EVENT,
        "client",
        F.lit(False).alias("due"),
        (F.col("outcome") == DELIVERED).cast("int").alias("handed"),
        F.col("delay").cast("long"),
    )
    merged = (
        due.unionByName(notified)
        .groupBy("event", "client")
        .agg(
            F.first("time").alias("time"),
            F.first("publisher").alias("publisher"),
            F.first("truth_known").alias("truth_known"),
            F.bool_or("due").alias("due"),
            (~F.bool_and("due")).alias("notified"),
            F.sum("handed").alias("handed"),
            F.min("delay").alias("delay"),
        )
    )
    own = F.coalesce(F.col("client") == F.col("publisher"), F.lit(False))
    return (
        merged.withColumns({"own": own, "due": F.col("due") & ~own})
        .withColumns({"counted": ~F.col("own") & F.col("truth_known"), "correct": F.col("due") & F.col("notified")})
        .select("event", "client", "time", "own", "due", "notified", "handed", "delay", "counted", "correct")
    )


def strays(events: DataFrame, notifications: DataFrame) -> DataFrame:
    """The notifications of events that have no row: counted nowhere else."""
    return notifications.join(events.select("event"), "event", "left_anti")
