"""Writing to the journal, and awaiting the commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put, Record, Then


def decision() -> tuple[asyncio.Future[None], Then]:
    """To be awaited, and to be told: raises ``JournalFailed`` if that is what it was told."""
    decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def then(failed: JournalFailed | None) -> None:
        if decided.done():
            return  # whoever waited has gone
        if failed is None:
            decided.set_result(None)
        else:
            decided.set_exception(failed)

    return decided, then


async def on_disk(journal: Journal, records: Sequence[Record] = (), puts: Sequence[Put] = ()) -> None:
    """Write all of it or nothing; without records and puts, wait until all that was written before is decided."""
    decided, then = decision()
    journal.write(records, puts, then)
    await decided
