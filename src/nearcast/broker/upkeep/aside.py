"""Folders that are there as a whole or not at all, whoever is killed meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nearcast.errors import BackupFailed
from nearcast.files import to_disk

_ENDING: Final = ".unfinished"


def check_vacant(target: Path, advice: str) -> None:
    """Refuse a place where something is; an empty folder is nothing."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BackupFailed(f"{target} exists and is no folder; {advice}")
    if target.is_dir() and any(target.iterdir()):
        raise BackupFailed(f"{target} is not empty, and nothing in it was changed; {advice}")


@contextlib.contextmanager
def made_aside(target: Path, advice: str) -> Iterator[Path]:
    """A folder to fill, beside ``target``, which becomes it at the end; after an error, it is gone.

    A kill leaves it behind under a name that begins with a dot; whoever makes the same target next removes it.
    """
    target = target.absolute()  # one named "." has a name, too
    check_vacant(target, advice)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_ENDING}")
    draft.mkdir(mode=0o700)
    # A lock on the folder itself says that somebody is at work: the kernel lets go of it with its holder.
    holder = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield draft
        for folder in sorted((Path(at) for at, _, _ in os.walk(draft)), reverse=True):
            to_disk(folder)
        try:
            draft.rename(target)
        except OSError as error:
            raise BackupFailed(f"{target} came into being meanwhile ({error.strerror}); {advice}") from None
        to_disk(target.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    finally:
        os.close(holder)


@contextlib.contextmanager
def explained(doing: str) -> Iterator[None]:
    """What the system refuses, in words that say what was being done."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise BackupFailed(
            f"{doing}: {error.strerror or error}{where}; see that there is room, and that this account may read and write there"
        ) from error


def _remove_abandoned(target: Path) -> None:
    for draft in target.parent.glob(f".{target.name}.*{_ENDING}"):
        with contextlib.suppress(OSError):
            holder = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(draft)
            finally:
                os.close(holder)
