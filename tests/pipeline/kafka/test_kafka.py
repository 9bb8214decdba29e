"""Kafka as sink and as journal: rows go into topics and come out again, each once, and in limited batches."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.pipeline.frames import assert_same_rows, rows_of, table_frame
from tests.pipeline.kafka.mock_kafka import mock_kafka, put, values
from tests.pipeline.source.live_broker import live_broker
from tests.pipeline.tables.lakes import NOON, event, report

from nearcast.cli import main
from nearcast.errors import InvalidSettings, OffsetTrimmed
from nearcast.journal import ClientEntry, EventEntry, ReportEntry
from nearcast.pipeline.kafka import messages, options, read_topic, register, rows
from nearcast.pipeline.kafka.reader import StreamReader
from nearcast.pipeline.kafka.stretch import Topic, have_topics
from nearcast.pipeline.kafka.writer import send
from nearcast.pipeline.limits import MOST_ROWS
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.session import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

confluent_kafka = pytest.importorskip("confluent_kafka")
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with mock_kafka() as address:
        yield address


def reports(spark: SparkSession, number: int) -> DataFrame:
    return table_frame(spark, "reports", [report(f"c{index}", NOON + index, offset=index) for index in range(number)])


def test_a_row_comes_out_of_its_message_as_it_went_in(spark: SparkSession) -> None:
    said = {"payload": b"\x00\xff", "tags": ["a", "b"], "attributes": '{"x": "\\u00fc"}', "lifetime": 2**53 + 1}
    events = table_frame(spark, "events", [event("e", NOON + 1, lat=0.1 + 0.2, **said), event("f", lat=None, lon=None)])
    sent = messages({"t": events}).selectExpr("*", "0 as partition", "0 as offset")
    back = rows(sent, "events")
    assert back.schema.simpleString() == spark_schema("events").simpleString()
    assert_same_rows(rows_of(back), rows_of(events))
    keys = {(row["key"], json.loads(row["value"])["time"]) for row in sent.collect()}
    assert keys == {("e", "2026-03-16T12:00:00.000001Z"), ("f", "2026-03-16T12:00:00.000000Z")}


def test_a_topic_is_read_as_a_table_and_as_a_stream(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    client, topic = {"bootstrap.servers": servers}, "test.reports"
    register(spark)
    where = {"kafka.bootstrap.servers": servers, "topic": topic}
    made = reports(spark, 10)
    messages({topic: made}).write.format("nearcast-kafka").options(**where).mode("append").save()
    assert_same_rows(rows_of(read_topic(spark, client, topic, "reports", stream=False)), rows_of(made))

    def copied() -> list[int]:
        """Rows of each batch of a stream from that topic into another one."""
        read = read_topic(spark, client, topic, "reports", maxRowsPerTrigger="6")
        writer = messages({"test.copy": read}).writeStream.format("nearcast-kafka")
        writer = writer.options(**{**where, "topic": "test.copy"}).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    batches = copied()
    assert sum(batches) == 10
    assert max(batches) <= 6
    put(servers, topic, *(row["value"] for row in messages({topic: reports(spark, 1)}).collect()))
    assert copied() == [1], "it goes on where it was"
    assert sorted(row["offset"] for row in values(servers, "test.copy")) == sorted([*range(10), 0])


class TransactionalProducer(confluent_kafka.Producer):  # type: ignore[misc, name-defined]
    """What the mock leaves out: the offsets of a transaction count once it is committed."""

    _offsets: Any = None
    dies_at: str | None = None

    def send_offsets_to_transaction(self, positions: Any, group: Any, timeout: float) -> None:
        super().send_offsets_to_transaction(positions, group, timeout)
        self._offsets = positions

    def commit_transaction(self, timeout: float) -> None:
        if TransactionalProducer.dies_at == "before the commit":
            raise KeyboardInterrupt
        super().commit_transaction(timeout)
        settings = {"bootstrap.servers": _servers, "group.id": _group, "log_level": 0}
        consumer = confluent_kafka.Consumer(settings)
        consumer.commit(offsets=self._offsets, asynchronous=False)
        consumer.close()
        if TransactionalProducer.dies_at == "after the commit":
            raise KeyboardInterrupt


_servers = _group = ""


def test_a_batch_that_is_run_again_finds_what_it_has_sent(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    global _servers, _group  # Kafka's client makes the producers
    _servers, _group = servers, "nearcast-q-0"
    monkeypatch.setattr(confluent_kafka, "Producer", TransactionalProducer)
    monkeypatch.setattr(TransactionalProducer, "dies_at", None)
    to = options.checked({"kafka.bootstrap.servers": servers, "kafka.log_level": "0", "topic": "test.once"})

    def sent(batch: int, *texts: str) -> int:
        return send(to, iter([pa.RecordBatch.from_pydict({"value": list(texts)})]), _group, batch)

    assert (sent(0, "1", "2"), sent(0, "1", "2"), sent(1, "3")) == (2, 0, 1)
    monkeypatch.setattr(TransactionalProducer, "dies_at", "after the commit")
    with pytest.raises(KeyboardInterrupt):
        sent(2, "4")
    monkeypatch.setattr(TransactionalProducer, "dies_at", None)
    assert (sent(2, "4"), sent(3, "5")) == (0, 1)
    assert sorted(values(servers, "test.once")) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(TransactionalProducer, "dies_at", "before the commit")
    with pytest.raises(KeyboardInterrupt):
        sent(4, "6")
    monkeypatch.setattr(TransactionalProducer, "dies_at", None)
    assert sent(4, "6") == 1, "what was not committed is sent again"


@pytest.mark.parametrize("text", ['{"time": "2026-03-16T12:00:00Z", "client": "a"', '{"client": "a"}', "7"])
def test_a_message_that_is_no_row_is_named(spark: SparkSession, text: str) -> None:
    found = spark.createDataFrame([("t", 3, 9, text)], "topic string, partition int, offset bigint, value string")
    with pytest.raises(Exception, match=r"topic t partition 3 offset 9 is no row of reports: .*"), spark_failures():
        rows(found, "reports").collect()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "t"}, "where is Kafka"),
        ({"kafka.bootstrap.servers": "h:1"}, "which topic"),
        ({"kafka.bootstrap.servers": "h:1", "topic": "t", "startingOffset": "3"}, "expected earliest or latest"),
        ({"kafka.bootstrap.servers": "h:1", "topic": "t", "maxRowsPerTrigger": "0"}, "a whole number from 1 on"),
        ({"kafka.bootstrap.servers": "h:1", "topic": "t", "servers": "x"}, "unknown options servers"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        options.checked(given)


def test_a_backlog_is_taken_in_several_batches_unless_told_otherwise() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    assert options.checked(given).most_rows == MOST_ROWS
    assert options.checked({**given, "maxRowsPerTrigger": "7"}).most_rows == 7


def test_a_password_is_not_shown() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t", "kafka.sasl.password": "secret"}
    assert "secret" not in repr(options.checked(given))


@pytest.fixture
def config(servers: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "pipeline.toml"
    file.write_text(f'[kafka]\nservers = "{servers}"\nprefix = "{tmp_path.name}."\nsettings = {{ log_level = "0" }}\n')
    return ["--config", str(file), "--json"]


def test_a_topic_that_was_made_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StreamReader(options.checked({"kafka.bootstrap.servers": "localhost:1", "topic": "nearcast.events"}))
    monkeypatch.setattr(Topic, "extents", lambda _: {0: (0, 50)})
    assert stream.latestOffset({"0": 20}, ReadAllAvailable()) == {"0": 50}
    with pytest.raises(OffsetTrimmed, match="ends at 50, before the 1000 that was read: it was made anew"):
        stream.latestOffset({"0": 1000}, ReadAllAvailable())


def test_a_journal_is_forwarded_once(
    spark: SparkSession, servers: str, config: list[str], tmp_path: Path, capsys: Output
) -> None:
    with live_broker(tmp_path / "data") as broker:
        broker.written(
            EventEntry("e", "t", NOON), ReportEntry(NOON, "ada", 49.0, 8.0), ClientEntry(NOON, "ada", "left")
        )
        where = ["--broker", broker.url, "--lake", str(broker.lake), *config]
        for _ in range(2):
            assert main(["pipeline", "forward", "--once", "--table", "events", "--table", "reports", *where]) == 0
    topics = [f"{tmp_path.name}.events", f"{tmp_path.name}.reports"]
    assert json.loads(capsys.readouterr().out.partition("\n{")[0])["topics"] == topics
    [[event_], [report_]] = (values(servers, topic) for topic in topics)
    assert (event_["event"], event_["offset"], report_["client"], report_["lat"]) == ("e", 0, "ada", 49.0)


def test_topics_are_matched_into_a_topic(
    spark: SparkSession, servers: str, config: list[str], tmp_path: Path, capsys: Output
) -> None:
    at = time.time_ns() // 1000 - 10_000_000
    wanted = {"subscription": "", "action": "subscribed", "topic_filter": "t", "radius": 500.0}
    recorded = {  # more reports than a batch takes: they are still coming when the event has been read
        "reports": [*(report("bob", at - index, lat=48.0) for index in (2, 1)), report("bob", at)],
        "subscriptions": [{"time": at, "client": "bob", **wanted}],
        "events": [event("near", at + 1), event("far", at + 1, lat=48.0)],
    }
    where = ["--warehouse", str(tmp_path / "warehouse"), *config]
    assert main(["pipeline", "stream", "--once", "--from-kafka", "--to-kafka", *where]) == 1
    assert f"has no topic '{tmp_path.name}.events', and makes none by itself" in capsys.readouterr().err
    topics = {name: f"{tmp_path.name}.{name}" for name in ("reports", "subscriptions", "events", "contexts", "clients")}
    have_topics({"bootstrap.servers": servers}, topics.values())
    sent = messages({topics[name]: table_frame(spark, name, found) for name, found in recorded.items()})
    for row in sent.collect():
        put(servers, row["topic"], row["value"])
    assert main(["pipeline", "stream", "--once", "--from-kafka", "--to-kafka", "--batch-rows", "2", *where]) == 0
    found = {row["event"]: row["receivers"] for row in values(servers, f"{tmp_path.name}.receivers")}
    assert found == {"near": ["bob"], "far": []}
    assert not any(row["late"] for row in values(servers, f"{tmp_path.name}.receivers"))


def test_without_kafka_in_the_settings_nothing_is_forwarded(tmp_path: Path, capsys: Output) -> None:
    assert main(["pipeline", "forward", "--broker", "http://localhost:1"]) == 1
    assert "where is Kafka? Say it in the settings file" in capsys.readouterr().err
