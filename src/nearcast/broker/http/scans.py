"""Readers of the whole journal share a machine with those who publish: few read at a time, and not all may wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from nearcast.errors import QuotaExceeded

AT_ONCE: Final = 2
MOST_WAITING: Final = 64


class Scans:
    def __init__(self) -> None:
        self._turns: Final = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise QuotaExceeded(f"{MOST_WAITING} readers of the journal are waiting already; ask again later")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()
