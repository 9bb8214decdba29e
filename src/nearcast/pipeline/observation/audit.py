"""Recall and precision by windows of time, and by place: who should have been notified (``events.receivers``) and who was (``notifications``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.pipeline.metrics.delivery import COUNTS, per_event, with_ratios
from nearcast.pipeline.metrics.maps import recall_by_place_of_event
from nearcast.pipeline.metrics.pairs import pairs
from nearcast.pipeline.observation.cells import middle
from nearcast.pipeline.observation.windows import bounds_first, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from nearcast.metrics.maps import Grid


def audit(events: DataFrame, notifications: DataFrame, seconds: float) -> DataFrame:
    """Of all events with known truth that were published in a window, as ratios of sums.

    ``since, until, events, due, notified, correct, false_negatives, false_positives, recall, precision``.
    """
    known = events.where(F.col("receivers").isNotNull())
    counted = per_event(known, pairs(known, notifications)).groupBy(windowed(seconds))
    return with_ratios(
        bounds_first(counted.agg(F.count("*").alias("events"), *(F.sum(name).alias(name) for name in COUNTS)))
    )


def audit_by_place(events: DataFrame, notifications: DataFrame, grid: Grid) -> DataFrame:
    """The same by the cell in which an event happened, over all of the time.

    ``column, row, count, due, notified, correct, ..., recall, precision, lat, lon, cell``: the middle of the cell and its side in metres.
    """
    known = events.where(F.col("receivers").isNotNull())
    places = recall_by_place_of_event(per_event(known, pairs(known, notifications)), grid)
    lat, lon = middle(grid, F.col("column"), F.col("row"))
    return places.select("*", lat.alias("lat"), lon.alias("lon"), F.lit(grid.size).alias("cell"))
