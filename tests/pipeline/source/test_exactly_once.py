"""From a live broker through Spark to files and back into the broker: each event once, whoever is killed in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pyarrow.parquet as pq
from mqtt5 import PubAckPacket, PublishPacket
from tests.broker.talker import Talker
from tests.pipeline.source.driver import SINKS
from tests.served import ServedBroker, served
from tests.waiting import SPARK_PATIENCE

from nearcast.pipeline.source import options
from nearcast.pipeline.source.lake import TimeBounds
from nearcast.pipeline.source.stretch import JournalTable
from nearcast.records import table
from nearcast.records.arrow import plain_schema

AT_ONCE = 100

LIVES = 4
"""A driver that fails by itself, as on a machine that is too busy, is started again: that must change nothing either."""


async def until(condition: Callable[[], bool], driver: Driver | None = None) -> None:
    """Waiting of its own, since it brings a driver up again."""
    async with asyncio.timeout(SPARK_PATIENCE):
        while not condition():
            if driver is not None:
                await driver.keep_up()
            await asyncio.sleep(0.05)


class Driver:
    """The process, and all that it has started."""

    def __init__(self, folder: Path, broker: ServedBroker, master: str, identity: str) -> None:
        self.folder = folder
        self._arguments = (str(folder), broker.http, str(broker.data / "lake"), master, identity)
        self._process: asyncio.subprocess.Process | None = None
        self._more: tuple[str, ...] = ()
        self._lives = 0

    async def start(self, *more: str) -> None:
        self._more = more
        self._lives += 1
        command = (sys.executable, "-m", "tests.pipeline.source.driver", *self._arguments, *more)
        self._process = await asyncio.create_subprocess_exec(*command, start_new_session=True)

    async def keep_up(self) -> None:
        assert self._process is not None
        if self._process.returncode is not None:
            assert self._lives < LIVES, "the driver fails again and again"
            await self.start(*self._more)

    async def completed(self) -> None:
        """Until it has done all there was."""
        await until(lambda: self._process is not None and self._process.returncode == 0, self)

    async def kill(self) -> None:
        """With its Java, its executors and its Python workers: as the power would."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def trouble(self, what: str, then: Callable[[], Any]) -> None:
        """Have that happen to both queries, each in the middle of a batch of what comes then."""
        for sink in SINKS:
            (self.folder / f"taken {sink}").unlink(missing_ok=True)
            (self.folder / "new").write_text(what)
            (self.folder / "new").rename(self.folder / f"trouble {sink}")
        await then()
        await until(lambda: all((self.folder / f"taken {sink}").exists() for sink in SINKS), self)


class Listener:
    """A client that confirms all that comes, and counts it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def listen(self, talker: Talker) -> None:
        while True:
            packet = await talker.next(PublishPacket, SPARK_PATIENCE)
            assert packet.packet_id is not None
            self.heard.append(packet.payload)
            talker.send(PubAckPacket(packet.packet_id))


@contextlib.asynccontextmanager
async def listening(broker: ServedBroker) -> AsyncIterator[Listener]:
    talker = await Talker.open(cast("Any", broker))
    await talker.connect("ada", session_expiry_interval=3_600, keep_alive=0)
    listener = Listener()
    task = asyncio.create_task(listener.listen(talker))
    try:
        yield listener
    finally:
        task.cancel()
        talker.close()


class Publisher:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.published: list[bytes] = []

    async def more(self) -> None:
        first = len(self.published)
        data = [f"{number}" for number in range(first, first + AT_ONCE)]
        events = [
            {"specversion": "1.0", "id": f"e{each}", "source": "/t", "type": "t", "subject": "city/jam", "data": each}
            for each in data
        ]
        headers = {"content-type": "application/cloudevents-batch+json"}
        answer = await self._client.post("/events", json=events, headers=headers)
        assert answer.status_code == 201, answer.text
        self.published += [each.encode() for each in data]


def journal(broker: ServedBroker, name: str) -> list[dict[str, Any]]:
    found = JournalTable(options.reading({"table": name, "broker": broker.http}))
    extent, schema = found.extent(), plain_schema(table(name))
    batches = found.batches(schema, extent.first, extent.last, TimeBounds())
    return [row for batch in batches for row in batch.to_pylist()]


@contextlib.asynccontextmanager
async def world(folder: Path, master: str) -> AsyncIterator[tuple[Driver, Publisher, Listener, ServedBroker]]:
    with served(folder) as broker:
        async with listening(broker) as listener, httpx.AsyncClient(base_url=broker.http, timeout=60.0) as client:
            [identity] = {row["client"] for row in await asyncio.to_thread(journal, broker, "clients")}
            driver = Driver(folder, broker, master, identity)
            try:
                yield driver, Publisher(client), listener, broker
            finally:
                await driver.kill()


async def all_came_once(publisher: Publisher, listener: Listener, broker: ServedBroker, folder: Path) -> None:
    await until(lambda: len(listener.heard) >= len(publisher.published))
    assert sorted(listener.heard, key=int) == publisher.published
    written = [row for file in files(folder) for row in pq.read_table(file).to_pylist()]
    stored = [
        {"offset": row["offset"], "event": row["event"]} for row in await asyncio.to_thread(journal, broker, "events")
    ]
    assert len(stored) == len(publisher.published)
    assert sorted(written, key=lambda row: row["offset"]) == stored


def files(folder: Path) -> list[Path]:
    """Those of batches that were completed, as the sink itself keeps account of them: others are what the killed have left."""
    found = set()
    for batch in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        for line in batch.read_text().splitlines()[1:]:
            found.add(folder / "out" / json.loads(line)["path"].rpartition("/")[2])
    return sorted(found)


def test_a_driver_and_a_worker_that_are_killed_in_the_middle_of_a_batch_lose_and_double_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        # Tasks may fail a few times: without that, a local Spark ends at the first one.
        async with world(tmp_path, "local[2,4]") as (driver, publisher, listener, broker):
            await publisher.more()
            await driver.start()
            await until(lambda: bool(files(tmp_path)), driver)
            await driver.trouble("kill worker", publisher.more)
            await until(lambda: len(listener.heard) >= len(publisher.published), driver)
            await driver.trouble("hang", publisher.more)
            await driver.kill()
            await publisher.more()
            await driver.start("once")
            await driver.completed()
            await all_came_once(publisher, listener, broker, tmp_path)

    asyncio.run(story())


def test_an_executor_that_is_killed_in_the_middle_of_a_batch_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path, "local-cluster[2,1,600]") as (driver, publisher, listener, broker):
            for _ in range(3):
                await publisher.more()
            await driver.trouble("kill executor", lambda: driver.start("once"))
            await driver.completed()
            await all_came_once(publisher, listener, broker, tmp_path)

    asyncio.run(story())
