"""Keeping the warehouse in order: small files become large ones, old days go, and so does what no table names any longer."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql.types import StructType

from nearcast.errors import TableFailed
from nearcast.model.time import MICROSECONDS, Instant, to_datetime
from nearcast.pipeline.tables.silver import ORDER, PARTS, part_schema
from nearcast.pipeline.tables.store import NO_DATE, STAGING, DataFile, Version, Warehouse, by_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST_RUN: Final = timedelta(days=1).total_seconds()
"""Seconds after which a file in the making belongs to a run that was killed."""


@dataclass(frozen=True, slots=True)
class Compaction:
    files_before: int
    files_after: int


def compact(spark: SparkSession, warehouse: Warehouse, name: str, file_size: int) -> Compaction:
    """Put the small files of each date and cell together, in the order of time; large ones stay as they are."""
    before = warehouse.current(name)
    version = before
    for verdict in PARTS:
        version = _compacted(spark, warehouse, version, f"{verdict}/{name}", part_schema(verdict, name), file_size)
    if version is not before:
        warehouse.publish(name, version)
    return Compaction(_count(before), _count(version))


def _compacted(
    spark: SparkSession, warehouse: Warehouse, version: Version, part: str, schema: StructType, file_size: int
) -> Version:
    groups = by_partition((file for file in version.files(part) if file.bytes < file_size // 2), "date", "cell")
    small = [file for group in groups.values() if len(group) > 1 for file in group]
    if not small:
        return version
    rows, size = sum(file.rows for file in small), sum(file.bytes for file in small)
    frame = warehouse.read(spark, part, schema, small).repartition("date", "cell")
    ordered = frame.sortWithinPartitions("date", "cell", frame.columns[0])
    staged = warehouse.stage(ordered, "date", "cell", rows_in_file=max(1, rows * file_size // max(1, size)))
    if staged.rows() != rows:
        staged.discard()
        raise TableFailed(f"{part} has {rows} rows in its files, but {staged.rows()} were read; nothing was changed")
    version = version.with_files(part, staged.move(part), small)
    staged.discard()
    return version


def retain(warehouse: Warehouse, name: str, oldest: Instant) -> int:
    """Drop the days before that of ``oldest`` from silver, aside or gold; gives the number of rows."""
    before = warehouse.current(name)
    day = to_datetime(oldest).date().isoformat()
    version, expired = before, 0
    for part, files in before.parts.items():
        old = [file for file in files if _day_of(warehouse, file) < day]
        if old:
            version = version.with_files(part, [], old)
            expired += sum(file.rows for file in old)
    if not expired:
        return 0
    counts = msgspec.structs.replace(version.counts, expired=version.counts.expired + expired)
    warehouse.publish(name, msgspec.structs.replace(version, counts=counts))
    return expired


def clean(warehouse: Warehouse, grace: int, now: float | None = None) -> int:
    """Delete files that have been in no table for ``grace`` microseconds, and versions that are no longer needed.

    Gives the number of files of tables.  A reader that began with an older version has that long to finish.
    """
    now = time.time() if now is None else now
    latest_use = now - grace / MICROSECONDS
    named: set[str] = set()
    for name in warehouse.tables():
        *older, (_, current) = warehouse.versions(name)
        named.update(_paths(current))
        for path, version in older:
            if _changed(path) < latest_use:
                path.unlink()
            else:
                named.update(_paths(version))
    gone = 0
    for folder in (*PARTS, "gold"):
        for path in (warehouse.folder / folder).rglob("*.parquet"):
            if path.relative_to(warehouse.folder).as_posix() not in named and _changed(path) < latest_use:
                path.unlink()
                gone += 1
    _clean_staging(warehouse.folder / STAGING, now - _LONGEST_RUN)
    return gone


def tables_of_silver(warehouse: Warehouse) -> list[str]:
    known = set(warehouse.tables())
    return [name for name in ORDER if name in known]


def _clean_staging(folder: Path, before: float) -> None:
    import shutil

    for corner in folder.glob("*"):
        if _changed(corner) < before:
            shutil.rmtree(corner, ignore_errors=True)


def _day_of(warehouse: Warehouse, file: DataFile) -> str:
    """Bad rows may have no time: those count from the day on which they came."""
    day = file.partition("date")
    if day != NO_DATE:
        return day
    return datetime.fromtimestamp(_changed(warehouse.folder / file.path), UTC).date().isoformat()


def _changed(path: Path) -> float:
    return path.stat().st_mtime


def _paths(version: Version) -> Iterable[str]:
    return (file.path for files in version.parts.values() for file in files)


def _count(version: Version) -> int:
    return sum(len(files) for files in version.parts.values())
