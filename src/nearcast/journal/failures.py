"""What went wrong with a database file, in words that say what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nearcast.errors import JournalFailed


def is_full(error: BaseException | None) -> bool:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF == sqlite3.SQLITE_FULL


def failure(path: Path, error: Exception) -> JournalFailed:
    """The error of SQLite or of the system, explained."""
    return JournalFailed(f"{path}: {_explained(path, error)}")


def _explained(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error}; see that {path.parent} exists and may be written to"
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return repr(error)
    match code & 0xFF:  # the rest tells variants apart
        case sqlite3.SQLITE_FULL:
            return f"the disk is full; make room on the disk of {path.parent}, or keep less (journal.keep_bytes)"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"it cannot be written ({error}); allow writing to {path.parent}"
        case sqlite3.SQLITE_IOERR:
            return f"the disk reports an error ({error.sqlite_errorname}); look at its health and at its free space"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_SCHEMA:
            return (
                f"the file is damaged ({error}); nothing was changed: put a backup in its place, or save what can be "
                f"read with `sqlite3 {path.name} .recover`, or move the file away to begin anew"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"another program holds it ({error}); only the broker may open it"
        case _:
            return f"{error} ({error.sqlite_errorname})"
