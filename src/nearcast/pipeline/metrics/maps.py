"""Values by place, in square cells of a local plane (``nearcast.metrics.Grid``)."""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nearcast.metrics.maps import Grid
from nearcast.model.geometry import EARTH_RADIUS
from nearcast.pipeline.metrics.columns import micros
from nearcast.pipeline.metrics.delivery import COUNTS, with_ratios


def metres(grid: Grid, lat: Column, lon: Column) -> tuple[Column, Column]:
    """East and north of the grid's origin: as ``Plane.metres``, azimuthal equidistant."""
    lat0, lats, dlon = math.radians(grid.origin.lat), F.radians(lat), F.radians(lon - grid.origin.lon)
    east = F.cos(lats) * F.sin(dlon)
    north = math.cos(lat0) * F.sin(lats) - math.sin(lat0) * F.cos(lats) * F.cos(dlon)
    half = _squared(F.sin((lats - lat0) / 2)) + math.cos(lat0) * F.cos(lats) * _squared(F.sin(dlon / 2))
    distance = 2 * EARTH_RADIUS * F.asin(F.sqrt(F.least(F.lit(1.0), half)))
    length = F.hypot(east, north)
    scale = F.when(length > 0, distance / length).otherwise(0.0)
    return east * scale, north * scale


def cell_sums(frame: DataFrame, grid: Grid, *values: str) -> DataFrame:
    """``column, row, count`` and the sum of each value, of each cell in which something is; what has no place is left out."""
    east, north = metres(grid, F.col("lat"), F.col("lon"))
    placed = frame.where(F.col("lat").isNotNull() & F.col("lon").isNotNull())
    cells = placed.groupBy(
        F.floor(east / grid.size).alias("column"),
        F.floor(north / grid.size).alias("row"),
    )
    return cells.agg(F.count("*").alias("count"), *(F.sum(name).alias(name) for name in values))


def visits(positions: DataFrame, grid: Grid) -> DataFrame:
    """How many samples of the table ``positions`` lie in each cell."""
    return cell_sums(positions, grid)


def recall_by_place_of_event(per_event: DataFrame, grid: Grid) -> DataFrame:
    """Recall and precision of the events in each cell, as ratios of sums."""
    return with_ratios(cell_sums(per_event, grid, *COUNTS))


def recall_by_place_of_client(pairs: DataFrame, positions: DataFrame, grid: Grid) -> DataFrame:
    """Recall and precision by where the client was when the event was published (``positions``, interpolated)."""
    counted = pairs.where("counted").select("client", "time", *(F.col(name).cast("int") for name in COUNTS))
    return with_ratios(cell_sums(located(counted, positions), grid, *COUNTS))


def located(moments: DataFrame, positions: DataFrame) -> DataFrame:
    """The rows ``client, time, ...`` with ``lat, lon``: straight between two samples, at the nearest before the first and after
    the last; null for who was never seen.

    One sort per client instead of a join by ranges of time: samples and questions are put into one order.
    """
    sample = F.struct(micros("time").alias("at"), "lat", "lon")
    questions = moments.withColumns({"question": F.lit(1), "sample": F.lit(None)})
    samples = positions.select("client", "time", F.lit(0).alias("question"), sample.alias("sample"))
    order = Window.partitionBy("client").orderBy("time", "question")
    merged = questions.unionByName(samples, allowMissingColumns=True).withColumns(
        {
            "before": F.last("sample", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, 0)),
            "after": F.first("sample", ignorenulls=True).over(order.rowsBetween(0, Window.unboundedFollowing)),
        }
    )
    asked = merged.where(F.col("question") == 1).withColumns(
        {"before": F.coalesce("before", "after"), "after": F.coalesce("after", "before")}
    )
    gap = F.col("after.at") - F.col("before.at")
    share = F.when(gap > 0, (micros("time") - F.col("before.at")) / gap).otherwise(0.0)

    def between(name: str) -> Column:
        return F.col(f"before.{name}") + (F.col(f"after.{name}") - F.col(f"before.{name}")) * share

    return asked.select(*moments.columns, between("lat").alias("lat"), between("lon").alias("lon"))


def _squared(value: Column) -> Column:
    return value * value
