"""The loop closes: people walk, Spark observes them through the broker's journal, plans, and the broker carries the plan out."""

from __future__ import annotations

import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import uvloop
from pyspark.sql import functions as F
from tests.broker.test_schemes_change_live import settings
from tests.broker.walking_crowd import Verdict, Walk, crowd, judge
from tests.served import ServedBroker, served

from nearcast.metrics.maps import Grid
from nearcast.pipeline.observation import density
from nearcast.pipeline.observation.attraction import Lingering, attraction_points
from nearcast.pipeline.observation.report import stretch_of
from nearcast.pipeline.plans import Ladder, Step, decisions, latest, orders, orders_at_points, over, plans
from nearcast.pipeline.source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PEOPLE = 40
SIZE = 400.0
LONGEST = 200.0
"""Seconds: they walk until all is planned, and a while longer."""

AFTERWARDS = 14.0
WINDOW = 2.0
LATENESS = 1.0
"""Seconds: by then the journal has what was reported in a window."""

CROWDED = Lingering(least=3.0, slowest=10.0)
"""Here everybody walks, and all walkers count."""

BUSY = Ladder("RADIAL", (Step("EGRID(factor=4)", PEOPLE * 0.75, 1.0),))


class Known(NamedTuple):
    """What an observation is about: only who asks about the same again gets the same answer, since reports go on, and some are late."""

    last: int | None
    """The offset of the last report; none if there is none."""

    by: int
    """Windows that were over by then."""


class Operator:
    """What a job does again and again, by way of the data source."""

    def __init__(self, spark: SparkSession, broker: ServedBroker) -> None:
        self._spark = spark
        self._url = broker.http

    def table(self, name: str) -> DataFrame:
        return self._spark.read.format("nearcast").option("table", name).option("broker", self._url).load()

    def transitions(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._url}/transitions", timeout=30) as answer:  # noqa: S310 - an address of our own
            shown: dict[str, Any] = json.load(answer)
            return shown

    def known(self) -> Known:
        """What can be asked about now."""
        by = round((time.time() - LATENESS) * 1e6)
        return Known(self.table("reports").agg(F.max("offset")).collect()[0][0], by)

    def observe_and_plan(self, known: Known) -> list[Any]:
        if known.last is None:
            return []
        people = density.crowd(self.table("reports").where(F.col("offset") <= known.last), WINDOW)
        return self._hand_in(orders(latest(plans(decisions(over(people, known.by), "clients", BUSY)))))

    def discover_and_plan(self) -> list[Any]:
        """A scheme for the places where there are many."""
        reports = self.table("reports").cache()
        stretch = stretch_of(reports)
        points = attraction_points(reports, Grid(stretch.middle, 40.0), CROWDED, stretch.seconds)
        return self._hand_in(orders_at_points(points, stretch.since, "RADIAL"))

    def _hand_in(self, made: DataFrame) -> list[Any]:
        made = made.cache()
        made.write.format("nearcast").option("table", "plans").option("broker", self._url).mode("append").save()
        return made.collect()


def walk(broker: ServedBroker, how_long: Walk) -> Verdict:
    return judge(uvloop.run(crowd(broker.url, PEOPLE, SIZE, LONGEST, talks_every=5.0, seed=6, walk=how_long)))


def test_a_crowd_is_observed_planned_for_and_served_without_loss(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    # The walkers have a thread of their own: Spark looks a source up in the session of the thread that asks.
    with served(tmp_path, settings(SIZE)) as broker, ThreadPoolExecutor(1) as pool:
        operator = Operator(spark, broker)
        before = operator.transitions()
        how_long = Walk()
        walking = pool.submit(walk, broker, how_long)
        try:
            while not (made := operator.observe_and_plan(known := operator.known())):
                assert not walking.done(), "nothing was planned while they walked"
            (repeated,) = operator.observe_and_plan(known)
            everywhere = operator.transitions()
            (at_points,) = operator.discover_and_plan()
            in_regions = operator.transitions()
        finally:
            how_long.end_in(AFTERWARDS)
        verdict, plan = walking.result(), made[0]["plan"]
        carried_out = operator.table("transitions").where("plan is not null").orderBy("offset").collect()
        reported = {row["client"] for row in operator.table("reports").select("client").distinct().collect()}
    spark.catalog.clearCache()
    assert (before["scheme"], before["transitions"]) == ("RADIAL", 0)
    assert repeated["plan"] == plan, "the same windows give the same plan"
    assert (everywhere["scheme"], everywhere["transitions"]) == ("EGRID(factor=4)", 1), "which is carried out once"
    first, *others = [(row["host"], row["source"], row["target"], row["plan"]) for row in carried_out]
    assert first == ("broker", "RADIAL", "EGRID(factor=4)", plan)
    assert in_regions["scheme"] == "EGRID(factor=4)", "elsewhere"
    assert [(each["name"], each["scheme"]) for each in in_regions["regions"]] == [
        (each["name"], "RADIAL") for each in at_points["regions"]
    ]
    assert in_regions["groups"]["RADIAL"] > 0
    assert in_regions["groups"]["EGRID(factor=4)"] > 0
    assert {host for host, *_ in others} <= reported
    assert {each[1:] for each in others} == {("EGRID(factor=4)", "RADIAL", at_points["plan"])}
    assert verdict.expected > 100
    assert (verdict.lost, verdict.doubled) == (0, 0)
