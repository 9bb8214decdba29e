"""The Parquet files of the lake, whose names say which offsets they hold, and whose folders which day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidRecord, SetupError
from nearcast.journal.lake import EXPORTED
from nearcast.model.time import Instant, instant
from nearcast.records import TABLES

_NAME: Final = re.compile(r".*/date=(\d{4}-\d\d-\d\d)/(\d+)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Instants from ``since`` up to, but without, ``until``."""

    since: Instant | None = None
    until: Instant | None = None

    def touches(self, day: date) -> bool:
        midnight = datetime.combine(day, time(), UTC)
        return (self.since is None or instant(midnight + timedelta(days=1)) > self.since) and (
            self.until is None or instant(midnight) < self.until
        )


@dataclass(frozen=True, slots=True)
class LakeFile:
    path: str
    day: date
    first: int
    last: int
    """The last offset that it may hold."""

    size: int


class Lake:
    """A folder, or an address that Arrow understands (``s3://...``)."""

    def __init__(self, address: str) -> None:
        from pyarrow import ArrowInvalid
        from pyarrow.fs import FileSystem

        try:
            self._files, self._root = FileSystem.from_uri(
                address if "://" in address else str(Path(address).absolute())
            )
        except (ArrowInvalid, OSError) as error:
            raise SetupError(f"the lake {address} cannot be opened: {error}") from None

    def exported(self) -> int:
        """Everything below is here."""
        try:
            with self._files.open_input_stream(f"{self._root}/{EXPORTED}") as marker:
                return int(marker.read())
        except FileNotFoundError:
            # Made before there was such a marker, and by nobody any more.
            return max((file.last + 1 for table in TABLES for file in self.files(table.name)), default=0)
        except ValueError as error:
            raise InvalidRecord(f"{self._root}/{EXPORTED} cannot be read: {error}") from None

    def files(
        self, table: str, first: int = 0, last: int | None = None, bounds: TimeBounds | None = None
    ) -> list[LakeFile]:
        """Those that may hold rows of these offsets and times, in the order of their offsets."""
        from pyarrow.fs import FileSelector

        found = []
        for info in self._files.get_file_info(
            FileSelector(f"{self._root}/{table}", allow_not_found=True, recursive=True)
        ):
            name = _NAME.fullmatch(info.path)
            if name is None:
                continue
            file = LakeFile(info.path, date.fromisoformat(name[1]), int(name[2]), int(name[3]), info.size)
            if file.last < first or (last is not None and file.first >= last):
                continue
            if bounds is None or bounds.touches(file.day):
                found.append(file)
        return sorted(found, key=lambda file: (file.first, file.day))

    def batches(self, table: str, schema: Any, first: int, last: int, bounds: TimeBounds) -> Iterator[Any]:
        """The rows of these offsets as batches of that schema; of these times, and perhaps of others."""
        import pyarrow.dataset as ds

        for file in self.files(table, first, last, bounds):
            rows = ds.dataset([file.path], schema=_with_conditions(schema), format="parquet", filesystem=self._files)
            condition = _condition(file, first, last, bounds)
            for batch in rows.scanner(columns=schema.names, filter=condition).to_batches():
                if batch.num_rows:
                    yield batch.cast(schema)


def _with_conditions(schema: Any) -> Any:
    """The schema, and what rows are chosen by."""
    import pyarrow as pa

    known = {"time": pa.timestamp("us", tz="UTC"), "offset": pa.int64()}
    missing = [pa.field(name, kind) for name, kind in known.items() if name not in schema.names]
    return pa.schema([*schema, *missing])


def _condition(file: LakeFile, first: int, last: int, bounds: TimeBounds) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    found = ds.scalar(True)
    if not (first <= file.first and file.last < last):
        offset = ds.field("offset")
        # Rows of earlier versions do not say their offset: they go with the first one of their file.
        unknown = offset.is_null() & ds.scalar(first <= file.first < last)
        found &= ((offset >= first) & (offset < last)) | unknown
    for edge, after in ((bounds.since, True), (bounds.until, False)):
        if edge is not None:
            at = pa.scalar(edge, pa.timestamp("us", tz="UTC"))
            found &= ds.field("time") >= at if after else ds.field("time") < at
    return found
