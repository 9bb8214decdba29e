"""A broker on a thread of this process: the test writes to its journal, exports and trims when it wants to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from tests.broker.talker import settings_for
from tests.waiting import PATIENCE

from nearcast.broker.server import Server
from nearcast.errors import JournalFailed
from nearcast.journal.entries import Record
from nearcast.model.time import MICROSECONDS

T = TypeVar("T")


class LiveBroker:
    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop

    @property
    def url(self) -> str:
        host, port = self.server.addresses["http"]
        return f"http://{host}:{port}"

    @property
    def lake(self) -> Path:
        return self.server.settings.lake

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """On the broker's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def written(self, *records: Record) -> int:
        """Give these to the journal, as one stretch, and wait for the disk."""
        done: Future[None] = Future()

        def then(failed: JournalFailed | None) -> None:
            done.set_result(None) if failed is None else done.set_exception(failed)

        first = self.server.broker.journal.write(records, then=then)
        done.result(PATIENCE)
        return first

    def export(self) -> int:
        return self.server.broker.archive.export()

    def trim(self) -> None:
        """Delete from the journal what is in the lake."""
        self.server.broker.journal.trim().result(PATIENCE)


@contextlib.contextmanager
def live_broker(folder: Path, **changes: Any) -> Iterator[LiveBroker]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def on_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), loop).result(PATIENCE)

    # What is older than an hour may be deleted once it is in the lake.
    journal = {"retention_age": 3_600 * MICROSECONDS}
    server = Server(settings_for(folder, listen={"http_port": "any"}, **({"journal": journal} | changes)))
    on_loop(server.start)
    try:
        yield LiveBroker(server, loop)
    finally:
        on_loop(server.stop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
