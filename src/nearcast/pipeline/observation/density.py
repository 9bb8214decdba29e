"""How many clients are where, by cell and window of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.pipeline.observation.cells import cell, middle
from nearcast.pipeline.observation.windows import bounds_first, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from nearcast.metrics.maps import Grid

SQUARE_METRES = 1e6
"""Of a square kilometre."""


def density(reports: DataFrame, grid: Grid, seconds: float) -> DataFrame:
    """A row for each window and cell from which somebody reported.

    ``since, until, column, row, lat, lon`` (the middle of the cell), ``reports``, ``clients`` (each once) and ``per_km2``
    (clients).  Of a stream, with a watermark on ``time``, as well.
    """
    column, row = cell(grid, F.col("lat"), F.col("lon"))
    placed = reports.where(F.col("lat").isNotNull()).select("time", "client", column.alias("column"), row.alias("row"))
    counted = placed.groupBy(windowed(seconds), "column", "row").agg(
        F.count("*").alias("reports"),
        # Not `count_distinct`, which streams do not know.
        F.size(F.collect_set("client")).cast("long").alias("clients"),
    )
    lat, lon = middle(grid, F.col("column"), F.col("row"))
    per_km2 = F.col("clients") * (SQUARE_METRES / grid.size**2)
    return bounds_first(
        counted.select(
            "window",
            "column",
            "row",
            lat.alias("lat"),
            lon.alias("lon"),
            "reports",
            "clients",
            per_km2.alias("per_km2"),
        )
    )


def crowd(reports: DataFrame, seconds: float) -> DataFrame:
    """How many clients there are in all, by window: ``since, until, clients, reports``."""
    counted = (
        reports.where(F.col("lat").isNotNull())
        .groupBy(windowed(seconds))
        .agg(F.size(F.collect_set("client")).cast("long").alias("clients"), F.count("*").alias("reports"))
    )
    return bounds_first(counted)
