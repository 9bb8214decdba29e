"""What the journal's tests share: a loop's thread that is the test itself, and records."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from tests.clocks import START
from tests.waiting import PATIENCE

from nearcast.errors import JournalFailed
from nearcast.journal import EventEntry, Journal, JournalSettings, Put, Record


class Calls:
    """Stands for a loop: functions wait here until the test runs them, on its own thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def __call__(self, function: Callable[[], None]) -> None:
        self._waiting.put(function)

    def run_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._waiting.get(timeout=PATIENCE)()

    def run_waiting(self) -> None:
        """What was called already; for when the journal is closed."""
        while not self._waiting.empty():
            self._waiting.get()()


class Opened:
    """A journal, and the outcomes of what was written to it, in the order in which they were told."""

    def __init__(self, folder: Path, now: int, settings: dict[str, Any]) -> None:
        self.now = now
        self.calls = Calls()
        self.outcomes: list[tuple[Any, JournalFailed | None]] = []
        self.journal = Journal.open(folder, JournalSettings(**settings), self.calls, lambda: self.now)

    def write(self, *records: Record, puts: tuple[Put, ...] = (), name: Any = None) -> int:
        return self.journal.write(records, puts, lambda failed: self.outcomes.append((name, failed)))

    def settle(self) -> None:
        """Until everything that was written is decided."""
        settled: list[None] = []
        self.journal.write(then=lambda _: settled.append(None))
        self.calls.run_until(lambda: bool(settled))

    def recover(self) -> None:
        """Until it can write again."""
        while self.journal.problem is not None:
            self.settle()

    def written(self, *records: Record, puts: tuple[Put, ...] = ()) -> int:
        first = self.write(*records, puts=puts)
        self.settle()
        assert self.outcomes[-1][1] is None
        return first

    def failed(self, *records: Record, puts: tuple[Put, ...] = ()) -> JournalFailed:
        self.write(*records, puts=puts)
        self.settle()
        failed = self.outcomes[-1][1]
        assert failed is not None
        return failed

    def all(self, first: int = 0, last: int | None = None, **wanted: Any) -> list[tuple[int, Record]]:
        return list(chain.from_iterable(self.journal.read(first, last, **wanted)))


@contextmanager
def opened(folder: Path, *, now: int = START, **settings: Any) -> Iterator[Opened]:
    # The smallest there may be: opening keeps twice that in reserve, which takes its time on a slow disk.
    journal = Opened(folder, now, {"checkpoint_bytes": 1_000_000, **settings})
    try:
        yield journal
    finally:
        journal.journal.close()


def event(number: int, *, size: int = 20, **fields: Any) -> EventEntry:
    return EventEntry(f"e{number}", "city/jam", START + number, b"x" * size, **fields)
