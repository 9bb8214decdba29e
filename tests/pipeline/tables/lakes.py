"""Small lakes as the broker makes them, with rows that it never would."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.journal.lake import mark_exported
from nearcast.model.time import instant
from nearcast.records import table
from nearcast.records.arrow import plain_schema

Row = dict[str, Any]
DAY = instant("2026-03-16T00:00:00Z")
NOON = instant("2026-03-16T12:00:00Z")
LATEST = instant("2026-03-18T00:00:00Z")
SECOND = 1_000_000


class Lake:
    """Exports follow each other as those of the broker do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.offset = 0
        folder.mkdir()

    def export(self, tables: dict[str, list[Row]], *, mark: bool = True) -> None:
        """Write the rows, each with the next offset unless it has one, and say that they are there."""
        first = self.offset
        for rows in tables.values():
            for row in rows:
                row.setdefault("offset", self.offset)
                self.offset += 1
        name = f"{first:020}-{self.offset - 1:020}"
        for table_name, rows in tables.items():
            days: dict[str, list[Row]] = {}
            for row in rows:
                at = row["time"]
                day = "1970-01-01" if at is None else datetime.fromtimestamp(at / SECOND, UTC).date().isoformat()
                days.setdefault(day, []).append(row)
            for day, those in days.items():
                write(self.folder / table_name / f"date={day}" / f"{name}.parquet", table_name, those)
        if mark:
            mark_exported(self.folder, self.offset)


def write(path: Path, name: str, rows: list[Row], without: tuple[str, ...] = ()) -> None:
    """A file of a table, as an older nearcast would have written it if columns are left out."""
    schema = pa.schema([field.with_nullable(True) for field in plain_schema(table(name)) if field.name not in without])
    kept = [{key: value for key, value in row.items() if key not in without} for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(kept, schema), path)


def event(name: str | None, time: int | None = NOON, **more: Any) -> Row:
    row: Row = {"event": name, "time": time, "publisher": "ada", "topic": "t", "lat": 49.87, "lon": 8.65, "bytes": 1}
    return {**row, "receivers": ["bob"], **more}


def report(client: str, time: int = NOON, **more: Any) -> Row:
    return {"client": client, "time": time, "lat": 49.87, "lon": 8.65, **more}


def unpublished(name: str, published_offset: int | None, time: int = NOON + SECOND, **more: Any) -> Row:
    return {"event": name, "time": time, "published_offset": published_offset, **more}
