"""Journal and identities: whole, of a format that we know, and without holes."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem, warning
from nearcast.journal.database import APPLICATION, FILE, open_for_reading
from nearcast.journal.identities import APPLICATION as IDENTITIES
from nearcast.journal.upgrades import FORMAT

_BACKUP: Final = "restore a backup, or save what can be read: sqlite3 FILE .recover"
_ROWS_AT_ONCE: Final = 64
_LAST: Final = 1_000
"""Stretches that a quick look is content with."""


def newest(data: Path) -> int | None:
    """The latest time in the journal."""
    path = data / "journal" / FILE
    if not path.exists():
        return None
    with contextlib.suppress(sqlite3.Error), contextlib.closing(open_for_reading(path)) as journal:
        row = journal.execute("SELECT last_time FROM stretch ORDER BY first DESC LIMIT 1").fetchone()
        return None if row is None else int(row[0])
    return None


def journal(data: Path, *, quick: bool) -> Iterator[Finding]:
    path = data / "journal" / FILE
    if not path.exists():
        yield note("journal", f"{path} does not exist: a broker will begin it")
        return
    try:
        with contextlib.closing(open_for_reading(path)) as opened:
            yield from _identified(opened, path)
            yield _integrity("journal", opened, path, quick=quick)
        yield from _stretches(path, quick=quick)
    except sqlite3.Error as error:
        yield problem("journal", f"{path}: {error}", _BACKUP)


def _identified(opened: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    application, found = (opened.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if application != APPLICATION:
        yield problem(
            "journal", f"{path} is a database of something else", "put the journal, or a backup, in its place"
        )
    elif not 1 <= found <= FORMAT:
        yield problem(
            "journal", f"it is of format {found}, and this version knows up to {FORMAT}", "install the newer nearcast"
        )
    elif found < FORMAT:
        yield note(
            "journal", f"it is of format {found}: the next start makes it format {FORMAT}", "make a backup before"
        )
    else:
        yield ok("journal", f"format {found}")


def _integrity(area: str, opened: sqlite3.Connection, path: Path, *, quick: bool) -> Finding:
    what = "quick_check" if quick else "integrity_check"
    said = [str(row[0]) for row in opened.execute(f"PRAGMA {what}(5)")]
    if said == ["ok"]:
        return ok(area, f"SQLite finds nothing wrong with {path}")
    return problem(area, f"{path} is damaged: {said[0].splitlines()[-1]:.120}", _BACKUP)


def _stretches(path: Path, *, quick: bool) -> Iterator[Finding]:
    """In many short looks: a long one would let the log of a running broker grow."""
    with contextlib.closing(open_for_reading(path)) as opened:
        marks = dict(opened.execute("SELECT name, value FROM mark WHERE typeof(value) = 'integer'"))
        end, last = int(marks.get("trimmed", 0)), -1
        if quick:
            row = opened.execute("SELECT first FROM stretch ORDER BY first DESC LIMIT 1 OFFSET ?", (_LAST,)).fetchone()
            last, end = (-1, end) if row is None else (int(row[0]), -1)
        seen = 0
        while rows := opened.execute(
            "SELECT first, count, size, checksum, body FROM stretch WHERE first > ? ORDER BY first LIMIT ?",
            (last, _ROWS_AT_ONCE),
        ).fetchall():
            for first, count, size, checksum, body in rows:
                if len(body) != size or zlib.crc32(body) != checksum:
                    yield problem("journal", f"records {first} to {first + count - 1} are damaged", _BACKUP)
                if end >= 0 and first < end:
                    yield problem("journal", f"records {first} to {end - 1} are there twice", _BACKUP)
                elif end >= 0 and first > end and not _trimmed_meanwhile(opened, first):
                    yield warning(
                        "journal",
                        f"records {end} to {first - 1} are missing",
                        "a write that failed leaves such a gap, and was never acknowledged; otherwise compare with a backup",
                    )
                end, last = first + count, first
                seen += 1
        yield ok("journal", f"{seen} stretches were read, up to offset {max(end, 0)}")


def _trimmed_meanwhile(opened: sqlite3.Connection, first: int) -> bool:
    row = opened.execute("SELECT value FROM mark WHERE name = 'trimmed'").fetchone()
    return row is not None and int(row[0]) >= first


def exported(data: Path) -> int | None:
    """The offset below which everything is in the lake, as the journal says."""
    path = data / "journal" / FILE
    if not path.exists():
        return None
    with contextlib.suppress(sqlite3.Error), contextlib.closing(open_for_reading(path)) as opened:
        row = opened.execute("SELECT value FROM mark WHERE name = 'exported'").fetchone()
        return 0 if row is None else int(row[0])
    return None


def identities(data: Path, *, quick: bool) -> Iterator[Finding]:
    path = data / "identities.db"
    if not path.exists():
        if (data / "journal" / FILE).exists():
            yield problem("identities", f"{path} is missing", "put it back: without it nobody is who he was")
        return
    try:
        with contextlib.closing(open_for_reading(path)) as opened:
            if opened.execute("PRAGMA application_id").fetchone()[0] not in (0, IDENTITIES):
                yield problem(
                    "identities", f"{path} is a database of something else", "put the file of identities there"
                )
                return
            yield _integrity("identities", opened, path, quick=quick)
    except sqlite3.Error as error:
        yield problem("identities", f"{path}: {error}", _BACKUP)
