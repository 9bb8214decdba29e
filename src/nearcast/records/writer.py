"""The recorder: rows go in one by one or by the column, complete Parquet files come out, in bounded memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import encoded, plain_schema
from nearcast.records.column import RecordTable
from nearcast.records.content import ContentHash, Recutter
from nearcast.records.conversion import from_columns, from_rows, nulls
from nearcast.records.storage import RecordingFolder, TableFiles, cannot_record
from nearcast.records.summary import RecordingSummary, TableSummary
from nearcast.records.tables import TABLES, VERSION, table

ROWS_AS_VALUES: Final = 4_096
"""So many rows wait as Python values, which take ten times the room that they take in Arrow."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    rows: int
    """All that were appended, buffered ones included."""
    buffered_rows: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class RecordWriterStatistics:
    """Totals over all tables, and each of them by name."""

    rows: int
    buffered_rows: int
    bytes_written: int
    tables: Mapping[str, TableStatistics]


class _Buffer:
    """The rows of one table on their way into its files."""

    def __init__(self, table: RecordTable, files: TableFiles | None) -> None:
        self.table = table
        self.files = files
        self.values: list[Any] = []
        """Of all columns, row after row: cheaper than a tuple for each row, both to fill and to take apart."""
        self.width = len(table.columns)
        """Of the rows that are waiting: all values, or only the required ones."""
        self.full = ROWS_AS_VALUES * self.width
        """So many values are converted at once."""
        self.converted = 0
        self.recutter = Recutter()
        self.content = ContentHash(plain_schema(table))

    def expect(self, width: int) -> None:
        """Rows of so many values from now on: a single list of all values has room for rows of one width only."""
        self.convert_values()
        self.width = width
        self.full = ROWS_AS_VALUES * width

    def convert_values(self) -> None:
        if not self.values:
            return
        arrays = [
            from_rows(self.table, column, self.values[position :: self.width], self.converted)
            for position, column in enumerate(self.table.columns[: self.width])
        ]
        left_out = [nulls(column, len(arrays[0])) for column in self.table.columns[self.width :]]
        self.take(arrays + left_out)
        self.values.clear()

    def take(self, arrays: list[Any]) -> None:
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays(arrays, schema=plain_schema(self.table))
        self.converted += batch.num_rows
        for piece in self.recutter.add(batch):
            self._write(piece)

    def finish(self) -> None:
        self.convert_values()
        for piece in self.recutter.last():
            self._write(piece)
        if self.files is not None:
            self.files.close()

    def _write(self, piece: Any) -> None:
        self.content.update(piece)
        if self.files is not None:
            self.files.write(encoded(piece, self.table))

    def discard(self) -> None:
        self.values.clear()
        self.recutter = Recutter()
        if self.files is not None:
            self.files.discard()

    def summary(self) -> TableSummary:
        return TableSummary(self.converted, self.content.hexdigest())

    def statistics(self) -> TableStatistics:
        waiting = len(self.values) // self.width
        written = 0 if self.files is None else self.files.bytes_written
        return TableStatistics(self.converted + waiting, self.recutter.rows + waiting, written)


class RecordWriter:
    """Writes all record tables to a folder; without one, it only counts and hashes.

    As a context manager it closes the recording at the end, or abandons it if the block fails.  Until it is closed
    nothing in the folder looks like a recording; one that is abandoned leaves nothing behind.  A folder that holds
    something already is refused; ``overwrite`` replaces an earlier recording, which stays until the new one is
    complete, and never touches anything else.  ``about`` says what is recorded; it is kept beside the tables.

    Rows are checked when they leave the buffer, some thousands at a time; a bad one abandons the whole recording.
    """

    def __init__(
        self,
        folder: Path | str | None,
        *,
        overwrite: bool = False,
        about: Mapping[str, str | int | float] | None = None,
    ) -> None:
        self._about = about or {}
        self._state = "open"
        self._buffers: dict[str, _Buffer] = {}
        self._folder = None if folder is None else RecordingFolder(Path(folder), overwrite=overwrite)
        with self._abandoned_on_error():
            for each in TABLES:
                files = None if self._folder is None else self._folder.open(each)
                self._buffers[each.name] = _Buffer(each, files)
        self._appenders = {name: self._make_appender(buffer) for name, buffer in self._buffers.items()}

    def appender(self, name: str) -> Callable[..., None]:
        """A function that appends a row, given its values in the order of the columns; for who appends often.

        The optional columns may be left out, for all rows: changing one's mind from row to row is slow.
        """
        return self._appenders[table(name).name]

    def rows_appender(self, name: str) -> Callable[[list[Any]], None]:
        """A function that appends several rows, given the values of all columns, row after row."""
        buffer = self._buffers[table(name).name]
        width, values = len(buffer.table.columns), buffer.values

        def append_rows(rows: list[Any]) -> None:
            if len(rows) % width:
                raise InvalidRecord(f"rows of {name} have {width} values each; {len(rows)} are no whole number of rows")
            if buffer.width != width:
                self._change_width(buffer, tuple(rows[:width]))
            values.extend(rows)
            if len(values) >= buffer.full:
                with self._abandoned_on_error():
                    buffer.convert_values()

        return append_rows

    def append(self, name: str, *values: Any) -> None:
        self.appender(name)(*values)

    def append_columns(self, name: str, columns: Mapping[str, Any]) -> None:
        """Append many rows at once: for each column a list, a numpy array (masked where null) or an Arrow array.

        What is refused changes nothing.
        """
        buffer = self._buffers[table(name).name]
        self._check_open()
        arrays = from_columns(buffer.table, columns)
        with self._abandoned_on_error():
            buffer.convert_values()
            buffer.take(arrays)

    def close(self) -> None:
        """Complete the recording.  Closing again, or after abandoning, does nothing."""
        if self._state != "open":
            return
        with self._abandoned_on_error():
            for buffer in self._buffers.values():
                buffer.finish()
            if self._folder is not None:
                tables = {name: buffer.summary() for name, buffer in self._buffers.items()}
                self._folder.publish(RecordingSummary(VERSION, tables, dict(self._about)))
        self._end("closed")

    def abandon(self) -> None:
        """Give the recording up and leave nothing of it behind."""
        if self._state != "open":
            return
        self._end("abandoned")
        for buffer in self._buffers.values():
            buffer.discard()
        if self._folder is not None:
            self._folder.discard()

    def summary(self) -> dict[str, TableSummary]:
        """Rows and content hash of every table of the closed recording."""
        if self._state != "closed":
            raise InvalidRecord(f"the recording is {self._state}; only a closed one has a summary")
        return {name: buffer.summary() for name, buffer in self._buffers.items()}

    def statistics(self) -> RecordWriterStatistics:
        tables = {name: buffer.statistics() for name, buffer in self._buffers.items()}
        return RecordWriterStatistics(
            rows=sum(each.rows for each in tables.values()),
            buffered_rows=sum(each.buffered_rows for each in tables.values()),
            bytes_written=sum(each.bytes_written for each in tables.values()),
            tables=tables,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _make_appender(self, buffer: _Buffer) -> Callable[..., None]:
        values, extend = buffer.values, buffer.values.extend

        def append(*row: Any) -> None:
            if len(row) != buffer.width:
                self._change_width(buffer, row)
            extend(row)
            if len(values) >= buffer.full:
                with self._abandoned_on_error():
                    buffer.convert_values()

        return append

    def _change_width(self, buffer: _Buffer, row: tuple[Any, ...]) -> None:
        """Whoever appends to a table always leaves the optional columns out, or never does: this happens once."""
        self._check_open()
        names, required = buffer.table.column_names, buffer.table.required
        if len(row) not in {len(names), required}:
            or_fewer = f", or the first {required} of them" if required < len(names) else ""
            raise InvalidRecord(
                f"a row of {buffer.table.name} has {len(names)} values ({', '.join(names)}){or_fewer}, "
                f"not {len(row)}: {row!r}"
            )
        with self._abandoned_on_error():
            buffer.expect(len(row))

    def _check_open(self) -> None:
        if self._state != "open":
            raise InvalidRecord(f"the recording is {self._state}; nothing can be appended to it")

    def _end(self, state: str) -> None:
        self._state = state
        for buffer in self._buffers.values():
            buffer.width = -1  # no row has so many values: appenders need not ask whether they may

    @contextlib.contextmanager
    def _abandoned_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abandon()
            if self._folder is None:
                raise
            raise cannot_record(self._folder.folder, error) from error
        except BaseException:
            self.abandon()
            raise
