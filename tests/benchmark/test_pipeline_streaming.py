"""The course of ``nearcast bench pipeline`` on streams: it measures what it says, on answers that are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.benchmark.pipeline_stream_source import StreamWorkload
from nearcast.benchmark.pipeline_streaming import run_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_event_of_the_time_that_counts_comes_out_once_and_none_is_late(spark: SparkSession) -> None:
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    workload = StreamWorkload(events_per_second=200, clients=600, seconds_between_reports=1.0)
    outcome = run_stream(spark, workload, warm_up=2.0, seconds=3.0)
    assert outcome.wrong == 0
    assert abs(outcome.events - 200 * outcome.seconds) < 2
    assert 20 < outcome.receivers / outcome.events < 40
    assert 0.0 < outcome.p50 <= outcome.p95
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
