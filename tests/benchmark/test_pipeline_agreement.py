"""What ``nearcast bench pipeline`` says beside rates: whether peers find the same pairs, and who takes how much memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from nearcast.benchmark import pipeline_measures
from nearcast.benchmark.pipeline import memory_of
from nearcast.benchmark.pipeline_agreement import answers, different, exploded, written
from nearcast.benchmark.pipeline_measures import PeakMemory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_pairs_are_compared_by_what_they_are_not_by_their_number(spark: SparkSession, tmp_path: Path) -> None:
    ours = exploded(spark.createDataFrame([(1, [7, 8]), (2, [7]), (3, [])], "event bigint, receivers array<bigint>"))

    def theirs(name: str, *pairs: tuple[int, int]) -> pa.Table:
        columns = {"event": [event for event, _ in pairs], "client": [client for _, client in pairs]}
        half = pa.table(columns)
        return written(spark, [half[:1], half[1:]], tmp_path / name)

    same, other = theirs("same", (2, 7), (1, 8), (1, 7)), theirs("other", (2, 7), (1, 8), (1, 9))
    twice = theirs("twice", (2, 7), (1, 8), (1, 7), (1, 7))
    assert [different(ours, pairs) for pairs in (same, other, twice)] == [0, 2, 1]
    assert [answers(pairs) == answers(ours) for pairs in (same, other, twice)] == [True, False, False]
    assert answers(other).pairs == answers(ours).pairs


def test_memory_counts_for_whoever_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([30, 50, 10, 70, 20])
    monkeypatch.setattr(pipeline_measures, "_family", lambda _: [0])
    monkeypatch.setattr(pipeline_measures, "_proportional", lambda _: next(used))
    memory = PeakMemory()
    with memory.during(("nearcast", "as-of")):
        memory._look()
    memory._look()
    with memory.during(("peer", "as-of")):
        memory._look()
    rows = {(row.system, row.parameters["course"]): row.value for row in memory_of(memory)}
    assert rows == {
        ("nearcast", "as-of"): 50.0,
        ("peer", "as-of"): 70.0,
        ("nearcast", "all, peers and streams included"): 70.0,
    }
