"""What the broker writes to its audit log.

The way of a message only puts a few references into a list; a worker thread writes them every second, and at the end.  So the last second may be missing after a fall.  If
the disk does not keep up, what is beyond ``MOST_WAITING`` is left out and the log says how much.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.broker.audit.chain import (
    BROKEN,
    HEAD,
    SUFFIX,
    TABLE,
    Broken,
    Did,
    Entry,
    Head,
    check_end,
    files_of,
    first_of,
    known_in,
    last_of,
    line_of,
    missing_at_the_beginning,
)
from nearcast.broker.settings import AuditSettings
from nearcast.errors import InvalidRecord, JournalFailed
from nearcast.files import write_whole
from nearcast.journal import Journal, Put
from nearcast.model.event import Event
from nearcast.model.time import Instant

log: Final = logging.getLogger(__name__)
MOST_WAITING: Final = 100_000
MOST_NAMED: Final = 1_000_000
"""People in what waits: one message may have gone to ten thousand."""

FOLDER: Final = "audit"


@dataclass(frozen=True, slots=True)
class AuditStatistics:
    entries: int
    """Written, of all lives."""

    waiting: int
    lost: int
    problem: str | None
    broken: str | None
    """What of it somebody has changed or taken away."""


@dataclass(frozen=True, slots=True)
class _Written:
    head: Head
    surplus: Sequence[Path]
    """Files that retention leaves no longer: they go when the journal knows that."""

    missing: str | None
    """What is missing at the beginning, and retention has not taken."""


class Audit:
    """One for each broker."""

    def __init__(self, settings: AuditSettings, folder: Path, journal: Journal, now: Callable[[], Instant]) -> None:
        self.on: Final = settings.enabled
        self._settings: Final = settings
        self._folder: Final = folder
        self._journal: Final = journal
        self._now: Final = now
        self._waiting: list[tuple[Instant, Did, dict[str, Any]]] = []
        self._seen: dict[tuple[str | None, *tuple[str, ...]], dict[str, None]] = {}
        """Whom observers were told of since the last time, by the observer and how."""

        self._handed: Sequence[tuple[Instant, Did, dict[str, Any]]] = ()
        self._writing: Future[_Written] | None = None
        self._worker: Final = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._lost = self._untold = 0
        self._named = 0
        """People in what waits or is seen."""

        self._problem: str | None = None
        self._head = Head()
        self._broken: Broken | None = None
        self._closed = False
        if self.on:
            self._open()

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = known_in(self._journal.load(TABLE))
        known, self._broken = stored.head, stored.broken
        _delete(path for path in self._gone(files_of(self._folder), known.oldest))
        self._head, missing = known, 0
        try:
            last = last_of(self._folder)
            missing = max(0, known.n - last.n)
            # If the end is not what it was, the chain goes on from what is known: with a break that anybody who reads it sees.
            self._head = Head(max(last.n, known.n), known.hash, known.oldest)
            check_end(self._folder, last, known)
            self._head = Head(last.n, last.hash, known.oldest)
        except InvalidRecord as error:
            self._found_broken(str(error), missing)
        if (gap := self._missing(files_of(self._folder))) is not None and self._broken is None:
            self._found_broken(gap, 0)

    def _found_broken(self, what: str, missing: int) -> None:
        """Somebody has changed the log.  It is said from now on, also if what is written later hangs together."""
        log.error("the audit log was tampered with: %s; see `nearcast audit --verify`", what)
        self._add("lost", count=missing, what="something was changed or taken away before")
        if self._broken is None:
            self._broken = Broken(self._head.n, what)
            self._journal.write(puts=[Put(TABLE, BROKEN, msgspec.msgpack.encode(self._broken))])

    def statistics(self) -> AuditStatistics:
        broken = None if self._broken is None else self._broken.what
        return AuditStatistics(self._head.n, len(self._waiting), self._lost, self._problem, broken)

    # What is written

    def addressed(self, by: str | None, event: Event, whom: Sequence[str], offset: int | None) -> None:
        """A message went to people because of where they are, what they are, or when they were there."""
        ways = [
            way
            for way, said in (("context", event.to), ("region", event.reach), ("time", event.when))
            if said is not None
        ]
        self._add("addressed", by=by, whom=whom, ways=ways, offset=offset)

    def observed(self, by: str | None, whom: Sequence[str], ways: Sequence[str] = ()) -> None:
        """Somebody was told where others are, or that they came, went or crossed something (``ways``).

        Notices may come by the ten thousand in a second: so of each second it is written once who was told of whom.
        """
        if self.on:
            seen = self._seen.get((by, *ways))
            if seen is None:
                seen = self._seen[by, *ways] = {}
            for each in whom:
                if each not in seen:
                    if self._named >= MOST_NAMED:
                        self._lose(1)
                        return
                    seen[each] = None
                    self._named += 1

    def commanded(self, by: str | None, what: str, whom: Sequence[str] = ()) -> None:
        """A transition, a plan, rules, a reload, an erasure: by whom."""
        self._add("commanded", by=by, what=what[:200], whom=whom)

    def _add(self, did: Did, **parts: Any) -> None:
        if not self.on:
            return
        if len(self._waiting) >= MOST_WAITING or self._named >= MOST_NAMED:
            self._lose(1)
            return
        self._named += len(parts.get("whom", ()))
        self._waiting.append((self._now(), did, parts))

    def _lose(self, entries: int) -> None:
        self._lost += entries
        self._untold += entries

    # On disk

    def flush(self) -> None:
        """Once a second: hand what waits to the worker, unless it is busy; and note in the journal how far the log reaches."""
        if self._writing is not None:
            if not self._writing.done():
                return
            self._written(self._writing)
        if self._seen:
            seen, self._seen = self._seen, {}
            self._named -= sum(map(len, seen.values()))
            for (by, *ways), whom in seen.items():
                self._add("observed", by=by, whom=tuple(whom), ways=ways)
        if self._waiting:
            if self._untold:
                self._waiting.append((self._now(), "lost", {"count": self._untold}))
                self._untold = 0
            self._handed, self._waiting, self._named = self._waiting, [], 0
            self._writing = self._worker.submit(self._write, self._handed)

    def _written(self, done: Future[_Written]) -> None:
        self._writing = None
        try:
            written = done.result()
        except OSError as error:
            problem = f"the audit log cannot be written: {error.strerror}"
            if self._problem is None:
                log.error("%s", problem)  # noqa: TRY400 - the disk's trouble, not a mistake of ours
            self._problem = problem
            self._try_again()
            return
        self._problem, self._handed = None, ()
        if written.missing is not None and self._broken is None:
            self._found_broken(written.missing, 0)
        if written.head != self._head:
            self._head = head = written.head
            puts = [Put(TABLE, HEAD, msgspec.msgpack.encode(head))]
            if self._broken is not None and head.oldest > self._broken.n:
                self._broken = None  # all of that time is gone, as retention has it
                puts.append(Put(TABLE, BROKEN, None))
            self._journal.write(puts=puts, then=lambda failed: self._noted(failed, written.surplus))

    def _noted(self, failed: JournalFailed | None, surplus: Sequence[Path]) -> None:
        """The journal knows where the log begins: before that, nobody misses anything.  What a fall leaves here, the next start takes."""
        if failed is None and surplus and not self._closed:
            self._worker.submit(_delete, surplus)

    def _try_again(self) -> None:
        """What could not be written comes before what has come since; what is too much is lost, and counted."""
        everything, seen = [*self._handed, *self._waiting], sum(map(len, self._seen.values()))
        self._handed, self._waiting, self._named = (), [], seen
        for at, did, parts in everything:
            if did == "lost" and "what" not in parts:
                self._untold += parts["count"]  # said again, with what is lost now
            elif len(self._waiting) >= MOST_WAITING or self._named >= MOST_NAMED:
                self._lose(1)
            else:
                self._named += len(parts.get("whom", ()))
                self._waiting.append((at, did, parts))

    def _write(self, waiting: Sequence[tuple[Instant, Did, dict[str, Any]]]) -> _Written:
        """In the worker: nobody else writes."""
        n, before = self._head.n, self._head.hash
        lines = []
        first = n + 1
        for at, did, parts in waiting:
            n += 1
            listed: dict[str, Any] = {key: tuple(parts[key]) for key in ("whom", "ways") if key in parts}
            line, before = line_of(Entry(n, at, did, **(parts | listed)), before)
            lines.append(line)
        path = self._file(first)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            size = file.tell()
            try:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), size)  # half a line would look like somebody's hand
                raise
        files = files_of(self._folder)
        surplus = self._surplus(files)
        oldest = max(self._head.oldest, first_of(files[len(surplus)])) if surplus else self._head.oldest
        return _Written(Head(n, before, oldest), surplus, self._missing(files))

    def _file(self, first: int) -> Path:
        files = files_of(self._folder)
        if files and files[-1].stat().st_size < self._settings.file_size:
            return files[-1]
        path = self._folder / f"{first:012d}{SUFFIX}"
        write_whole(path.with_suffix(".after"), self._head.hash, mode=0o600)
        return path

    def _surplus(self, files: Sequence[Path]) -> list[Path]:
        """The oldest files beyond age and size, never the last."""
        states = [path.stat() for path in files]
        total = sum(state.st_size for state in states)
        oldest = self._now() - self._settings.retention_age
        surplus = []
        for path, state in list(zip(files, states, strict=True))[:-1]:
            if state.st_mtime_ns // 1_000 >= oldest and total <= self._settings.retention_size:
                break
            total -= state.st_size
            surplus.append(path)
        return surplus

    def _missing(self, files: Sequence[Path]) -> str | None:
        """What is not there at the beginning, although retention has left it."""
        first = first_of(files[0]) if files else self._head.n + 1
        return missing_at_the_beginning(self._folder, first, self._head) if first > self._head.oldest else None

    @staticmethod
    def _gone(files: Sequence[Path], oldest: int) -> list[Path]:
        """Files that retention has left no longer, before a fall."""
        return [path for path, after in pairwise(files) if first_of(after) <= oldest]

    def close(self) -> None:
        """All that waits is written."""
        if not self.on:
            return
        if self._writing is not None:
            self._finish(self._writing)
        self.flush()
        if self._writing is not None:
            self._finish(self._writing)
        self._closed = True
        self._worker.shutdown()

    def _finish(self, writing: Future[_Written]) -> None:
        writing.exception()  # waits
        self._written(writing)


def _delete(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)
        path.with_suffix(".after").unlink(missing_ok=True)
