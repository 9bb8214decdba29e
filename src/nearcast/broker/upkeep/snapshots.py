"""Databases as they were at one moment, copied while somebody writes to them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nearcast.errors import BackupFailed
from nearcast.files import to_disk
from nearcast.journal.database import open_for_reading

_PAGES_AT_ONCE: Final = 1_024
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database while it is open."""


def is_database(path: Path) -> bool:
    """Never asked by the process that has the file open: to close a file lets go of its locks, whoever took them."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def belongs_to_database(path: Path) -> bool:
    return any(path.name.endswith(each) and path.with_name(path.name.removesuffix(each)).exists() for each in _BESIDE)


class Snapshot:
    """From here on it sees the database as it is now.  Writers go on; only their log grows until this is closed."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.connection: Final = open_for_reading(path)
        try:
            self.connection.execute("BEGIN")
            self.connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # it begins with the first look
            self.bytes: Final[int] = self._pragma("page_count") * self._pragma("page_size")
        except BaseException as error:
            self.connection.close()
            if isinstance(error, sqlite3.Error):
                raise BackupFailed(
                    f"{path} cannot be read ({error}); `nearcast doctor` says what is wrong with it"
                ) from error
            raise

    def _pragma(self, name: str) -> int:
        return int(self.connection.execute(f"PRAGMA {name}").fetchone()[0])

    def copy(self, target: Path, told: Callable[[int], None]) -> None:
        """Page by page, as it was at the beginning; ``told`` hears how many more bytes are done."""
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        done = 0

        def progress(_status: int, remaining: int, total: int) -> None:
            nonlocal done
            now = (total - remaining) * self.bytes // max(1, total)
            told(now - done)
            done = now

        copy = sqlite3.connect(target, isolation_level=None)
        try:
            copy.execute("PRAGMA synchronous = OFF")  # brought to disk once, below
            # The snapshot is held by a transaction of this very connection, so no step sees anything newer.
            self.connection.backup(copy, pages=_PAGES_AT_ONCE, progress=progress)
        except sqlite3.Error as error:
            raise BackupFailed(
                f"{self.path} could not be copied to {target.parent} ({error}); see that there is room, and that "
                "`nearcast doctor` finds nothing"
            ) from error
        finally:
            copy.close()
        to_disk(target)

    def close(self) -> None:
        self.connection.close()
