"""``match``: the receivers of events, by the definition of delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from nearcast.pipeline.matching.changes import COLUMNS, EVENT, Changes, changes_of, event_rows, is_rich, type_of, union
from nearcast.pipeline.matching.planner import MatchPlan, plan_match
from nearcast.pipeline.matching.routing import known_by_slice, to_blocks, to_every_part
from nearcast.pipeline.matching.settings import MatchSettings, Strategy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def match(
    events: DataFrame,
    reports: DataFrame,
    subscriptions: DataFrame,
    contexts: DataFrame | None = None,
    clients: DataFrame | None = None,
    *,
    settings: MatchSettings | None = None,
) -> DataFrame:
    """Who receives each event when it is published: one row per event, ``event``, ``time`` and ``receivers``.

    The frames are the record tables of these names, or have at least their first columns; ``event`` and ``client`` may be
    texts or whole numbers.  ``receivers`` are the clients in no particular order, each once; an event that nobody receives
    has an empty array.  Every report, subscription and context counts from its instant on, that instant included, until the
    next one; whose session is over (a context without a name is deregistered), or begins anew (`joined`), has lost
    everything.  Looking at the frames (see ``plan_match``) takes a pass over each.

    Raises:
        InvalidRecord: a frame lacks a column.
        HistoryNeeded: an event has a temporal predicate (``timing``): see ``pipeline.history``.

    While it runs, Spark reports the same for a temporal predicate in an addressing, and for a condition that asks whether
    the distance decreases.

    """
    chosen = settings or MatchSettings()
    changes = changes_of(reports, subscriptions, contexts, clients)
    plan = plan_match(events, changes, chosen)
    if plan.strategy is Strategy.BROADCAST:
        return _broadcast(events, changes, plan)
    return _grouped(events, changes, plan)


def _broadcast(events: DataFrame, changes: Changes, plan: MatchPlan) -> DataFrame:
    """Every worker loads all that is known, once, and events pass by it where they are."""
    from nearcast.pipeline.matching.worker import BroadcastMatching

    state = known_by_slice(changes, plan).select(*COLUMNS).toArrow()
    matching = BroadcastMatching(state, uuid4().hex, rich=is_rich(events))
    return event_rows(events).mapInArrow(matching, _result_schema(events, changes))


def _grouped(events: DataFrame, changes: Changes, plan: MatchPlan) -> DataFrame:
    from pyspark.sql import functions as F

    from nearcast.pipeline.matching.worker import GroupMatching

    happened = event_rows(events).withColumn("slice", plan.slices.of_events(F.col("time")))
    if plan.blocks is None:
        known = to_every_part(known_by_slice(changes, plan), plan)
        happened = happened.withColumn("part", F.pmod(F.hash("event"), F.lit(plan.parts)))
    else:
        known = to_blocks(changes, plan)
        cell = plan.blocks.cells.of_place(F.col("lat"), F.col("lon"))
        block = F.coalesce(plan.blocks.of_event(cell, F.col("event")), F.lit(plan.blocks.count))
        happened = happened.withColumn("part", block)
    group = (F.col("slice") * plan.parts + F.col("part")).alias("group")
    rows = union(
        [
            known.select(group, *_change_columns(events, changes)),
            happened.select(group, *_event_columns(events, changes)),
        ]
    )
    matching = GroupMatching(rich=is_rich(events))
    # One partition is one group: its number need not go to the worker.
    grouped = rows.repartitionById(plan.groups, F.col("group")).drop("group")
    return grouped.mapInArrow(matching, _result_schema(events, changes))


def _change_columns(events: DataFrame, changes: Changes) -> list[Column]:
    """A row of changes.  Every column costs, with millions of reports: client and event share one, if they are of one type."""
    from pyspark.sql import functions as F

    columns = [F.col("time"), F.col("kind"), F.col("client").alias("id"), F.col("lat"), F.col("lon"), F.col("detail")]
    if changes.ordered:
        columns.append(F.col("offset"))
    if not _share_a_column(events, changes):
        columns.append(F.lit(None).cast(type_of(events, "event")).alias("event"))
    return columns


def _event_columns(events: DataFrame, changes: Changes) -> list[Column]:
    """The row of an event, in the same columns."""
    from pyspark.sql import functions as F

    shared = _share_a_column(events, changes)
    number = F.col("event") if shared else F.lit(None).cast(type_of(changes.reports, "client"))
    kind = F.lit(EVENT).cast("tinyint").alias("kind")
    columns = [F.col("time"), kind, number.alias("id"), F.col("lat"), F.col("lon"), F.col("detail")]
    if changes.ordered:
        columns.append(F.lit(None).cast("bigint").alias("offset"))
    if not shared:
        columns.append(F.col("event"))
    return columns


def _share_a_column(events: DataFrame, changes: Changes) -> bool:
    return type_of(events, "event") == type_of(changes.reports, "client")


def _result_schema(events: DataFrame, changes: Changes) -> str:
    event, client = type_of(events, "event"), type_of(changes.reports, "client")
    return f"event {event}, time timestamp, receivers array<{client}>"
