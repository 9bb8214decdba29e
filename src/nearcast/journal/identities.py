"""Who is who: the one place where a client and the virtual identity in its records meet.

A database file of its own, so that it can be guarded, backed up and deleted apart from what is recorded.  Who is erased
here can no longer be told from the records, and gets a new identity if he returns.

Clients of a user have identities of which half is a keyed digest of the other half, under a secret of that user.  Nobody can
tell without the secret; with it, what a user recorded is found even where the map has forgotten the client: one without a
client id of its own, whose session ended long ago.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nearcast.errors import JournalFailed
from nearcast.journal.failures import failure

_BITS: Final = 128
_HALF: Final = _BITS // 16
"""Bytes."""

BETWEEN: Final = "\0"
"""User and client id: neither holds a NUL."""

_MOST_REMEMBERED: Final = 100_000
APPLICATION: Final = 0x6E_63_69_31  # "nci1"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS identity (client TEXT PRIMARY KEY, virtual TEXT NOT NULL UNIQUE) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS person (user TEXT PRIMARY KEY, secret BLOB NOT NULL) WITHOUT ROWID;
"""

# A range of keys: functions of SQLite end a text at its NUL.
_OF_USER: Final = "client >= ? AND client < ?"


@dataclass(frozen=True, slots=True)
class IdentityStatistics:
    identities: int


class Identities:
    """Asked on the loop's thread: a look into memory or an index; only a new client costs a write.

    A new identity survives the end of the process, however it ends, from the moment it is given; it does not wait for the
    disk.  If the machine itself fails, the newest ones may be lost: their clients then get others, and nobody ever gets
    the identity of somebody else, since they are drawn from 2**128.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._lock: Final = threading.Lock()
        self._remembered: Final[dict[str, str]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Readable by the broker alone, from the first moment on.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection: Final = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise failure(path, error) from error
        try:
            with self._explained():
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                # What is erased is overwritten, not just left out.
                self._connection.execute("PRAGMA secure_delete = ON")
                _say_what_it_is(self._connection, path)
                self._connection.executescript(_SCHEMA)
        except BaseException:
            self._connection.close()
            raise

    def of(self, client: str) -> str:
        """The virtual identity of a client; one that is new gets one."""
        with self._lock, self._explained():
            virtual = self._remembered.get(client) or self._stored(client) or self._given(client)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[client] = virtual
            return virtual

    def who(self, virtual: str) -> str | None:
        """The client that bears a virtual identity; none: it is not known, or no longer."""
        with self._lock, self._explained():
            row = self._connection.execute("SELECT client FROM identity WHERE virtual = ?", (virtual,)).fetchone()
            return None if row is None else str(row[0])

    def known(self, client: str) -> str | None:
        """The virtual identity of a client, if it has one."""
        with self._lock, self._explained():
            return self._stored(client)

    def of_user(self, user: str) -> dict[str, str]:
        """The virtual identities of a user's clients, by client id."""
        head = f"{user}{BETWEEN}"
        query = f"SELECT client, virtual FROM identity WHERE {_OF_USER}"  # noqa: S608 - a constant
        with self._lock, self._explained():
            found = self._connection.execute(query, _range(user)).fetchall()
        return {str(client).removeprefix(head): str(virtual) for client, virtual in found}

    def secret_of(self, user: str) -> bytes | None:
        """By which the identities of a user's clients are recognised (``is_of``); none: it never had any."""
        with self._lock, self._explained():
            row = self._connection.execute("SELECT secret FROM person WHERE user = ?", (user,)).fetchone()
            return None if row is None else bytes(row[0])

    def erase(self, client: str) -> bool:
        """Forget who a client is, on disk too; whether there was one.  Waits for the disk: for a worker thread."""
        with self._lock, self._explained():
            self._remembered.pop(client, None)
            found = self._connection.execute("DELETE FROM identity WHERE client = ?", (client,)).rowcount > 0
            self._empty_log()
            return found

    def erase_user(self, user: str) -> None:
        """Forget a user and all its clients, on disk too; for a worker thread."""
        head = f"{user}{BETWEEN}"
        with self._lock, self._explained():
            for client in [each for each in self._remembered if each.startswith(head)]:
                del self._remembered[client]
            self._connection.execute(f"DELETE FROM identity WHERE {_OF_USER}", _range(user))  # noqa: S608 - a constant
            self._connection.execute("DELETE FROM person WHERE user = ?", (user,))
            self._empty_log()

    def _empty_log(self) -> None:
        """The log in front of the database still has rows as they were."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def forget(self, clients: Sequence[str]) -> None:
        """They will not come back, and nobody needs to know who they were.  Does not wait for the disk, unlike ``erase``."""
        with self._lock, self._explained():
            for client in clients:
                self._remembered.pop(client, None)
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany("DELETE FROM identity WHERE client = ?", [(each,) for each in clients])
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def clients(self) -> list[str]:
        """All that have an identity."""
        with self._lock, self._explained():
            return [str(row[0]) for row in self._connection.execute("SELECT client FROM identity")]

    def statistics(self) -> IdentityStatistics:
        with self._lock, self._explained():
            return IdentityStatistics(self._connection.execute("SELECT count(*) FROM identity").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _stored(self, client: str) -> str | None:
        row = self._connection.execute("SELECT virtual FROM identity WHERE client = ?", (client,)).fetchone()
        return None if row is None else str(row[0])

    def _given(self, client: str) -> str:
        user, between, _ = client.rpartition(BETWEEN)
        if between:
            beginning = secrets.token_bytes(_HALF)
            virtual = _text(beginning + _digest(self._secret(user), beginning))
        else:
            virtual = secrets.token_urlsafe(_BITS // 8)
        self._connection.execute("INSERT INTO identity VALUES (?, ?)", (client, virtual))
        return virtual

    def _secret(self, user: str) -> bytes:
        row = self._connection.execute("SELECT secret FROM person WHERE user = ?", (user,)).fetchone()
        if row is not None:
            return bytes(row[0])
        secret = secrets.token_bytes(_BITS // 4)
        self._connection.execute("INSERT INTO person VALUES (?, ?)", (user, secret))
        return secret

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise failure(self._path, error) from error


def _say_what_it_is(connection: sqlite3.Connection, path: Path) -> None:
    """Files of format 1 do not; a database of something else may be in the wrong place."""
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    if found not in (0, APPLICATION):
        raise JournalFailed(f"{path} is a database of something else; put the file of identities there")
    if found == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")


def _range(user: str) -> tuple[str, str]:
    return f"{user}{BETWEEN}", f"{user}{chr(ord(BETWEEN) + 1)}"


def is_of(secret: bytes, virtual: str) -> bool:
    """Whether that is an identity of a client of the user whose secret this is."""
    try:
        held = base64.urlsafe_b64decode(f"{virtual}==")
    except ValueError:
        return False
    if len(held) != _BITS // 8 or _text(held) != virtual:
        return False
    return hmac.compare_digest(_digest(secret, held[:_HALF]), held[_HALF:])


def _digest(secret: bytes, beginning: bytes) -> bytes:
    return hashlib.blake2b(beginning, key=secret, digest_size=_HALF).digest()


def _text(identity: bytes) -> str:
    return base64.urlsafe_b64encode(identity).rstrip(b"=").decode()
