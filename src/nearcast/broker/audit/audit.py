"""What the broker writes to its audit log.

The way of a message only puts a few references into a list; a worker thread writes them every second, and at the end.  So the last second may be missing after a fall.  If
the disk does not keep up, what is beyond ``MOST_WAITING`` is left out and the log says how much.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.broker.audit.chain import SUFFIX, Did, Entry, Head, files_of, first_of, last_of, line_of
from nearcast.broker.settings import AuditSettings
from nearcast.errors import InvalidRecord
from nearcast.files import write_whole
from nearcast.journal import Journal, Put
from nearcast.model.event import Event
from nearcast.model.time import Instant

log: Final = logging.getLogger(__name__)
TABLE: Final = "audit"
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
        self._writing: Future[Head] | None = None
        self._worker: Final = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._lost = self._untold = 0
        self._named = 0
        """People in what waits or is seen."""

        self._problem: str | None = None
        self._head = Head()
        if self.on:
            self._open()

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = self._journal.load(TABLE).get("head")
        known = Head() if stored is None else msgspec.msgpack.decode(stored, type=Head)
        try:
            self._head = last_of(self._folder)
        except InvalidRecord as error:
            log.error("the audit log was tampered with: %s; see `nearcast audit --verify`", error)  # noqa: TRY400 - no mistake of ours
            self._head = known
        if self._head.n < known.n:
            missing = known.n - self._head.n
            log.error("%d entries are missing at the end of the audit log in %s", missing, self._folder)
            # The chain goes on with a hole that anybody who reads it sees.
            self._head = known
            self._add("lost", count=missing)

    def statistics(self) -> AuditStatistics:
        return AuditStatistics(self._head.n, len(self._waiting), self._lost, self._problem)

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

    def _written(self, done: Future[Head]) -> None:
        self._writing = None
        try:
            head = done.result()
        except OSError as error:
            problem = f"the audit log cannot be written: {error.strerror}"
            if self._problem is None:
                log.error("%s", problem)  # noqa: TRY400 - the disk's trouble, not a mistake of ours
            self._problem = problem
            self._try_again()
            return
        self._problem, self._handed = None, ()
        if head != self._head:
            self._head = head
            self._journal.write(puts=[Put(TABLE, "head", msgspec.msgpack.encode(head))])

    def _try_again(self) -> None:
        """What could not be written comes before what has come since; what is too much is lost, and counted."""
        everything, seen = [*self._handed, *self._waiting], sum(map(len, self._seen.values()))
        self._handed, self._waiting, self._named = (), [], seen
        for at, did, parts in everything:
            if did == "lost":
                self._untold += parts["count"]  # said again, with what is lost now
            elif len(self._waiting) >= MOST_WAITING or self._named >= MOST_NAMED:
                self._lose(1)
            else:
                self._named += len(parts.get("whom", ()))
                self._waiting.append((at, did, parts))

    def _write(self, waiting: Sequence[tuple[Instant, Did, dict[str, Any]]]) -> Head:
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
        return Head(n, before, self._retain())

    def _file(self, first: int) -> Path:
        files = files_of(self._folder)
        if files and files[-1].stat().st_size < self._settings.file_size:
            return files[-1]
        path = self._folder / f"{first:012d}{SUFFIX}"
        write_whole(path.with_suffix(".after"), self._head.hash, mode=0o600)
        return path

    def _retain(self) -> int:
        """Delete the oldest files beyond age and size, never the last; the first entry that is left."""
        files = files_of(self._folder)
        total = sum(path.stat().st_size for path in files)
        oldest = self._now() - self._settings.retention_age
        while len(files) > 1:
            path = files[0]
            state = path.stat()
            if state.st_mtime_ns // 1_000 >= oldest and total <= self._settings.retention_size:
                break
            total -= state.st_size
            path.unlink()
            path.with_suffix(".after").unlink(missing_ok=True)
            files.pop(0)
        return first_of(files[0])

    def close(self) -> None:
        """All that waits is written."""
        if not self.on:
            return
        if self._writing is not None:
            self._finish(self._writing)
        self.flush()
        if self._writing is not None:
            self._finish(self._writing)
        self._worker.shutdown()

    def _finish(self, writing: Future[Head]) -> None:
        writing.exception()  # waits
        self._written(writing)
