"""How a transition spreads: when and where each host first exchanged its mechanism."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nearcast.model.time import EVER, TimeFrame
from nearcast.pipeline.metrics.columns import within


def executions(
    transitions: DataFrame,
    *,
    plan: str | None = None,
    proxy: str | None = None,
    target: str | None = None,
    hosts: Collection[str] | None = None,
    frame: TimeFrame = EVER,
) -> DataFrame:
    """``host, time, lat, lon``: the first matching row of each host; what is not given may be anything."""
    wanted = within(frame, F.col("time"))
    for name, value in (("plan", plan), ("proxy", proxy), ("target", target)):
        if value is not None:
            wanted &= F.col(name) == value
    if hosts is not None:
        wanted &= F.col("host").isin(*hosts)
    first = F.min(F.struct("time", "lat", "lon")).alias("first")
    return transitions.where(wanted).groupBy("host").agg(first).select("host", "first.*")


def spread(executed: DataFrame, of: int | None = None) -> DataFrame:
    """One row ``hosts, of, first, median, ninety_percent, last``, of the ``of`` hosts that should; unless said, of those that did."""
    times = executed.agg(F.sort_array(F.collect_list("time")).alias("times")).withColumn("hosts", F.size("times"))
    if of is None:
        asked = F.col("hosts")
    else:
        wrong = F.lit(f"hosts executed a transition that only {of} should; give the number of all concerned")
        complaint = F.raise_error(F.concat(F.col("hosts").cast("string"), F.lit(" "), wrong)).cast("int")
        asked = F.when(F.col("hosts") > of, complaint).otherwise(F.lit(of))
    return times.withColumn("of", asked).select("hosts", "of", *_moments(F.col("times"), F.col("of")))


def spreads(transitions: DataFrame) -> DataFrame:
    """A row for each plan, proxy and target: ``plan, proxy, target, hosts, first, median, ninety_percent, last``."""
    keys = ("plan", "proxy", "target")
    first = transitions.groupBy(*keys, "host").agg(F.min("time").alias("time"))
    times = first.groupBy(*keys).agg(F.sort_array(F.collect_list("time")).alias("times"))
    counted = times.withColumn("hosts", F.size("times"))
    return counted.select(*keys, "hosts", *_moments(F.col("times"), F.col("hosts")))


def _moments(times: Column, of: Column) -> list[Column]:
    """By when so many had done it: the moment of the host that completes the share; nothing is interpolated."""

    def by(percent: int) -> Column:
        # Beyond the end there is null: so many never did.
        return F.when(of > 0, F.get(times, F.ceil(of * percent / 100).cast("int") - 1))

    return [
        F.get(times, F.lit(0)).alias("first"),
        by(50).alias("median"),
        by(90).alias("ninety_percent"),
        F.get(times, F.size(times) - 1).alias("last"),
    ]
