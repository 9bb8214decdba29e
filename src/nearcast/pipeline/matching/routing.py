"""Which groups have to know of a change.

A client whose areas all lie around it is known to the blocks that they touch: a report goes to the blocks around the new
position and to those around the one before, where the client has to leave.  Other changes of the client go to all blocks
that hear of it in their slice.  A client with a wide area, a fixed one or none at all is known to every block; and the block
of events without a place knows everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.pipeline.matching.changes import COLUMNS, REPORT_COLUMNS, Changes, in_common_form, union
from nearcast.pipeline.matching.reach import with_metres
from nearcast.pipeline.matching.slices import carried, cut, within

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from nearcast.pipeline.matching.planner import MatchPlan


def known_by_slice(changes: Changes, plan: MatchPlan) -> DataFrame:
    """What is known at the beginning of each slice and what changes in it, with its ``slice``."""
    reports = cut(changes.reports, plan.slices)
    frames = [in_common_form(within(reports)), in_common_form(carried(reports, plan.slices, named=False))]
    frames += _others(changes, plan)
    return union([frame.select(*COLUMNS, "slice") for frame in frames])


def to_every_part(known: DataFrame, plan: MatchPlan) -> DataFrame:
    """All groups of a slice know everything."""
    from pyspark.sql import functions as F

    part = F.explode(F.sequence(F.lit(0), F.lit(plan.parts - 1))) if plan.parts > 1 else F.lit(0)
    return known.withColumn("part", part)


def to_blocks(changes: Changes, plan: MatchPlan) -> DataFrame:
    """Every change, once for each block that has to know it, as ``part``."""
    from pyspark.sql import functions as F

    reports = cut(changes.reports, plan.slices)
    others = union([frame.select(*COLUMNS, "slice") for frame in _others(changes, plan)])
    everybody = []
    assert plan.blocks is not None
    assert plan.reach is not None
    if plan.reach.wide:
        wide = _wide_clients(changes, plan.reach.limit)
        seen = reports.join(wide, "client", "leftsemi")
        everybody = [
            to_every_part(frame.select(*COLUMNS, "slice"), plan)
            for frame in (
                in_common_form(within(seen)),
                in_common_form(carried(seen, plan.slices, named=False)),
                others.join(wide, "client", "leftsemi"),
            )
        ]
        reports, others = reports.join(wide, "client", "leftanti"), others.join(wide, "client", "leftanti")
    moving = in_common_form(_moving(reports, plan))
    visits = moving.select("client", "slice", "part").distinct()
    if plan.statistics.placeless:  # that block knows everybody, wherever they are
        nowhere = F.col("part") == plan.blocks.count
        visits = visits.where(~nowhere)
        everybody.append(others.withColumn("part", F.lit(plan.blocks.count)))
    following = others.join(visits, ["client", "slice"])
    return union([frame.select(*COLUMNS, "slice", "part") for frame in (moving, following, *everybody)])


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
