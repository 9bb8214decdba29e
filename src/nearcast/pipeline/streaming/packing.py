"""Rows on their way to a stateful function of Spark, and its answers: blobs of Arrow.

Spark hands rows to such a function one by one, as Python objects, and takes them back so.  Of a blob it knows nothing: it is
one row, whatever is in it (``matching.packing`` has the same for other reasons).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.matching.packing import pieces, write_blob
from nearcast.records.arrow import table_in

DEAL = "deal"
"""Column of the number of the part that a row is for; null: for all."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Of each batch of rows a blob for each part that has some of them, under its key.

    First comes an empty one for every part: so all have a state as soon as there are rows, whatever these are for, and a stream that
    goes on with more parts than it had meets the first of them, which knows that.
    """

    keys: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _packed(self.keys, [b""] * len(self.keys))
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            deal, rest = rows.column(DEAL), rows.drop_columns([DEAL])
            for number, key in enumerate(self.keys):
                mine = rest.filter(pc.or_(pc.is_null(deal), pc.fill_null(pc.equal(deal, number), fill_value=False)))
                blobs = [blob_of(piece) for piece in pieces(mine)]
                if blobs:
                    yield _packed([key] * len(blobs), blobs)


def _packed(keys: Sequence[int], blobs: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int32()), pa.array(blobs, pa.binary())], ["part", "rows"])


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of blobs."""
    for batch in batches:
        for blob in batch.column(0):
            with pa.ipc.open_stream(blob.as_buffer()) as stream:
                yield from stream


def blob_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    write_blob(sink, table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def rows_in(blob: bytes, schema: pa.Schema) -> pa.Table:
    return table_in(blob).select(schema.names).cast(schema)
