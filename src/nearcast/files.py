"""Files that are there as a whole or not at all, whenever the power fails."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

_DRAFT: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY


def write_whole(path: Path, data: str | bytes, mode: int = 0o666) -> None:
    """Put the data there, in place of what was there; who reads meanwhile sees one or the other, never a part.

    ``mode`` is that of the file, less what the umask takes.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # readers of folders skip what begins with a dot
    try:
        with os.fdopen(os.open(draft, _DRAFT, mode), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    to_disk(path.parent)


def clear_drafts(path: Path) -> None:
    """Delete what falls have left of files that were to be put there; nobody may be writing it."""
    for draft in path.parent.glob(f".{path.name}.{'[0-9a-f]' * 16}"):
        draft.unlink(missing_ok=True)


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
