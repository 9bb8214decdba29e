"""A real broker in a process of its own, for tests that run on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.serve_process import COMMAND, ServeProcess
from tests.waiting import PATIENCE

__all__ = ["COMMAND", "PATIENCE", "ServedBroker", "served"]


class ServedBroker:
    """One data folder; the process that serves it may fall and be started again, on another port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.process = ServeProcess(folder, *options)

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        return self.process.addresses

    @property
    def said(self) -> list[str]:
        return self.process.said

    @property
    def is_up(self) -> bool:
        return bool(self.addresses)

    async def start(self) -> None:
        await asyncio.to_thread(self.process.start)

    async def kill(self) -> None:
        """As the power would."""
        await asyncio.to_thread(self.process.kill)

    async def stop(self) -> int:
        """As an operator would.  Its exit status."""
        return await asyncio.to_thread(self.process.stop)


@contextlib.asynccontextmanager
async def served(folder: Path, *options: str) -> AsyncIterator[ServedBroker]:
    broker = ServedBroker(folder, *options)
    try:
        await broker.start()
        yield broker
    finally:
        if broker.process.is_running:
            await broker.kill()
