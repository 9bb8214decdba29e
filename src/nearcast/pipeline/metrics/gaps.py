"""Gaps of recall after an instant, such as a transition, in bins much finer than the usual windows."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nearcast.errors import InvalidTime
from nearcast.metrics.gaps import BIN
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.pipeline.metrics.columns import micros, numbered, ratio


def aligned_recall(
    per_event: DataFrame,
    at: Instant,
    *,
    before: int = 2 * MICROSECONDS,
    after: int = 2 * MICROSECONDS,
    length: int = BIN,
) -> DataFrame:
    """``offset, due, correct, recall`` of every bin of the time of publication, relative to the instant.

    Runs with several seeds are added before they are judged: put their ``per_event`` below each other.
    """
    if length <= 0 or before < 0 or after < 0 or before % length or after % length:
        raise InvalidTime(
            f"{before} and {after} microseconds before and after must be whole numbers of bins of {length} microseconds"
        )
    first = before // length
    place = F.floor((micros("time") - at) / F.lit(length)).cast("long") + first
    summed = per_event.groupBy(place.alias("bin")).agg(F.sum("due").alias("due"), F.sum("correct").alias("correct"))
    bins = numbered(per_event.sparkSession, (before + after) // length, "bin").join(summed, "bin", "left")
    due, correct = (F.coalesce(F.col(name), F.lit(0)) for name in ("due", "correct"))
    return bins.select(
        ((F.col("bin") - first) * length).alias("offset"),
        due.alias("due"),
        correct.alias("correct"),
        ratio(correct, due).alias("recall"),
    )


def recall_gap(aligned: DataFrame, *, below: float, length: int = BIN, baseline: float | None = None) -> DataFrame:
    """One row ``threshold, duration, first, last, missed``: bins from the instant on with a recall of less than the threshold.

    Unless given, the baseline is the recall before the instant; if nothing was due there, the job fails and says so.
    """
    # A few hundred bins: one task may hold them all.
    everything = Window.partitionBy(F.lit(0))
    early = F.col("offset") < 0
    known = ratio(
        F.sum(F.when(early, F.col("correct"))).over(everything), F.sum(F.when(early, F.col("due"))).over(everything)
    )
    judged = (
        F.coalesce(known, F.raise_error(F.lit(_NOTHING_BEFORE)).cast("double")) if baseline is None else F.lit(baseline)
    )
    bins = aligned.withColumn("threshold", judged - below)
    low = ~early & (F.col("due") > 0) & (F.col("recall") < F.col("threshold"))
    return bins.agg(
        F.first("threshold").alias("threshold"),
        (F.count_if(low) * length).alias("duration"),
        F.min(F.when(low, F.col("offset"))).alias("first"),
        (F.max(F.when(low, F.col("offset"))) + length).alias("last"),
        F.coalesce(F.sum(F.when(low, F.col("due") - F.col("correct"))), F.lit(0)).alias("missed"),
    )


_NOTHING_BEFORE = "no event was due to anybody before the instant; give a baseline, or a longer time before it"
