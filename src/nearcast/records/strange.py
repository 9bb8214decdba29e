"""Rows of an Arrow stream that somebody sends: held against bounds before anything is made of them.

The format can say much in few bytes (compressed buffers, a long text in a dictionary to which all rows refer, columns of nothing but nulls), and what
stands in it is believed until it is validated.  So a stream of strangers is plain: each row takes room in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import table_in

LEAST_ROW: Final = 16
"""Bytes: every table has an offset, a time or the like."""

MOST_UNFOLDED: Final = 128 * 1024 * 1024
"""Bytes of what dictionaries stand for: the same long area may be meant in many rows."""

_DICTIONARY_BATCH: Final = 2
_RECORD_BATCH: Final = 3


def strange_table_in(stream: bytes) -> Any:
    """The rows; ``InvalidRecord`` if it is no such stream, or one that is larger than it looks."""
    import pyarrow as pa

    try:
        if any(_is_compressed(metadata) for metadata in _messages(stream)):
            raise InvalidRecord("the Arrow stream is compressed; send it as it is")
        with pa.ipc.open_stream(stream) as reader:
            for field in reader.schema:
                if not _is_plain(field.type):
                    raise InvalidRecord(f"a column of the Arrow stream is a {field.type}; send plain columns")
        table = table_in(stream)
        table.validate(full=True)
        if table.num_rows * LEAST_ROW > len(stream) or _unfolded(table) > MOST_UNFOLDED:
            raise InvalidRecord("the Arrow stream says more than it has bytes for; send plain columns")
    except (pa.ArrowException, OSError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidRecord(f"that is no Arrow stream: {error}") from None
    return table


def _messages(stream: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(stream):
        yield message.metadata.to_pybytes()


def _is_plain(kind: Any) -> bool:
    """Lists of dictionaries, views, runs and the like are needed by nobody."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return bool(types.is_string(kind.value_type) or types.is_large_string(kind.value_type))
    if types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    return bool(
        types.is_primitive(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _unfolded(table: Any) -> int:
    """Bytes of what dictionaries stand for, in all rows together."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return sum(
        pc.sum(pc.binary_length(chunk.dictionary).cast(pa.int64()).take(chunk.indices)).as_py() or 0
        for column in table.columns
        if pa.types.is_dictionary(column.type)
        for chunk in column.chunks
    )


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message of the stream has compressed buffers, which pyarrow would unpack at once (``Message.fbs``, in FlatBuffers)."""
    message = struct.unpack_from("<I", metadata)[0]
    kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
    if not kind or not header or metadata[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    batch = _table(metadata, header)
    if metadata[kind] == _DICTIONARY_BATCH:
        data = _field(metadata, batch, 1)
        if not data:
            return False
        batch = _table(metadata, data)
    return bool(_field(metadata, batch, 3))


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table stands; 0: it has none."""
    there = table - struct.unpack_from("<i", data, table)[0]
    slot = 4 + 2 * number
    if slot + 2 > struct.unpack_from("<H", data, there)[0]:
        return 0
    offset: int = struct.unpack_from("<H", data, there + slot)[0]
    return table + offset if offset else 0


def _table(data: bytes, field: int) -> int:
    offset: int = struct.unpack_from("<I", data, field)[0]
    return field + offset
