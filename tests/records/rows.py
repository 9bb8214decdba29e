"""Random rows of the record tables."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from nearcast.model.time import LARGEST
from nearcast.records import TABLES, Column, Kind, RecordTable

# Few and short, so that they repeat; among them what encodings stumble over.
TEXTS = st.sampled_from(["", "a", "b", "ada", "client-1", "grüße", "日本", "🙂", "a\x00b"])
WHOLES = st.integers(0, 2**63 - 1) | st.integers(0, 300)
INSTANTS = st.integers(1 - LARGEST, LARGEST - 1) | st.integers(0, 10**9)

tables = st.sampled_from(TABLES)


def values(column: Column) -> st.SearchStrategy[Any]:
    """Whatever the column takes."""
    by_kind: dict[Kind, st.SearchStrategy[Any]] = {
        Kind.INSTANT: INSTANTS,
        Kind.WHOLE: WHOLES if column.maximum is None else st.integers(0, int(column.maximum)),
        Kind.REAL: st.floats(column.minimum, column.maximum, allow_nan=False, allow_infinity=False),
        Kind.TEXT: TEXTS,
        Kind.NAME: st.sampled_from(column.choices) if column.choices else TEXTS,
        Kind.TEXTS: st.lists(TEXTS, max_size=4),
        Kind.BYTES: st.binary(max_size=4),
    }
    strategy = by_kind[column.kind]
    return st.none() | strategy if column.nullable else strategy


def rows(table: RecordTable, *, least: int = 0, most: int = 40) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(*map(values, table.columns)), min_size=least, max_size=most)


def as_columns(table: RecordTable, rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[position] for row in rows] for position, name in enumerate(table.column_names)}
