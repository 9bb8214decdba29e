"""What is in a backup: ``manifest.json`` beside the folder ``data``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

import msgspec

from nearcast.errors import BackupFailed

FILE: Final = "manifest.json"
DATA: Final = "data"
"""The folder of a backup that holds the files of the data folder."""

BACKUP_FORMAT: Final = 1
_CHUNK: Final = 1 << 20

Told: TypeAlias = Callable[[int, int], None]
"""Told how many bytes are done, and of how many."""


class KeptFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    """Within the data folder, with slashes."""

    size: int
    sha256: str
    mode: int
    """Who may read and write it."""


class JournalExtent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    oldest: int
    """Offsets below were deleted by retention."""

    end: int
    """Behind the last record."""

    exported: int
    """Offsets below are in the lake."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    backup_format: int
    nearcast: str
    """The version that made it."""

    data_format: int
    begun: str
    finished: str
    journal: JournalExtent
    files: tuple[KeptFile, ...]
    checksum: str = ""
    """Of all the rest."""

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    def sealed(self) -> Manifest:
        return msgspec.structs.replace(self, checksum=self._checksum())

    def _checksum(self) -> str:
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, checksum=""))).hexdigest()

    def encoded(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


class _Head(msgspec.Struct):
    """What every format of backup has."""

    backup_format: int
    nearcast: str


def read_manifest(backup: Path) -> Manifest:
    """Of the backup in that folder; refused if it is none, damaged, or of a newer nearcast."""
    path = backup / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BackupFailed(
            f"{backup} is no backup: it has no {FILE}; give the folder that `nearcast backup` made"
        ) from None
    except OSError as error:
        raise BackupFailed(f"{path} cannot be read: {error.strerror}; see that {backup} is a backup") from None
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.backup_format > BACKUP_FORMAT:
            raise BackupFailed(
                f"{backup} was made by a newer nearcast ({head.nearcast}, format {head.backup_format}); install that one"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise BackupFailed(f"{path} is damaged ({error}); take another backup") from None
    if manifest != manifest.sealed():
        raise BackupFailed(f"{path} is damaged: its checksum is wrong; take another backup")
    for file in manifest.files:
        parts = PurePosixPath(file.path).parts
        if not parts or file.path.startswith("/") or ".." in parts or "\0" in file.path:
            raise BackupFailed(f"{path} names {file.path!r}, which lies outside the data folder; take another backup")
    return manifest


def chunks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
