"""A hash of what a table says, however it is stored: two runs can be compared without comparing their files.

SHA-256 over a line ``name kind`` for each column (a name counts as a text) and then, for every 65,536 rows, their
number (32 bits, as all lengths; little-endian) and column by column

- a byte that says whether some value is null; if so, a bit for each row that is set where there is a value;
- instants (microseconds), whole and real numbers as 64 bits each, zero where null;
- texts as all their lengths in bytes and then their UTF-8, bytes likewise; lists as all their lengths and then their
  texts.

So neither the encoding nor the numbering of names, neither row groups nor files make a difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.records.column import Kind

ROWS: Final = 65_536
"""Rows that are hashed, and written, as one."""
_MOST_WAITING: Final = 256
"""Small batches cost more than their rows: so many become one."""


class Recutter:
    """Takes batches of any size and gives batches of exactly ``ROWS``; keeps less than that many rows."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []
        self.rows = 0
        """How many are waiting."""

    def add(self, batch: Any) -> Iterator[Any]:
        import pyarrow as pa

        self._waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows < ROWS:
            if len(self._waiting) == _MOST_WAITING:
                self._waiting = [_one(pa.Table.from_batches(self._waiting))]
            return
        table = pa.Table.from_batches(self._waiting)
        rest = table.num_rows % ROWS
        self._waiting, self.rows = [], rest
        if rest:
            # Copied: as a slice it would keep the whole batch in memory.
            self._waiting.append(_one(table.slice(table.num_rows - rest)))
        for start in range(0, table.num_rows - rest, ROWS):
            yield _one(table.slice(start, ROWS))

    def last(self) -> Iterator[Any]:
        """What is left, if anything."""
        import pyarrow as pa

        if self.rows:
            waiting, self._waiting, self.rows = self._waiting, [], 0
            yield _one(pa.Table.from_batches(waiting))


def _one(table: Any) -> Any:
    import pyarrow as pa

    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


class ContentHash:
    """Takes plain batches of ``ROWS`` rows, of which only the last may be shorter."""

    def __init__(self, schema: Any) -> None:
        self._hash = hashlib.sha256()
        for field in schema:
            self._hash.update(f"{field.name} {_kind(field)}\n".encode())

    def update(self, batch: Any) -> None:
        self._hash.update(batch.num_rows.to_bytes(4, "little"))
        for field, array in zip(batch.schema, batch.columns, strict=True):
            self._column(_kind(field), array)

    def _column(self, kind: Kind, array: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._nulls(array)
        if kind is Kind.TEXTS:
            self._hash.update(_little_endian(pc.list_value_length(array).fill_null(0), "<i4"))
            self._column(Kind.TEXT, array.flatten())
        elif kind in {Kind.TEXT, Kind.BYTES}:
            texts = array.fill_null(b"" if kind is Kind.BYTES else "")
            self._hash.update(_little_endian(pc.binary_length(texts), "<i4"))
            self._hash.update(_bytes(texts))
        elif kind is Kind.REAL:
            self._hash.update(_little_endian(array.fill_null(0.0), "<f8"))
        else:
            self._hash.update(_little_endian(array.cast(pa.int64()).fill_null(0), "<i8"))

    def _nulls(self, array: Any) -> None:
        import numpy as np

        self._hash.update(b"\x01" if array.null_count else b"\x00")
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            self._hash.update(np.packbits(valid, bitorder="little").tobytes())

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _kind(field: Any) -> Kind:
    from pyarrow import types

    tests = {
        Kind.INSTANT: types.is_timestamp,
        Kind.WHOLE: types.is_int64,
        Kind.REAL: types.is_float64,
        Kind.TEXT: types.is_string,
        Kind.TEXTS: types.is_list,
        Kind.BYTES: types.is_binary,
    }
    for kind, fits in tests.items():
        if fits(field.type):
            return kind
    raise InvalidRecord(f"column {field.name} is of type {field.type}, which no record table uses")


def _little_endian(array: Any, dtype: str) -> Any:
    return memoryview(array.to_numpy().astype(dtype, copy=False))


def _bytes(texts: Any) -> Any:
    """Those of all texts, one after the other."""
    import numpy as np

    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""


def content_hash(source: Any) -> str:
    """The hash of an Arrow table, or of a Parquet file or folder of such files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, pa.Table):
        return _content_hash(source.schema, source.to_batches())
    path = Path(source)
    parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    try:
        files = [pq.ParquetFile(part) for part in parts]
        return _content_hash(files[0].schema_arrow, (batch for file in files for batch in file.iter_batches(ROWS)))
    except (OSError, IndexError, pa.ArrowInvalid) as error:
        raise InvalidRecord(f"{path} is neither a Parquet file nor a folder of them: {error}") from None


def _content_hash(schema: Any, batches: Iterable[Any]) -> str:
    import pyarrow as pa

    plain = pa.schema([field.with_type(decoded_type(field.type)) for field in schema])
    content, recutter = ContentHash(plain), Recutter()
    for batch in batches:
        for piece in recutter.add(batch.cast(plain)):
            content.update(piece)
    for piece in recutter.last():
        content.update(piece)
    return content.hexdigest()


def decoded_type(found: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(found):
        return decoded_type(found.value_type)
    if types.is_timestamp(found):
        return pa.timestamp("us", tz="UTC")
    if types.is_large_binary(found):
        return pa.binary()
    return pa.string() if types.is_large_string(found) else found
