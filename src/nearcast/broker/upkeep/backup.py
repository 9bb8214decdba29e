"""A copy of all that a broker keeps, made while it works: complete as of one moment, whole or not there at all.

The moment is that of the journal's snapshot: what was acknowledged before is on disk, and so in the copy.  Everything else
is fitted to it.  Whoever is named in the journal is in the file of identities, since it is copied from the next moment on.
Of the lake come the files below the offset up to which it was exported then: what was exported later, the restored broker
exports anew, and nothing is there twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from nearcast.broker.settings import BrokerSettings
from nearcast.broker.upkeep.aside import explained, made_aside
from nearcast.broker.upkeep.manifest import (
    BACKUP_FORMAT,
    DATA,
    FILE,
    JournalExtent,
    KeptFile,
    Manifest,
    Told,
    chunks_of,
)
from nearcast.broker.upkeep.snapshots import Snapshot, belongs_to_database, is_database
from nearcast.errors import BackupFailed
from nearcast.files import to_disk, write_whole
from nearcast.journal.database import FILE as JOURNAL_FILE
from nearcast.journal.lake import EXPORTED

_JOURNAL: Final = "journal"
_LAKE: Final = "lake"
_USERS: Final = "users"
_OFFSETS: Final = re.compile(r"(\d{20})-(\d{20})\.parquet")
_ROOM: Final = 16_000_000
"""Bytes that must be left on the disk of the backup."""

_ADVICE: Final = "choose a folder that does not exist yet, such as one named for the day"


@dataclass(slots=True)
class _Copying:
    """What was copied so far, and whoever wants to know."""

    into: Path
    told: Told
    total: int
    link: bool
    done: int = 0
    files: list[KeptFile] = field(default_factory=list)

    def more(self, size: int) -> None:
        self.done += size
        self.told(min(self.done, self.total), self.total)

    def place(self, name: str) -> Path:
        target = self.into / DATA / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def note(self, name: str, mode: int, size: int, checksum: str) -> None:
        self.files.append(KeptFile(name, size, checksum, stat.S_IMODE(mode)))

    def database(self, name: str, snapshot: Snapshot) -> None:
        target = self.place(name)
        snapshot.copy(target, self.more)
        digest = hashlib.sha256()
        for chunk in chunks_of(target):
            digest.update(chunk)
        self.note(name, snapshot.path.stat().st_mode, target.stat().st_size, digest.hexdigest())

    def file(self, name: str, source: Path, *, immutable: bool = False) -> None:
        """A file that is only ever replaced as a whole; one that never changes may be the same file under another name."""
        target = self.place(name)
        if immutable and self.link:
            with contextlib.suppress(OSError):  # another file system, or one without links
                os.link(source, target, follow_symlinks=False)
                return self._linked(name, target)
        digest, size = hashlib.sha256(), 0
        with source.open("rb") as there, target.open("xb") as here:
            mode = os.fstat(there.fileno()).st_mode
            os.fchmod(here.fileno(), stat.S_IMODE(mode))
            while chunk := there.read(1 << 20):
                here.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                self.more(len(chunk))
            here.flush()
            os.fsync(here.fileno())
        return self.note(name, mode, size, digest.hexdigest())

    def _linked(self, name: str, target: Path) -> None:
        digest = hashlib.sha256()
        for chunk in chunks_of(target):
            digest.update(chunk)
            self.more(len(chunk))
        found = target.stat()
        self.note(name, found.st_mode, found.st_size, digest.hexdigest())


def back_up(
    settings: BrokerSettings, target: Path, *, link: bool = True, told: Told = lambda _done, _of: None
) -> Manifest:
    """Copy the data folder of these settings to ``target``; from a process of its own if a broker works on it.

    ``link``: files of the lake become further names of the same files where the file system can.
    """
    data = settings.data
    journal = data / _JOURNAL / JOURNAL_FILE
    if not journal.is_file():
        raise BackupFailed(f"{data} is no data folder of a broker: it has no {_JOURNAL}/{JOURNAL_FILE}; give --data")
    for folder in (data, settings.lake):
        if target.resolve().is_relative_to(folder.resolve()):
            raise BackupFailed(f"{target} lies in {folder}, which is to be backed up; choose a folder elsewhere")
    begun = datetime.now(UTC)
    with (
        explained(f"{target} could not be made"),
        contextlib.ExitStack() as open_snapshots,
        made_aside(target, _ADVICE) as draft,
    ):
        snapshots = {f"{_JOURNAL}/{JOURNAL_FILE}": Snapshot(journal)}
        open_snapshots.callback(snapshots[f"{_JOURNAL}/{JOURNAL_FILE}"].close)
        extent, data_format = _extent(snapshots[f"{_JOURNAL}/{JOURNAL_FILE}"])
        others: dict[str, Path] = {}
        for name, path in _others(settings):
            if is_database(path):
                snapshots[name] = Snapshot(path)
                open_snapshots.callback(snapshots[name].close)
            else:
                others[name] = path
        lake = dict(_lake(settings.lake, extent.exported))
        total = sum(each.bytes for each in snapshots.values()) + sum(map(_size, (*others.values(), *lake.values())))
        copying = _Copying(draft, told, total, link)
        check_room(draft, total - (sum(map(_size, lake.values())) if link else 0))
        # The small ones first: their writers may wait for the end of a snapshot.
        for name, snapshot in sorted(snapshots.items(), key=lambda item: item[1].bytes):
            copying.database(name, snapshot)
            snapshot.close()
        for name, path in others.items():
            with contextlib.suppress(FileNotFoundError):  # taken away meanwhile
                copying.file(name, path)
        for name, path in lake.items():
            with contextlib.suppress(FileNotFoundError):  # its operator trims the lake
                copying.file(name, path, immutable=True)
        if lake:
            mark = copying.place(f"{_LAKE}/{EXPORTED}")
            write_whole(mark, f"{extent.exported}\n")
            copying.note(
                f"{_LAKE}/{EXPORTED}", 0o644, mark.stat().st_size, hashlib.sha256(mark.read_bytes()).hexdigest()
            )
        manifest = Manifest(
            backup_format=BACKUP_FORMAT,
            nearcast=version("nearcast"),
            data_format=data_format,
            begun=begun.isoformat(),
            finished=datetime.now(UTC).isoformat(),
            journal=extent,
            files=tuple(sorted(copying.files, key=lambda file: file.path)),
        ).sealed()
        write_whole(draft / FILE, manifest.encoded())
        to_disk(draft)
    return manifest


def _extent(snapshot: Snapshot) -> tuple[JournalExtent, int]:
    execute = snapshot.connection.execute
    marks = dict(execute("SELECT name, value FROM mark WHERE name IN ('trimmed', 'exported')"))
    last = execute("SELECT first + count FROM stretch ORDER BY first DESC LIMIT 1").fetchone()
    oldest = marks.get("trimmed", 0)
    extent = JournalExtent(oldest, max(oldest, last[0] if last else 0), marks.get("exported", 0))
    return extent, int(execute("PRAGMA user_version").fetchone()[0])


def _others(settings: BrokerSettings) -> Iterator[tuple[str, Path]]:
    """Files of the data folder beside journal and lake, whatever they are; and that of the users, which may lie elsewhere."""
    data, passwords = settings.data, settings.passwords
    apart = {(data / _JOURNAL).absolute(), settings.lake.absolute(), (data / _LAKE).absolute()}
    for at, folders, names in os.walk(data):
        folder = Path(at)
        folders[:] = [
            each for each in sorted(folders) if (folder / each).absolute() not in apart and not each.startswith(".")
        ]
        for name in sorted(names):
            path = folder / name
            if path.is_file() and not name.startswith(".") and not belongs_to_database(path):
                yield path.relative_to(data).as_posix(), path
    if passwords.is_file() and passwords.absolute() != (data / _USERS).absolute():
        yield _USERS, passwords


def _lake(lake: Path, exported: int) -> Iterator[tuple[str, Path]]:
    """Files of the lake as it was when everything below ``exported`` was in it."""
    for at, folders, names in os.walk(lake):
        folders[:] = [each for each in sorted(folders) if not each.startswith(("_", "."))]
        for name in sorted(names):
            path = Path(at, name)
            offsets = _OFFSETS.fullmatch(name)
            if name.startswith(("_", ".")) or (offsets is not None and int(offsets[2]) >= exported):
                continue
            if path.is_file():
                yield f"{_LAKE}/{path.relative_to(lake).as_posix()}", path


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _ROOM:
        raise BackupFailed(
            f"the disk of {folder.parent} has room for {free:,} bytes, and the backup may need {needed + _ROOM:,}; "
            "make room, or choose another disk"
        )
