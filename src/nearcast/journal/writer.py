"""The one thread that writes."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from nearcast.errors import JournalFailed
from nearcast.journal.entries import Record
from nearcast.journal.failures import failure, is_full
from nearcast.journal.group import Group, Put, Then
from nearcast.journal.store import Store
from nearcast.runtime.durations import SLOW, Durations

Call: TypeAlias = Callable[[Callable[[], None]], object]
"""Has a function called on the loop's thread: ``loop.call_soon_threadsafe``."""

Job: TypeAlias = Callable[[Store], None]
"""Something else that is to be done with the database, between two groups."""

BUSY: Final = 16
"""Writes in one commit from which on more of them are likely to come at once."""

GATHERING: Final = 0.0004
"""Seconds that a commit then waits for company: a sync costs more than that, and each of them serves everybody."""

LEISURE: Final = 0.05
"""Seconds that it waits if nobody does: positions and messages of quality 0 are acknowledged to nobody."""

_LARGEST_PROBE: Final = 1_000_000


class Writer:
    """Commits groups one after the other: while one is on its way to the disk, the next one fills.

    Every group is tried, also after one has failed; what failed is not tried again, since its writers have been told.
    While the disk refuses, a probe as large as what failed is written now and then: so ``problem`` goes away by itself,
    also when everybody has stopped writing because of it.
    """

    def __init__(
        self, store: Store, path: Path, call: Call, tend: Callable[[Store], bool], every: float, most_bytes: float
    ) -> None:
        self._store: Final = store
        self._path: Final = path
        self._call: Final = call
        self._tend: Final = tend
        """What is to be done now and then; says whether there is more of it to do at once."""
        self._every: Final = every
        self.most_bytes = most_bytes
        """Beyond so many, it is done at once."""
        self._lock: Final = threading.Lock()
        """Held while something is added to a group, and while the writer takes one: for a moment only."""
        self._groups: Final[deque[Group]] = deque()
        self._jobs: Final[deque[tuple[Job, Future[None]]]] = deque()
        self._wake: Final[queue.SimpleQueue[None]] = queue.SimpleQueue()
        self._closing = False
        self._busy = False
        self._failed_bytes = 0
        self.head = store.end
        self.durable = store.end
        self.problem: str | None = None
        self.commits = 0
        self.failed_writes = 0
        self.largest_group = 0
        self.commit_time: Final = Durations(SLOW)
        self._thread: Final = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def add(self, records: Sequence[Record], puts: Sequence[Put], then: Then | None) -> int:
        with self._lock:
            if self._closing:
                raise self._closed()
            first = self.head
            if self._groups and not self._groups[-1].full:
                group = self._groups[-1]
                urgent = then is not None and not group.thens
                group.add(records, puts, then)
                if urgent:
                    self._wake.put(None)
            else:
                group = Group(first)
                group.add(records, puts, then)
                self._groups.append(group)
                self._wake.put(None)
            self.head = first + len(records)
            return first

    def ask(self, job: Job) -> Future[None]:
        with self._lock:
            if self._closing:
                raise self._closed()
            done: Future[None] = Future()
            self._jobs.append((job, done))
            self._wake.put(None)
            return done

    def waiting(self) -> tuple[int, int]:
        """Writes that wait for those on their way to the disk, and their bytes."""
        with self._lock:
            return sum(group.writes for group in self._groups), sum(len(group.body) for group in self._groups)

    def close(self) -> None:
        """Decide what is waiting, and end.  Closing again does nothing."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._wake.put(None)
        self._thread.join()
        self._store.close()

    def _closed(self) -> JournalFailed:
        return JournalFailed(f"{self._path}: the journal is closed; nothing more can be written")

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while True:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=max(0.0, due - time.monotonic()))
            while self._jobs:
                self._do(*self._jobs.popleft())
            if self._nobody_waits():
                with contextlib.suppress(queue.Empty):
                    self._wake.get(timeout=LEISURE)
            elif self._busy:
                time.sleep(GATHERING)
            group = self._next()
            if group is not None:
                self._busy = group.writes >= BUSY
                self._decide(group)
            elif self._closing:
                return
            if time.monotonic() >= due or self._store.bytes > self.most_bytes:
                due = time.monotonic() + (0.0 if self._look_after() else self._every)

    def _nobody_waits(self) -> bool:
        """Whether all that is to be written was not promised to anybody."""
        with self._lock:
            groups = self._groups
            return len(groups) == 1 and not (groups[0].thens or groups[0].full or self._closing or self._jobs)

    def _next(self) -> Group | None:
        with self._lock:
            return self._groups.popleft() if self._groups else None

    def _do(self, job: Job, done: Future[None]) -> None:
        try:
            job(self._store)
        except Exception as error:  # noqa: BLE001 - who asked is told; the thread goes on
            done.set_exception(failure(self._path, error))
        else:
            done.set_result(None)

    def _decide(self, group: Group) -> None:
        failed: JournalFailed | None = None
        if group.count or group.puts:  # otherwise somebody only wants to know when all before is decided
            begun = time.perf_counter()
            try:
                self._commit(group)
            except Exception as error:  # noqa: BLE001 - the writers are told, whatever it is; the thread goes on
                failed = failure(self._path, error)
                self._failed_bytes = len(group.body)
                self.failed_writes += group.writes
            else:
                self.commits += 1
                self.largest_group = max(self.largest_group, group.count)
                self.commit_time.add(time.perf_counter() - begun)
            self.problem = None if failed is None else str(failed)
        self.durable = group.end
        if group.thens:
            self._have_called(partial(_tell, group.thens, failed))

    def _commit(self, group: Group) -> None:
        try:
            self._store.commit(group)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            # Nobody has been told yet, so it may be tried once more.
            self._make_room()
            self._store.commit(group)

    def _make_room(self) -> None:
        """As far as that is possible; what cannot be done now is tried again later."""
        with contextlib.suppress(sqlite3.Error):
            self._store.move_log()
        with contextlib.suppress(sqlite3.Error):
            while self._tend(self._store):
                pass
        # Before anybody fills what has become free: without a reserve nothing could be deleted the next time.
        with contextlib.suppress(sqlite3.Error):
            while self._store.keep_reserve():
                pass

    def _look_after(self) -> bool:
        """Whether to look again at once."""
        try:
            if self.problem is None:
                crowded = self._store.keep_reserve()
                return self._tend(self._store) or crowded
            self._make_room()
            self._store.probe(min(self._failed_bytes, _LARGEST_PROBE))
        except Exception as error:  # noqa: BLE001 - the next look tries again
            self.problem = str(failure(self._path, error))
        else:
            self.problem = None
        return False

    def _have_called(self, function: Callable[[], None]) -> None:
        # A loop that has been closed already calls nobody; what was to be committed is committed all the same.
        with contextlib.suppress(RuntimeError):
            self._call(function)


def _tell(thens: list[Then], failed: JournalFailed | None) -> None:
    """One that fails keeps none of the others from being called."""
    first_error: Exception | None = None
    for then in thens:
        try:
            then(failed)
        except Exception as error:  # noqa: BLE001 - raised below
            first_error = first_error or error
    if first_error is not None:
        raise first_error
