"""From what was observed to plans for the coordinator: a filter scheme, its grid factor, gateways on or off, for all or in regions.

A *ladder* says what to choose as a value grows: each step has a threshold to step up at and a lower one to step back at, as the rules of the broker
have (``transition.rules``), and may ask that either lasts for some windows; of all steps that hold, the last decides.  The
decision follows from the observed windows alone, and so does the id of a plan: whoever computes it again computes the same plan, which
the broker carries out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import Window
from pyspark.sql import functions as F

from nearcast.errors import InvalidPlan
from nearcast.filtering.attraction import Zone
from nearcast.model.geometry import EARTH_RADIUS
from nearcast.model.time import Instant, to_datetime
from nearcast.pipeline.observation.windows import bounds_first, windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVERYWHERE: Final = "everywhere"
"""The region of what concerns everybody."""

SMALLEST: Final = 10.0
"""Metres of radius: where a region is smaller, nobody knows well enough who is in it."""

LARGEST_FACTOR: Final = 500
"""Of the schemes with square cells (``filtering.parameters``)."""


@dataclass(frozen=True, slots=True)
class Step:
    """That choice, from when a value is ``above`` until it is down at ``back_at``."""

    choice: str
    above: float
    back_at: float

    def __post_init__(self) -> None:
        if not self.back_at <= self.above:  # also refuses NaN
            raise InvalidPlan(
                f"{self.choice!r} above {self.above!r} cannot end at {self.back_at!r}: the value would have to be on both sides at once"
            )


@dataclass(frozen=True, slots=True)
class Ladder:
    """The choice of the last step that holds, else ``otherwise``."""

    otherwise: str
    steps: tuple[Step, ...]
    windows: int = 1
    """For so many windows in a row a value must be beyond a threshold to count: one crowded minute is no crowd."""

    def __post_init__(self) -> None:
        if not self.steps or self.windows < 1:
            raise InvalidPlan("a ladder has steps, and looks at one window at least")


def switch(above: float, back_at: float, windows: int = 1) -> Ladder:
    """``on`` or ``off``: for gateways."""
    return Ladder("off", (Step("on", above, back_at),), windows)


def grid_ladder(scheme: str, per_cell: float, largest: int = 64, back: float = 0.7, windows: int = 1) -> Ladder:
    """A grid that grows with the crowd: its factor doubles whenever a cell would hold more than ``per_cell`` clients.

    ``scheme`` is a scheme with square cells, such as EGRID.  With half as many clients in a cell match operations and wrong
    receivers are halved, while the number of cell changes grows (BYPASS.KOM 6.2.2); powers of two keep the plans few.
    """
    if not per_cell > 0 or not 1 <= largest <= LARGEST_FACTOR or not 0 < back <= 1:
        raise InvalidPlan(
            f"{per_cell} clients in a cell, a factor of up to {largest}, back at {back}: none of them may be zero or less"
        )
    factors = [2**power for power in range(1, largest.bit_length()) if 2**power <= largest]
    steps = (
        Step(f"{scheme}(factor={factor})", per_cell * (factor / 2) ** 2, back * per_cell * (factor / 2) ** 2)
        for factor in factors
    )
    return Ladder(f"{scheme}(factor=1)", tuple(steps), windows)


def decisions(observed: DataFrame, value: str, ladder: Ladder) -> DataFrame:
    """``region, since, until, value, choice, before`` for each window that was observed; ``before`` is the choice of the window before it.

    ``observed`` has ``since, until``, that value, and perhaps ``region``; windows without a row are not known, and change nothing.
    """
    region = F.col("region") if "region" in observed.columns else F.lit(EVERYWHERE)
    series = observed.select(region.alias("region"), "since", "until", F.col(value).cast("double").alias("value"))
    order = Window.partitionBy("region").orderBy("since")
    lasting = order.rowsBetween(1 - ladder.windows, 0)
    enough = F.count("*").over(lasting) == ladder.windows
    so_far = order.rowsBetween(Window.unboundedPreceding, 0)
    choice: Column = F.lit(ladder.otherwise)
    for number, step in enumerate(ladder.steps):
        begins = enough & (F.min("value").over(lasting) > step.above)
        ends = enough & (F.max("value").over(lasting) <= step.back_at)
        series = series.withColumn(f"turn {number}", F.when(begins, True).when(ends, False))
        holds = F.coalesce(F.last(f"turn {number}", ignorenulls=True).over(so_far), F.lit(False))
        choice = F.when(holds, F.lit(step.choice)).otherwise(choice)
    chosen = series.select("region", "since", "until", "value", choice.alias("choice"))
    before = F.coalesce(F.lag("choice").over(order), F.lit(ladder.otherwise))
    return chosen.withColumn("before", before)


def over(observed: DataFrame, by: Instant) -> DataFrame:
    """The windows that were over by then: of a window that still goes on, another look would tell something else."""
    return observed.where(F.col("until") <= F.lit(to_datetime(by)))


def plans(decided: DataFrame) -> DataFrame:
    """Where the choice changes: ``plan`` (its id), ``time`` (the end of the window), ``region, scheme, before, value``."""
    changed = decided.where(F.col("choice") != F.col("before"))
    return changed.select(
        plan_id("region", "since", "choice"),
        F.col("until").alias("time"),
        "region",
        F.col("choice").alias("scheme"),
        "before",
        "value",
    )


def latest(made: DataFrame) -> DataFrame:
    """Of each region the plan that counts now: what was planned before it is over."""
    newest = F.max_by(F.struct(*made.columns), "time").alias("newest")
    return made.groupBy("region").agg(newest).select("newest.*")


def orders(made: DataFrame, zones: Sequence[Zone] = (), what: Literal["scheme", "gateways"] = "scheme") -> DataFrame:
    """The rows that the source ``nearcast`` writes to the table ``plans``, and a broker carries out.

    ``zones`` are the regions of which the plans speak, ``what`` is that which was chosen: a scheme, or ``on`` and ``off``.
    """
    order = made.select("plan", F.col("scheme").alias(what), "region")
    if zones:
        # A region that is not among them is named by none, and so everybody's; there is none such but EVERYWHERE.
        known = [F.when(F.col("region") == zone.name, F.array(_region(zone))) for zone in zones]
        order = order.withColumn("regions", F.coalesce(*known))
    return order.drop("region")


def orders_at_points(points: DataFrame, since: Instant, scheme: str, elsewhere: str | None = None) -> DataFrame:
    """One such row, that scheme for whoever is at one of these points; none if there are no points.

    ``points`` are those of ``attraction_points``, of a stretch of time that begins ``since``.  With ``elsewhere``, a scheme for everybody outside of
    them, all regions that were planned before are over.
    """
    # To the metre: sums of the same numbers in another order differ in their last digits, and so would the plan.
    place = (F.round("lat", 5).alias("lat"), F.round("lon", 5).alias("lon"))
    radius = F.greatest(F.round("radius"), F.lit(SMALLEST)).alias("radius")
    together = points.agg(F.array_sort(F.collect_list(F.struct("name", *place, radius))).alias("regions"))
    said = together.where(F.size("regions") > 0).select(
        F.lit(scheme).alias("scheme"),
        F.lit(elsewhere).cast("string").alias("elsewhere"),
        "regions",
        F.to_json("regions").alias("at"),
        F.lit(since).alias("since"),
    )
    return said.select(plan_id("since", "scheme", "elsewhere", "at"), "scheme", "elsewhere", "regions")


def plan_id(*columns: str) -> Column:
    """The same for the same plan, whoever makes it and however often."""
    told = F.concat_ws("\n", *(F.col(name).cast("string") for name in columns))
    return F.concat(F.lit("observed-"), F.substring(F.sha2(told, 256), 1, 24)).alias("plan")


# Regions


def regions_of(zones: Sequence[Zone], lat: Column, lon: Column) -> Column:
    """The names of all zones that a place lies in, as an array; zones are a few, compared one by one in the same expression."""
    inside = [F.when(_metres(zone, lat, lon) <= zone.radius, F.lit(zone.name)) for zone in zones]
    return F.array_compact(F.array(*inside)) if inside else F.array().cast("array<string>")


def crowds(reports: DataFrame, zones: Sequence[Zone], seconds: float) -> DataFrame:
    """How many clients are in each zone, by window: ``since, until, region, clients``."""
    placed = reports.select("time", "client", F.explode(regions_of(zones, F.col("lat"), F.col("lon"))).alias("region"))
    counted = placed.groupBy(windowed(seconds), "region").agg(
        F.size(F.collect_set("client")).cast("long").alias("clients")
    )
    return bounds_first(counted)


def _region(zone: Zone) -> Column:
    """As plans say it."""
    place = (F.lit(zone.center.lat).alias("lat"), F.lit(zone.center.lon).alias("lon"))
    return F.struct(F.lit(zone.name).alias("name"), *place, F.lit(zone.radius).alias("radius"))


def _metres(zone: Zone, lat: Column, lon: Column) -> Column:
    """Great-circle metres from the middle of the zone (``geometry.distance``)."""
    here, there = F.radians(F.lit(zone.center.lat)), F.radians(lat)
    beside = F.radians(lon - F.lit(zone.center.lon))
    half = F.pow(F.sin((there - here) / 2), 2) + F.cos(here) * F.cos(there) * F.pow(F.sin(beside / 2), 2)
    return F.lit(2 * EARTH_RADIUS) * F.asin(F.sqrt(F.least(F.lit(1.0), half)))
