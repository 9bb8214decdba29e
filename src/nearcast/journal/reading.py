"""Reading what is on disk, in chunks, without holding anybody up."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nearcast.errors import JournalFailed, OffsetTrimmed
from nearcast.journal.database import open_for_reading
from nearcast.journal.entries import BITS, Record, decode_records, time_of
from nearcast.journal.failures import failure
from nearcast.model.time import LARGEST, Instant

_BYTES_AT_ONCE: Final = 2_000_000
_STRETCHES_AT_ONCE: Final = 256

# The index alone answers it, without a look at the bodies, and goes on from where the last answer ended.
_WANTED: Final = """
SELECT latest, first FROM stretch INDEXED BY stretch_order
WHERE latest >= :since AND (latest, first) > (:latest, :after) AND first < :last
    AND last_time >= :since AND first_time < :until AND (kinds & :kinds) != 0
ORDER BY latest, first LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: offsets and times are half-open."""

    first: int
    last: int
    since: Instant | None
    until: Instant | None
    kinds: int

    def everything_in(self, first: int, count: int, times: tuple[Instant, Instant], kinds: int) -> bool:
        return (
            first >= self.first
            and first + count <= self.last
            and kinds & ~self.kinds == 0
            and (self.since is None or times[0] >= self.since)
            and (self.until is None or times[1] < self.until)
        )

    def holds(self, offset: int, record: Record) -> bool:
        time = time_of(record)
        return (
            self.first <= offset < self.last
            and BITS[type(record)] & self.kinds != 0
            and (self.since is None or time >= self.since)
            and (self.until is None or time < self.until)
        )


def load(path: Path, table: str) -> dict[str, bytes]:
    connection = open_for_reading(path)
    try:
        return dict(connection.execute("SELECT key, value FROM state WHERE name = ?", (table,)))
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()


def tables(path: Path) -> list[str]:
    connection = open_for_reading(path)
    try:
        return [str(name) for (name,) in connection.execute("SELECT DISTINCT name FROM state ORDER BY name")]
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()


def known(path: Path, table: str, keys: Sequence[str]) -> set[str]:
    """Of these keys, those that have a value."""
    connection = open_for_reading(path)
    query = "SELECT 1 FROM state WHERE name = ? AND key = ?"
    try:
        return {key for key in keys if connection.execute(query, (table, key)).fetchone()}
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()


def mark_of(path: Path, name: str) -> int | None:
    connection = open_for_reading(path)
    try:
        row = connection.execute("SELECT value FROM mark WHERE name = ?", (name,)).fetchone()
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()
    return None if row is None else int(row[0])


def chunks(
    path: Path, wanted: Wanted, limit: int | None, oldest: Callable[[], int]
) -> Iterator[list[tuple[int, Record]]]:
    """At most ``limit`` records; each chunk is a query of its own, so a slow reader never stops the log from beginning anew."""
    connection = open_for_reading(path)
    left = limit
    reached = wanted.first
    try:
        position = _before(connection, reached)
        while left != 0:
            most = _STRETCHES_AT_ONCE if left is None else min(left, _STRETCHES_AT_ONCE)
            stretches = _stretches(connection, wanted, position, most)
            rows = _rows(connection, [first for _, first in stretches])
            # Retention deletes from the oldest on: if it is still behind, all that was wanted was there.
            check_kept(reached, oldest())
            if not rows:
                return
            position = stretches[len(rows) - 1]
            reached = rows[-1][0] + rows[-1][1]
            found = [each for row in rows for each in _records(path, wanted, row)][:left]
            if left is not None:
                left -= len(found)
            if found:
                yield found
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records that were committed together, as they stand on disk."""

    first: int
    count: int
    checksum: int
    body: bytes


def stretches(path: Path, wanted: Wanted, most_bytes: int, oldest: Callable[[], int]) -> tuple[list[Stretch], bool]:
    """Whole stretches, about so many bytes of them; and whether those are all.

    Not decoded: who reads much does that himself, elsewhere.
    """
    connection = open_for_reading(path)
    found: list[Stretch] = []
    size = 0
    try:
        position = _before(connection, wanted.first)
        while size < most_bytes:
            places = _stretches(connection, wanted, position, _STRETCHES_AT_ONCE)
            rows = _rows(connection, [first for _, first in places], most_bytes - size)
            check_kept(wanted.first, oldest())
            if not rows:
                return found, True
            position = places[len(rows) - 1]
            found += [Stretch(first, count, checksum, body) for first, count, _, _, _, checksum, body in rows]
            size += sum(len(row[-1]) for row in rows)
    except sqlite3.Error as error:
        raise failure(path, error) from error
    finally:
        connection.close()
    return found, False


def check_kept(first: int, oldest: int) -> None:
    if first < oldest:
        raise OffsetTrimmed(f"offset {first} was deleted by retention; the oldest that is left is {oldest}", oldest)


_Position = tuple[Instant, int]
"""A place in ``stretch_order``: the latest time so far, and the first offset of a stretch."""


def _before(connection: sqlite3.Connection, offset: int) -> _Position:
    """A position behind which the stretch comes that holds this offset."""
    query = "SELECT latest, first - 1 FROM stretch WHERE first <= ? ORDER BY first DESC LIMIT 1"
    found: _Position | None = connection.execute(query, (offset,)).fetchone()
    return found or (-LARGEST, -1)


def _stretches(connection: sqlite3.Connection, wanted: Wanted, after: _Position, most: int) -> list[_Position]:
    parameters = {
        "latest": after[0],
        "after": after[1],
        "last": wanted.last,
        "since": -LARGEST if wanted.since is None else wanted.since,
        "until": LARGEST if wanted.until is None else wanted.until,
        "kinds": wanted.kinds,
        "most": most,
    }
    return connection.execute(_WANTED, parameters).fetchall()


_Row = tuple[int, int, Instant, Instant, int, int, bytes]
_COLUMNS: Final = "first, count, first_time, last_time, kinds, checksum, body"


def _rows(connection: sqlite3.Connection, firsts: list[int], most_bytes: int = _BYTES_AT_ONCE) -> list[_Row]:
    """The rows of these stretches, as many from the beginning as are about so many bytes."""
    marks = ", ".join("?" * len(firsts))
    query = f"SELECT {_COLUMNS} FROM stretch WHERE first IN ({marks}) ORDER BY first"  # noqa: S608 - question marks
    cursor = connection.execute(query, firsts)
    rows: list[_Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += len(row[-1])
        if size >= most_bytes:
            break
    cursor.close()
    return rows


def _records(path: Path, wanted: Wanted, row: _Row) -> list[tuple[int, Record]]:
    first, count, first_time, last_time, kinds, checksum, body = row
    if zlib.crc32(body) != checksum:
        raise JournalFailed(_damaged(path, first, count, "its checksum is wrong"))
    try:
        records = decode_records(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise JournalFailed(_damaged(path, first, count, str(error))) from error
    numbered = zip(range(first, first + count), records, strict=True)
    there = [(offset, record) for offset, record in numbered if record is not None]
    if wanted.everything_in(first, count, (first_time, last_time), kinds):
        return there
    return [(offset, record) for offset, record in there if wanted.holds(offset, record)]


def _damaged(path: Path, first: int, count: int, why: str) -> str:
    return (
        f"{path}: the records {first} to {first + count - 1} cannot be read: {why}; the disk has changed them: "
        f"put a backup in place of the file, or read on from {first + count}"
    )
