"""Arrow streams, as they go between processes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import stream_of, table_in


def test_batches_and_tables_come_as_they_went_with_what_their_schema_says() -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)], {b"nearcast.next": b"7"})
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3])], schema=schema)
    table = pa.Table.from_batches([batch, batch])
    for rows, expected in ((batch, [1, 2, 3]), (table, [1, 2, 3] * 2), (schema.empty_table(), [])):
        come = table_in(stream_of(rows))
        assert come.schema.equals(schema, check_metadata=True)
        assert come.column("n").to_pylist() == expected


@pytest.mark.parametrize("cut", [0, 1, 8, 100, -9])
def test_what_is_no_stream_or_only_a_part_of_one_is_refused(cut: int) -> None:
    whole = stream_of(pa.table({"n": list(range(1_000))}))
    with pytest.raises(InvalidRecord, match="no Arrow stream"):
        table_in(whole[:cut])
