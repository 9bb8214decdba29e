"""``nearcast bench pipeline``: who received which events?  nearcast on Spark, and the joins that others would write."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nearcast.benchmark import pipeline_peers
from nearcast.benchmark.pipeline_data import Tables, as_of, part, snapshot
from nearcast.benchmark.pipeline_measures import PeakMemory, slowest_over_median
from nearcast.benchmark.pipeline_sedona import SedonaTables, unavailable, unavailable_on_spark
from nearcast.benchmark.report import OURSELVES, Measurement, Missing, Report, machine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str], None]
METRIC: Final = "match_events_per_second"
SEDONADB: Final = "sedonadb"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is; peers take a share of the events where all would take them hours."""

    clients: int
    events: int
    moving_clients: int
    moving_events: int
    seconds: int
    shares: dict[str, tuple[float, float]]
    """Of snapshot and as-of, by system."""
    crowded_events: int
    crowded_clients: int
    runs: int


FULL: Final = Size(
    clients=1_000_000,
    events=10_000_000,
    moving_clients=100_000,
    moving_events=10_000_000,
    seconds=3600,
    shares={
        "cell-join-haversine": (0.1, 1 / 12),
        "cell-join-prefilter": (0.1, 1 / 12),
        "cell-join-pandas-udf": (0.05, 1 / 30),
        SEDONADB: (0.1, 1 / 60),
    },
    crowded_events=2_000_000,
    crowded_clients=200_000,
    runs=2,
)
QUICK: Final = Size(
    clients=20_000,
    events=200_000,
    moving_clients=10_000,
    moving_events=200_000,
    seconds=120,
    shares={
        "cell-join-haversine": (0.5, 0.5),
        "cell-join-prefilter": (0.5, 0.5),
        "cell-join-pandas-udf": (0.25, 0.25),
        SEDONADB: (0.5, 0.25),
    },
    crowded_events=100_000,
    crowded_clients=10_000,
    runs=1,
)
_MEMORY: Final = "6g"


def run(*, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None) -> Report:
    """Measure, in a session of its own."""
    from nearcast.pipeline.session import spark_session

    size = QUICK if quick else FULL
    settings = {"spark.driver.memory": "2g" if quick else _MEMORY, "spark.sql.shuffle.partitions": "16"}
    progress("starting Spark")
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as folder, PeakMemory() as memory:
        spark = spark_session("nearcast bench pipeline", master="local[2]", settings=settings)
        try:
            bench = _Bench(spark, Path(folder), size, progress)
            results, missing = bench.measured(peers=peers)
        finally:
            spark.stop()
    results.append(
        Measurement(OURSELVES, "peak_memory_bytes", "B", float(memory.bytes), {"processes": "all of the session"})
    )
    return Report("pipeline", machine(), tuple(results), tuple(missing), _ratios(results))


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, size: Size, progress: Progress) -> None:
        self._spark, self._folder, self._size, self._progress = spark, folder, size, progress

    def measured(self, *, peers: bool) -> tuple[list[Measurement], list[Missing]]:
        size, folder = self._size, self._folder
        self._progress("making the tables")
        small = snapshot(folder / "small", size.clients // 10, size.events // 10)
        courses = {
            "snapshot": snapshot(folder / "snapshot", size.clients, size.events),
            "as-of": as_of(folder / "as-of", size.moving_clients, size.moving_events, size.seconds),
        }
        self._progress("warming up")
        _consume(self._ours(small))
        results: list[Measurement] = []
        missing = [Missing("sedona", reason)] if (reason := unavailable_on_spark()) else []
        for number, (course, tables) in enumerate(courses.items()):
            results.append(self._measure(OURSELVES, course, tables, partial(self._run_ours, tables), 1.0))
            if peers:
                results += self._peers(course, tables, number, missing)
        if not peers:
            missing += [Missing(name, "left out on request") for name in (*pipeline_peers.SYSTEMS, SEDONADB)]
        whole = next(row.value for row in results if row.parameters.get("course") == "snapshot")
        results.append(self._growth(small, whole))
        results.append(self._skew())
        return results, missing

    def _run_ours(self, tables: Tables) -> None:
        _consume(self._ours(tables))

    def _ours(self, tables: Tables) -> DataFrame:
        from nearcast.pipeline.matching import match

        return match(*tables.frames(self._spark))

    def _peers(self, course: str, tables: Tables, number: int, missing: list[Missing]) -> list[Measurement]:
        results = []
        parts: dict[float, tuple[Tables, tuple[int, int]]] = {}
        for name, shares in self._size.shares.items():
            if name == SEDONADB and (reason := unavailable()) is not None:
                if number == 0:
                    missing.append(Missing(name, reason))
                continue
            share = shares[number]
            if share not in parts:
                self._progress(f"{course}: {share:.1%} of the tables for peers, and our answers to them")
                taken = part(tables, self._folder / f"{course}-{len(parts)}", self._spark, share)
                parts[share] = taken, _checksum(_exploded(self._ours(taken)))
            taken, answers = parts[share]
            results.append(self._peer(name, course, taken, share, answers))
        return results

    def _peer(self, name: str, course: str, tables: Tables, share: float, answers: tuple[int, int]) -> Measurement:
        if name == SEDONADB:
            sedona = SedonaTables(tables)
            row = self._measure(name, course, tables, sedona.pairs, share)
            found = sum(len(table) for table in sedona.pairs())
            return _with_agreement(row, answers[0], found, None)
        near = pipeline_peers.SYSTEMS[name]
        row = self._measure(
            name, course, tables, lambda: _consume(pipeline_peers.pairs(self._spark, tables, near)), share
        )
        found, checksum = _checksum(pipeline_peers.pairs(self._spark, tables, near))
        return _with_agreement(row, answers[0], found, checksum == answers[1])

    def _measure(self, system: str, course: str, tables: Tables, work: Callable[[], Any], share: float) -> Measurement:
        rates = []
        for _ in range(self._size.runs if system == OURSELVES else 1):
            started = time.perf_counter()
            work()
            rates.append(tables.events / (time.perf_counter() - started))
            self._progress(f"{course}: {system} {rates[-1]:,.0f} events/s")
        parameters = {
            "course": course, "clients": tables.clients, "events": tables.events, "share": round(share, 4),
            "runs": [round(rate) for rate in rates],
        }  # fmt: skip
        return Measurement(system, METRIC, "1/s", max(rates), parameters)

    def _growth(self, small: Tables, rate: float) -> Measurement:
        """How many times as much an event costs with ten times as many of everything, at the same density."""
        row = self._measure(OURSELVES, "a tenth of the snapshot", small, partial(self._run_ours, small), 1.0)
        parameters = {"events": self._size.events, "from_events": small.events, "from_rate": round(row.value)}
        return Measurement(OURSELVES, "growth", "1", row.value / rate, parameters)

    def _skew(self) -> Measurement:
        """Three in ten clients, and events, on a hundredth of the city: how much longer the slowest task takes than the median."""
        from nearcast.pipeline.matching import MatchSettings, Strategy, match
        from nearcast.pipeline.matching.changes import changes_of
        from nearcast.pipeline.matching.planner import plan_match

        size = self._size
        tables = snapshot(self._folder / "crowded", size.crowded_clients, size.crowded_events, crowded=True)
        events, reports, subscriptions = tables.frames(self._spark)
        settings = MatchSettings(strategy=Strategy.BLOCKS)
        changes = changes_of(reports, subscriptions, None, None)
        plan = plan_match(events, changes, settings)
        found = match(events, reports, subscriptions, settings=settings)
        value = slowest_over_median(self._spark, plan.groups, lambda: _consume(found))
        self._progress(f"crowded: slowest task over median {value:.2f}")
        parameters = {"clients": tables.clients, "events": tables.events, "plan": plan.explain().splitlines()[-1]}
        return Measurement(OURSELVES, "slowest_task_over_median", "1", value, parameters)


def _consume(found: DataFrame) -> None:
    """Compute all rows, and throw them away."""
    found.write.format("noop").mode("overwrite").save()


def _exploded(found: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return found.select("event", F.explode("receivers").alias("client"))


def _checksum(pairs: DataFrame) -> tuple[int, int]:
    """How many pairs, and a number that does not depend on their order."""
    from pyspark.sql import functions as F

    mixed = F.xxhash64("event", "client").bitwiseAND(F.lit(0xFFFFFFFF))
    row = pairs.agg(F.count("*").alias("pairs"), F.sum(mixed).alias("checksum")).collect()[0]
    return row.pairs, row.checksum or 0


def _with_agreement(row: Measurement, ours: int, theirs: int, same: bool | None) -> Measurement:
    said = {"answers": theirs, "our_answers": ours} | ({} if same is None else {"same_checksum": same})
    return Measurement(row.system, row.metric, row.unit, row.value, {**row.parameters, **said})


def _ratios(results: list[Measurement]) -> dict[str, float]:
    rates = [row for row in results if row.metric == METRIC]
    ours = {row.parameters["course"]: row.value for row in rates if row.system == OURSELVES}
    return {
        f"{OURSELVES}/{row.system} {METRIC} {row.parameters['course']}": round(
            ours[row.parameters["course"]] / row.value, 4
        )
        for row in rates
        if row.system != OURSELVES
    }
