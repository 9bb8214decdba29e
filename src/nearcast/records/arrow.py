"""The tables as Arrow schemas.  pyarrow takes a fifth of a second to import: functions here import it when called."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.records.column import Kind, RecordTable
from nearcast.records.tables import VERSION

TABLE_KEY: Final = b"nearcast.table"
VERSION_KEY: Final = b"nearcast.version"


@cache
def plain_type(kind: Kind) -> Any:
    """How values wait in memory and are hashed: names as mere texts, so that it does not matter who numbered them."""
    import pyarrow as pa

    match kind:
        case Kind.INSTANT:
            return pa.timestamp("us", tz="UTC")
        case Kind.WHOLE:
            return pa.int64()
        case Kind.REAL:
            return pa.float64()
        case Kind.TEXT | Kind.NAME:
            return pa.string()
        case Kind.TEXTS:
            return pa.list_(pa.string())
        case Kind.BYTES:
            return pa.binary()


@cache
def stored_type(kind: Kind) -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int32(), pa.string()) if kind is Kind.NAME else plain_type(kind)


@cache
def plain_schema(table: RecordTable) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(column.name, plain_type(column.kind), column.nullable) for column in table.columns])


@cache
def arrow_schema(table: RecordTable) -> Any:
    """The schema of the table in memory and in Parquet, documented column by column."""
    import pyarrow as pa

    fields = [
        pa.field(column.name, stored_type(column.kind), column.nullable, {"description": column.description})
        for column in table.columns
    ]
    return pa.schema(fields, {TABLE_KEY: table.name, VERSION_KEY: str(VERSION)})


def encoded(batch: Any, table: RecordTable) -> Any:
    """A plain batch as it is stored.  Names are numbered as they first appear: equal rows give equal bytes."""
    import pyarrow as pa

    columns = [
        values.dictionary_encode() if column.kind is Kind.NAME else values
        for column, values in zip(table.columns, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))


def stream_of(rows: Any) -> bytes:
    """A batch or a table as an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def table_in(stream: bytes) -> Any:
    """The rows of an Arrow stream; ``InvalidRecord`` if it is none."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(stream) as reader:
            return reader.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidRecord(f"that is no Arrow stream: {error}") from None
