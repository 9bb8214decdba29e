"""``nearcast bench pipeline``: who received which events?  nearcast on Spark, and the joins that others would write.

Every system is run once to warm up, which also shows whether it finds the same pairs, and then as often as any other; the
median counts.  Ours is run before all peers and again behind them, because the machine may have become faster or slower.  Peers take a share of the events where all would take them hours.  Their cost per event hardly depends on how
many there are, and ours falls, because a match begins with a look at the tables: so a ratio compares our rate over all
events with theirs over their share, and beside it, as ``same share``, stands the ratio of both over that share.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from nearcast.benchmark import pipeline_peers
from nearcast.benchmark.pipeline_agreement import Answers, answers, different, exploded, with_agreement, written
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
        "cell-join-pandas-udf": (0.1, 1 / 24),
        SEDONADB: (0.1, 1 / 12),
    },
    crowded_events=500_000,
    crowded_clients=200_000,
    runs=2,
)
QUICK: Final = Size(
    clients=20_000,
    events=30_000,
    moving_clients=10_000,
    moving_events=30_000,
    seconds=30,
    shares=dict.fromkeys(FULL.shares, (1.0, 1.0)),
    crowded_events=50_000,
    crowded_clients=10_000,
    runs=1,
)
_MEMORY: Final = "6g"
CROWDED_CELLS: Final = 100
"""The crowded hundredth of the city then is about a cell, which is too hot for one task."""


def run(*, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None) -> Report:
    """Measure, in a session of its own."""
    from nearcast.pipeline.session import spark_session

    size = QUICK if quick else FULL
    settings = {"spark.driver.memory": "2g" if quick else _MEMORY, "spark.sql.shuffle.partitions": "16"}
    progress("starting Spark")
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as folder, PeakMemory() as memory:
        spark = spark_session("nearcast bench pipeline", master="local[2]", settings=settings)
        try:
            bench = _Bench(spark, Path(folder), size, progress, memory)
            results, missing = bench.measured(peers=peers)
        finally:
            spark.stop()
    results += memory_of(memory)
    return Report("pipeline", machine(), tuple(results), tuple(missing), ratios(results))


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, size: Size, progress: Progress, memory: PeakMemory) -> None:
        self._spark, self._folder, self._size, self._progress = spark, folder, size, progress
        self._memory = memory

    def measured(self, *, peers: bool) -> tuple[list[Measurement], list[Missing]]:
        from nearcast.benchmark import pipeline_streaming as streaming

        size, folder = self._size, self._folder
        self._progress("making the tables")
        small = snapshot(folder / "small", size.clients // 10, size.events // 10)
        courses = {
            "snapshot": snapshot(folder / "snapshot", size.clients, size.events),
            "as-of": as_of(folder / "as-of", size.moving_clients, size.moving_events, size.seconds),
        }
        results: list[Measurement] = []
        missing = [Missing("sedona", reason)] if (reason := unavailable_on_spark()) else []
        growth = self._growth(small, courses["snapshot"], results)
        results.append(self._measure(OURSELVES, "as-of", courses["as-of"], partial(self._run_ours, courses["as-of"])))
        if peers:
            for number, (course, tables) in enumerate(courses.items()):
                results += self._peers(course, tables, number, missing)
                before = next(
                    row for row in results if (row.system, row.parameters.get("course")) == (OURSELVES, course)
                )
                results[results.index(before)] = self._again(before, tables)
        else:
            missing += [Missing(name, "left out on request") for name in (*pipeline_peers.SYSTEMS, SEDONADB)]
        results += [growth, self._skew()]
        results += streaming.measured(self._spark, quick=self._size is QUICK, progress=self._progress)
        return results, missing

    def _run_ours(self, tables: Tables) -> None:
        _consume(self._ours(tables))

    def _ours(self, tables: Tables) -> DataFrame:
        from nearcast.pipeline.matching import match

        return match(*tables.frames(self._spark))

    def _peers(self, course: str, tables: Tables, number: int, missing: list[Missing]) -> list[Measurement]:
        results = []
        parts: dict[float, tuple[Tables, Answers]] = {}
        for name, shares in self._size.shares.items():
            if name == SEDONADB and (reason := unavailable()) is not None:
                if number == 0:
                    missing.append(Missing(name, reason))
                continue
            share = shares[number]
            if share not in parts:
                self._progress(f"{course}: {share:.1%} of the tables for peers, and our answers to them")
                folder = self._folder / f"{course}-{len(parts)}"
                taken = tables if share == 1 else part(tables, folder, self._spark, share)
                parts[share] = taken, answers(exploded(self._ours(taken)))
                if share != 1:
                    results.append(self._measure(OURSELVES, course, taken, partial(self._run_ours, taken), share))
            results.append(self._peer(name, course, *parts[share], share))
        return results

    def _peer(self, name: str, course: str, tables: Tables, ours: Answers, share: float) -> Measurement:
        if name == SEDONADB:
            return self._sedonadb(course, tables, ours, share)
        near = pipeline_peers.SYSTEMS[name]
        found = answers(pipeline_peers.pairs(self._spark, tables, near))
        row = self._measure(
            name, course, tables, lambda: _consume(pipeline_peers.pairs(self._spark, tables, near)), share
        )
        return with_agreement(row, ours.pairs, found.pairs, same_checksum=found == ours)

    def _sedonadb(self, course: str, tables: Tables, ours: Answers, share: float) -> Measurement:
        """In the plane some pairs at the border of an area are on its other side: so it is counted how many differ."""
        sedona = SedonaTables(tables)
        pairs = written(self._spark, sedona.pairs(), self._folder / f"{course} of {SEDONADB}")
        row = self._measure(SEDONADB, course, tables, sedona.pairs, share)
        differing = different(exploded(self._ours(tables)), pairs)
        return with_agreement(row, ours.pairs, pairs.count(), different_pairs=differing)

    def _measure(
        self, system: str, course: str, tables: Tables, work: Callable[[], Any], share: float = 1.0
    ) -> Measurement:
        # Java keeps what a peer before has made it take: of ours only what was run before all peers says something.
        with self._memory.during((system, course)) if share == 1 or system != OURSELVES else nullcontext():
            rates = [self._rate(system, course, tables, work) for _ in range(self._size.runs)]
        about = {"course": course, "clients": tables.clients, "events": tables.events, "share": round(share, 4)}
        return _measurement(system, about, rates)

    def _again(self, before: Measurement, tables: Tables) -> Measurement:
        """Our own rate, from the runs before all peers and as many behind them."""
        course, work = before.parameters["course"], partial(self._run_ours, tables)
        more = [self._rate(OURSELVES, course, tables, work) for _ in range(self._size.runs)]
        return _measurement(OURSELVES, before.parameters, [*before.parameters["runs"], *more])

    def _rate(self, system: str, course: str, tables: Tables, work: Callable[[], Any]) -> float:
        started = time.perf_counter()
        work()
        rate = tables.events / (time.perf_counter() - started)
        self._progress(f"{course}: {system} {rate:,.0f} events/s")
        return rate

    def _growth(self, small: Tables, large: Tables, results: list[Measurement]) -> Measurement:
        """How many times as much an event costs with ten times as many of everything, at the same density."""
        self._progress("warming up")
        self._run_ours(small)
        tenth = self._measure(OURSELVES, "a tenth of the snapshot", small, partial(self._run_ours, small))
        whole = self._measure(OURSELVES, "snapshot", large, partial(self._run_ours, large))
        results += [tenth, whole]
        parameters = {"events": large.events, "from_events": small.events}
        return Measurement(OURSELVES, "growth", "1", tenth.value / whole.value, parameters)

    def _skew(self) -> Measurement:
        """Three in ten clients, and events, on a hundredth of the city: how much longer the slowest task takes than the median."""
        from nearcast.pipeline.matching import MatchSettings, Strategy, match
        from nearcast.pipeline.matching.changes import changes_of
        from nearcast.pipeline.matching.planner import plan_match

        size = self._size
        tables = snapshot(self._folder / "crowded", size.crowded_clients, size.crowded_events, crowded=True)
        events, reports, subscriptions = tables.frames(self._spark)
        settings = MatchSettings(strategy=Strategy.BLOCKS, cells=CROWDED_CELLS)
        changes = changes_of(reports, subscriptions, None, None)
        plan = plan_match(events, changes, settings)
        assert plan.blocks is not None
        found = match(events, reports, subscriptions, settings=settings)
        value = slowest_over_median(self._spark, plan.groups, lambda: _consume(found))
        self._progress(f"crowded: slowest task over median {value:.2f}")
        parameters = {
            "clients": tables.clients, "events": tables.events, "tasks": plan.groups,
            "split_cells": sum(parts > 1 for parts in plan.blocks.parts), "parts_of_the_hottest": max(plan.blocks.parts),
        }  # fmt: skip
        return Measurement(OURSELVES, "slowest_task_over_median", "1", value, parameters)


def _measurement(system: str, about: dict[str, Any], rates: list[float]) -> Measurement:
    return Measurement(system, METRIC, "1/s", median(rates), {**about, "runs": [round(rate) for rate in rates]})


def _consume(found: DataFrame) -> None:
    """Compute all rows, and throw them away."""
    found.write.format("noop").mode("overwrite").save()


def memory_of(memory: PeakMemory) -> list[Measurement]:
    """Of each system on each course, and of everything together."""
    rows = [
        Measurement(system, "peak_memory_bytes", "B", float(size), {"course": course, "processes": "all while it ran"})
        for (system, course), size in memory.of.items()
    ]
    said = {"course": "all, peers and streams included", "processes": "all of the session"}
    return [*rows, Measurement(OURSELVES, "peak_memory_bytes", "B", float(memory.bytes), said)]


def ratios(results: list[Measurement]) -> dict[str, float]:
    """How many times our rate is that of each peer, course by course."""
    rates = [row for row in results if row.metric == METRIC]
    ours = {(row.parameters["course"], row.parameters["share"]): row.value for row in rates if row.system == OURSELVES}
    found = {}
    for row in rates:
        if row.system != OURSELVES:
            name = f"{OURSELVES}/{row.system} {METRIC} {row.parameters['course']}"
            found[name] = round(ours[row.parameters["course"], 1.0] / row.value, 4)
            if row.parameters["share"] != 1:
                same = ours[row.parameters["course"], row.parameters["share"]]
                found[f"{name} same share"] = round(same / row.value, 4)
    return found
