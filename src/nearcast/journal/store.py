"""What the writer thread does to the database; each method is one transaction, all or nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nearcast.errors import JournalFailed
from nearcast.journal.database import open_for_writing
from nearcast.journal.failures import failure, is_full
from nearcast.journal.group import Group
from nearcast.journal.reserve import Reserve
from nearcast.model.time import LARGEST, Instant

_TRIMMED: Final = "trimmed"
_PROBE: Final = "probe"
_SET_MARK: Final = "INSERT OR REPLACE INTO mark VALUES (?, ?)"
_INSERT: Final = """
INSERT INTO stretch VALUES (
    :first, :count, :first_time, :last_time, :latest, :kinds, :size, :checksum, :body
)
"""
_REWRITE: Final = "UPDATE stretch SET kinds = ?, size = ?, checksum = ?, body = ? WHERE first = ?"
_STRETCHES_AT_ONCE: Final = 64
"""So many are deleted in one transaction, since writes wait for it."""
_PAGES_AT_ONCE: Final = 512
"""So many are given back to the disk at once."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What retention may delete."""

    before: Instant | None
    """Records that are older than this."""
    bytes_beyond: int | None
    """Records beyond so many bytes."""
    below: int | None
    """But nothing from this offset on."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The body of a stretch, with other records of the same number."""

    first: int
    kinds: int
    body: bytes


class Store:
    """Knows what is in the database, so that nobody has to ask it."""

    def __init__(self, path: Path, checkpoint_bytes: int) -> None:
        # The log is somewhat longer than that when it is moved into the database.
        self._reserve: Final = Reserve(path.parent, 2 * checkpoint_bytes)
        self._connection: Final = self._opened(path, checkpoint_bytes)
        try:
            execute = self._connection.execute
            self.oldest = self.mark_of(_TRIMMED) or 0
            self.bytes, self.stretches = execute(
                "SELECT coalesce(sum(size), 0), count(*) FROM stretch INDEXED BY stretch_order"
            ).fetchone()
            last = execute("SELECT first + count, latest FROM stretch ORDER BY first DESC LIMIT 1").fetchone()
        except sqlite3.Error as error:
            self._connection.close()
            raise failure(path, error) from error
        self.end: int = max(self.oldest, last[0] if last else 0)
        """The first offset that was never on disk."""
        self._latest: Instant = last[1] if last else -LARGEST

    def _opened(self, path: Path, checkpoint_bytes: int) -> sqlite3.Connection:
        try:
            return open_for_writing(path, checkpoint_bytes)
        except JournalFailed as failed:
            # Even to read what a crash has left behind, SQLite must write a little.
            if not is_full(failed.__cause__) or not self._reserve.give_up():
                raise
            return open_for_writing(path, checkpoint_bytes)

    def mark_of(self, name: str) -> int | None:
        row = self._connection.execute("SELECT value FROM mark WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    def commit(self, group: Group) -> None:
        with self._transaction() as connection:
            if group.count:
                connection.execute(_INSERT, group.row(self._latest))
            if group.puts:
                _store_puts(connection, group.puts)
        if group.count:
            self.end = group.end
            self._latest = max(self._latest, group.last_time)
            self.bytes += len(group.body)
            self.stretches += 1

    def set_mark(self, name: str, value: int) -> None:
        # What is exported may be deleted: so this, too, makes room.
        self._with_reserve(lambda: self._set_mark(name, value))

    def _set_mark(self, name: str, value: int) -> None:
        with self._transaction() as connection:
            connection.execute(_SET_MARK, (name, value))

    def probe(self, size: int) -> None:
        """See whether so many bytes can be written again."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO mark VALUES (?, zeroblob(?))", (_PROBE, size))
        with self._transaction() as connection:
            connection.execute("DELETE FROM mark WHERE name = ?", (_PROBE,))

    def trim(self, allowance: Allowance) -> bool:
        """Delete the oldest stretches, as far as that is allowed; whether there may be more to delete."""
        found = self._connection.execute(
            "SELECT first + count, last_time, size FROM stretch INDEXED BY stretch_order ORDER BY latest, first LIMIT ?",
            (_STRETCHES_AT_ONCE,),
        ).fetchall()
        oldest, kept_bytes, gone = self.oldest, self.bytes, 0
        for end, last_time, size in found:
            too_old = allowance.before is not None and last_time < allowance.before
            too_much = allowance.bytes_beyond is not None and kept_bytes > allowance.bytes_beyond
            if not (too_old or too_much) or (allowance.below is not None and end > allowance.below):
                break
            oldest = end
            kept_bytes -= size
            gone += 1
        if not gone:
            return False
        # Said before it is done: who finds nothing there must find the reason too.
        before, self.oldest = self.oldest, oldest
        try:
            self._with_reserve(lambda: self._delete_below(oldest))
        except BaseException:
            self.oldest = before
            raise
        self.bytes = kept_bytes
        self.stretches -= gone
        return gone == _STRETCHES_AT_ONCE

    def _delete_below(self, oldest: int) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM stretch WHERE first < ?", (oldest,))
            connection.execute(_SET_MARK, (_TRIMMED, oldest))

    # Erasing: see ``erasure``

    def rewrite(self, rewritten: Sequence[Rewritten]) -> None:
        """Put other bodies in place of those of these stretches, and overwrite what was there."""
        changed = 0
        with self._overwriting(), self._transaction() as connection:
            for each in rewritten:
                found = connection.execute("SELECT size FROM stretch WHERE first = ?", (each.first,)).fetchone()
                if found is not None:  # otherwise retention was faster
                    connection.execute(
                        _REWRITE, (each.kinds, len(each.body), zlib.crc32(each.body), each.body, each.first)
                    )
                    changed += len(each.body) - found[0]
        self.bytes += changed

    def renew_state(self) -> None:
        """Write the state anew: nothing of what ever stood in it is left where it stands now."""
        with self._overwriting(), self._transaction() as connection:
            connection.execute("CREATE TEMP TABLE renewed AS SELECT name, key, value FROM main.state")
            connection.execute("DELETE FROM main.state")
            connection.execute("INSERT INTO main.state SELECT name, key, value FROM renewed ORDER BY name, key")
            connection.execute("DROP TABLE renewed")

    def give_back_some(self) -> bool:
        """Give pages that hold nothing any more back to the disk; whether there are more."""
        self._connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
        return self._free_pages() > 0

    def empty_log(self) -> bool:
        """Empty the write-ahead log; whether that could be done: somebody may be reading what only stands there."""
        busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    @contextlib.contextmanager
    def _overwriting(self) -> Iterator[None]:
        """Also what costs writing of its own is overwritten."""
        self._connection.execute("PRAGMA secure_delete = ON").fetchone()
        try:
            yield
        finally:
            self._connection.execute("PRAGMA secure_delete = FAST").fetchone()

    def keep_reserve(self) -> bool:
        """See that the reserve is there; whether to try again at once, since more can be given back to the disk for it."""
        if self._reserve.keep():
            return False
        free = self._free_pages()
        if free:
            self.move_log()
            self._connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            self.move_log()
        return self._free_pages() < free

    def _free_pages(self) -> int:
        return int(self._connection.execute("PRAGMA freelist_count").fetchone()[0])

    def move_log(self) -> None:
        """Move the write-ahead log into the database, as far as there is room, so that it begins again."""
        self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def _with_reserve(self, transaction: Callable[[], None]) -> None:
        try:
            transaction()
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            self._reserve.give_up()
            with contextlib.suppress(sqlite3.Error):
                self.move_log()
            transaction()

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back already after some errors, and not after others.
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def _store_puts(connection: sqlite3.Connection, puts: dict[tuple[str, str], bytes | None]) -> None:
    # Sorted: neighbours in the tree are then written together.
    kept = sorted((table, key, value) for (table, key), value in puts.items() if value is not None)
    connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", kept)
    deleted = sorted(name for name, value in puts.items() if value is None)
    connection.executemany("DELETE FROM state WHERE name = ? AND key = ?", deleted)
