"""The durable log and the durable state of the broker: who is told that something is written finds it after any crash."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nearcast.journal import reading
from nearcast.journal.database import FILE
from nearcast.journal.entries import Record, mask_of
from nearcast.journal.group import Put, Then
from nearcast.journal.lock import FolderLock
from nearcast.journal.settings import JournalSettings
from nearcast.journal.store import Allowance, Store
from nearcast.journal.writer import Call, Job, Writer
from nearcast.model.time import LARGEST, Instant
from nearcast.runtime.durations import DurationStatistics

EXPORTED: Final = "exported"
"""The mark below which everything is in the lake."""

MOST_WAITING: Final = 32 * 1024 * 1024
"""Bytes that may wait for the disk before ``is_behind`` says so."""


@dataclass(frozen=True, slots=True)
class JournalStatistics:
    head: int
    durable: int
    oldest: int
    stretches: int
    """Kept on disk."""
    bytes: int
    """Of the records that are kept; the state is not among them."""
    waiting_writes: int
    """Not on their way to the disk yet."""
    waiting_bytes: int
    commits: int
    """Since the journal was opened."""
    largest_group: int
    """Records in the largest commit."""
    commit_time: DurationStatistics
    failed_writes: int
    problem: str | None


class Journal:
    """Records get offsets that only rise; state is tables of values by key.

    An offset is given when a record is handed in.  A write that fails leaves a gap: its offsets are not given again
    while the journal is open, nor ever after it was opened anew if a later record is on disk.  All methods may be called
    from any thread.
    """

    def __init__(self, folder: Path, settings: JournalSettings, call: Call, now: Callable[[], Instant]) -> None:
        self._settings = settings
        self._now: Final = now
        self._path: Final = folder / FILE
        self._lock: Final = FolderLock(folder)
        try:
            self._store: Final = Store(self._path, settings.checkpoint_bytes)
        except BaseException:
            self._lock.release()
            raise
        self._exported = self._store.mark_of(EXPORTED) or 0
        self._writer: Final = Writer(
            self._store, self._path, call, self._trim_some, settings.retry_every, _most_bytes(settings)
        )
        self._open = True

    @classmethod
    def open(cls, folder: Path, settings: JournalSettings, call: Call, now: Callable[[], Instant]) -> Journal:
        """Open the journal in that folder, or begin one; ``call`` is ``loop.call_soon_threadsafe``."""
        return cls(folder, settings, call, now)

    @property
    def head(self) -> int:
        """The offset that the next record will get."""
        return self._writer.head

    @property
    def durable(self) -> int:
        """Everything below is decided: on disk, or failed."""
        return self._writer.durable

    @property
    def stored(self) -> int:
        """Behind the last record on disk.  Unlike ``durable`` it never falls, not even when a failure is followed by a restart."""
        return self._store.end

    @property
    def oldest(self) -> int:
        """Everything below was deleted by retention."""
        return self._store.oldest

    @property
    def exported(self) -> int:
        """Everything below is in the lake."""
        return self._exported

    @property
    def problem(self) -> str | None:
        """Why it cannot write at present; none: it can."""
        return self._writer.problem

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for the disk that whoever brings more should be slowed down."""
        return self._writer.waiting()[1] > MOST_WAITING

    def write(self, records: Sequence[Record] = (), puts: Sequence[Put] = (), then: Then | None = None) -> int:
        """Write all of it or nothing, without waiting; gives the offset of the first record.

        ``then`` is called on the loop's thread after the commit, in the order of the writes.  Without records and puts,
        it is called when all that was written before is decided.
        """
        return self._writer.add(records, puts, then)

    def load(self, table: str) -> dict[str, bytes]:
        """The committed state of a table."""
        return reading.load(self._path, table)

    def read(
        self,
        first: int,
        last: int | None = None,
        *,
        since: Instant | None = None,
        until: Instant | None = None,
        kinds: Iterable[type[Record]] | None = None,
        limit: int | None = None,
    ) -> Iterator[list[tuple[int, Record]]]:
        """Records on disk from offset ``first`` up to, but without, ``last``, and of that time; for a worker thread.

        Raises ``OffsetTrimmed`` if some of these offsets were deleted: begin with ``oldest`` to read what there is.
        """
        reading.check_kept(first, self.oldest)
        wanted = reading.Wanted(first, LARGEST if last is None else last, since, until, mask_of(kinds))
        return reading.chunks(self._path, wanted, limit, lambda: self.oldest)

    def stretches(
        self,
        first: int,
        last: int,
        *,
        since: Instant | None = None,
        until: Instant | None = None,
        kinds: Iterable[type[Record]] | None = None,
        most_bytes: int,
    ) -> tuple[list[reading.Stretch], bool]:
        """The same undecoded, about so many bytes at a time, and whether these are all.

        Whole stretches: those at the ends may hold more than was wanted.
        """
        reading.check_kept(first, self.oldest)
        wanted = reading.Wanted(first, last, since, until, mask_of(kinds))
        return reading.stretches(self._path, wanted, most_bytes, lambda: self.oldest)

    def known(self, table: str, keys: Sequence[str]) -> set[str]:
        """Of these keys, those that the committed state of a table has; for a worker thread."""
        return reading.known(self._path, table, keys)

    def keep(self, keep_for: int | None, keep_bytes: int | None) -> None:
        """From now on, so long and so much (as in ``JournalSettings``)."""
        self._settings = replace(self._settings, keep_for=keep_for, keep_bytes=keep_bytes)
        self._writer.most_bytes = _most_bytes(self._settings)

    def trim(self) -> Future[None]:
        """Delete what retention allows now, without waiting for the next time."""

        def trim_all(store: Store) -> None:
            while store.trim(self._allowance()):
                pass

        return self._writer.ask(trim_all)

    def set_exported(self, offset: int) -> None:
        """Say that everything below is in the lake; for a worker thread, which waits until that is on disk."""
        self.set_mark(EXPORTED, offset)
        self._exported = offset

    def set_mark(self, name: str, value: int) -> None:
        self._writer.ask(lambda store: store.set_mark(name, value)).result()

    def mark_of(self, name: str) -> int | None:
        return reading.mark_of(self._path, name)

    def ask(self, job: Job) -> Future[None]:
        """Have something done to the database by the thread that writes, between two commits: writes wait for it."""
        return self._writer.ask(job)

    def tables(self) -> list[str]:
        """The names of all tables of the committed state."""
        return reading.tables(self._path)

    def statistics(self) -> JournalStatistics:
        waiting_writes, waiting_bytes = self._writer.waiting()
        return JournalStatistics(
            head=self.head,
            durable=self.durable,
            oldest=self.oldest,
            stretches=self._store.stretches,
            bytes=self._store.bytes,
            waiting_writes=waiting_writes,
            waiting_bytes=waiting_bytes,
            commits=self._writer.commits,
            largest_group=self._writer.largest_group,
            commit_time=self._writer.commit_time.statistics(),
            failed_writes=self._writer.failed_writes,
            problem=self.problem,
        )

    def close(self) -> None:
        """Commit what is waiting and let go of the folder.  Closing again does nothing."""
        if self._open:
            self._open = False
            self._writer.close()
            self._lock.release()

    def _allowance(self) -> Allowance:
        keep_for = self._settings.keep_for
        return Allowance(
            before=None if keep_for is None else self._now() - keep_for,
            bytes_beyond=self._settings.keep_bytes,
            below=None if self._settings.lake is None else self._exported,
        )

    def _trim_some(self, store: Store) -> bool:
        return store.trim(self._allowance())


def _most_bytes(settings: JournalSettings) -> float:
    """A little more than allowed may stay, so that deleting does not cost a commit for every commit."""
    return math.inf if settings.keep_bytes is None else 1.05 * settings.keep_bytes
