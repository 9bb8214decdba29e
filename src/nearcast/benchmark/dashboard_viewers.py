"""Pages that look at a dashboard, in a process of their own: ``python -m nearcast.benchmark.dashboard_viewers HTTP_PORT PAGES [MQTT_PORT]``.

Told by lines: ``look`` opens all of them and answers when each is shown who is there; with ``ask`` they ask for sorted tables besides, as pages do;
``away`` closes them and says what came.  With a port for MQTT, there are a few people all the time whose areas of interest meet thousands of cells.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count
from typing import Final

from websockets.asyncio.client import ClientConnection, connect

import nearcast
from nearcast.errors import BenchmarkError

TABLES: Final = ("sessions?sort=client", "sessions?sort=-scheme", "subscriptions?sort=-area")
EVERY: Final = 1.0
"""Seconds between two tables of a page, which itself asks every five."""

STANDING: Final = 4
FAR: Final = 2_500.0
"""Metres, of which thousands of the cells of ``CELLS`` have a part; who has such an area stands: to move it is much work for the broker itself."""

NEAR: Final = 300.0
"""Of the one who walks, so that there always is something new to tell."""

CELLS: Final = """[schemes]
start = { kind = "EGRID", factor = 100 }
territory = { south = 49.8, west = 8.5, north = 49.9, east = 8.64 }
"""
"""Settings of the broker: cells of a hundred metres."""

PATIENCE: Final = 30.0
"""Seconds until a page must have been shown something."""


class _Page:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.pictures = self.texts = self.tables = self.size = 0
        self.asking: asyncio.Task[None] | None = None
        self.looking = asyncio.Event()
        """It gets both, pictures and texts: a page that looks for a moment only may get none."""

        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for message in self.connection:
            self.size += len(message)
            if isinstance(message, bytes):
                self.pictures += 1
            else:
                self.texts += 1
            if self.pictures and self.texts:
                self.looking.set()

    async def ask(self, port: int, first: int) -> None:
        for number in count(first):
            self.size += await _table(port, TABLES[number % len(TABLES)])
            self.tables += 1
            await asyncio.sleep(EVERY)

    async def close(self) -> None:
        if self.asking is not None:
            self.asking.cancel()
        await self.connection.close()
        await self.task


async def _opened(port: int) -> _Page:
    connection = await connect(f"ws://127.0.0.1:{port}/dashboard/live", max_size=None, compression=None)
    await connection.recv()  # hello
    page = _Page(connection)
    async with asyncio.timeout(PATIENCE):
        await page.looking.wait()
    return page


async def _table(port: int, query: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /dashboard/api/{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    if b" 200 " not in answer[:20]:
        raise BenchmarkError(f"the dashboard does not answer {query}: {answer[:200]!r}")
    return len(answer)


async def _be_there(port: int, number: int, met: asyncio.Event) -> None:
    walks = number == STANDING
    async with (
        nearcast.connect(f"mqtt://127.0.0.1:{port}", client_id=f"in-cells-{number}") as client,
        client.subscribe("city/cells", within=NEAR if walks else FAR),
    ):
        for step in count():
            await client.update(lat=49.84 + 0.005 * number, lon=8.55 + 0.01 * number + 0.002 * (step % 10))
            met.set()
            await (asyncio.sleep(EVERY) if walks else asyncio.Event().wait())


async def watch(port: int, pages: int, mqtt_port: int | None = None) -> None:
    there = [asyncio.Event() for _ in range(STANDING + 1 if mqtt_port is not None else 0)]
    people = [
        asyncio.create_task(_be_there(mqtt_port, number, met))
        for number, met in enumerate(there)
        if mqtt_port is not None
    ]
    await asyncio.gather(*(met.wait() for met in there))
    try:
        await _told(port, pages)
    finally:
        for each in people:
            each.cancel()


async def _told(port: int, number: int) -> None:
    loop = asyncio.get_running_loop()
    pages: list[_Page] = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.strip() in {"look", "ask"}:
            pages = list(await asyncio.gather(*(_opened(port) for _ in range(number))))
            if line.strip() == "ask":
                for first, page in enumerate(pages):
                    page.asking = loop.create_task(page.ask(port, first))
            print(json.dumps({"pages": len(pages)}), flush=True)
        else:
            came = {
                "pictures": sum(page.pictures for page in pages),
                "texts": sum(page.texts for page in pages),
                "tables": sum(page.tables for page in pages),
                "bytes": sum(page.size for page in pages),
            }
            await asyncio.gather(*(page.close() for page in pages))
            print(json.dumps(came), flush=True)


if __name__ == "__main__":
    asyncio.run(watch(*map(int, sys.argv[1:4])))
