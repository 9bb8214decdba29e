"""The loop closes: people walk, Spark observes them through the broker's journal, plans, and the broker carries the plan out."""

from __future__ import annotations

import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
from tests.broker.test_schemes_change_live import settings
from tests.broker.walking_crowd import Verdict, crowd, judge
from tests.client.served import ServedBroker, served

from nearcast.pipeline.observation import density
from nearcast.pipeline.plans import Ladder, Step, decisions, latest, orders, over, plans
from nearcast.pipeline.source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PEOPLE = 40
SIZE = 400.0
SECONDS = 26.0
WINDOW = 2.0
LATENESS = 1.0
"""Seconds: by then the journal has what was reported in a window."""

BUSY = Ladder("RADIAL", (Step("EGRID(factor=4)", PEOPLE * 0.75, 1.0),))


class Operator:
    """What a job does again and again, by way of the data source."""

    def __init__(self, spark: SparkSession, broker: ServedBroker) -> None:
        self._spark = spark
        self._url = f"http://127.0.0.1:{broker.ports['http']}"

    def table(self, name: str) -> DataFrame:
        return self._spark.read.format("nearcast").option("table", name).option("broker", self._url).load()

    def transitions(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._url}/transitions", timeout=30) as answer:  # noqa: S310 - an address of our own
            shown: dict[str, Any] = json.load(answer)
            return shown

    def observe_and_plan(self) -> list[Any]:
        people = density.crowd(self.table("reports"), WINDOW)
        known = over(people, round((time.time() - LATENESS) * 1e6))
        made = orders(latest(plans(decisions(known, "clients", BUSY)))).cache()
        try:
            made.write.format("nearcast").option("table", "plans").option("broker", self._url).mode("append").save()
            return made.collect()
        finally:
            made.unpersist()


def walk(broker: ServedBroker) -> Verdict:
    return judge(uvloop.run(crowd(broker.url, PEOPLE, SIZE, SECONDS, talks_every=5.0, seed=6)))


def test_a_crowd_is_observed_planned_for_and_served_without_loss(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    # The walkers have a thread of their own: Spark looks a source up in the session of the thread that asks.
    with served(tmp_path, settings(SIZE)) as broker, ThreadPoolExecutor(1) as pool:
        operator = Operator(spark, broker)
        before = operator.transitions()
        walking = pool.submit(walk, broker)
        while not (made := operator.observe_and_plan()):
            assert not walking.done(), "nothing was planned while they walked"
        verdict, plan = walking.result(), made[0]["plan"]
        after = operator.transitions()
        carried_out = operator.table("transitions").where("plan is not null").collect()
        (repeated,) = operator.observe_and_plan()
        in_the_end = operator.transitions()
    assert (before["scheme"], before["transitions"]) == ("RADIAL", 0)
    assert (after["scheme"], after["transitions"]) == ("EGRID(factor=4)", 1)
    assert [(row["source"], row["target"], row["plan"]) for row in carried_out] == [("RADIAL", "EGRID(factor=4)", plan)]
    assert repeated["plan"] == plan, "the same windows give the same plan"
    assert in_the_end["transitions"] == 1, "which is carried out once"
    assert verdict.expected > 100
    assert (verdict.lost, verdict.doubled) == (0, 0)
