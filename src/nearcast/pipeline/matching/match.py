"""``match``: the receivers of events, by the definition of delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from nearcast.pipeline.matching.changes import Changes, changes_of, event_rows, is_rich, type_of, union, with_needed
from nearcast.pipeline.matching.packing import EVENTS, PACKED, Packing
from nearcast.pipeline.matching.planner import MatchPlan, plan_match
from nearcast.pipeline.matching.routing import known_now, to_blocks, to_slices
from nearcast.pipeline.matching.settings import MatchSettings, Strategy
from nearcast.pipeline.matching.worker import BroadcastMatching, GroupMatching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    everything.  Rows without a time, or without their event, topic or client, are left out.  Looking at the frames (see
    ``plan_match``) takes a pass over each.

    Raises:
        InvalidRecord: a frame lacks a column.
        HistoryNeeded: an event has a temporal predicate (``timing``): see ``pipeline.history``.

    While it runs, Spark reports the same for a temporal predicate in an addressing, and for a condition that asks whether
    the distance decreases.

    """
    chosen = settings or MatchSettings()
    events = with_needed(events, subscriptions)
    changes = changes_of(reports, subscriptions, contexts, clients)
    plan = plan_match(events, changes, chosen)
    if plan.strategy is Strategy.BROADCAST:
        return _broadcast(events, changes, plan)
    return _grouped(events, changes, plan)


def _broadcast(events: DataFrame, changes: Changes, plan: MatchPlan) -> DataFrame:
    """Every worker loads all that is known, once, and events pass by it where they are."""
    matching = BroadcastMatching(known_now(changes, plan), uuid4().hex, rich=is_rich(events))
    return event_rows(events).mapInArrow(matching, _result_schema(events, changes))


def _grouped(events: DataFrame, changes: Changes, plan: MatchPlan) -> DataFrame:
    """Changes and events meet in their groups."""
    from pyspark.sql import functions as F

    happened = event_rows(events)
    if plan.blocks is not None:
        cell = plan.blocks.cells.of_place(F.col("lat"), F.col("lon"))
        block = F.coalesce(plan.blocks.of_event(cell, F.col("event")), F.lit(plan.blocks.count))
        happened = happened.withColumn("part", block)
    elif plan.parts > 1:
        happened = happened.withColumn("part", F.pmod(F.hash("event"), F.lit(plan.parts)))
    known = to_slices(changes, plan) if plan.blocks is None else to_blocks(changes, plan)
    packed = happened.mapInArrow(Packing(plan.slices, plan.parts, EVENTS), PACKED)
    # One partition is one group: its number need not go to the worker.
    grouped = union([*known, packed]).repartitionById(plan.groups, F.col("group")).drop("group")
    return grouped.mapInArrow(GroupMatching(rich=is_rich(events)), _result_schema(events, changes))


def _result_schema(events: DataFrame, changes: Changes) -> str:
    event, client = type_of(events, "event"), type_of(changes.reports, "client")
    return f"event {event}, time timestamp, receivers array<{client}>"
