"""The folder of a recording: nothing in it looks finished before everything is."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidRecord, SetupError
from nearcast.records.arrow import arrow_schema
from nearcast.records.column import Kind, RecordTable
from nearcast.records.summary import SUMMARY_FILE, UNFINISHED, RecordingSummary, read_summary, write_summary
from nearcast.records.tables import TABLES

ROWS_IN_PART: Final = 256 * 65_536
"""A Parquet writer remembers all that it wrote until it closes its file; so a long recording has several files."""


def cannot_record(folder: Path, error: OSError) -> SetupError:
    return SetupError(f"cannot record to {folder}: {error}; make room there, allow writing, or choose another folder")


def table_writer(sink: Any, table: RecordTable) -> Any:
    """A writer of Parquet that takes encoded batches of a table."""
    import pyarrow.parquet as pq

    names = {kind: [column.name for column in table.columns if column.kind is kind] for kind in Kind}
    return pq.ParquetWriter(
        sink,
        arrow_schema(table),
        compression="zstd",
        # So that damage is found (`nearcast doctor`), not read.
        write_page_checksum=True,
        use_dictionary=[*names[Kind.NAME], *(f"{name}.list.element" for name in names[Kind.TEXTS])],
        # Instants grow by little from row to row, and so do many whole numbers.
        column_encoding=dict.fromkeys([*names[Kind.INSTANT], *names[Kind.WHOLE]], "DELTA_BINARY_PACKED"),
        # Names come mixed within any stretch of time: their extremes would cost much and exclude nothing.
        write_statistics=[*names[Kind.INSTANT], *names[Kind.WHOLE], *names[Kind.REAL]],
    )


class TableFiles:
    """The Parquet files of one table, while they are being written."""

    def __init__(self, folder: Path, table: RecordTable) -> None:
        self._folder = folder / table.name
        self._table = table
        self._parts = 0
        self._rows = 0
        self._closed_bytes = 0
        self._folder.mkdir()
        self._open()

    def write(self, batch: Any) -> None:
        """As one row group."""
        if self._rows >= ROWS_IN_PART:
            self.close()
            self._open()
        self._writer.write_batch(batch)
        self._rows += batch.num_rows

    @property
    def bytes_written(self) -> int:
        return self._closed_bytes + (0 if self._sink.closed else int(self._sink.tell()))

    def close(self) -> None:
        self._writer.close()
        self._closed_bytes += int(self._sink.tell())
        self._sink.close()

    def discard(self) -> None:
        """Close the files, whatever state they are in."""
        import pyarrow as pa

        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(OSError, pa.ArrowException):
            self._sink.close()

    def _open(self) -> None:
        import pyarrow as pa

        self._sink = pa.OSFile(str(self._folder / f"part-{self._parts:04}.parquet"), "wb")
        self._writer = table_writer(self._sink, self._table)
        self._parts += 1
        self._rows = 0


class RecordingFolder:
    """Tables are written in a corner of the folder and moved to their places when all of them are complete."""

    def __init__(self, folder: Path, *, overwrite: bool) -> None:
        self.folder = folder
        self._unfinished = folder / UNFINISHED
        try:
            self._make_room(overwrite=overwrite)
            self._unfinished.mkdir(parents=True)
        except OSError as error:
            raise cannot_record(folder, error) from None

    def _make_room(self, *, overwrite: bool) -> None:
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return
        recorded = [name for name in (SUMMARY_FILE, UNFINISHED) if (self.folder / name).exists()]
        if not recorded:
            raise InvalidRecord(f"{self.folder} holds other things than a recording; choose another folder")
        if not overwrite:
            what = "a recording already" if SUMMARY_FILE in recorded else "an unfinished recording"
            raise InvalidRecord(f"{self.folder} holds {what}; choose another folder, or overwrite it")
        # An earlier recording that is complete stays until the new one is.
        shutil.rmtree(self._unfinished, ignore_errors=True)

    def open(self, table: RecordTable) -> TableFiles:
        return TableFiles(self._unfinished, table)

    def publish(self, summary: RecordingSummary) -> None:
        write_summary(self._unfinished, summary)
        self._remove_earlier()
        for name in summary.tables:
            (self._unfinished / name).rename(self.folder / name)
        (self._unfinished / SUMMARY_FILE).rename(self.folder / SUMMARY_FILE)
        self._unfinished.rmdir()

    def _remove_earlier(self) -> None:
        names = {table.name for table in TABLES}
        with contextlib.suppress(InvalidRecord):
            names.update(read_summary(self.folder).tables)
        (self.folder / SUMMARY_FILE).unlink(missing_ok=True)
        for name in sorted(names):
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)

    def discard(self) -> None:
        shutil.rmtree(self._unfinished, ignore_errors=True)
