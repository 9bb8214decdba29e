"""Spark reads the folder of a table as it is."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from nearcast.model.time import to_datetime
from nearcast.records import RecordWriter, content, storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_reads_a_table_of_several_files_with_nulls_and_lists(spark: SparkSession, tmp_path: Path) -> None:
    moment = 1_763_200_000_123_456
    events = [
        (moment + row, f"e{row}", f"client-{row % 3}", "t", 49.5, 8.25, None, 128, "AR", ["ada", "bob"][: row % 3])
        for row in range(20)
    ]
    with (
        patch.object(content, "ROWS", 4),
        patch.object(storage, "ROWS_IN_PART", 8),
        RecordWriter(tmp_path) as recording,
    ):
        for event in events:
            recording.append("events", *event)
    assert len(list((tmp_path / "events").iterdir())) == 3

    frame = spark.read.parquet(str(tmp_path / "events"))
    assert frame.dtypes == [
        *(("time", "timestamp"), ("event", "string"), ("publisher", "string"), ("topic", "string")),
        *(("lat", "double"), ("lon", "double"), ("reach", "double"), ("bytes", "bigint")),
        *(("workload", "string"), ("receivers", "array<string>"), ("payload", "binary")),
        *(("tags", "array<string>"), ("attributes", "string"), ("reach_area", "string")),
        *(("addressing", "string"), ("timing", "string"), ("lifetime", "bigint"), ("offset", "bigint")),
    ]
    found = [tuple(row) for row in frame.orderBy("time").collect()]
    # Spark hands out naive local times.
    assert [(row[0].astimezone(UTC), *row[1:10]) for row in found] == [
        (to_datetime(row[0]), *row[1:]) for row in events
    ]
    assert {row[10:] for row in found} == {(None,) * 8}


def test_metrics_are_group_bys_and_joins_over_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as recording:
        recording.append("events", 0, "e1", "ada", "t", None, None, None, 128, "AR", ["bob", "cyd"])
        recording.append("events", 0, "e2", "bob", "t", None, None, None, 128, "AR", [])
        recording.append("notifications", 5, "e1", "bob", "cloud", "delivered", 5, 2)
        recording.append("notifications", 6, "e1", "bob", "wifi", "duplicate", 6, 1)
        recording.append("notifications", 7, "e1", "dan", "cloud", "unwanted", 7, 2)
    for name in ("events", "notifications"):
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    correct = """
        SELECT event, size(receivers), count(DISTINCT client), count(DISTINCT client)
        FILTER (WHERE array_contains(receivers, client))
        FROM events LEFT JOIN notifications USING (event) GROUP BY event, receivers ORDER BY event
    """
    assert [tuple(row) for row in spark.sql(correct).collect()] == [("e1", 2, 2, 1), ("e2", 0, 0, 0)]
    whole = spark.read.parquet(str(tmp_path / "positions"))
    assert whole.count() == 0
