"""From the format that an earlier version wrote to the one that this version writes.

The journal's ``user_version`` is the number of the format of the whole data folder.  A broker refuses newer ones, and brings
older ones up to date when it starts, one step after the other.  A step is one transaction which raises the number: after a
kill at any moment the folder is of the old format or of the new one, and the next start goes on from there.

======  =========================================================================================
1       of the beginning
2       records of kinds that a reader of format 1 does not know (late reports), and gaps where somebody was erased, may stand in
        the journal; the file of identities says what it is
======  =========================================================================================
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nearcast.errors import JournalFailed

FORMAT: Final = 2
"""What this version writes."""

UPGRADED: Final = "upgraded"
"""The mark of the offset at which the newest step was taken: records below may be of an earlier format."""

log: Final = logging.getLogger(__name__)


def _to_2(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO mark SELECT ?, coalesce(max(first + count), 0) FROM stretch", (UPGRADED,)
    )


_STEPS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {2: _to_2}
"""How to get to each format from the one before."""


def check_format(path: Path, found: int) -> None:
    """Refuse what a newer version wrote, and what none did."""
    if found > FORMAT:
        raise JournalFailed(
            f"{path} was written by a newer nearcast (format {found}, and this one knows up to {FORMAT}); install that "
            "one, or restore a backup that is older"
        )
    if found < 1:
        raise JournalFailed(f"{path} says that it is of format {found}, which never was; put a backup in its place")


def upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an older database up to date."""
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    check_format(path, found)
    for number in range(found + 1, FORMAT + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _STEPS[number](connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        log.info("%s was of format %d and is now of format %d", path, number - 1, number)
