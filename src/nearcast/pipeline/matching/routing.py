"""Which groups have to know of a change.

Slices of time: each gets what changes in it, and what was known before; a carrier says that of reports.

Blocks of space: a client whose areas all lie around it is known to the blocks that they touch: a report goes to the blocks
around the new position and to those around the one before, where the client has to leave.  Other changes of the client go to
all blocks that hear of it in their slice.  A client with a wide area, a fixed one or none at all is known to every block; and
the block of events without a place knows everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.pipeline.matching.changes import OTHER_COLUMNS, REPORT_COLUMNS, Changes, union
from nearcast.pipeline.matching.packing import (
    OTHERS,
    PACKED,
    REPORTS,
    Carrying,
    Packing,
    ReportPacking,
    in_time,
    states,
    table_of,
)
from nearcast.pipeline.matching.reach import with_metres
from nearcast.pipeline.matching.slices import carried, cut, within
from nearcast.pipeline.matching.worker import Known

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from nearcast.pipeline.matching.planner import MatchPlan

_COLUMNS = {REPORTS: REPORT_COLUMNS, OTHERS: OTHER_COLUMNS}


def known_now(changes: Changes, plan: MatchPlan) -> Known:
    """All that is known where nothing changes among the events, in the driver."""
    reports = _until(changes.reports, plan).select(*_columns(changes, REPORTS))
    last = reports.mapInArrow(ReportPacking(plan.slices, parts=1), PACKED).toArrow().column("rows")
    others = _until(union(changes.others()), plan).select(*_columns(changes, OTHERS))
    said = others.mapInArrow(Packing(plan.slices, parts=1, content=OTHERS), PACKED).toArrow().column("rows")
    known = [rows for _, rows in states(in_time(table_of(last)), slices=1)] if len(last) else []
    return Known(known[0] if known else None, table_of(said) if len(said) else None)


def to_slices(changes: Changes, plan: MatchPlan) -> list[DataFrame]:
    """Every change, packed for the groups of its slice, and what is known when a slice begins."""
    from pyspark.sql import functions as F

    slices, parts, groups, carriers = plan.slices, plan.parts, plan.groups, plan.carriers
    reports = _until(changes.reports, plan).select(*_columns(changes, REPORTS))
    if carriers > 1:
        reports = reports.withColumn("carrier", F.pmod(F.hash("client"), F.lit(carriers)))
    packed = reports.mapInArrow(ReportPacking(slices, parts), PACKED)
    routed = packed.repartitionById(groups + carriers, F.col("group"))
    # The partition is asked for because of the optimiser: it would else filter before the exchange, and the work up to it
    # would be done twice.
    group = F.when(F.spark_partition_id() >= 0, F.col("group"))
    known = routed.where(group >= groups).mapInArrow(Carrying(slices, parts), PACKED)
    return [routed.where(group < groups), known, _others_to_slices(changes, plan)]


def _others_to_slices(changes: Changes, plan: MatchPlan) -> DataFrame:
    if not plan.onwards:
        others = union([frame.select(*_columns(changes, OTHERS), "slice") for frame in _others(changes, plan)])
        return _packed(others, OTHERS, changes, plan)
    packing = Packing(plan.slices, plan.parts, OTHERS, onwards=True)
    return _until(union(changes.others()), plan).select(*_columns(changes, OTHERS)).mapInArrow(packing, PACKED)


def to_blocks(changes: Changes, plan: MatchPlan) -> list[DataFrame]:
    """Every change, packed once for each block that has to know it."""
    from pyspark.sql import functions as F

    reports = cut(changes.reports, plan.slices)
    others = union([frame.select(*_columns(changes, OTHERS), "slice") for frame in _others(changes, plan)])
    found = []
    assert plan.blocks is not None
    assert plan.reach is not None
    if plan.reach.wide:
        wide = _wide_clients(changes, plan.reach.limit)
        seen = reports.join(wide, "client", "leftsemi")
        found += [(within(seen), REPORTS), (carried(seen, plan.slices, named=False), REPORTS)]
        found.append((others.join(wide, "client", "leftsemi"), OTHERS))
        reports, others = reports.join(wide, "client", "leftanti"), others.join(wide, "client", "leftanti")
    moving = _moving(reports, plan)
    visits = moving.select("client", "slice", "part").distinct()
    if plan.statistics.placeless:  # that block knows everybody, wherever they are
        nowhere = F.col("part") == plan.blocks.count
        visits = visits.where(~nowhere)
        found.append((others.withColumn("part", F.lit(plan.blocks.count)), OTHERS))
    found += [(moving, REPORTS), (others.join(visits, ["client", "slice"]), OTHERS)]
    return [_packed(frame, content, changes, plan) for frame, content in found]


def _columns(changes: Changes, content: int) -> list[str]:
    """What a worker needs of a table: every column costs, with millions of reports."""
    return [name for name in _COLUMNS[content] if changes.ordered or name != "offset"]


def _until(frame: DataFrame, plan: MatchPlan) -> DataFrame:
    """What counts for some event."""
    from pyspark.sql import functions as F

    return frame.where(F.col("time") <= plan.slices.last)


def _packed(frame: DataFrame, content: int, changes: Changes, plan: MatchPlan) -> DataFrame:
    """Rows with their slice; those without a part are for all parts of it."""
    where = [name for name in ("slice", "part") if name in frame.columns]
    packing = Packing(plan.slices, plan.parts, content)
    return frame.select(*_columns(changes, content), *where).mapInArrow(packing, PACKED)


def _others(changes: Changes, plan: MatchPlan) -> list[DataFrame]:
    cuts = [cut(frame, plan.slices) for frame in changes.others()]
    return [each for frame in cuts for each in (within(frame), carried(frame, plan.slices, named=True))]


def _moving(reports: DataFrame, plan: MatchPlan) -> DataFrame:
    """Reports with the blocks around the position, and around the one before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    start = carried(reports, plan.slices, named=False).select(*REPORT_COLUMNS, "slice")
    start = start.withColumn("part", _blocks(F.col("lat"), F.col("lon"), plan))
    frames = [start]
    if plan.statistics.moves:
        in_turn = Window.partitionBy("client").orderBy("time", "offset")
        before = reports.withColumns(
            {name: F.lag(at).over(in_turn) for name, at in (("from_lat", "lat"), ("from_lon", "lon"))}
        )
        here = _blocks(F.col("lat"), F.col("lon"), plan)
        there = _blocks(F.col("from_lat"), F.col("from_lon"), plan)
        moved = within(before).withColumn("part", F.array_distinct(F.concat(here, there)))
        frames.append(moved.select(*REPORT_COLUMNS, "slice", "part"))
    return union(frames).withColumn("part", F.explode("part"))


def _blocks(lat: Column, lon: Column, plan: MatchPlan) -> Column:
    """The blocks that areas around a position touch; none without a position, but that of events without a place always."""
    from pyspark.sql import functions as F

    assert plan.blocks is not None
    assert plan.reach is not None
    touched = plan.blocks.of_cells(plan.blocks.cells.touched(lat, lon, plan.reach.metres))
    found = F.coalesce(touched, F.array().cast("array<int>"))
    return F.concat(found, F.array(F.lit(plan.blocks.count))) if plan.statistics.placeless else found


def _wide_clients(changes: Changes, limit: float) -> DataFrame:
    from pyspark.sql import functions as F

    narrow = F.coalesce(F.col("metres") <= limit, F.lit(False))
    return with_metres(changes.subscriptions).where(~narrow).select("client").distinct()
