"""Erasing a person from what jobs have made: tables of silver and gold, answers, streams.  Without Spark.

Tables get a new version at once, and older versions, with the files that only they name, go at once, too: whoever reads an older
one at that moment has to begin again.  Days of gold are measured anew at the next run, since their silver has changed.
A stream keeps what it knows of people in its checkpoint, where nobody can be taken out: it goes as a whole, and begins anew.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nearcast.journal.erasure import parquet
from nearcast.journal.erasure.journal import Erased, Step
from nearcast.journal.erasure.subject import Subject
from nearcast.pipeline.tables.store import STAGING, VERSIONS, DataFile, Version, Warehouse

_CHECKPOINT: Final = "checkpoint"
_SINK: Final = "_spark_metadata"
"""Where a stream notes its files, with their sizes: none of them can be rewritten."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was done to one warehouse."""

    erased: Erased
    streams: tuple[Path, ...]
    """Folders of streams that were deleted: they begin anew."""


def erase(folder: Path, subject: Subject, step: Step, *, dry: bool = False) -> Cleared:
    """Erase a person from a warehouse, or from any folder that jobs have written to."""
    streams = tuple(_streams(folder))
    erased = Erased()
    warehouse = Warehouse(folder)
    tables = warehouse.tables()
    if not dry:
        for stream in streams:
            shutil.rmtree(stream)
        parquet.clear_drafts(folder)
        shutil.rmtree(folder / STAGING, ignore_errors=True)
    for name in tables:
        erased += _from_table(warehouse, name, subject, dry=dry)
    if not dry and tables:
        _only_newest(warehouse, tables)
        _follow(warehouse)
    named = {file.path for name in tables for files in warehouse.current(name).parts.values() for file in files}
    others = [
        path
        for path in parquet.files_below(folder)
        if path.relative_to(folder.absolute() if path.is_absolute() else folder).as_posix() not in named
        and not any(stream in path.parents for stream in streams)
    ]
    return Cleared(erased + parquet.erase(others, subject, step, dry=dry), streams)


def _streams(folder: Path) -> Iterator[Path]:
    """The folders that hold the checkpoint of a stream."""
    if folder.is_dir():
        for found in sorted(folder.rglob(_CHECKPOINT)):
            if (found / "offsets").is_dir() or (found / "metadata").is_file():
                yield found.parent
        for found in sorted(folder.rglob(_SINK)):
            if not (found.parent.parent / _CHECKPOINT).exists():
                yield found.parent


def _from_table(warehouse: Warehouse, name: str, subject: Subject, *, dry: bool) -> Erased:
    before = version = warehouse.current(name)
    erased = Erased()
    for part, files in before.parts.items():
        for file in files:
            source = warehouse.folder / file.path
            target = source.with_name(f"{uuid.uuid4().hex}-0.parquet")
            found = parquet.erase_from(source, target, subject, dry=dry)
            erased += found
            if not dry and found != Erased():
                version = _replaced(warehouse, version, part, file, target)
    if version is not before:
        counts = msgspec.structs.replace(version.counts, bronze=version.counts.bronze - erased.records)
        warehouse.publish(name, msgspec.structs.replace(version, counts=counts))
    return erased


def _replaced(warehouse: Warehouse, version: Version, part: str, old: DataFile, new: Path) -> Version:
    import pyarrow.parquet as pq

    rows = pq.read_metadata(new).num_rows
    if not rows:
        new.unlink()
        return version.with_files(part, [], [old])
    path = new.relative_to(warehouse.folder).as_posix()
    return version.with_files(part, [DataFile(path, rows, new.stat().st_size)], [old])


def _only_newest(warehouse: Warehouse, tables: list[str]) -> None:
    """Older versions, and files that the newest ones do not name, are gone."""
    named = set()
    for name in tables:
        *older, _ = sorted((warehouse.folder / VERSIONS / name).glob("*.json"))
        named |= {file.path for files in warehouse.current(name).parts.values() for file in files}
        for path in older:
            path.unlink()
    folders = {path.split("/", 1)[0] for path in named} | {"silver", "aside", "duplicates", "gold"}
    for folder in folders:
        for path in parquet.files_below(warehouse.folder / folder):
            if path.relative_to(warehouse.folder).as_posix() not in named:
                path.unlink()


def _follow(warehouse: Warehouse) -> None:
    """Readers of Delta have to be told of the new files."""
    if next(warehouse.folder.rglob("_delta_log"), None) is not None:
        from nearcast.pipeline.tables.delta import follow

        follow(warehouse)
