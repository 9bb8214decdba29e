"""Closed stretches go to the lake, where Spark and others read them; once there, retention may delete them here.

A crash at any moment neither loses nor doubles a row.  How far an export will go is written down before its first file
appears; after a crash the same offsets are exported again, under the same names.  That they are complete is written down
when all files are on disk: first in the journal, then in the lake, for readers that know nothing of the journal.

An event that was unpublished before its export has no row in the lake; of one that was unpublished later the row stays,
and the table ``unpublished`` says so.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from nearcast.journal.entries import EventEntry, Record, UnpublishEntry
from nearcast.journal.journal import Journal
from nearcast.journal.lake import export, mark_exported

_PLANNED: Final = "exporting"
_RECORDS_AT_ONCE: Final = 200_000
_PAYLOAD_AT_ONCE: Final = 64_000_000
"""About so much becomes the files of one export: it is held in memory meanwhile."""


@dataclass(frozen=True, slots=True)
class ArchiveStatistics:
    exported: int
    """The offset below which everything is in the lake."""
    rows: int
    """Written since the broker started."""
    problem: str | None
    """Why the last export failed; none: it did not."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """What becomes the files of one export: the records from one offset up to another."""

    first: int
    end: int
    records: list[tuple[int, Record]]


class Archive:
    """Exports from time to time, in a thread of its own."""

    def __init__(self, journal: Journal, lake: Path, every: float) -> None:
        self._journal: Final = journal
        self._lake: Final = lake
        self._every: Final = every
        self._rows = 0
        self._marked = 0
        """What the lake says of itself, as far as it was written in this life."""
        self._end: Final = threading.Event()
        self._one_at_a_time: Final = threading.Lock()
        self._thread: Final = threading.Thread(target=self._run, name="archive", daemon=True)
        self.problem: str | None = None
        """Why the last export failed; it is tried again at the next one.  Retention deletes nothing that is not in the lake, so
        meanwhile the disk of the journal fills: somebody has to be told."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish the export that is going on; before the journal is closed."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def export(self) -> int:
        """Export all that is on disk, in this thread; gives the number of rows."""
        rows = 0
        with self._one_at_a_time:
            self._mark()  # a crash may have come in between
            while not self._end.is_set() and (planned := self._next()) is not None:
                rows += self._export(planned)
        self._rows += rows
        return rows

    def statistics(self) -> ArchiveStatistics:
        return ArchiveStatistics(self._journal.exported, self._rows, self.problem)

    def attempt(self) -> None:
        """Export, and note what is in the way."""
        try:
            self.export()
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread goes on and says so
            self.problem = (
                f"nothing can be exported to {self._lake}: {error}; the journal keeps it, and grows, until it can"
            )
        else:
            self.problem = None

    def _run(self) -> None:
        while not self._end.wait(self._every):
            self.attempt()

    def settled(self) -> None:
        """Wait until an export that is going on is done: from then on, nothing comes that was read before."""
        with self._one_at_a_time:
            pass

    def _next(self) -> _Planned | None:
        """The stretches of the next export, or of one that a crash interrupted; none: there is nothing to export."""
        # Retention may have been there first, while no lake was set.
        first = max(self._journal.exported, self._journal.oldest)
        planned = self._journal.mark_of(_PLANNED) or 0
        if planned > first:
            # Some of it, or all, may have been erased since; the files have the same names all the same.
            return _Planned(first, planned, list(chain.from_iterable(self._journal.read(first, planned))))
        found: list[tuple[int, Record]] = []
        payload = 0
        for chunk in self._journal.read(first):
            found += chunk
            payload += sum(len(record.payload) for _, record in chunk if isinstance(record, EventEntry))
            if len(found) >= _RECORDS_AT_ONCE or payload >= _PAYLOAD_AT_ONCE:
                break
        return _Planned(first, found[-1][0] + 1, found) if found else None

    def _export(self, planned: _Planned) -> int:
        first, end = planned.first, planned.end
        self._journal.set_mark(_PLANNED, end)
        # One that was unpublished after this stretch, but before now, is left out too.
        later = self._journal.read(first, kinds=(UnpublishEntry,))
        unpublished = frozenset(
            entry.event if entry.offset is None else entry.offset
            for chunk in later
            for _, entry in chunk
            if type(entry) is UnpublishEntry
        )
        rows = export(self._lake, f"{first:020}-{end - 1:020}", planned.records, unpublished)
        self._journal.set_exported(end)
        self._mark()
        return rows

    def _mark(self) -> None:
        exported = self._journal.exported
        if exported > self._marked:
            mark_exported(self._lake, exported)
            self._marked = exported
