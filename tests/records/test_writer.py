"""What is appended is what is read, in order, in bounded memory and in files that are complete or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.child import run_python
from tests.records.rows import as_columns, rows, tables

from nearcast.model.time import to_datetime
from nearcast.records import (
    TABLES,
    RecordTable,
    RecordWriter,
    TableSummary,
    arrow_schema,
    content,
    content_hash,
    read,
    read_summary,
    storage,
    writer,
)
from nearcast.records.content import ROWS

Row = tuple[Any, ...]


def as_rows(each: RecordTable, found: pa.Table) -> list[Row]:
    """Back to what was appended; as text, so that -0.0 and 0.0 differ."""
    columns = [
        found[column.name].cast(pa.int64()).to_pylist() if column.kind == "instant" else found[column.name].to_pylist()
        for column in each.columns
    ]
    return list(zip(*columns, strict=True))


@contextmanager
def small_cuts() -> Iterator[None]:
    """Few rows already fill buffers, row groups and files."""
    with (
        patch.object(content, "ROWS", 7),
        patch.object(writer, "ROWS_AS_VALUES", 3),
        patch.object(storage, "ROWS_IN_PART", 14),
    ):
        yield


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@given(st.data())
@settings(max_examples=30)
def test_rows_are_read_as_they_were_appended_one_by_one_or_by_the_column(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder, each = tmp_path_factory.mktemp("recording"), data.draw(tables)
    parts = data.draw(st.lists(st.tuples(st.booleans(), rows(each)), max_size=4))
    with small_cuts():
        with RecordWriter(folder) as recording:
            for by_column, lines in parts:
                if by_column:
                    recording.append_columns(each.name, as_columns(each, lines))
                else:
                    for line in lines:
                        recording.append(each.name, *line)
        expected = [line for _, lines in parts for line in lines]
        found = read(folder, each.name)
        assert repr(as_rows(each, found)) == repr(expected)
        assert found.schema.equals(arrow_schema(each), check_metadata=True)
        assert recording.summary()[each.name] == TableSummary(len(expected), content_hash(folder / each.name))
        assert len(list((folder / each.name).iterdir())) == max(1, -(-len(expected) // 14))


@given(st.data())
@settings(max_examples=20)
def test_equal_rows_make_equal_files_however_they_came(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder, each = tmp_path_factory.mktemp("recordings"), data.draw(tables)
    lines = data.draw(rows(each))
    cut = data.draw(st.integers(0, len(lines)))
    with small_cuts():
        with RecordWriter(folder / "a") as recording:
            for line in lines:
                recording.append(each.name, *line)
        with RecordWriter(folder / "b") as recording:
            recording.append_columns(each.name, as_columns(each, lines[:cut]))
            arrow = pa.table(as_columns(each, lines[cut:]), schema=arrow_schema(each))
            recording.append_columns(each.name, dict(zip(arrow.column_names, arrow.columns, strict=True)))
    assert files_of(folder / "a") == files_of(folder / "b")


@given(st.data())
@settings(max_examples=20)
def test_a_row_without_its_optional_values_is_one_with_nulls(data: st.DataObject) -> None:
    each = data.draw(tables.filter(lambda table: table.optional > 0))
    lines = data.draw(rows(each, least=1))
    short = data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
    with (
        small_cuts(),
        RecordWriter(None) as with_nulls,
        RecordWriter(None) as left_out,
        RecordWriter(None) as by_column,
    ):
        for line, is_short in zip(lines, short, strict=True):
            first, nulls = line[: each.required], (None,) * each.optional
            with_nulls.append(each.name, *(first + nulls if is_short else line))
            left_out.append(each.name, *(first if is_short else line))
            columns = as_columns(each, [line])
            for name in each.column_names[each.required :] if is_short else ():
                del columns[name]
            by_column.append_columns(each.name, columns)
        assert left_out.statistics().rows == len(lines)
    assert with_nulls.summary() == left_out.summary() == by_column.summary()


def test_two_processes_make_equal_files(tmp_path: Path) -> None:
    program = """
import sys
from nearcast.records import RecordWriter
with RecordWriter(sys.argv[1]) as recording:
    append = recording.appender("messages")
    for row in range(70_000):
        append(row, row + 5, "wifi", "event", f"client-{row % 97}", None, 128, "sent", row % 4)
"""
    for name, seed in (("a", "1"), ("b", "2")):
        run_python("-c", program, str(tmp_path / name), hash_seed=seed)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_every_table_has_a_file_even_without_rows(tmp_path: Path) -> None:
    with RecordWriter(tmp_path):
        pass
    for each in TABLES:
        found = read(tmp_path, each.name)
        assert found.num_rows == 0
        assert found.schema.equals(arrow_schema(each))
        assert pq.read_table(tmp_path / each.name).schema.equals(arrow_schema(each))


def test_the_summary_in_the_folder_is_that_of_the_writer(tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as recording:
        recording.append("clients", 0, "ada", "joined")
    assert read_summary(tmp_path).tables == recording.summary()
    with RecordWriter(None) as without_files:
        without_files.append("clients", 0, "ada", "joined")
    assert without_files.summary() == recording.summary()


def test_arrays_of_numpy_and_arrow_are_taken_with_their_nulls() -> None:
    instants = np.array([5, 6], np.int64)
    heading = np.ma.masked_array([90.0, 0.0], mask=[False, True])
    columns = {
        "time": instants,
        "client": pa.array(["ada", "bob"]).dictionary_encode(),
        "lat": np.array([1, 2], np.int32),
        "lon": np.array([1.5, 2.5], np.float32),
        "speed": [1.25, 0.0],
        "heading": heading,
    }
    with RecordWriter(None) as by_column:
        by_column.append_columns("positions", columns)
        by_column.append_columns(
            "positions",
            {**columns, "time": pa.array(map(to_datetime, (7, 8))), "client": pa.chunked_array([["ada"], ["bob"]])},
        )
    with RecordWriter(None) as by_row:
        for start in (5, 7):
            by_row.append("positions", start, "ada", 1.0, 1.5, 1.25, 90.0)
            by_row.append("positions", start + 1, "bob", 2.0, 2.5, 0.0, None)
    assert by_column.summary() == by_row.summary()


def test_the_caller_may_fill_its_arrays_again_at_once(tmp_path: Path) -> None:
    """A sampler has one array for all its samples; Arrow would look into it, not copy it."""
    lat = np.zeros(3)
    with RecordWriter(tmp_path) as recording:
        for sample in range(4):
            lat[:] = sample
            recording.append_columns(
                "reports", {"time": [sample] * 3, "client": ["a", "b", "c"], "lat": lat, "lon": pa.array(lat)}
            )
    found = read(tmp_path, "reports")
    expected = [float(sample) for sample in range(4) for _ in range(3)]
    assert found["lat"].to_pylist() == found["lon"].to_pylist() == expected


def test_statistics_count_rows_where_they_are(tmp_path: Path) -> None:
    recording = RecordWriter(tmp_path)
    append = recording.appender("clients")
    for row in range(ROWS + 10):
        append(row, "ada", "joined")
    recording.append("reports", 0, "ada", None, None)
    statistics = recording.statistics()
    assert statistics.tables["clients"].rows == ROWS + 10
    assert statistics.tables["clients"].buffered_rows == 10
    assert statistics.tables["reports"].buffered_rows == 1
    assert statistics.rows == ROWS + 11
    assert statistics.buffered_rows == 11
    recording.close()
    statistics = recording.statistics()
    assert (statistics.rows, statistics.buffered_rows) == (ROWS + 11, 0)
    sizes = {each.name: sum(part.stat().st_size for part in (tmp_path / each.name).iterdir()) for each in TABLES}
    assert {name: each.bytes_written for name, each in statistics.tables.items()} == sizes
    assert statistics.bytes_written == sum(sizes.values())


MEMORY_PROGRAM = """
import resource, sys
from nearcast.records import RecordWriter

# Small batches by the column as well, each of which waits on its own at first.
batch = {"time": list(range(50)), "client": ["ada"] * 50, "lat": [1.0] * 50, "lon": [1.0] * 50}
with RecordWriter(sys.argv[1]) as recording:
    messages, notifications = recording.appender("messages"), recording.appender("notifications")
    for row in range(int(sys.argv[2]) // 2):
        messages(row, row + 5, "wifi", "event", f"client-{row % 97}", None, 128, "sent", row % 4)
        notifications(row, f"event-{row}", f"client-{row % 89}", "cloud", "delivered", 200_000, 2)
        if row % 100 == 0:
            recording.append_columns("reports", batch)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_length_of_the_run(tmp_path: Path) -> None:
    """The high-water mark of the process: whatever Python, Arrow and Parquet remember is in it.

    The shorter run fills every buffer several times already.  Remembering a single number for each of the further two million
    rows would take 16 MB; half of that is left to the whims of allocators.
    """
    peaks = [
        int(run_python("-c", MEMORY_PROGRAM, str(tmp_path / rows_written), rows_written))
        for rows_written in ("400000", "2400000")
    ]
    assert peaks[1] - peaks[0] < 8 * 1024
