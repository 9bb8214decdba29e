"""The content hash knows every value, every null and the order, and nothing of how rows are stored."""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.rows import as_columns, rows, tables, values

from nearcast.errors import InvalidRecord
from nearcast.records import TABLES, Kind, RecordTable, RecordWriter, TableSummary, arrow_schema, content, content_hash
from nearcast.records.content import ROWS, ContentHash, Recutter

Row = tuple[Any, ...]


def hashed(table: RecordTable, lines: list[Row]) -> str:
    with RecordWriter(None) as writer:
        append = writer.appender(table.name)
        for line in lines:
            append(*line)
    assert writer.summary()[table.name].rows == len(lines)
    return writer.summary()[table.name].sha256


def arrow_table(table: RecordTable, lines: list[Row]) -> pa.Table:
    return pa.table(as_columns(table, lines), schema=arrow_schema(table))


def by_definition(table: RecordTable, lines: list[Row]) -> str:
    """The docstring of ``content``, word by word, for fewer rows than are hashed as one."""
    said = b"".join(
        f"{column.name} {Kind.TEXT if column.kind is Kind.NAME else column.kind}\n".encode() for column in table.columns
    )
    if lines:
        said += struct.pack("<i", len(lines))
        for position, column in enumerate(table.columns):
            said += _column(column.kind, [line[position] for line in lines])
    return hashlib.sha256(said).hexdigest()


def _column(kind: Kind, found: list[Any]) -> bytes:
    bits = "".join("0" if value is None else "1" for value in found)
    valid = [int(bits[start : start + 8][::-1], 2) for start in range(0, len(bits), 8)]
    nulls = b"\x01" + bytes(valid) if "0" in bits else b"\x00"
    if kind is Kind.TEXTS:
        lengths = struct.pack(f"<{len(found)}i", *(len(value or ()) for value in found))
        return nulls + lengths + _column(Kind.TEXT, [text for value in found for text in value or ()])
    if kind in {Kind.TEXT, Kind.NAME, Kind.BYTES}:
        texts = [value if isinstance(value, bytes) else (value or "").encode() for value in found]
        return nulls + struct.pack(f"<{len(texts)}i", *map(len, texts)) + b"".join(texts)
    return nulls + struct.pack(
        f"<{len(found)}{'d' if kind is Kind.REAL else 'q'}", *(0 if value is None else value for value in found)
    )


@given(st.data())
def test_it_is_computed_as_its_definition_says(data: st.DataObject) -> None:
    table = data.draw(tables)
    lines = data.draw(rows(table))
    assert hashed(table, lines) == by_definition(table, lines)


@given(st.data())
def test_a_changed_value_or_null_changes_it(data: st.DataObject) -> None:
    table = data.draw(tables)
    lines = data.draw(rows(table, least=1))
    line, column = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(table.columns) - 1))
    other = data.draw(values(table.columns[column]))
    changed = [list(row) for row in lines]
    changed[line][column] = other
    same = repr(other) == repr(lines[line][column])  # repr: -0.0 is another value than 0.0
    assert (hashed(table, [tuple(row) for row in changed]) == hashed(table, lines)) is same


@given(st.data())
def test_another_order_changes_it(data: st.DataObject) -> None:
    table = data.draw(tables)
    lines = data.draw(rows(table, least=2))
    moved = data.draw(st.permutations(lines))
    assert (hashed(table, moved) == hashed(table, lines)) is (repr(moved) == repr(lines))


@given(st.data())
def test_one_row_more_or_less_changes_it(data: st.DataObject) -> None:
    table = data.draw(tables)
    lines = data.draw(rows(table, least=1))
    assert hashed(table, lines) != hashed(table, lines[:-1])
    assert hashed(table, lines) != hashed(table, [*lines, lines[-1]])


def test_texts_and_lists_cannot_trade_letters_with_their_neighbours() -> None:
    events = next(table for table in TABLES if table.name == "events")

    def event(topic: str, receivers: list[str] | None, publisher: str | None = "p") -> Row:
        return (0, "e", publisher, topic, None, None, None, 0, None, receivers)

    variants = [
        [event("ab", []), event("c", [])],
        [event("a", []), event("bc", [])],
        [event("ab", ["x"]), event("c", [])],
        [event("ab", []), event("c", ["x"])],
        [event("ab", ["", "x"]), event("c", [])],
        [event("ab", ["x", ""]), event("c", [])],
        [event("ab", None), event("c", [])],
        [event("ab", [], None), event("c", [])],
        [event("ab", [], ""), event("c", [])],
    ]
    assert len({hashed(events, lines) for lines in variants}) == len(variants)


@given(st.data())
def test_neither_batches_nor_row_groups_nor_the_numbering_of_names_matter(data: st.DataObject) -> None:
    """With rows hashed by sevens, so that few rows make several cuts."""
    table = data.draw(tables)
    lines = data.draw(rows(table, least=1))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lines)), max_size=5)))
    with patch.object(content, "ROWS", 7):
        expected = hashed(table, lines)
        whole = arrow_table(table, lines)
        bounds = [0, *cuts, len(lines)]
        parts = [whole.slice(start, end - start) for start, end in pairwise(bounds)]
        assert content_hash(whole) == expected
        assert content_hash(pa.concat_tables(parts)) == expected
        # Slices of a reversed copy that are put back in order refer to names in another numbering.
        backwards = arrow_table(table, lines[::-1])
        assert content_hash(pa.concat_tables([backwards.slice(i, 1) for i in reversed(range(len(lines)))])) == expected
        plain = pa.schema([field.with_type(_plain(field.type)) for field in whole.schema])
        assert content_hash(whole.cast(plain)) == expected


def _plain(found: Any) -> Any:
    if pa.types.is_binary(found):
        return pa.large_binary()
    return pa.large_string() if pa.types.is_dictionary(found) else found


@pytest.mark.parametrize("count", [ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 5])
def test_the_writer_and_its_files_agree_at_every_edge(tmp_path: Path, count: int) -> None:
    with RecordWriter(tmp_path) as writer:
        append = writer.appender("clients")
        for row in range(count):
            append(row, f"client-{row % 1000}", "joined" if row % 3 else "left")
    summary = writer.summary()["clients"]
    assert summary == TableSummary(count, content_hash(tmp_path / "clients"))
    # The same rows in other row groups, with another compression and other dictionaries.
    rewritten = tmp_path / "rewritten.parquet"
    pq.write_table(pq.read_table(tmp_path / "clients"), rewritten, compression="none", row_group_size=1000)
    assert content_hash(rewritten) == summary.sha256


def test_the_name_and_the_type_of_a_column_are_part_of_it() -> None:
    hashes = {
        content_hash(pa.table({name: pa.array([1], kind)}))
        for name in ("a", "b")
        for kind in (pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC"))
    }
    assert len(hashes) == 6


def test_what_no_record_table_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="column flag is of type bool"):
        content_hash(pa.table({"flag": [True]}))
    for path in (tmp_path, tmp_path / "missing", Path(__file__)):
        with pytest.raises(InvalidRecord, match="neither a Parquet file nor a folder of them"):
            content_hash(path)


def batch_of(count: int) -> pa.RecordBatch:
    return pa.record_batch({"number": pa.array(range(count)), "text": pa.array([f"text {n}" for n in range(count)])})


def test_a_slice_is_hashed_as_what_it_shows() -> None:
    whole = batch_of(20)
    hashes = []
    for part in (whole.slice(5, 7), pa.RecordBatch.from_pylist(whole.slice(5, 7).to_pylist(), schema=whole.schema)):
        found = ContentHash(whole.schema)
        found.update(part)
        hashes.append(found.hexdigest())
    assert hashes[0] == hashes[1]


def test_few_rows_wait_in_few_pieces_however_small_they_came() -> None:
    recutter, one = Recutter(), batch_of(1)
    assert [piece for _ in range(2_000) for piece in recutter.add(one)] == []
    assert recutter.rows == 2_000
    assert len(recutter._waiting) <= 256
    [rest] = recutter.last()
    assert rest.num_rows == 2_000


def test_the_rest_of_a_large_batch_does_not_keep_the_batch_in_memory() -> None:
    before = pa.total_allocated_bytes()
    recutter = Recutter()
    assert [piece.num_rows for piece in recutter.add(batch_of(3 * ROWS + 10))] == [ROWS] * 3
    assert recutter.rows == 10
    assert pa.total_allocated_bytes() - before < 10_000
