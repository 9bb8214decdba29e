"""What is not in the lake yet: stretches of the journal, decoded here, where there are many processors, and not in the broker."""

from __future__ import annotations

from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.journal.entries import NAMES
from nearcast.journal.rows import ROWS
from nearcast.journal.tail import NEXT, decoded
from nearcast.pipeline.source.lake import TimeBounds
from nearcast.pipeline.source.link import BrokerLink
from nearcast.records import table as table_of
from nearcast.records.arrow import table_in

_KINDS: Final = {table: (kind, row) for kind, (table, row) in ROWS.items()}


def tail_batch(
    link: BrokerLink, table: str, schema: Any, first: int, last: int, bounds: TimeBounds
) -> tuple[Any | None, int]:
    """The next rows of these offsets as a batch, if there are any, and the offset to go on from.

    ``OffsetTrimmed`` if the first of these offsets is no longer in the journal.
    """
    kind, row = _KINDS[table]
    data = link.stretches(first, last, NAMES[kind], bounds.since, bounds.until)
    stretches = table_in(data)
    following = int(stretches.schema.metadata[NEXT])
    if following <= first:
        raise InvalidRecord(
            f"the journal ends at {following}, before {last}: is that another broker, or an older copy?"
        )
    end = min(following, last)
    rows = [row(offset, record) for offset, record in decoded(stretches, kind) if first <= offset < end]
    return (_batch(table, schema, rows) if rows else None), following


def _batch(table: str, schema: Any, rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    columns = dict(zip(table_of(table).column_names, zip(*rows, strict=True), strict=True))
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
