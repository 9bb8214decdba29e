"""Rows travel in blobs: each group gets its own, and every slice the last report of each client before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.pipeline.matching.packing import OTHERS, REPORTS, Carrying, Packing, ReportPacking, table_of
from nearcast.pipeline.matching.slices import BEFORE, Slices

FIRST, LAST = 100, 199

reports = st.lists(
    st.tuples(st.integers(50, LAST), st.sampled_from(["ada", "bob", "cem"]), st.floats(-90, 90)),
    min_size=1,
    max_size=40,
)


def batches(rows: list[tuple[Any, ...]], names: list[str]) -> Iterator[pa.RecordBatch]:
    """In pieces, as Spark hands them over."""
    for first in range(0, len(rows), 7):
        yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows[first : first + 7]])


def by_group(packed: Iterator[pa.RecordBatch]) -> dict[int, list[pa.BinaryScalar]]:
    found: dict[int, list[pa.BinaryScalar]] = {}
    for batch in packed:
        for group, rows in zip(batch.column("group").to_pylist(), batch.column("rows"), strict=True):
            found.setdefault(group, []).append(rows)
    return found


def plain(blobs: list[pa.BinaryScalar]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table_of(blobs).to_pylist())


@given(rows=reports, count=st.integers(1, 12))
def test_a_sorted_column_is_cut_where_each_of_its_instants_belongs(rows: list[Any], count: int) -> None:
    slices = Slices(FIRST, LAST, count)
    time = np.sort(np.array([row[0] for row in rows]))
    cut = [number for number, first, end in slices.cut_sorted(time) for _ in range(first, end)]
    assert cut == slices.numbers(time).tolist()
    assert (slices.numbers(time) == BEFORE).tolist() == (time <= FIRST).tolist()


@given(rows=reports, count=st.integers(1, 5), parts=st.integers(1, 2))
def test_each_slice_gets_its_reports_and_the_last_ones_before(rows: list[Any], count: int, parts: int) -> None:
    slices = Slices(FIRST, LAST, count)
    rows = [(time, f"{number}", client, lat) for number, (time, client, lat) in enumerate(rows)]
    named = [(time, int(number), client, lat) for time, number, client, lat in rows]
    names = ["time", "offset", "client", "lat"]
    packed = by_group(ReportPacking(slices, parts)(batches(named, names)))
    carrier = packed.pop(count * parts, [])
    carried = by_group(
        Carrying(slices, parts)(iter([pa.RecordBatch.from_pydict({"rows": carrier})] if carrier else []))
    )
    for slice_ in range(count):
        number = slices.numbers(np.array([row[0] for row in named]))
        before = [row for row, at in zip(named, number, strict=True) if at < slice_]
        last = {row[2]: row for row in sorted(before)}
        for group in range(slice_ * parts, (slice_ + 1) * parts):
            mine = sorted(row for row, at in zip(named, number, strict=True) if at == slice_)
            assert (plain(packed[group]) if mine else []) == mine
            assert (plain(carried[group]) if last else []) == sorted(last.values())


@pytest.mark.parametrize("parts", [1, 3])
def test_rows_without_a_part_go_to_all_parts_of_their_slice(parts: int) -> None:
    rows = [(110, 0, "ada"), (120, 1, "bob"), (130, 0, "cem")]
    found = by_group(Packing(Slices(FIRST, LAST, 2), parts, OTHERS)(batches(rows, ["time", "slice", "client"])))
    assert {group: plain(blobs) for group, blobs in found.items()} == {
        **{group: [(110, "ada"), (130, "cem")] for group in range(parts)},
        **{group: [(120, "bob")] for group in range(parts, 2 * parts)},
    }


def test_few_rows_go_to_all_later_slices_as_they_are() -> None:
    rows = [(90, "ada"), (160, "bob")]
    found = by_group(Packing(Slices(FIRST, LAST, 3), 1, OTHERS, onwards=True)(batches(rows, ["time", "client"])))
    assert {group: plain(blobs) for group, blobs in found.items()} == {
        0: [(90, "ada")],
        1: [(90, "ada"), (160, "bob")],
        2: [(90, "ada"), (160, "bob")],
    }


def test_a_carrier_only_hears_of_its_own_clients() -> None:
    rows = [(90, "ada", 1.0, 0), (95, "bob", 2.0, 1), (96, "ada", 3.0, 0)]
    packing = ReportPacking(Slices(FIRST, LAST, 4), 2)
    found = by_group(packing(batches(rows, ["time", "client", "lat", "carrier"])))
    assert {group: plain(blobs) for group, blobs in found.items()} == {
        8: [(96, "ada", 3.0, BEFORE)],
        9: [(95, "bob", 2.0, BEFORE)],
    }


def test_texts_that_are_alike_are_written_once() -> None:
    rows = [(110, "the same condition, which is long " * 20)] * 1000
    packed = Packing(Slices(FIRST, LAST, 1), 1, REPORTS)(batches(rows, ["time", "detail"]))
    assert sum(batch.nbytes for batch in packed) < 30_000
