"""Where jobs write what they found."""

from __future__ import annotations

from pathlib import Path

from nearcast.errors import InvalidSettings


def replaceable(folder: Path) -> str:
    """The address of a folder that is to be written anew.

    Raises:
        InvalidSettings: it holds something else than what a job has written before: Spark would delete it all.

    """
    from nearcast.pipeline.tables.store import address

    if folder.exists() and not folder.is_dir():
        raise InvalidSettings(f"{folder} is no folder; name another one: --out DIR")
    written = any((folder / mark).exists() for mark in ("_SUCCESS", "_temporary"))
    if folder.is_dir() and not written and any(folder.iterdir()):
        raise InvalidSettings(f"{folder} holds what no job has written, and would be lost; name another one: --out DIR")
    return address(folder)
