"""Pages that look at a dashboard, in a process of their own: ``python -m nearcast.benchmark.dashboard_viewers PORT PAGES``.

Told by lines: ``look`` opens all of them and answers when each has been told who is there; ``away`` closes them and says what came.
"""

from __future__ import annotations

import asyncio
import json
import sys

from websockets.asyncio.client import ClientConnection, connect


class _Page:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.pictures = self.texts = self.size = 0
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for message in self.connection:
            self.size += len(message)
            if isinstance(message, bytes):
                self.pictures += 1
            else:
                self.texts += 1

    async def close(self) -> None:
        await self.connection.close()
        await self.task


async def _opened(port: int) -> _Page:
    connection = await connect(f"ws://127.0.0.1:{port}/dashboard/live", max_size=None, compression=None)
    await connection.recv()  # hello
    return _Page(connection)


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
