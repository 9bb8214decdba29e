"""Percentiles, box plots and grand means, as aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nearcast.metrics.distribution import BANDS, BOX


def percentiles(value: Column, percents: Sequence[float], names: Sequence[str]) -> list[Column]:
    """Interpolated between the two nearest values; null does not count, and gives null where nothing else is."""
    return [F.percentile(value, percent / 100.0).alias(name) for percent, name in zip(percents, names, strict=True)]


def band_columns(value: Column) -> list[Column]:
    """``mean`` and the five percentiles of plots over time."""
    return [F.mean(value).alias("mean"), *percentiles(value, BANDS, [f"p{percent:g}" for percent in BANDS])]


def box_plot(frame: DataFrame, value: str, *by: str) -> DataFrame:
    """``count, mean, low, lower_quartile, median, upper_quartile, high`` of each group; groups without a value have no row."""
    shown = F.nanvl(F.col(value), F.lit(None).cast("double"))
    names = ("low", "lower_quartile", "median", "upper_quartile", "high")
    made = frame.groupBy(*by).agg(
        F.count(shown).alias("count"), F.mean(shown).alias("mean"), *percentiles(shown, BOX, names)
    )
    return made.where(F.col("count") > 0)


def grand_mean(frame: DataFrame, value: str, *by: str) -> DataFrame:
    """``seeds, mean, deviation`` of each group: a row of the frame is a run, its value the mean of that run."""
    return frame.groupBy(*by).agg(
        F.count(value).alias("seeds"), F.mean(value).alias("mean"), F.stddev_samp(value).alias("deviation")
    )
