"""The freshest records as an Arrow IPC stream, for readers outside the process: what is not in the lake yet.

``tail``: a row for each record.  Columns that most kinds have stand beside ``body``, the whole record as the journal keeps
it (``entries`` says what its msgpack array holds).

``stretches``: a row for each stretch, as it stands on disk, for who reads much and decodes it himself (``decoded``): that
costs the broker next to nothing.

The metadata of the schema says ``nearcast.next``, the offset to go on from, and ``nearcast.oldest``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any, Final

import msgspec

from nearcast.errors import JournalFailed
from nearcast.journal.entries import (
    NAMES,
    DeliveryEntry,
    EventEntry,
    Record,
    TransitionEntry,
    UnpublishEntry,
    decode_records,
    encoder,
    time_of,
)
from nearcast.journal.journal import Journal
from nearcast.journal.reading import Stretch
from nearcast.model.time import Instant
from nearcast.records.arrow import stream_of

NEXT: Final = b"nearcast.next"
OLDEST: Final = b"nearcast.oldest"

_LONGER: Final = 0xDC
"""The first byte of a msgpack array of more than 15 values."""

_ERASED: Final = 0xC0

_split: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def tail(journal: Journal, first: int, limit: int = 65_536) -> bytes:
    """At most ``limit`` records on disk from that offset on; for a worker thread."""
    import pyarrow as pa

    found = list(chain.from_iterable(journal.read(first, limit=limit)))
    # Failed writes leave gaps, and nothing on disk stands in them: who has read all goes on behind them.
    following = found[-1][0] + 1 if found else first
    schema = _schema().with_metadata({NEXT: str(following), OLDEST: str(journal.oldest)})
    columns = [*zip(*(_row(offset, record) for offset, record in found), strict=True)] or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return stream_of(pa.RecordBatch.from_arrays(arrays, schema=schema))


def stretches(
    journal: Journal,
    first: int,
    last: int,
    kinds: Iterable[type[Record]] | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    most_bytes: int = 4_000_000,
) -> bytes:
    """What is on disk from one offset to another, about so many bytes of it; for a worker thread."""
    import pyarrow as pa

    last = min(last, journal.stored)
    found: list[Stretch] = []
    all_of_it = True
    if first < last:
        found, all_of_it = journal.stretches(first, last, since=since, until=until, kinds=kinds, most_bytes=most_bytes)
    following = max(first, last) if all_of_it else found[-1].first + found[-1].count
    schema = _stretch_schema().with_metadata({NEXT: str(following), OLDEST: str(journal.oldest)})
    arrays = [pa.array([getattr(each, field.name) for each in found], field.type) for field in schema]
    return stream_of(pa.RecordBatch.from_arrays(arrays, schema=schema))


def decoded(table: Any, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """The records of that kind in such stretches, with their offsets."""
    for first, count, checksum, body in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if zlib.crc32(body) != checksum:
            raise JournalFailed(f"the records {first} to {first + count - 1} have been changed since they were written")
        yield from _of_kind(first, body, kind)


def _of_kind(first: int, body: bytes, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """Others are passed over, which takes a sixth of the time; the wanted ones are decoded together."""
    tag = kind.__struct_config__.tag
    found = [(offset, raw) for offset, raw in enumerate(_split(body), first) if _tag(memoryview(raw)) == tag]
    head = b"\xdd" + len(found).to_bytes(4, "big")
    records = decode_records(head + b"".join(memoryview(raw) for _, raw in found))
    for (offset, _), record in zip(found, records, strict=True):
        assert record is not None
        yield offset, record


def _tag(record: memoryview) -> int | None:
    """The first thing in the record's array, whose own head is one byte or three; none: it was erased."""
    return None if record[0] == _ERASED else record[1 if record[0] < _LONGER else 3]


@cache
def _stretch_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("first", pa.int64(), nullable=False),
            pa.field("count", pa.int64(), nullable=False),
            pa.field("checksum", pa.int64(), nullable=False),
            pa.field("body", pa.binary(), nullable=False),
        ]
    )


@cache
def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("client", pa.string()),
            pa.field("event", pa.string()),
            pa.field("topic", pa.string()),
            pa.field("lat", pa.float64()),
            pa.field("lon", pa.float64()),
            pa.field("payload", pa.binary()),
            pa.field("receivers", pa.list_(pa.string())),
            pa.field("body", pa.binary(), nullable=False),
        ]
    )


def _row(offset: int, record: Record) -> tuple[Any, ...]:
    head = (offset, NAMES[type(record)], time_of(record))
    body = encoder.encode(record)
    if isinstance(record, EventEntry | DeliveryEntry):
        event = record.event if isinstance(record, DeliveryEntry) else record
        place = (event.lat, event.lon)
        return *head, event.publisher, event.id, event.topic, *place, event.payload, event.receivers, body
    if type(record) is UnpublishEntry:
        return *head, None, record.event, None, None, None, None, None, body
    client = record.host if type(record) is TransitionEntry else record.who  # type: ignore[union-attr]
    place = (getattr(record, "lat", None), getattr(record, "lon", None))
    return *head, client, None, None, *place, None, None, body
