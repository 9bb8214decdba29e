"""A backup as a data folder again: every byte compared with what the manifest says, and nothing there before all of it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from nearcast.broker.upkeep.aside import check_vacant, explained, made_aside
from nearcast.broker.upkeep.backup import check_room
from nearcast.broker.upkeep.manifest import DATA, KeptFile, Manifest, Told, read_manifest
from nearcast.errors import BackupFailed
from nearcast.journal.upgrades import FORMAT

_ADVICE: Final = "a backup is restored into a folder of its own: choose one that does not exist yet"
_CHUNK: Final = 1 << 20


def verify(backup: Path, told: Told = lambda _done, _of: None) -> Manifest:
    """Read every file of a backup; refused if one is missing or damaged."""
    manifest, done = read_manifest(backup), 0
    for file in manifest.files:
        for chunk in _checked(backup, file):
            done += len(chunk)
            told(done, manifest.total)
    return manifest


def restore(backup: Path, data: Path, told: Told = lambda _done, _of: None) -> Manifest:
    """Make the data folder that was backed up; a broker that is started on it goes on where the backup was made."""
    check_vacant(data, _ADVICE)
    manifest, done = read_manifest(backup), 0
    if manifest.data_format > FORMAT:
        raise BackupFailed(
            f"{backup} holds data of a newer nearcast ({manifest.nearcast}, format {manifest.data_format}); install that one"
        )
    with explained(f"{data} could not be made"), made_aside(data, _ADVICE) as draft:
        check_room(draft, manifest.total)
        for file in manifest.files:
            target = draft / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with _written(target, file.mode) as here:
                for chunk in _checked(backup, file):
                    here.write(chunk)
                    done += len(chunk)
                    told(done, manifest.total)
    return manifest


def _checked(backup: Path, file: KeptFile) -> Iterator[bytes]:
    """The bytes of a file; at the end it is refused if they are not the ones that were backed up."""
    path = backup / DATA / file.path
    digest, size = hashlib.sha256(), 0
    try:
        # A link could lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as there:
            while chunk := there.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                yield chunk
    except FileNotFoundError:
        raise BackupFailed(f"{path} is missing from the backup; take another backup") from None
    except OSError as error:
        raise BackupFailed(f"{path} cannot be read: {error.strerror}; mend that, or take another backup") from None
    if size < file.size:
        raise BackupFailed(f"{path} is cut off: {size} of {file.size} bytes; take another backup")
    if size != file.size or digest.hexdigest() != file.sha256:
        raise BackupFailed(f"{path} is damaged: it is not the file that was backed up; take another backup")


@contextmanager
def _written(target: Path, mode: int) -> Iterator[BinaryIO]:
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as here:
        yield here
        # Who may read and write it, and nothing that a backup could hand to whoever runs it (set-user-ID).
        os.fchmod(here.fileno(), mode & 0o777)
        here.flush()
        os.fsync(here.fileno())
