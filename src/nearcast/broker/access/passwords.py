"""Verifying passwords without being stopped by it.

A verification takes 19 MiB and 20 to 100 ms, on purpose.  So it runs in a few threads, only so many logins wait for them, and a
client that comes back with the password it was let in with is recognised by a keyed digest of it: when a thousand clients
reconnect at once, nobody waits.  Unknown users cost as much as known ones: the time tells nobody who has an account.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import os
import secrets
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import argon2

from nearcast.broker.access.users import HASHER, LONGEST_PASSWORD, REVOKED, read_users
from nearcast.errors import InvalidSettings, NotAuthenticated

THREADS: Final = 2
WAITING: Final = 256
"""Logins that wait for a thread; the next one is told to come back later."""

REMEMBERED: Final = 10_000
"""Clients whose last password is recognised: some 3 MB."""

SERVER_BUSY: Final = 0x89


@dataclass(frozen=True, slots=True)
class PasswordStatistics:
    users: int
    verified: int
    """By argon2, whatever came out."""

    recognised: int
    """By their digest, at once."""

    refused: int
    turned_away: int
    """Because too many were waiting."""

    waiting: int
    remembered: int
    unreadable: int
    """Times that the changed file could not be read; then the users stay what they were."""


class Passwords:
    """The users of a file, which is read again when it has changed."""

    def __init__(
        self, path: Path, *, threads: int = THREADS, waiting: int = WAITING, remembered: int = REMEMBERED
    ) -> None:
        self._path: Final = path
        self._most_waiting: Final = waiting
        self._most_remembered: Final = remembered
        self._pool: Final = ThreadPoolExecutor(threads, thread_name_prefix="passwords", initializer=_give_way)
        self._version = _version(path)
        self._users = read_users(path)
        # Of the hash that it was verified against, so that a changed password ends it, and a digest keyed with a secret of this process.
        self._recognised: Final[OrderedDict[tuple[str, bytes], str]] = OrderedDict()
        self._secret: Final = secrets.token_bytes(32)
        self._waiting = self._verified = self._known_again = self._refused = self._turned_away = self._unreadable = 0

    async def verify(self, user: str, password: bytes) -> bool:
        """Whether that is the user's password; ``NotAuthenticated`` (server busy) if too many are waiting."""
        self._refresh()
        stored = self._hash(user)
        digest = self._digest(password)
        if stored is not None and self._recognises(user, digest, stored):
            self._known_again += 1
            return True
        if self._waiting >= self._most_waiting:
            self._turned_away += 1
            raise NotAuthenticated("too many clients are logging in; try again in a few seconds", SERVER_BUSY)
        right = await self._compute(stored or _nobody(), password) and stored is not None
        # The file may have changed in the meantime.
        if right and stored is not None and self._hash(user) == stored:
            self._remember(user, digest, stored)
            return True
        self._refused += 1
        return False

    def recognises(self, user: str, password: bytes) -> bool:
        """Whether somebody was let in with these before: then they need not be looked at."""
        self._refresh()
        stored = self._hash(user)
        return stored is not None and self._recognises(user, self._digest(password), stored)

    def _digest(self, password: bytes) -> bytes:
        return hashlib.blake2b(password[: LONGEST_PASSWORD + 1], key=self._secret).digest()

    def stamp(self, user: str) -> str | None:
        """The hash of the user's password, as it is now; none: it has none."""
        self._refresh()
        return self._hash(user)

    def is_revoked(self, user: str) -> bool:
        """Whether it is let in no more, by whatever it shows."""
        self._refresh()
        return self._users.get(user) == REVOKED

    @property
    def version(self) -> object:
        """Changes with the file."""
        self._refresh()
        return self._version

    def _hash(self, user: str) -> str | None:
        stored = self._users.get(user)
        return None if stored == REVOKED else stored

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def statistics(self) -> PasswordStatistics:
        return PasswordStatistics(
            users=len(self._users),
            verified=self._verified,
            recognised=self._known_again,
            refused=self._refused,
            turned_away=self._turned_away,
            waiting=self._waiting,
            remembered=len(self._recognised),
            unreadable=self._unreadable,
        )

    async def _compute(self, stored: str, password: bytes) -> bool:
        if len(password) > LONGEST_PASSWORD:
            return False
        self._waiting += 1
        try:
            right = await asyncio.get_running_loop().run_in_executor(self._pool, _verify, stored, password)
        finally:
            self._waiting -= 1
        self._verified += 1
        return right

    def _recognises(self, user: str, digest: bytes, stored: str) -> bool:
        # A dictionary compares digests in a time that depends on them, but of a keyed digest nobody can make up a prefix.
        key = (user, digest)
        known = self._recognised.get(key)
        if known is None:
            return False
        if not hmac.compare_digest(known, stored):
            del self._recognised[key]
            return False
        self._recognised.move_to_end(key)
        return True

    def _remember(self, user: str, digest: bytes, stored: str) -> None:
        self._recognised[user, digest] = stored
        if len(self._recognised) > self._most_remembered:
            self._recognised.popitem(last=False)

    def _refresh(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._users = read_users(self._path)
        except InvalidSettings:
            # A broker that is running does not lock everybody out over a slip of the pen; statistics tell.
            self._unreadable += 1


def _give_way() -> None:
    """Those who are in come before those who want to come in: guessing passwords is work for the broker as well."""
    if sys.platform == "linux":  # where threads have priorities of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat, at every login
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def _verify(stored: str, password: bytes) -> bool:
    try:
        return HASHER.verify(stored, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


@functools.cache
def _nobody() -> str:
    """The hash of a password that nobody knows."""
    return HASHER.hash(secrets.token_bytes(32))
