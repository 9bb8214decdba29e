"""Rows on their way to their groups: many of a table travel as one, a blob of Arrow.

Spark handles a row at a time wherever it shuffles or aggregates, and millions of reports feel it.  So the workers that read
a table put its rows together, a blob for each group, and Spark moves the blobs.  Those who read reports also keep the last
one of every client and slice: what ``Carrying`` makes of these is what is known at the beginning of each slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.matching.slices import BEFORE, Slices

if TYPE_CHECKING:
    from nearcast.matching.grid import Int64s

# The tables of which blobs are made
EVENTS: Final = 0
REPORTS: Final = 1
OTHERS: Final = 2
"""All other changes."""

PACKED: Final = "group int, content tinyint, rows binary"
_GATHERED: Final = 2_000_000
"""Rows that a worker puts together: some tens of megabytes."""
_ALIKE: Final = ("client", "detail")
_SENT: Final = 32 << 20
"""Bytes of blobs that a worker hands over at once."""
_BLOB: Final = 128 << 10
"""Bytes of rows in a blob, about.  Spark takes up to 10,000 rows, so blobs, into a batch of Arrow, which holds less than 2 GiB; and
Java moves many small arrays with less trouble than a few large ones."""


@dataclass(frozen=True, eq=False, slots=True)
class Packing:
    """Rows of a table, with their ``slice`` and ``part`` where these are more than their time says.

    Rows without a ``part`` go to all parts of their slice.
    """

    slices: Slices
    parts: int
    content: int
    onwards: bool = False
    """Whether rows also go to all later slices."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sent(part for rows in gathered(batches) for part in self._packed(rows))

    def _packed(self, rows: pa.Table) -> Iterator[tuple[Iterable[int], int, pa.Table]]:
        said = rows.column_names
        groups: Int64s = (
            numbers(rows, "slice") if "slice" in said else np.maximum(self.slices.numbers(numbers(rows, "time")), 0)
        )
        groups = groups * self.parts
        if "part" in said:
            groups = groups + numbers(rows, "part")
        copies = 1 if "part" in said else self.parts
        for group, part in split(rows.drop_columns([name for name in ("slice", "part") if name in said]), groups):
            end = self.slices.count * self.parts if self.onwards else group + copies
            yield range(group, end), self.content, part


@dataclass(frozen=True, eq=False, slots=True)
class ReportPacking:
    """Reports in any order, of which every slice needs its own and the last ones before it.

    Of the groups, ``parts`` belong to each slice; the numbers that follow are those of the carriers.
    """

    slices: Slices
    parts: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sent(part for rows in gathered(batches) for part in self._packed(rows))

    def _packed(self, rows: pa.Table) -> Iterator[tuple[Iterable[int], int, pa.Table]]:
        rows = in_time(rows)
        carrier = None
        if "carrier" in rows.column_names:
            carrier = numbers(rows, "carrier")
            rows = rows.drop_columns(["carrier"])
        last, those = [], []
        for number, first, end in self.slices.cut_sorted(numbers(rows, "time")):
            part = rows.slice(first, end - first)
            if number > BEFORE:
                yield groups_of(number, self.parts), REPORTS, part
            if number < self.slices.count - 1:
                last.append(first + last_of_each(codes(part.column("client"))[1]))
                those.append(np.full(len(last[-1]), number))
        if last:
            kept = np.concatenate(last)
            carried = rows.take(pa.array(kept)).append_column("slice", pa.array(np.concatenate(those)))
            first_carrier = self.slices.count * self.parts
            for number, part in [(0, carried)] if carrier is None else split(carried, carrier[kept]):
                yield (first_carrier + number,), REPORTS, part


@dataclass(frozen=True, eq=False, slots=True)
class Carrying:
    """A carrier gets the last reports of some clients in every slice, and tells each slice what was known before it."""

    slices: Slices
    parts: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs = [blob for batch in batches for blob in batch.column("rows")]
        if blobs:
            known = states(in_time(table_of(blobs)), self.slices.count)
            yield from sent((groups_of(number, self.parts), REPORTS, rows) for number, rows in known)


def groups_of(number: int, parts: int) -> range:
    """The groups of a slice."""
    return range(number * parts, (number + 1) * parts)


def states(rows: pa.Table, slices: int) -> Iterator[tuple[int, pa.Table]]:
    """What is known at the beginning of each slice, from the last reports in the slices, which are in the order of time."""
    ids, client = codes(rows.column("client"))
    ends = np.searchsorted(numbers(rows, "slice"), np.arange(BEFORE, slices - 1), side="right")
    plain = rows.drop_columns(["slice"])
    last = np.full(len(ids), -1)
    first = 0
    for number, end in enumerate(ends.tolist()):
        last[client[first:end]] = np.arange(first, end)
        first = end
        known = np.sort(last[last >= 0])
        if len(known):
            yield number, plain.take(pa.array(known))


# Rows


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of many rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _GATHERED:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting).combine_chunks()


def in_time(rows: pa.Table) -> pa.Table:
    """In the order in which they count: that of time, and of the journal at one instant."""
    time = numbers(rows, "time")
    if "offset" in rows.column_names:
        order = np.lexsort((pc.fill_null(rows.column("offset"), -1).to_numpy(), time))
    elif (time[1:] >= time[:-1]).all():
        return rows
    else:
        order = np.argsort(time, kind="stable")
    return rows.take(pa.array(order))


def runs(sorted_numbers: Int64s) -> Iterator[tuple[int, int, int]]:
    """Each number with where it begins and ends."""
    cuts = np.flatnonzero(sorted_numbers[1:] != sorted_numbers[:-1]) + 1
    for first, end in pairwise([0, *cuts.tolist(), len(sorted_numbers)]):
        yield int(sorted_numbers[first]), first, end


def split(rows: pa.Table, which: Int64s) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each number."""
    if not (which[1:] >= which[:-1]).all():
        order = np.argsort(which, kind="stable")
        rows, which = rows.take(pa.array(order)), which[order]
    for number, first, end in runs(which):
        yield number, rows.slice(first, end - first)


def last_of_each(code: Any) -> Int64s:
    """Where each code stands last, in ascending order."""
    last = np.full(int(code.max(initial=-1)) + 1, -1)
    last[code] = np.arange(len(code))  # of several values for one place, the last one stays
    last.sort()
    found: Int64s = last[np.searchsorted(last, 0) :]
    return found


def codes(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, Any]:
    """Distinct values, and their numbers; null is -1."""
    coded = one(column)
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    return coded.dictionary, pc.fill_null(coded.indices, -1).to_numpy().astype(np.int32, copy=False)


def numbers(table: pa.Table, name: str) -> Int64s:
    column: Int64s = one(table.column(name)).to_numpy()
    return column


def one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


# Blobs


class Outbox:
    """Blobs with their groups, as batches that are not too large for Spark.  Rows are copied once, into the batch."""

    def __init__(self) -> None:
        self._groups: list[int] = []
        self._contents: list[int] = []
        self._ends = [0]
        self._sink = pa.BufferOutputStream()

    @property
    def is_full(self) -> bool:
        return self._ends[-1] >= _SENT

    def put(self, group: int, content: int, rows: pa.Table) -> None:
        write_blob(self._sink, rows)
        self._groups.append(group)
        self._contents.append(content)
        self._ends.append(self._sink.tell())

    def batch(self) -> pa.RecordBatch:
        """All of it."""
        ends = pa.py_buffer(np.array(self._ends, np.int32))
        blobs = pa.Array.from_buffers(pa.binary(), len(self._groups), [None, ends, self._sink.getvalue()])
        columns = [pa.array(self._groups, pa.int32()), pa.array(self._contents, pa.int8()), blobs]
        return pa.RecordBatch.from_arrays(columns, names=["group", "content", "rows"])


def sent(rows: Iterable[tuple[Iterable[int], int, pa.Table]]) -> Iterator[pa.RecordBatch]:
    """Rows of tables on their way; the same ones may go to several groups."""
    outbox = Outbox()
    for groups, content, part in rows:
        for piece in pieces(part):
            for group in groups:
                outbox.put(group, content, piece)
                if outbox.is_full:
                    yield outbox.batch()
                    outbox = Outbox()
    yield outbox.batch()


def pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows, cut so that each piece makes a blob of a good size."""
    count = -(-rows.nbytes // _BLOB)
    step = -(-rows.num_rows // max(1, count))
    for first in range(0, rows.num_rows, max(1, step)):
        yield rows.slice(first, step)


def write_blob(sink: pa.BufferOutputStream, rows: pa.Table) -> None:
    """A stream of Arrow; texts of which there are many alike are written once."""
    columns = {
        name: one(column).dictionary_encode() if name in _ALIKE and pa.types.is_string(column.type) else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    rows = pa.table(columns)  # and whether Spark takes a column for one without nulls is forgotten
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)


def table_of(blobs: Sequence[pa.BinaryScalar]) -> pa.Table:
    """The rows of several blobs of one table; the earlier ones first, as far as that is to be had without sorting."""
    tables = [pa.ipc.open_stream(blob.as_buffer()).read_all() for blob in blobs]
    tables.sort(key=lambda table: table.column("time")[0].as_py())
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()
