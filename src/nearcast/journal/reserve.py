"""Room that is kept for the day when the disk is full.

To delete, SQLite must write: it moves its log into the database and notes which pages are free.  On a full disk it could
do neither, and retention could never make room again.  So a file is kept that can be given up for that, and for nothing
else; it comes back when there is room for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_FILE: Final = "reserve"


class Reserve:
    def __init__(self, folder: Path, size: int) -> None:
        self._path: Final = folder / _FILE
        self._size: Final = size
        self.keep()

    def keep(self) -> bool:
        """Take the room again, if it was given up and enough is left beside it; whether it is there."""
        try:
            if self._path.exists() and self._path.stat().st_size >= self._size:
                return True
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize < 1.5 * self._size:
                return False
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, self._size)
            finally:
                os.close(file)
        except OSError:
            self.give_up()  # half of it would help nobody
            return False
        return True

    def give_up(self) -> bool:
        """Whether there was something to give up."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
