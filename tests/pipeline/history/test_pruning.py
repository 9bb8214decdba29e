"""Only the partitions in which answers may lie are read, nothing is multiplied out, and no Python runs row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.pipeline.frames import plain_table
from tests.pipeline.history.recorded import TABLES, Asked, event_row, questions_of

from nearcast.errors import InvalidSubscription
from nearcast.model.area import Box, Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import Instant, TimeFrame, instant
from nearcast.pipeline.cells import coarse_cell
from nearcast.pipeline.history.archive import Archive
from nearcast.pipeline.history.messages import historical_receivers
from nearcast.pipeline.history.past import past
from nearcast.pipeline.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DARMSTADT, MANNHEIM = Point(49.8728, 8.6512), Point(49.4875, 8.4660)
FORBIDDEN = ("CartesianProduct", "NestedLoop", "BatchEvalPython", "ArrowEvalPython")


def day(number: int, hour: int = 12) -> Instant:
    return instant(datetime(2026, 1, 1, hour, tzinfo=UTC) + timedelta(days=number))


@pytest.fixture(autouse=True)
def whole_plans(spark: SparkSession) -> Iterator[None]:
    """Else Spark shortens what it says of filters."""
    spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
    yield
    spark.conf.unset("spark.sql.maxMetadataStringLength")


@pytest.fixture(scope="module")
def archive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Ten days in two cities: an event at noon, and somebody who is there from the morning on and wants everything."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for number in range(10):
        for name, where in (("d", DARMSTADT), ("m", MANNHEIM)):
            client = f"{name}{number}"
            event = Event(f"{name}{number}", "news", day(number), place=where)
            rows["events"].append({**event_row(event), "offset": None})
            rows["reports"].append({"time": day(number, 8), "client": client, "lat": where.lat, "lon": where.lon})
            rows["subscriptions"].append(
                {"time": day(0, 1), "client": client, "subscription": "", "action": "subscribed", "topic_filter": "#"}
            )
    said = Event("to whom it may concern", "news", day(9, 20), reach=Circle(500.0, DARMSTADT), when=within(4, 6))
    rows["events"].append({**event_row(said), "offset": None})
    folder = tmp_path_factory.mktemp("archive")
    return Archive.of(lambda name: partitioned(spark, folder, name, rows[name]))


def within(first: int, last: int) -> TemporalPredicate:
    return TemporalPredicate("overlaps", day(first), day(last))


def partitioned(spark: SparkSession, folder: Path, name: str, rows: list[dict[str, Any]]) -> DataFrame:
    frame = spark.createDataFrame(plain_table(name, rows), spark_schema(name)).withColumn("date", F.to_date("time"))
    columns = ["date"]
    if "lat" in frame.columns:
        frame = frame.withColumn("cell", coarse_cell(F.col("lat"), F.col("lon")))
        columns.append("cell")
    frame.write.partitionBy(*columns).parquet(str(folder / name))
    schema = spark_schema(name).add("date", "date")
    return spark.read.schema(schema.add("cell", "string") if "cell" in columns else schema).parquet(str(folder / name))


def plan_of(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().executedPlan().toString()
    return text


def partition_filters(plan: str, table: str) -> list[str]:
    """Of every scan of that table."""
    scans = [line for line in plan.splitlines() if "FileScan parquet" in line and f"/{table}]" in line]
    return [found[1] for line in scans if (found := re.search(r"PartitionFilters: \[([^\]]*)\]", line))]


def question(area: Any, since: int | None, until: int | None, asked: int, client: str = "d3") -> pa.Table:
    frame = TimeFrame(*(None if bound is None else day(bound, 0) for bound in (since, until)))
    return questions_of([Asked(client, Subscription("news", area=area, frame=frame, id="q"), day(asked), None)])


def test_events_are_read_from_the_days_and_cells_of_the_questions(spark: SparkSession, archive: Archive) -> None:
    questions = pa.concat_tables([question(Circle(300.0, DARMSTADT), 2, 5, 9), question(Circle(1_000.0), 4, None, 6)])
    answers = past(spark.createDataFrame(questions), archive)
    plan = plan_of(answers)
    filters = partition_filters(plan, "events")
    assert len(filters) == 2, "one scan of events that concern everybody, and one of others"
    for each in filters:
        assert "date" in each
        assert "2026-01-03" in each
        assert "2026-01-07" in each
        assert "n49.8e8.6" in each
        assert "none" in each
        assert "n49.4e8.4" not in each
    assert not any(word in plan for word in FORBIDDEN)
    assert [[event["event"] for event in row["events"]] for row in answers.collect()] == [
        ["d2", "d3", "d4"],
        ["d4", "d5"],
    ]


def test_who_asks_about_everywhere_looks_into_all_cells(spark: SparkSession, archive: Archive) -> None:
    for area in (None, Box(-180.0, -85.0, 180.0, 85.0)):
        answers = past(spark.createDataFrame(question(area, 7, None, 9)), archive)
        assert all("cell" not in each for each in partition_filters(plan_of(answers), "events"))
        assert [[event["event"] for event in row["events"]] for row in answers.collect()] == [["d7", "m7", "d8", "m8"]]


def test_only_reports_from_the_cells_of_a_reach_tell_who_was_there(archive: Archive) -> None:
    answers = historical_receivers(archive, day(9, 23))
    plan = plan_of(answers)
    near = [each for each in partition_filters(plan, "reports") if "cell" in each]
    assert near
    for each in near:
        assert "n49.8e8.6" in each
        assert "n49.4e8.4" not in each
    assert not any(word in plan for word in FORBIDDEN)
    # A report counts until the next one, and there was none: who ever came to Darmstadt is there still.
    assert [(row["event"], row["receivers"]) for row in answers.collect()] == [
        ("to whom it may concern", [f"d{number}" for number in range(7)])
    ]


def test_a_question_about_the_future_has_no_answer(spark: SparkSession, archive: Archive) -> None:
    (row,) = past(spark.createDataFrame(question(None, 9, None, 8)), archive).collect()
    assert (row["total"], row["events"], row["next"]) == (0, [], None)


def test_a_question_that_cannot_be_read_is_named(spark: SparkSession, archive: Archive) -> None:
    table = question(None, 1, 2, 3)
    for column, value, wrong in (
        ("condition", "severity >", "'q' of client 'd3'"),
        ("area", "far away", "is no area"),
        ("cursor", "further", "is no cursor"),
        ("topic_filter", "a/#/b", "must stand alone"),
    ):
        bad = table.set_column(table.schema.get_field_index(column), column, pa.array([value]))
        with pytest.raises(InvalidSubscription, match=wrong):
            past(spark.createDataFrame(bad), archive)
