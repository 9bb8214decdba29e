"""Few read the journal at a time, and not all may wait."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.talker import run

from nearcast.broker.http.scans import AT_ONCE, MOST_WAITING, Scans
from nearcast.errors import QuotaExceeded


def test_few_read_at_a_time_and_who_finds_too_many_waiting_is_refused() -> None:
    async def scenario() -> None:
        scans = Scans()
        reading, most = 0, 0
        go_on = asyncio.Event()

        async def read() -> None:
            nonlocal reading, most
            async with scans.turn():
                reading += 1
                most = max(most, reading)
                await go_on.wait()
                reading -= 1

        async with asyncio.TaskGroup() as readers:
            for _ in range(AT_ONCE + MOST_WAITING):
                readers.create_task(read())
            await asyncio.sleep(0)
            with pytest.raises(QuotaExceeded, match="ask again later"):
                await read()
            go_on.set()
        assert (most, reading) == (AT_ONCE, 0)
        await read()

    run(scenario())
