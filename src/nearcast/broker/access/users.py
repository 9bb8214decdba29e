"""The file of users: one line ``name:hash`` each, hashes by argon2id (RFC 9106), or ``name:revoked``.

Readable by its owner only, and replaced as a whole: whoever reads it sees the old users or the new ones, never half a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import argon2

from nearcast.errors import InvalidSettings, UnknownName
from nearcast.files import clear_drafts, write_whole

LONGEST_PASSWORD: Final = 1_024
"""Bytes; nobody types more, and a login must not be a way to hand in megabytes."""

REVOKED: Final = "revoked"
"""In place of a hash: the user is known, and not let in."""

_NAME: Final = re.compile(r"[^\s:/+#$*%\x00-\x1f\x7f][^\s:/+#\x00-\x1f\x7f]{0,127}")
# What OWASP recommends for argon2id where many log in: a login takes 19 MiB and 20 to 100 ms of one core.
HASHER: Final = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_MOST_MEMORY: Final = 256 * 1024
"""KiB that a hash made elsewhere may take to verify: the broker's memory is at stake."""


def read_users(path: Path) -> dict[str, str]:
    """The hash of every user; nobody if there is no file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidSettings(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSettings(f"{path}: is not a text of users; each line is name:hash") from None
    users = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        name, _, stored = line.partition(":")
        problem = _problem(name, stored) or ("is there twice" if name in users else None)
        if problem:
            raise InvalidSettings(f"{path}, line {number}: user {name!r} {problem}")
        users[name] = stored
    return users


def is_user_name(name: str) -> bool:
    """Whether somebody can be called that, wherever the name comes from."""
    return _NAME.fullmatch(name) is not None


def add_user(path: Path, name: str, password: str, *, existing: bool = False) -> bool:
    """Add a user, or give an existing one another password; whether it is new.  ``existing``: only the latter."""
    if not _NAME.fullmatch(name):
        raise InvalidSettings(f"{name!r} cannot be a user name: use up to 128 characters, without spaces and : / + #")
    if not password or len(password.encode()) > LONGEST_PASSWORD:
        raise InvalidSettings(f"a password has 1 to {LONGEST_PASSWORD} bytes")
    with _changing(path) as users:
        is_new = name not in users
        if is_new and existing:
            raise _unknown(path, name)
        users[name] = HASHER.hash(password)
    return is_new


def revoke_user(path: Path, name: str) -> bool:
    """Let it in no more, by whatever it shows, until it gets a password; whether it had a line here.

    One without may be known by a certificate: the line that it gets keeps it out, too.
    """
    with _changing(path) as users:
        if not _NAME.fullmatch(name):
            raise _unknown(path, name)
        known = name in users
        users[name] = REVOKED
    return known


def remove_user(path: Path, name: str) -> None:
    with _changing(path) as users:
        if name not in users:
            raise _unknown(path, name)
        del users[name]


def _unknown(path: Path, name: str) -> UnknownName:
    return UnknownName(f"there is no user {name!r} in {path}")


def user_names(path: Path) -> tuple[str, ...]:
    return tuple(sorted(read_users(path)))


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[dict[str, str]]:
    """The users, to be changed; written back if nothing goes wrong.  Two who change at once wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        clear_drafts(path)
        users = read_users(path)
        yield users
        write_whole(path, "".join(f"{name}:{stored}\n" for name, stored in users.items()), mode=0o600)


def _problem(name: str, stored: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "has a name that cannot be"
    if stored == REVOKED:
        return None
    try:
        parameters = argon2.extract_parameters(stored)
    except argon2.exceptions.InvalidHashError:
        return "has no argon2 hash; add it with its password again"
    if parameters.memory_cost > _MOST_MEMORY or parameters.time_cost > 100:
        return "has a hash that takes too much memory or time to verify; add it with its password again"
    return None
