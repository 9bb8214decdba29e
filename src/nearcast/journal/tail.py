"""The freshest records as an Arrow IPC stream, for readers outside the process: what is not in the lake yet.

Columns that most kinds have stand beside ``body``, the whole record as the journal keeps it (``entries`` says what its
msgpack array holds).  The metadata of the schema says ``nearcast.next``, the offset to go on from, and ``nearcast.oldest``.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, Final

from nearcast.journal.entries import (
    NAMES,
    DeliveryEntry,
    EventEntry,
    Record,
    TransitionEntry,
    UnpublishEntry,
    encoder,
    time_of,
)
from nearcast.journal.journal import Journal

NEXT: Final = b"nearcast.next"
OLDEST: Final = b"nearcast.oldest"


def tail(journal: Journal, first: int, limit: int = 65_536) -> bytes:
    """At most ``limit`` records on disk from that offset on; for a worker thread."""
    import pyarrow as pa

    found = list(chain.from_iterable(journal.read(first, limit=limit)))
    # Failed writes leave gaps, and nothing on disk stands in them: who has read all goes on behind them.
    following = found[-1][0] + 1 if found else first
    schema = _schema().with_metadata({NEXT: str(following), OLDEST: str(journal.oldest)})
    columns = [*zip(*(_row(offset, record) for offset, record in found), strict=True)] or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


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
