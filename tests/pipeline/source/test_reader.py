"""Spark reads a broker's journal as tables: at once or as a stream, from the lake and from what is not there yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.clocks import START
from tests.pipeline.source.live_broker import LiveBroker

from nearcast.errors import InvalidSettings
from nearcast.journal import EventEntry, ReportEntry
from nearcast.model.time import to_datetime, to_text
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.source import options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DAY = 86_400_000_000


def event(number: int, at: int = 0) -> EventEntry:
    return EventEntry(f"e{number}", "city/jam", START + at + number, b"x", receivers=("r1", "r2"))


def read(session: SparkSession, broker: LiveBroker, table: str = "events", **more: str) -> DataFrame:
    given = {"table": table, "broker": broker.url, "lake": str(broker.lake), **more}
    return session.read.format("nearcast").options(**given).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("offset").collect())


def test_a_table_is_read_across_the_lake_and_the_journal(session: SparkSession, broker: LiveBroker) -> None:
    broker.written(*(event(number) for number in range(5)))
    broker.export()
    broker.trim()
    broker.written(*(event(number) for number in range(5, 9)), ReportEntry(START, "p", 49.5, 8.5))
    frame = read(session, broker, offsetsPerPartition="2")
    assert frame.schema == spark_schema("events")
    assert frame.rdd.getNumPartitions() == 4
    found = sorted(map(tuple, frame.collect()), key=lambda row: row[-1])
    tail = (b"x", None, None, None, None, None, None)
    assert [(row[1], row[3], row[9], *row[10:]) for row in found] == [
        (f"e{number}", "city/jam", ["r1", "r2"], *tail, number) for number in range(9)
    ]
    seconds = frame.selectExpr("unix_micros(time)").orderBy("offset")
    assert [row[0] for row in seconds.collect()] == [START + number for number in range(9)]
    assert numbers(read(session, broker, "reports")) == [9]
    assert numbers(read(session, broker, startingOffset="7")) == [7, 8]
    assert numbers(read(session, broker, startingOffset="5", endingOffset="7")) == [5, 6]


def test_an_empty_table_is_a_frame_without_rows(session: SparkSession, broker: LiveBroker) -> None:
    assert read(session, broker, "contexts").collect() == []


def test_only_the_columns_that_are_asked_for_are_read(session: SparkSession, broker: LiveBroker) -> None:
    from pyspark.sql.types import StructType

    broker.written(event(0))
    broker.export()
    broker.written(event(1))
    few = StructType([field for field in spark_schema("events") if field.name in {"event", "receivers"}])
    given = {"table": "events", "broker": broker.url, "lake": str(broker.lake)}
    frame = session.read.format("nearcast").schema(few).options(**given).load()
    assert sorted(map(tuple, frame.collect())) == [("e0", ["r1", "r2"]), ("e1", ["r1", "r2"])]


def test_bounds_of_the_time_leave_out_the_files_of_other_days(session: SparkSession, broker: LiveBroker) -> None:
    for day in range(4):
        broker.written(event(0, day * DAY), event(1, day * DAY))
        broker.export()
    (first,) = broker.lake.glob(f"events/date={to_datetime(START).date()}/*.parquet")
    first.write_bytes(b"")  # would fail if it was opened
    frame = read(session, broker)
    since, until = (to_text(START + edge) for edge in (DAY + 1, 2 * DAY))
    between = frame.where(f"time >= timestamp'{since}' and time <= timestamp'{until}'")
    assert numbers(between) == [3, 4]
    assert numbers(frame.where(f"time = timestamp'{until}'")) == [4]
    assert between.rdd.getNumPartitions() == 1


def started(
    session: SparkSession, broker: LiveBroker, folder: Path, more: dict[str, str], *, once: bool = True
) -> StreamingQuery:
    given = {"table": "events", "broker": broker.url, "lake": str(broker.lake), **more}
    frame = session.readStream.format("nearcast").options(**given).load()
    writer = frame.select("offset", "event").writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()


def run_once(session: SparkSession, broker: LiveBroker, folder: Path, **more: str) -> list[dict[str, Any]]:
    """Until all that is available now is written; how far each micro-batch went."""
    query = started(session, broker, folder, more)
    query.awaitTermination()
    return [dict(progress) for progress in query.recentProgress if progress["numInputRows"]]


def test_a_stream_goes_on_where_it_ended_reads_each_offset_once_and_never_too_many_of_them(
    session: SparkSession, broker: LiveBroker, tmp_path: Path
) -> None:
    broker.written(*(event(number) for number in range(6)))
    run_once(session, broker, tmp_path, endingOffset="4")
    assert numbers(session.read.parquet(str(tmp_path / "out"))) == [0, 1, 2, 3]
    assert run_once(session, broker, tmp_path, endingOffset="3") == [], "it was further already"
    broker.export()
    broker.trim()
    broker.written(*(event(number) for number in range(6, 10)))
    batches = run_once(session, broker, tmp_path, maxRowsPerTrigger="4")
    assert [batch["numInputRows"] for batch in batches] == [4, 2]
    assert run_once(session, broker, tmp_path) == []
    assert numbers(session.read.parquet(str(tmp_path / "out"))) == list(range(10))


def test_what_is_written_while_a_stream_runs_comes_too(
    session: SparkSession, broker: LiveBroker, tmp_path: Path
) -> None:
    broker.written(event(0))
    query = started(session, broker, tmp_path, {"startingOffset": "latest"}, once=False)
    try:
        query.processAllAvailable()
        for number in range(1, 4):
            broker.written(event(number))
            query.processAllAvailable()
    finally:
        query.stop()
    assert numbers(session.read.parquet(str(tmp_path / "out"))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lake": "x"}, "option table is ''; what can be read is events, reports, late_reports, contexts"),
        ({"table": "messages", "lake": "x"}, "option table is 'messages'"),
        ({"table": "events"}, "nowhere to look"),
        ({"table": "events", "broker": "localhost:8080"}, "expected the address of its HTTP port"),
        ({"table": "events", "lake": "x", "startingOffset": "first"}, "expected earliest, latest or an offset"),
        ({"table": "events", "lake": "x", "maxRowsPerTrigger": "0"}, "expected a whole number from 1 on"),
        ({"table": "events", "lake": "x", "startFrom": "0"}, "unknown options startfrom"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        options.reading(given)


def test_a_password_is_not_shown() -> None:
    given = {"table": "events", "broker": "http://h:1", "user": "op", "password": "secret"}
    assert "secret" not in repr(options.reading(given))


def test_columns_that_the_table_does_not_have_are_refused(session: SparkSession, broker: LiveBroker) -> None:
    frame = session.read.format("nearcast").schema("event string, speed double").option("table", "events")
    with pytest.raises(Exception, match="events has no columns speed"):
        frame.option("lake", str(broker.lake)).load().collect()
