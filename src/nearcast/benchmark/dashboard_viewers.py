"""Pages that look at a dashboard, in a process of their own: ``python -m nearcast.benchmark.dashboard_viewers PORT PAGES``.

Told by lines: ``look`` opens all of them and answers when each is shown who is there; ``away`` closes them and says what came.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

from websockets.asyncio.client import ClientConnection, connect

PATIENCE: Final = 30.0
"""Seconds until a page must have been shown something."""


class _Page:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.pictures = self.texts = self.size = 0
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

    async def close(self) -> None:
        await self.connection.close()
        await self.task


async def _opened(port: int) -> _Page:
    connection = await connect(f"ws://127.0.0.1:{port}/dashboard/live", max_size=None, compression=None)
    await connection.recv()  # hello
    page = _Page(connection)
    async with asyncio.timeout(PATIENCE):
        await page.looking.wait()
    return page


async def watch(port: int, count: int) -> None:
    loop = asyncio.get_running_loop()
    pages: list[_Page] = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.strip() == "look":
            pages = list(await asyncio.gather(*(_opened(port) for _ in range(count))))
            print(json.dumps({"pages": len(pages)}), flush=True)
        else:
            came = {
                "pictures": sum(page.pictures for page in pages),
                "texts": sum(page.texts for page in pages),
                "bytes": sum(page.size for page in pages),
            }
            await asyncio.gather(*(page.close() for page in pages))
            print(json.dumps(came), flush=True)


if __name__ == "__main__":
    asyncio.run(watch(int(sys.argv[1]), int(sys.argv[2])))
