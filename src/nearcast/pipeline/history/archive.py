"""The archive as these jobs see it: its tables, only the part of them that matters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.time import Instant, TimeFrame, to_datetime
from nearcast.pipeline.matching.changes import optional

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DATE: Final = "date"
CELL: Final = "cell"
"""Columns by which tables are partitioned, where they are."""

BUCKETS: Final = 64
"""Clients are dealt out into so many groups: each is one call of Python, and all that is known of its clients is in memory together."""

REPORT: Final = "report"
CONTEXT: Final = "context"
CLIENT: Final = "client"
SUBSCRIPTION: Final = "subscription"
NO_LOCAL: Final = "no_local"


@dataclass(frozen=True, slots=True)
class Archive:
    """The record tables, with the columns ``date`` and ``cell`` where they are partitioned by them."""

    events: DataFrame
    reports: DataFrame
    contexts: DataFrame
    clients: DataFrame
    subscriptions: DataFrame
    unpublished: DataFrame

    @classmethod
    def of(cls, table: Callable[[str], DataFrame]) -> Archive:
        """The tables as that function gives them by name."""
        names = ("events", "reports", "contexts", "clients", "subscriptions", "unpublished")
        return cls(*(table(name) for name in names))


def part(frame: DataFrame, time: TimeFrame, cells: Collection[str] | None = None) -> DataFrame:
    """The rows of that time and these cells; partitions that have none are not even opened."""
    wanted = frame.where(_within(F.col("time"), time))
    if DATE in frame.columns:
        wanted = wanted.where(_on_days(F.col(DATE), time))
    if CELL in frame.columns and cells is not None:
        wanted = wanted.where(F.col(CELL).isin(*sorted(cells)))
    return wanted


def _within(time: Column, frame: TimeFrame) -> Column:
    bounds = []
    if frame.since is not None:
        bounds.append(time >= F.lit(to_datetime(frame.since)))
    if frame.until is not None:
        bounds.append(time < F.lit(to_datetime(frame.until)))
    return _all(bounds)


def _on_days(date: Column, frame: TimeFrame) -> Column:
    bounds = []
    if frame.since is not None:
        bounds.append(date >= F.lit(to_datetime(frame.since).date()))
    if frame.until is not None:
        bounds.append(date <= F.lit(to_datetime(frame.until - 1).date()))
    return _all(bounds)


def _all(conditions: list[Column]) -> Column:
    together = F.lit(True)
    for condition in conditions:
        together = together & condition
    return together


def presence(archive: Archive, until: Instant) -> DataFrame:
    """All that was told of clients before that instant, in one frame: ``client, time, offset, kind`` and what the kinds have to say."""
    time = TimeFrame(until=until)
    told = [
        _told(part(archive.reports, time), REPORT, "lat", "lon"),
        _told(part(archive.contexts, time), CONTEXT, "name", "attributes"),
        _told(part(archive.clients, time), CLIENT, "state"),
    ]
    return _together(told)


def presence_and_interest(archive: Archive, until: Instant) -> DataFrame:
    """The same with the subscriptions."""
    columns = ["subscription", "action", "topic_filter", "radius", "area", "condition", "frame_since", "frame_until"]
    frame = part(archive.subscriptions, TimeFrame(until=until))
    # Older tables do not have it.
    subscribed = _told(
        frame.withColumn(NO_LOCAL, optional(frame, NO_LOCAL, "bigint")), SUBSCRIPTION, *columns, NO_LOCAL
    )
    return _together([presence(archive, until), subscribed])


def _told(frame: DataFrame, kind: str, *columns: str) -> DataFrame:
    return frame.select("client", "time", "offset", F.lit(kind).alias("kind"), *columns)


def _together(frames: list[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    return first


def bucket(client: str = "client") -> Column:
    """The group that a client is dealt to."""
    return F.pmod(F.hash(client), F.lit(BUCKETS)).alias("bucket")


def taken_back(events: DataFrame, unpublished: DataFrame) -> DataFrame:
    """The events with ``gone``: when they were unpublished, or null.

    By their offset, since two publishers may give the same id; by their id only where no offset was recorded.
    """
    earliest = F.min("time")
    by_offset = unpublished.where(F.col("published_offset").isNotNull()).groupBy("published_offset")
    by_id = unpublished.where(F.col("published_offset").isNull()).groupBy("event")
    at_offset = by_offset.agg(earliest.alias("gone_by_offset")).withColumnRenamed("published_offset", "offset")
    joined = events.join(F.broadcast(at_offset), "offset", "left")
    joined = joined.join(F.broadcast(by_id.agg(earliest.alias("gone_by_id"))), "event", "left")
    gone = F.least("gone_by_offset", "gone_by_id")
    return joined.withColumn("gone", gone).drop("gone_by_offset", "gone_by_id")
