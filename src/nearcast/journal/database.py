"""The database file of the journal.

A group commit is one row of ``stretch``: thousands of records share one row, one fsync and one msgpack array.  ``state``
is what must be known after a restart, the newest value of each key.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from nearcast.errors import JournalFailed
from nearcast.journal.failures import failure
from nearcast.journal.upgrades import FORMAT, upgrade

FILE: Final = "journal.sqlite"
APPLICATION: Final = 0x6E_63_6A_31  # "ncj1"
_PAGE: Final = 4096

# `latest` is the latest time in this stretch or any before it: it never falls, so a time leads to an offset in one step.
# `stretch_order` holds all that decides whether a stretch must be read: a scan over years looks at nothing else.
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE stretch (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, first_time INTEGER NOT NULL, last_time INTEGER NOT NULL,
    latest INTEGER NOT NULL, kinds INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX stretch_order ON stretch (latest, first, last_time, first_time, kinds, count, size);
CREATE TABLE state (name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE TABLE mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


def open_for_writing(path: Path, checkpoint_bytes: int) -> sqlite3.Connection:
    """The one connection that writes; made if there is none.  Opening recovers what a crash has left behind."""
    if not path.exists():
        # Its owner's alone, and so are the files that SQLite puts beside it: it says whose sessions the identities of the records are.
        with contextlib.suppress(OSError):  # SQLite says what is wrong
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise failure(path, error) from error
    try:
        if not connection.execute("PRAGMA page_count").fetchone()[0]:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            # What is deleted can be given back to the disk, a little at a time (``Store.keep_reserve``).
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        # Acknowledged means on disk: every commit waits for it.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_bytes // _PAGE}")
        connection.execute(f"PRAGMA journal_size_limit = {checkpoint_bytes}")
        # What is deleted or replaced is overwritten where that costs no writing of its own; the rest is erasure's business.
        connection.execute("PRAGMA secure_delete = FAST")
        _prepare(connection, path)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise failure(path, error) from error
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == 0 and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        connection.executescript(_SCHEMA)
    elif application != APPLICATION:
        raise JournalFailed(f"{path} is a database of something else; choose another folder for the journal")
    else:
        upgrade(connection, path)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection of its own for each reader, in whatever threads it reads; it sees what is committed and holds nobody up."""
    try:
        address = f"{path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise failure(path, error) from error
