"""Gold: metrics by day, computed from silver.  A run computes the days anew whose silver has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, cast

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nearcast.pipeline.metrics.columns import instant, micros
from nearcast.pipeline.metrics.delay import delays
from nearcast.pipeline.metrics.delivery import COUNTS, measured, per_event, with_ratios
from nearcast.pipeline.metrics.pairs import pairs
from nearcast.pipeline.metrics.spread import spreads
from nearcast.pipeline.metrics.traffic import carried
from nearcast.pipeline.tables.silver import read_silver
from nearcast.pipeline.tables.store import NO_DATE, DataFile, Version, Warehouse, by_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Silver = Mapping[str, "DataFrame"]


@dataclass(frozen=True, slots=True)
class GoldTable:
    """A metric by day: what it is computed from, and how; a day depends on ``days_after`` further days of its sources."""

    name: str
    sources: tuple[str, ...]
    compute: Callable[[Silver], DataFrame]
    schema: str
    days_after: int = 0


def activity(silver: Silver) -> DataFrame:
    """What was published where, by the hour."""
    hour = F.date_trunc("hour", "time").alias("hour")
    return (
        silver["events"]
        .groupBy("date", "cell", hour)
        .agg(
            F.count("*").alias("events"),
            F.count_distinct("publisher").alias("publishers"),
            F.sum("bytes").alias("bytes"),
            F.sum(F.coalesce(F.size("receivers"), F.lit(0))).alias("receivers"),
        )
    )


def delivery(silver: Silver) -> DataFrame:
    """Recall, precision and delay of each workload, of the events of a day."""
    events = silver["events"]
    found = pairs(events, _timely(silver["notifications"]))
    of_events = per_event(events, found).groupBy(F.to_date("time").alias("date"), "workload")
    counted = with_ratios(of_events.agg(F.count("*").alias("events"), *(F.sum(name).alias(name) for name in COUNTS)))
    delayed = delays(found).join(events.select("event", F.col("workload").alias("of")), "event")
    delay = delayed.groupBy(F.to_date("time").alias("on"), "of").agg(
        F.mean("seconds").alias("delay"),
        F.percentile("seconds", 0.5).alias("delay_p50"),
        F.percentile("seconds", 0.95).alias("delay_p95"),
    )
    same = (counted["date"] == delay["on"]) & counted["workload"].eqNullSafe(delay["of"])
    return counted.join(delay, same, "left").drop("on", "of")


def clients(silver: Silver) -> DataFrame:
    """Recall and precision of each client, of the events of a day."""
    found = pairs(silver["events"], _timely(silver["notifications"]))
    return measured(found.withColumn("date", F.to_date("time")), "date", "client")


def traffic(silver: Silver) -> DataFrame:
    """What the interfaces of all clients carried, by purpose, in the time frames that began on a day."""
    return carried(silver["traffic"], by=("date",))


def transitions(silver: Silver) -> DataFrame:
    """How transitions spread, by the day on which they began."""
    return spreads(silver["transitions"]).withColumn("date", F.to_date("first"))


def _timely(notifications: DataFrame) -> DataFrame:
    """What came on the day of its event or the next one: a day is complete when the next one is."""
    published = F.to_date(instant(micros("time") - F.col("delay")))
    return notifications.where(F.date_diff(F.col("date"), published) <= 1)


_MEASURES: Final = (
    "due long, notified long, correct long, false_negatives long, false_positives long, recall double, precision double"
)
GOLD: Final = (
    GoldTable(
        "activity",
        ("events",),
        activity,
        "cell string, hour timestamp, events long, publishers long, bytes long, receivers long",
    ),
    GoldTable(
        "delivery",
        ("events", "notifications"),
        delivery,
        f"workload string, events long, {_MEASURES}, delay double, delay_p50 double, delay_p95 double",
        days_after=1,
    ),
    GoldTable("clients", ("events", "notifications"), clients, f"client string, {_MEASURES}", days_after=1),
    GoldTable(
        "traffic",
        ("traffic",),
        traffic,
        "interface string, direction string, class string, messages long, bytes long, share double",
    ),
    GoldTable(
        "transitions",
        ("transitions",),
        transitions,
        "plan string, proxy string, target string, hosts int, first timestamp, median timestamp, "
        "ninety_percent timestamp, last timestamp",
    ),
)


def gold_schema(gold: GoldTable) -> StructType:
    """With the column of the partitions."""
    return cast("StructType", StructType.fromDDL(f"{gold.schema}, date date"))


def read_gold(spark: SparkSession, warehouse: Warehouse, name: str) -> DataFrame:
    gold = next(each for each in GOLD if each.name == name)
    part = f"gold/{name}"
    return warehouse.read(spark, part, gold_schema(gold), warehouse.current(_log(name)).files(part))


def measure_all(spark: SparkSession, warehouse: Warehouse) -> dict[str, int]:
    """Bring all tables of gold up to date with silver; gives the number of days that were computed anew."""
    return {gold.name: _measure(spark, warehouse, gold) for gold in GOLD}


def _measure(spark: SparkSession, warehouse: Warehouse, gold: GoldTable) -> int:
    before = warehouse.current(_log(gold.name))
    basis = _basis(gold, {name: warehouse.current(name) for name in gold.sources})
    changed = sorted(day for day in {*basis, *before.basis} if basis.get(day) != before.basis.get(day))
    if not changed:
        return 0
    part = f"gold/{gold.name}"
    stale = [file for file in before.files(part) if file.partition("date") in changed]
    version = before.with_files(part, [], stale)
    wanted = [day for day in changed if day in basis]
    if wanted:
        frame = gold.compute(_days(spark, warehouse, gold, wanted)).where(F.col("date").isin(*_dates(wanted)))
        staged = warehouse.stage(frame.coalesce(1), "date")
        version = version.with_files(part, staged.move(part))
        staged.discard()
    warehouse.publish(_log(gold.name), msgspec.structs.replace(version, basis=basis))
    return len(changed)


def _days(spark: SparkSession, warehouse: Warehouse, gold: GoldTable, wanted: list[str]) -> Silver:
    """The sources, of the days that the wanted ones depend on."""
    needed = sorted({after for day in wanted for after in _needed(day, gold.days_after)})
    frames = {name: read_silver(spark, warehouse, name) for name in gold.sources}
    first, *others = gold.sources
    return {
        first: frames[first].where(F.col("date").isin(*_dates(wanted))),
        **{name: frames[name].where(F.col("date").isin(*_dates(needed))) for name in others},
    }


def _basis(gold: GoldTable, versions: Mapping[str, Version]) -> dict[str, str]:
    """A fingerprint of each day of the first source: the names of all files, which never change, that it depends on."""
    first, *others = gold.sources
    files = {name: by_partition(versions[name].files(f"silver/{name}"), "date") for name in gold.sources}

    def paths(name: str, day: str) -> list[str]:
        found: list[DataFile] = files[name].get((day,), [])
        return [file.path for file in found]

    return {
        day: _fingerprint(
            [
                *paths(first, day),
                *(path for name in others for each in _needed(day, gold.days_after) for path in paths(name, each)),
            ]
        )
        for (day,) in files[first]
        if day != NO_DATE
    }


def _needed(day: str, days_after: int) -> list[str]:
    first = date.fromisoformat(day)
    return [(first + timedelta(days=number)).isoformat() for number in range(days_after + 1)]


def _dates(days: list[str]) -> list[date]:
    return [date.fromisoformat(day) for day in days]


def _fingerprint(paths: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()[:16]


def _log(name: str) -> str:
    return f"gold-{name}"
