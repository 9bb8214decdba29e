"""How a match is cut into tasks, chosen from what the frames are like."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from nearcast.errors import HistoryNeeded
from nearcast.pipeline.matching.blocks import Blocks, Cells, counts_per_cell, cut_into_blocks
from nearcast.pipeline.matching.changes import Changes, check_columns, optional
from nearcast.pipeline.matching.reach import Reach, reach_of
from nearcast.pipeline.matching.settings import MatchSettings, Strategy
from nearcast.pipeline.matching.slices import Slices

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What a row costs, in microseconds or so: fitted to the times of tasks with few and with many receivers
EVENT_COST: Final = 1.6
RECEIVER_COST: Final = 0.6
REPORT_COST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the planner looks at: one pass over each frame."""

    events: int
    first: int
    last: int
    """Instants of the first and the last event."""
    placeless: int
    """Events without a place: they may concern everybody."""
    chosen: int
    """Events whose sender chooses by reach or addressing."""
    clients: int
    """Clients that subscribe, about."""
    reports: int
    """Up to the last event."""
    moves: int
    """Reports between the first and the last event."""
    others: int
    """All other changes between them."""
    state: int
    """Rows that say what is known at one instant, about."""
    box: tuple[float, float, float, float] | None
    """South, west, north, east of all places of events."""


@dataclass(frozen=True, slots=True)
class MatchPlan:
    strategy: Strategy
    statistics: Statistics
    slices: Slices
    parts: int
    """Into so many blocks of space, or parts with the whole state each, the events of one slice are dealt."""
    reason: str
    blocks: Blocks | None = None
    reach: Reach | None = None
    carriers: int = 1
    """So many tasks find out where everybody is at the beginning of each slice."""
    onwards: bool = False
    """Whether all later slices get every change that is no report, because these are few; else the last ones are found first."""

    @property
    def groups(self) -> int:
        return self.slices.count * self.parts

    def explain(self) -> str:
        """The plan in words."""
        return "\n".join(
            (
                self._matched(),
                f"strategy: {self.strategy} ({self.reason})",
                f"groups: {self.groups} = {self.slices.count} slices of {self.slices.length / 1e6:,.1f} s x {self._space()}",
            )
        )

    def _matched(self) -> str:
        known = self.statistics
        return (
            f"match {known.events:,} events over {(known.last - known.first) / 1e6:,.1f} s, {known.moves:,} reports and "
            f"{known.others:,} other changes among them; {known.clients:,} clients, {known.state:,} rows of state"
        )

    def _space(self) -> str:
        if self.blocks is None or self.reach is None:
            return f"{self.parts} parts of the events"
        cells = self.blocks.cells
        hot = sum(1 for parts in self.blocks.parts if parts > 1)
        return (
            f"{self.parts} blocks of {cells.rows} x {cells.columns} cells, {hot} of them so hot that they are split; "
            f"areas of interest up to {self.reach.metres:,.0f} m around clients, {self.reach.wide:,} wider or fixed"
        )


def plan_match(events: DataFrame, changes: Changes, settings: MatchSettings | None = None) -> MatchPlan:
    """Look at the frames, and choose."""
    settings = settings or MatchSettings()
    known = statistics_of(events, changes)
    still = known.moves == 0 and known.others == 0
    strategy, reason = _strategy(known, settings, still=still)
    if strategy is Strategy.BROADCAST:
        if not still:
            raise HistoryNeeded("the clients change while events are published; choose another strategy than broadcast")
        return MatchPlan(strategy, known, Slices(known.first, known.last, 1), settings.parallelism, reason)
    slices = Slices(known.first, known.last, settings.slices or _slices(known, settings))
    if strategy is Strategy.SLICES:
        parts = 1 if slices.count >= settings.parallelism else math.ceil(settings.parallelism / slices.count)
        carriers = math.ceil(slices.count * known.clients / settings.group_rows)
        few = slices.count * (known.state - min(known.reports, known.clients)) <= settings.group_rows
        return MatchPlan(strategy, known, slices, parts, reason, carriers=max(1, carriers), onwards=few)
    blocks, reach = plan_blocks(events, changes, known, settings)
    nowhere = 1 if known.placeless else 0
    return MatchPlan(strategy, known, slices, blocks.count + nowhere, reason, blocks, reach)


def _strategy(known: Statistics, settings: MatchSettings, *, still: bool) -> tuple[Strategy, str]:
    if settings.strategy is not None:
        return settings.strategy, "asked for"
    if known.state > settings.broadcast_rows and known.box is not None:
        return Strategy.BLOCKS, "all that is known is more than a worker should hold"
    if still:
        return Strategy.BROADCAST, "nothing changes among the events, and every worker can hold all that is known"
    return Strategy.SLICES, "clients change among the events, and every worker can hold all that is known"


def plan_blocks(
    events: DataFrame, changes: Changes, known: Statistics, settings: MatchSettings
) -> tuple[Blocks, Reach]:
    """Blocks of equal work, from how events and reports lie."""
    cells = Cells.over(*(known.box or (0.0, 0.0, 0.0, 0.0)), settings.cells)
    reach = reach_of(changes.subscriptions, cells)
    happened, stood = counts_per_cell(events, changes.reports, cells)
    clients = stood / max(1, stood.sum()) * known.clients
    # Half of a cell and a bit: few circles are larger than that, else they would be wide.
    around = min(1.0, math.pi * reach.metres**2 / cells.square_metres)
    costs = happened * (EVENT_COST + RECEIVER_COST * clients * around)
    count = settings.blocks or max(2 * settings.parallelism, math.ceil(known.state / settings.group_rows))
    return cut_into_blocks(cells, costs, stood * REPORT_COST, count), reach


def _slices(known: Statistics, settings: MatchSettings) -> int:
    """So many that a group fits into memory and every core has several; more would only copy the state more often."""
    if known.moves + known.others == 0:
        return 1
    needed = math.ceil((known.moves + known.events) / settings.group_rows)
    worthwhile = max(1, (known.moves + known.others) // max(1, known.state))
    return max(needed, min(2 * settings.parallelism, worthwhile), 1)


def statistics_of(events: DataFrame, changes: Changes) -> Statistics:
    """One small job over all frames."""
    from pyspark.sql import functions as F

    check_columns("events", events)
    happened = events.select(F.unix_micros("time").alias("time"), "lat", "lon", *_choices(events))
    frames = [happened, changes.reports, *changes.others()]
    counted = [_counted(frame, number) for number, frame in enumerate(frames)]
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), counted).collect()
    seen, reports, *others = sorted(rows, key=lambda row: row.number)
    if seen.timed:
        raise HistoryNeeded(
            f"{seen.timed} events speak of other times than the present (column `timing`); "
            "leave them to pipeline.history, and match the others here"
        )
    first, last = seen.first or 0, seen.last or 0
    clients = max((row.clients for row in others), default=0)
    return Statistics(
        events=seen.rows,
        first=first,
        last=last,
        placeless=seen.placeless,
        chosen=seen.chosen,
        clients=clients,
        reports=reports.rows,
        moves=_among(reports, first, last),
        others=sum(_among(row, first, last) for row in others),
        state=min(reports.rows, clients) + sum(row.rows for row in others),
        box=None if seen.south is None else (seen.south, seen.west, seen.north, seen.east),
    )


def _choices(events: DataFrame) -> list[Column]:
    """Of each event whether its sender chooses the receivers, and whether by another time."""
    rare = (("reach", "double"), ("reach_area", "string"), ("addressing", "string"))
    chosen = reduce(operator.or_, (optional(events, name, kind).isNotNull() for name, kind in rare))
    return [chosen.alias("chosen"), optional(events, "timing", "string").isNotNull().alias("timed")]


def _counted(frame: DataFrame, number: int) -> DataFrame:
    from pyspark.sql import functions as F

    found = [
        F.lit(number).alias("number"),
        F.count("*").alias("rows"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    ]
    if "chosen" in frame.columns:
        found.append(F.count_if(F.col("lat").isNull() | F.col("lon").isNull()).alias("placeless"))
        found += [F.min("lat").alias("south"), F.min("lon").alias("west")]
        found += [F.max("lat").alias("north"), F.max("lon").alias("east")]
        found += [F.count_if(name).alias(name) for name in ("chosen", "timed")]
    if "name" in frame.columns:
        found.append(F.approx_count_distinct("client", 0.02).alias("clients"))
    return frame.agg(*found)


def _among(row: Any, first: int, last: int) -> int:
    """About how many of the rows lie between the first and the last event; none only if there is none."""
    if row.last is None or row.last <= first:
        return 0
    length = max(1, row.last - row.first)
    share: float = (min(last, row.last) - max(first, row.first)) / length
    return max(1, round(int(row.rows) * share))
