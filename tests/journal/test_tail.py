"""The freshest records as an Arrow stream."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.journal.journal_calls import PATIENCE, START, event, opened

from nearcast.errors import OffsetTrimmed
from nearcast.journal import DeliveryEntry, EventEntry, ReportEntry, TransitionEntry, UnpublishEntry
from nearcast.journal.entries import Record
from nearcast.journal.tail import NEXT, OLDEST, tail
from nearcast.model.time import to_datetime


def test_every_record_is_a_row_with_its_columns_and_its_body(tmp_path: Path) -> None:
    records: list[Record] = [
        EventEntry("e1", "city/jam", START, b"\xff", "p", 1, ("r",), 49.5, 8.5, tags=("slow",)),
        ReportEntry(START + 1, "p", 49.5, 8.5),
        UnpublishEntry(START + 2, "e1"),
        TransitionEntry(START + 3, "broker", "filter scheme"),
        DeliveryEntry(START + 4, 0, event(7, receivers=("r",))),
    ]
    with opened(tmp_path) as it:
        it.written(*records)
        table = pa.ipc.open_stream(tail(it.journal, 0)).read_all()
    rows = table.to_pylist()
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["kind"] for row in rows] == ["event", "report", "unpublish", "transition", "delivery"]
    assert [row["time"] for row in rows] == [to_datetime(START + number) for number in range(5)]
    assert [row["client"] for row in rows] == ["p", "p", None, "broker", None]
    assert [row["event"] for row in rows] == ["e1", None, "e1", None, "e7"]
    assert (rows[0]["topic"], rows[0]["payload"], rows[0]["receivers"]) == ("city/jam", b"\xff", ["r"])
    assert [(row["lat"], row["lon"]) for row in rows[:3]] == [(49.5, 8.5), (49.5, 8.5), (None, None)]
    assert [msgspec.msgpack.decode(row["body"], type=Record) for row in rows] == records


def test_a_reader_goes_on_where_the_metadata_says_until_nothing_is_left(tmp_path: Path) -> None:
    found: list[int] = []
    with opened(tmp_path) as it:
        for number in range(10):
            it.write(event(number))
        it.settle()
        following = 0
        for expected in (4, 4, 2, 0):
            table = pa.ipc.open_stream(tail(it.journal, following, limit=4)).read_all()
            assert table.num_rows == expected
            found += table["offset"].to_pylist()
            following = int(table.schema.metadata[NEXT])
    assert found == list(range(10))


def test_what_was_deleted_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=1) as it:
        it.written(event(0))
        it.written(event(10))
        it.now = START + 11
        it.journal.trim().result(PATIENCE)
        with pytest.raises(OffsetTrimmed):
            tail(it.journal, 0)
        table = pa.ipc.open_stream(tail(it.journal, 1)).read_all()
        assert table["offset"].to_pylist() == [1]
        assert table.schema.metadata[OLDEST] == b"1"
