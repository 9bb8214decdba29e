"""One process for each folder.  The kernel lets go of the lock when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from nearcast.errors import FolderInUse, JournalFailed

LOCK_FILE: Final = "lock"


class FolderLock:
    def __init__(self, folder: Path) -> None:
        self._path: Final = folder / LOCK_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalFailed(f"{folder} cannot be used: {error}; allow writing, or choose another folder") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise FolderInUse(
                f"{folder} is in use by process {holder}: a broker runs on it; stop that one, or choose another folder"
            ) from None
        self._say_who()

    def _say_who(self) -> None:
        # Only for the message above: on a full disk the lock holds all the same.
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            return

    def release(self) -> None:
        os.close(self._file)
