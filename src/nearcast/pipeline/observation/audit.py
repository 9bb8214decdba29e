"""Recall and precision by windows of time: who should have been notified (``events.receivers``) and who was (``notifications``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.pipeline.metrics.delivery import COUNTS, per_event, with_ratios
from nearcast.pipeline.metrics.pairs import pairs
from nearcast.pipeline.observation.windows import bounds_first, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def audit(events: DataFrame, notifications: DataFrame, seconds: float) -> DataFrame:
    """Of all events with known truth that were published in a window, as ratios of sums.

    ``since, until, events, due, notified, correct, false_negatives, false_positives, recall, precision``.
    """
    known = events.where(F.col("receivers").isNotNull())
    counted = per_event(known, pairs(known, notifications)).groupBy(windowed(seconds))
    return with_ratios(
        bounds_first(counted.agg(F.count("*").alias("events"), *(F.sum(name).alias(name) for name in COUNTS)))
    )
