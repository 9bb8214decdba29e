"""Writes to a journal until it is killed; tells over its standard output what was acknowledged, as soon as it is.

Group ``n`` has as many records as its name says, and puts its number under the key ``last``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from nearcast.errors import JournalFailed
from nearcast.journal import Journal, JournalSettings, Put, UnpublishEntry
from nearcast.runtime.live.clock import LiveClock

IN_FLIGHT = 40


def size_of(group: int) -> int:
    return 1 + group * 7 % 5


def say(*words: int) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def run(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    settings = JournalSettings(checkpoint_bytes=1_000_000)
    journal = Journal.open(folder, settings, loop.call_soon_threadsafe, LiveClock().now)
    group = int(journal.load("groups").get("last", b"0"))
    say(journal.head, group)

    def write_next() -> None:
        nonlocal group
        group += 1
        number, first = group, journal.head

        def told(failed: JournalFailed | None) -> None:
            assert failed is None
            say(number, first)
            write_next()

        records = [UnpublishEntry(group, "x" * 200)] * size_of(group)
        assert journal.write(records, [Put("groups", "last", str(group).encode())], told) == first

    for _ in range(IN_FLIGHT):
        write_next()
    await loop.create_future()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
