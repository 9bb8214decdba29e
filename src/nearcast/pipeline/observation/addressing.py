"""The audit of addressing: for each message who should have got it, and who did not (Contextcast Def. 3.7, 3.9).

Who should have is not recorded but worked out, by the match that the broker's own events go through, from what clients said of
themselves before the message was sent.  Somebody who comes, changes or goes while a message is on its way may be missed by any
protocol (3.3.2); so only those are judged who were settled then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.pipeline.matching.match import match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SETTLING: Final = 10.0
"""Seconds before and after a message in which nothing changed for whom it judges."""


def addressed(tables: Mapping[str, DataFrame], settling: float = SETTLING) -> DataFrame:
    """Pairs of message and client: ``event, time, client, due, settled, notified``.

    ``tables`` are those of a recording.  A pair is there if the client should have got the message, or did.
    """
    events = tables["events"].where("addressing is not null and timing is null").drop("receivers")
    names = ("reports", "subscriptions", "contexts", "clients")
    matched = match(events, *(tables[name] for name in names))
    due = matched.select("event", F.explode("receivers").alias("client")).withColumn("due", F.lit(True))
    got = tables["notifications"].select("event", "client").distinct().withColumn("notified", F.lit(True))
    pairs = (
        due.join(got, ["event", "client"], "full")
        .join(events.select("event", "time"), "event")
        .fillna(False, ["due", "notified"])
    )
    changed = _changes(tables)
    near = F.abs(_seconds("time") - _seconds("changed")) <= settling
    unsettled = (
        pairs.join(changed, "client")
        .where(near)
        .select("event", "client")
        .distinct()
        .withColumn("settled", F.lit(False))
    )
    return (
        pairs.join(unsettled, ["event", "client"], "left")
        .fillna(True, ["settled"])
        .select("event", "time", "client", "due", "settled", "notified")
    )


def missed(pairs: DataFrame) -> DataFrame:
    """By message, those of ``addressed`` that are judged: ``event, time, due, missed, clients``; who was missed is in ``clients``."""
    judged = pairs.where("due and settled")
    clients = F.sort_array(F.collect_list(F.when(~F.col("notified"), F.col("client"))))
    counted = judged.groupBy("event", "time").agg(F.count("*").alias("due"), clients.alias("clients"))
    return counted.select("event", "time", "due", F.size("clients").alias("missed"), "clients")


def hops(table: DataFrame) -> DataFrame:
    """What routers did, by kind: ``what, rows, routers, subjects``; load and false positives as the routers counted them."""
    return table.groupBy("what").agg(
        F.count("*").alias("rows"),
        F.count_distinct("router").alias("routers"),
        F.count_distinct("subject").alias("subjects"),
    )


def _changes(tables: Mapping[str, DataFrame]) -> DataFrame:
    """When clients came, went, or said something else of themselves; where they are is no change, but said with each message."""
    columns = ("client", F.col("time").alias("changed"))
    return tables["clients"].select(*columns).unionByName(tables["contexts"].select(*columns)).distinct()


def _seconds(column: str) -> Column:
    return F.unix_micros(column) / 1e6
