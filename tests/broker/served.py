"""A real ``nearcast serve`` in a process of its own, for tests of what only a process can do: fall, and be told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

COMMAND = Path(sys.executable).parent / "nearcast"
PATIENCE = 60.0
"""Seconds for a start: importing everything takes a while on a machine that has other work."""


class ServedBroker:
    """One data folder; the process that serves it may fall and be started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.addresses: dict[str, tuple[str, int]] = {}
        self.said: list[str] = []
        """Lines of standard error, of all lives."""

        self.process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self.process is not None and bool(self.addresses)

    async def start(self) -> None:
        """Until it says that it is ready."""
        ready = asyncio.Event()
        self.process = await asyncio.create_subprocess_exec(
            COMMAND,
            "serve",
            "--port",
            "0",
            "--http-port",
            "0",
            "--data",
            str(self.folder),
            *self.options,
            stderr=asyncio.subprocess.PIPE,
        )
        self._reading = asyncio.create_task(self._read(self.process, ready))
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
        assert self.addresses, f"it ended instead of starting: {self.said[-3:]}"

    async def _read(self, process: asyncio.subprocess.Process, ready: asyncio.Event) -> None:
        assert process.stderr is not None
        addresses: dict[str, tuple[str, int]] = {}
        while line := (await process.stderr.readline()).decode().rstrip():
            self.said.append(line)
            protocol, _, where = line.partition(" on ")
            if line == "ready":
                self.addresses = addresses
                ready.set()
            elif where and protocol.isalpha():
                host, _, port = where.rpartition(":")
                addresses[protocol] = host, int(port)
        ready.set()

    async def kill(self) -> None:
        """As the power would: SIGKILL."""
        assert self.process is not None
        self.addresses = {}
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self._over()

    async def stop(self) -> int:
        """As an operator would: SIGTERM.  Its exit status."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        return await self._over()

    async def _over(self) -> int:
        assert self.process is not None
        status = await self.process.wait()
        if self._reading is not None:
            await self._reading
        self.process, self.addresses = None, {}
        return status


@contextlib.asynccontextmanager
async def served(folder: Path, *options: str) -> AsyncIterator[ServedBroker]:
    broker = ServedBroker(folder, *options)
    try:
        await broker.start()
        yield broker
    finally:
        if broker.process is not None:
            await broker.kill()
