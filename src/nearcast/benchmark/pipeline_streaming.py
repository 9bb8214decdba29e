"""Matching on a stream, as fast as events happen: how many a second, and how long each takes from its instant to the sink."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from py4j.protocol import Py4JJavaError

from nearcast.benchmark.pipeline_stream_source import EVENT, REPORT, StreamWorkload, Synthetic, steps
from nearcast.benchmark.report import OURSELVES, Measurement
from nearcast.errors import BenchmarkError
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.streaming import StreamSettings, match_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_BEHIND: Final = 0.05
"""Seconds by which one stream may be ahead of the other: they are asked one after the other how far they go."""

_PATIENCE: Final = 120.0
"""Seconds for what has happened to come out, on a machine that is busy with something else."""


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    events: int
    """That happened in those seconds, and came out."""
    seconds: float
    arrived: int
    """That came out in those seconds, whenever they happened."""
    receivers: int
    p50: float
    """Seconds from the instant of an event until all of its batch are in the driver."""
    p95: float
    batches: int
    wrong: int
    """Events that came out late, twice or not at all."""

    @property
    def events_per_second(self) -> float:
        return self.arrived / self.seconds


@dataclass(frozen=True, eq=False, slots=True)
class _Arrival:
    """A batch of answers: when it was there, and of what."""

    at: float
    instants: Any
    receivers: int
    late: int


class _Sink:
    """Takes every row into the driver."""

    def __init__(self) -> None:
        self.arrivals: list[_Arrival] = []
        self.lock = threading.Lock()
        self.ended = False

    def __call__(self, batch: DataFrame, _number: int) -> None:
        try:
            answers = batch.toArrow()
        except Py4JJavaError:
            if self.ended:  # it was in the middle of a batch that nobody waits for
                return
            raise
        now = time.time()
        instants = answers.column("time").cast("int64").to_numpy() / MICROSECONDS
        receivers = len(answers.column("receivers").combine_chunks().flatten())
        late = sum(answers.column("late").to_pylist())
        with self.lock:
            self.arrivals.append(_Arrival(now, instants, receivers, late))


def run_stream(spark: SparkSession, workload: StreamWorkload, warm_up: float, seconds: float) -> StreamOutcome:
    """Events of ``seconds`` seconds, after a while in which everything becomes warm."""
    spark.dataSource.register(Synthetic)
    options = {name: str(value) for name, value in asdict(workload).items()}

    def stream(kind: int) -> DataFrame:
        return spark.readStream.format(Synthetic.name()).options(kind=str(kind), **options).load()

    sink, settings = _Sink(), StreamSettings(delay=_BEHIND)
    with _partitions(spark, settings.parts), tempfile.TemporaryDirectory(prefix="nearcast-stream-") as folder:
        answers = match_stream(stream(EVENT), stream(REPORT), _subscribed(spark, workload, folder), settings=settings)
        query = answers.writeStream.foreachBatch(sink).option("checkpointLocation", f"{folder}/checkpoint").start()
        try:
            _wait(query, lambda: bool(sink.arrivals))  # before, nothing happens
            query.awaitTermination(round(warm_up))
            first = time.time()
            query.awaitTermination(round(seconds))
            last = time.time()
            # What happened before then must have come out; what comes after does not count.
            _wait(query, lambda: _complete(sink, last))
        finally:
            problem, sink.ended = query.exception(), True
            query.stop()
    if problem is not None:
        raise BenchmarkError(f"the stream failed: {problem}")
    return _outcome(sink, workload, first, last)


def _wait(query: StreamingQuery, done: Callable[[], bool]) -> None:
    deadline = time.time() + _PATIENCE
    while query.isActive and not done() and time.time() < deadline:
        query.awaitTermination(1)


@contextmanager
def _partitions(spark: SparkSession, count: int) -> Iterator[None]:
    """A stream has as many tasks as there are partitions when it begins."""
    name = "spark.sql.shuffle.partitions"
    before = str(spark.conf.get(name))
    spark.conf.set(name, count)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def _subscribed(spark: SparkSession, workload: StreamWorkload, folder: str) -> DataFrame:
    """Everybody, from the beginning: one file, which is a stream that says no more."""
    from pyspark.sql import functions as F

    frame = spark.range(workload.clients).select(
        F.timestamp_seconds(F.lit(0)).alias("time"),
        F.col("id").alias("client"),
        F.lit("s").alias("subscription"),
        F.lit("subscribed").alias("action"),
        F.lit("city/#").alias("topic_filter"),
        F.lit(workload.radius).alias("radius"),
    )
    frame.coalesce(1).write.parquet(f"{folder}/subscriptions")
    return spark.readStream.schema(frame.schema).parquet(f"{folder}/subscriptions")


def _complete(sink: _Sink, instant: float) -> bool:
    with sink.lock:
        return any(len(each.instants) and each.instants.max() >= instant for each in sink.arrivals)


def _outcome(sink: _Sink, workload: StreamWorkload, first: float, last: float) -> StreamOutcome:
    inside = [(each, (each.instants >= first) & (each.instants < last)) for each in sink.arrivals]
    inside = [(each, which) for each, which in inside if which.any()]
    if not inside:
        raise BenchmarkError("no event came out of the stream")
    age = np.concatenate([each.at - each.instants[which] for each, which in inside])
    due = len(steps(workload.events_per_second, *(round(instant * MICROSECONDS) for instant in (first, last))))
    receivers = sum(each.receivers for each, _ in inside) / sum(len(each.instants) for each, _ in inside)
    p50, p95 = (float(np.percentile(age, share)) for share in (50, 95))
    distinct = len(np.unique(np.concatenate([each.instants[which] for each, which in inside])))  # no two at one instant
    wrong = (due - distinct) + (len(age) - distinct) + sum(each.late for each, _ in inside)
    arrived = sum(len(each.instants) for each in sink.arrivals if first <= each.at < last)
    return StreamOutcome(len(age), last - first, arrived, round(receivers * len(age)), p50, p95, len(inside), wrong)


def measured(spark: SparkSession, *, quick: bool, progress: Callable[[str], None]) -> list[Measurement]:
    """As many events a second as are asked for, and twice as many; how long each takes."""
    rates = (1_000,) if quick else (10_000, 20_000)
    warm_up, seconds = (5.0, 10.0) if quick else (60.0, 60.0)
    results = []
    for rate in rates:
        workload = StreamWorkload(events_per_second=rate, clients=10 * rate)
        progress(f"streaming: {rate:,} events/s")
        outcome = run_stream(spark, workload, warm_up, seconds)
        progress(f"streaming: p50 {outcome.p50:.2f} s, p95 {outcome.p95:.2f} s")
        parameters = {
            "asked_per_second": rate,
            "clients": workload.clients,
            "receivers_per_event": round(outcome.receivers / outcome.events, 1),
            "seconds": round(outcome.seconds),
            "batches": outcome.batches,
            "wrong": outcome.wrong,
        }
        for metric, unit, value in (
            ("stream_events_per_second", "1/s", outcome.events_per_second),
            ("stream_p50_seconds", "s", outcome.p50),
            ("stream_p95_seconds", "s", outcome.p95),
        ):
            results.append(Measurement(OURSELVES, metric, unit, value, parameters))
    return results
