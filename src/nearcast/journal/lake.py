"""Records of the journal as rows of the record tables, in files of a lake.

::

    LAKE/events/date=2026-11-16/00000000000000000000-00000000000000250000.parquet
    LAKE/reports/date=2026-11-16/...        a folder for each table that has rows; the names say the offsets
    LAKE/_exporting/                        files in the making; readers skip what begins with an underscore

What a record says beyond the columns of its table stays in the journal.  Notifications have no rows of their own: the
receivers stand in the row of their event.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

from nearcast.journal.entries import (
    ClientEntry,
    EventEntry,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    time_of,
)
from nearcast.journal.extent import radius_of
from nearcast.model.geometry import Point
from nearcast.model.time import to_datetime
from nearcast.records import RecordWriter

_CORNER: Final = "_exporting"


def _event_row(event: EventEntry) -> tuple[Any, ...]:
    place = None if event.lat is None or event.lon is None else Point(event.lat, event.lon)
    reach = radius_of(event.reach, place)
    size, workload = len(event.payload), None
    who, receivers = event.publisher, event.receivers
    return event.published, event.id, who, event.topic, event.lat, event.lon, reach, size, workload, receivers


def _subscription_row(entry: SubscriptionEntry) -> tuple[Any, ...]:
    return entry.at, entry.who, entry.id, entry.what, entry.filter, radius_of(entry.area, None)


_Row = Callable[[Any], tuple[Any, ...]]
_ROWS: Final[dict[type, tuple[str, _Row]]] = {
    EventEntry: ("events", _event_row),
    ReportEntry: ("reports", lambda entry: (entry.at, entry.who, entry.lat, entry.lon)),
    SubscriptionEntry: ("subscriptions", _subscription_row),
    ClientEntry: ("clients", lambda entry: (entry.at, entry.who, entry.what)),
    TransitionEntry: (
        "transitions",
        lambda each: (each.at, each.host, each.proxy, each.source, each.target, each.lat, each.lon, each.plan),
    ),
}
"""Contexts and later deliveries of an event have no table, and an unpublished event has no row."""


def export(lake: Path, name: str, records: Sequence[tuple[int, Record]], unpublished: frozenset[str | int]) -> int:
    """Put these records into files of that name, in place of earlier ones; gives the number of rows.

    ``unpublished``: offsets, since two publishers may give the same id; ids only where no offset was recorded.
    """
    corner = lake / _CORNER
    shutil.rmtree(corner, ignore_errors=True)
    for earlier in lake.glob(f"*/date=*/{name}.parquet"):
        earlier.unlink()
    days: defaultdict[str, list[Record]] = defaultdict(list)
    for offset, record in records:
        gone = isinstance(record, EventEntry) and not unpublished.isdisjoint((offset, record.id))
        if type(record) in _ROWS and not gone:
            days[to_datetime(time_of(record)).date().isoformat()].append(record)
    for day, those in days.items():
        tables = _write(corner / day, those)
        for table in tables:
            target = lake / table / f"date={day}"
            target.mkdir(parents=True, exist_ok=True)
            made = corner / day / table / "part-0000.parquet"
            _to_disk(made)
            made.replace(target / f"{name}.parquet")
            for folder in (target, target.parent, lake):
                _to_disk(folder)
    shutil.rmtree(corner, ignore_errors=True)
    return sum(map(len, days.values()))


def _write(folder: Path, records: Iterable[Record]) -> list[str]:
    """A recording of these records; gives the tables that have rows."""
    with RecordWriter(folder) as writer:
        ways = {kind: (writer.appender(table), row) for kind, (table, row) in _ROWS.items()}
        for record in records:
            append, row = ways[cast("type", type(record))]
            append(*row(record))
    return [table for table, summary in writer.summary().items() if summary.rows]


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
