"""Records of the journal as rows of the record tables, in files of a lake.

::

    LAKE/events/date=2026-11-16/00000000000000000000-00000000000000250000.parquet
    LAKE/reports/date=2026-11-16/...        a folder for each table that has rows; the names say the offsets
    LAKE/_exported                          the offset below which everything is here
    LAKE/_exporting/                        files in the making; readers skip what begins with an underscore

What a record says beyond the columns of its table (``rows``) stays in the journal.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, cast

from nearcast.files import to_disk, write_whole
from nearcast.journal.entries import EventEntry, Record, time_of
from nearcast.journal.rows import ROWS
from nearcast.model.time import to_datetime
from nearcast.records import RecordWriter

CORNER: Final = "_exporting"
EXPORTED: Final = "_exported"


def export(lake: Path, name: str, records: Sequence[tuple[int, Record]], unpublished: frozenset[str | int]) -> int:
    """Put these records into files of that name, in place of earlier ones; gives the number of rows.

    ``unpublished``: offsets, since two publishers may give the same id; ids only where no offset was recorded.
    """
    corner = lake / CORNER
    shutil.rmtree(corner, ignore_errors=True)
    for earlier in lake.glob(f"*/date=*/{name}.parquet"):
        earlier.unlink()
    days: defaultdict[str, list[tuple[int, Record]]] = defaultdict(list)
    for offset, record in records:
        gone = isinstance(record, EventEntry) and not unpublished.isdisjoint((offset, record.id))
        if not gone:
            days[to_datetime(time_of(record)).date().isoformat()].append((offset, record))
    for day, those in days.items():
        tables = _write(corner / day, those)
        for table in tables:
            target = lake / table / f"date={day}"
            target.mkdir(parents=True, exist_ok=True)
            made = corner / day / table / "part-0000.parquet"
            to_disk(made)
            made.replace(target / f"{name}.parquet")
            for folder in (target, target.parent, lake):
                to_disk(folder)
    shutil.rmtree(corner, ignore_errors=True)
    return sum(map(len, days.values()))


def mark_exported(lake: Path, offset: int) -> None:
    """Say that everything below that offset is here: files of an export that is going on are not to be relied on."""
    lake.mkdir(parents=True, exist_ok=True)
    write_whole(lake / EXPORTED, f"{offset}\n")


def _write(folder: Path, records: Iterable[tuple[int, Record]]) -> list[str]:
    """A recording of these records; gives the tables that have rows."""
    with RecordWriter(folder) as writer:
        ways = {kind: (writer.appender(table), row) for kind, (table, row) in ROWS.items()}
        for offset, record in records:
            append, row = ways[cast("type", type(record))]
            append(*row(offset, record))
    return [table for table, summary in writer.summary().items() if summary.rows]
