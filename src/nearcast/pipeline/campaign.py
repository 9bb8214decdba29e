"""Campaigns: scenarios x parameters x seeds, each run a task of Spark, all results in one table.

What runs one scenario is handed in: simulations are not known here.  A run that fails is a row with the reason, and takes no other along; a run
whose executor is lost is run again, so that it should leave nothing behind that a second one would trip over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Changes = Mapping[str, Any]
"""Values of a scenario by their dotted keys; JSON can write them."""

RunOne = Callable[[str, Changes, int], Mapping[str, float | None]]
"""Runs a scenario with these changes and that seed, and measures it."""

SCHEMA: Final = "number bigint, scenario string, changes string, seed bigint, seconds double, metrics map<string, double>, failure string"


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """One run."""

    scenario: str
    seed: int
    changes: Changes = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """What was changed, as text: the same for the same changes, whatever their order."""
        return json.dumps(self.changes, sort_keys=True, ensure_ascii=False)


def combined(
    scenarios: Sequence[str], parameters: Mapping[str, Sequence[Any]], seeds: Sequence[int]
) -> list[CampaignRun]:
    """Every scenario with every combination of the values and every seed."""
    empty = [name for name, values in parameters.items() if not values]
    if not scenarios or not seeds or empty:
        raise InvalidInput(
            f"a campaign needs scenarios, seeds, and values for each parameter{f'; {empty[0]} has none' if empty else ''}"
        )
    settings = [dict(zip(parameters, values, strict=True)) for values in product(*parameters.values())]
    return [CampaignRun(scenario, seed, changes) for scenario, changes, seed in product(scenarios, settings, seeds)]


def campaign(spark: SparkSession, runs: Sequence[CampaignRun], run_one: RunOne) -> DataFrame:
    """``number, scenario, changes, seed, seconds, metrics, failure`` of each run, in a partition of its own.

    ``changes`` is JSON, ``metrics`` is null where ``failure`` says why.  What is null or no number among the metrics is left out.  Nothing has run
    before somebody asks for the rows, and everything runs again if they are asked for twice: write them, or cache them.
    """
    if not runs:
        raise InvalidInput("a campaign without runs has no results")
    numbers = spark.range(0, len(runs), 1, len(runs))
    return numbers.mapInArrow(_running(list(runs), run_one), SCHEMA)


def summary(results: DataFrame) -> DataFrame:
    """Over the seeds: ``scenario, changes, metric, runs, mean, deviation, least, most``; deviation is null for a single run."""
    told = results.where(F.col("failure").isNull()).select(
        "scenario", "changes", F.explode("metrics").alias("metric", "value")
    )
    value = F.col("value")
    return told.groupBy("scenario", "changes", "metric").agg(
        F.count("*").alias("runs"),
        F.mean(value).alias("mean"),
        F.when(F.count("*") > 1, F.stddev_samp(value)).alias("deviation"),
        F.min(value).alias("least"),
        F.max(value).alias("most"),
    )


Batches = Iterator["pa.RecordBatch"]


def _running(runs: list[CampaignRun], run_one: RunOne) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield _result(number, runs[number], run_one)

    return work


def _result(number: int, run: CampaignRun, run_one: RunOne) -> pa.RecordBatch:
    import pyarrow as pa

    started = time.perf_counter()
    metrics: list[tuple[str, float]] | None = None
    failure: str | None = None
    try:
        measured = run_one(run.scenario, run.changes, run.seed)
        metrics = [(name, float(value)) for name, value in measured.items() if value is not None and not isnan(value)]
    except Exception as error:  # noqa: BLE001 - one run that fails must not take the others along
        failure = f"{type(error).__name__}: {error}"
    columns = {
        "number": pa.array([number], pa.int64()),
        "scenario": pa.array([run.scenario], pa.string()),
        "changes": pa.array([run.setting], pa.string()),
        "seed": pa.array([run.seed], pa.int64()),
        "seconds": pa.array([time.perf_counter() - started], pa.float64()),
        "metrics": pa.array([metrics], pa.map_(pa.string(), pa.float64())),
        "failure": pa.array([failure], pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)
