"""What Spark finds goes back into the broker: events of the past to clients, and plans; each once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mqtt5 import PubAckPacket
from pyspark.sql import functions as F
from tests.broker.talker import Talker
from tests.clocks import START
from tests.pipeline.source.live_broker import LiveBroker

from nearcast.errors import InvalidSettings
from nearcast.journal import EventEntry
from nearcast.pipeline.source import options, writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANSWER = ("time", "event", "topic", "payload", "lat", "lon", "tags", "attributes", "offset")


class Client:
    """Somebody who takes all that comes."""

    def __init__(self, broker: LiveBroker, name: str) -> None:
        self._broker = broker
        self._talker = broker.run(self._arrive(name))
        self.identity = broker.server.broker.sessions.all[name].identity

    async def _arrive(self, name: str) -> Talker:
        talker = await Talker.open(self._broker.server)
        await talker.connect(name, session_expiry_interval=3_600)
        await talker.subscribe("city/#", 1)
        return talker

    def heard(self, count: int) -> list[tuple[bytes, str | None]]:
        """So many messages, and no more: what each says, and which of how many it is."""
        return self._broker.run(self._heard(count))

    async def _heard(self, count: int) -> list[tuple[bytes, str | None]]:
        found = []
        for _ in range(count):
            packet = await self._talker.heard()
            assert packet.packet_id is not None
            self._talker.send(PubAckPacket(packet.packet_id))
            found.append((packet.payload, dict(packet.user_properties or ()).get("nc-past")))
        await self._talker.nothing()
        return found

    def leave(self) -> None:
        self._broker.run(self._leave())

    async def _leave(self) -> None:
        self._talker.close()


@pytest.fixture
def ada(broker: LiveBroker) -> Iterator[Client]:
    client = Client(broker, "ada")
    yield client
    client.leave()


def published(broker: LiveBroker, count: int) -> int:
    events = [EventEntry(f"e{number}", "city/jam", START + number, b"%d" % number) for number in range(count)]
    return broker.written(*events)


def answers(session: SparkSession, broker: LiveBroker, client: Client) -> DataFrame:
    given = {"table": "events", "broker": broker.url, "lake": str(broker.lake)}
    events = session.read.format("nearcast").options(**given).load()
    return events.select(*ANSWER, F.lit(client.identity).alias("client"))


def hand_in(frame: DataFrame, broker: LiveBroker, table: str = "notifications", **more: str) -> None:
    frame.write.format("nearcast").options(table=table, broker=broker.url, **more).mode("append").save()


def test_stored_events_reach_the_client_once_however_often_they_are_written(
    session: SparkSession, broker: LiveBroker, ada: Client
) -> None:
    published(broker, 5)
    found = answers(session, broker, ada)
    numbered = found.withColumns({"number": F.lit(2).cast("bigint"), "total": F.lit(5).cast("bigint")})
    for _ in range(2):
        hand_in(found, broker, query="what happened")
    assert sorted(payload for payload, _ in ada.heard(5)) == [b"%d" % number for number in range(5)]
    hand_in(numbered.where("event = 'e4'"), broker, query="another one")
    assert ada.heard(1) == [(b"4", "2 of 5")]


def test_many_rows_are_handed_in_piece_by_piece(
    session: SparkSession, broker: LiveBroker, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(broker, 300)
    whole = answers(session, broker, ada).toArrow().to_batches()[0]
    monkeypatch.setattr(writer, "_ROWS", 70)
    given = options.writing({"table": "notifications", "broker": broker.url})
    done = writer.BatchWriter(given).write(iter([whole]))
    assert done.outcomes == {"delivered": 300}
    assert len(ada.heard(300)) == 300


def test_a_stream_of_answers_reaches_the_client_once_even_if_its_batches_are_done_again(
    session: SparkSession, broker: LiveBroker, ada: Client, tmp_path: Path
) -> None:
    published(broker, 6)
    given = {"table": "events", "broker": broker.url, "lake": str(broker.lake), "maxRowsPerTrigger": "3"}
    for name in ("one", "two"):  # a checkpoint that is lost: everything is done again
        events = session.readStream.format("nearcast").options(**given).load()
        query = (
            events.select(*ANSWER, F.lit(ada.identity).alias("client"))
            .writeStream.format("nearcast")
            .options(table="notifications", broker=broker.url, checkpointLocation=str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert sorted(payload for payload, _ in ada.heard(6)) == [b"%d" % number for number in range(6)]


def test_a_plan_is_carried_out_by_the_broker_once(session: SparkSession, broker: LiveBroker) -> None:
    plans = session.createDataFrame(
        [("p1", "EGRID(factor=10)", None)], "plan string, scheme string, clients array<string>"
    )
    live = broker.server.broker.scheming.live
    for _ in range(2):
        hand_in(plans, broker, "plans")
        assert str(live.status().scheme).startswith("EGRID")
        assert live.status().transitions == 1


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        ("notifications", "client string", "missing: event, offset, time, topic"),
        ("notifications", "client string, speed double", "unknown: speed"),
        ("plans", "scheme string", "missing: plan"),
    ],
)
def test_columns_that_do_not_do_are_refused(table: str, columns: str, said: str) -> None:
    from pyspark.sql.types import StructType

    schema = StructType()
    for column in columns.split(", "):
        name, kind = column.split()
        schema = schema.add(name, kind)
    with pytest.raises(InvalidSettings, match=said):
        writer.check_columns(table, schema)


def test_a_writer_needs_a_broker_and_only_appends(session: SparkSession, broker: LiveBroker) -> None:
    with pytest.raises(InvalidSettings, match="nobody to write to"):
        options.writing({"table": "plans", "lake": "x"})
    plans = session.createDataFrame([("p1", "GRID")], "plan string, scheme string")
    with pytest.raises(Exception, match="cannot be overwritten"):
        plans.write.format("nearcast").options(table="plans", broker=broker.url).mode("overwrite").save()
