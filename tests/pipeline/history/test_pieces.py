"""Spark finds in the archives of all nodes what each of them finds in its own."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.overlay.temporal.test_historical import lived, predicate, worth_sending

from nearcast.pipeline.history.pieces import spans, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_answers_as_the_nodes_do(spark: SparkSession) -> None:
    random = Random(7)
    town, instants = lived(random, depth=1, steps=120)
    events = [worth_sending(town, random, instants, f"e{number}") for number in range(40)]
    events += [town.event("TRUE", predicate(random, instants, town.now), name=f"all {number}") for number in range(5)]
    archives = [(name, temporal.archive) for name, temporal in town.temporal.items()]
    rows = spans(spark.createDataFrame(table_of(archives)), events).collect()
    wanted = {
        (node, event.id, span.vid, span.conjunct, span.start, span.end)
        for node, archive in archives
        for event in events
        for span in archive.spans(event)
    }
    assert {tuple(row) for row in rows} == wanted
    assert len(rows) == len(wanted) > 50
