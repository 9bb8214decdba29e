"""The freshest records as an Arrow stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest
from tests.clocks import START
from tests.journal.journal_calls import event, opened
from tests.waiting import PATIENCE

from nearcast.errors import JournalFailed, OffsetTrimmed
from nearcast.journal import DeliveryEntry, EventEntry, Journal, ReportEntry, TransitionEntry, UnpublishEntry
from nearcast.journal.entries import NAMES, Record
from nearcast.journal.tail import NEXT, OLDEST, decoded, stretches, tail
from nearcast.model.time import to_datetime
from nearcast.records.arrow import table_in


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
        table = table_in(tail(it.journal, 0))
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
            table = table_in(tail(it.journal, following, limit=4))
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
        with pytest.raises(OffsetTrimmed):
            stretches(it.journal, 0, 9)
        table = table_in(tail(it.journal, 1))
        assert table["offset"].to_pylist() == [1]
        assert table.schema.metadata[OLDEST] == b"1"


def read_stretches(journal: Journal, first: int, last: int, **wanted: Any) -> tuple[list[tuple[int, Record]], int]:
    table = table_in(stretches(journal, first, last, **wanted))
    found = [each for kind in NAMES for each in decoded(table, cast("type[Record]", kind))]
    return sorted(found, key=lambda each: each[0]), int(table.schema.metadata[NEXT])


def test_stretches_hold_the_records_of_the_offsets_that_were_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(0, 12, 3):
            it.written(*(event(each) for each in range(number, number + 3)))
        found, following = read_stretches(it.journal, 4, 7)
        assert {offset for offset, _ in found} >= {4, 5, 6}
        assert all(record == event(offset) for offset, record in found)
        assert following == 7
        assert read_stretches(it.journal, 4, 1_000)[1] == 12
        assert read_stretches(it.journal, 12, 1_000) == ([], 12)


def test_a_reader_of_stretches_goes_on_until_nothing_is_left(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(0, 20, 2):
            it.written(event(number, size=900), event(number + 1, size=900))
        found: list[int] = []
        following, requests = 0, 0
        while following < 20:
            records, following = read_stretches(it.journal, following, 20, most_bytes=5_000)
            found += [offset for offset, _ in records]
            requests += 1
    assert found == list(range(20))
    assert requests > 1


def test_stretches_of_other_kinds_and_times_are_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.written(event(0))
        it.written(ReportEntry(START + 1, "p", 49.5, 8.5))
        it.written(event(2))
        assert read_stretches(it.journal, 0, 3, kinds=(ReportEntry,)) == (
            [(1, ReportEntry(START + 1, "p", 49.5, 8.5))],
            3,
        )
        assert read_stretches(it.journal, 0, 3, since=START + 2) == ([(2, event(2))], 3)
        assert read_stretches(it.journal, 0, 3, until=START + 1) == ([(0, event(0))], 3)


def test_what_was_changed_on_its_way_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.written(event(0))
        table = table_in(stretches(it.journal, 0, 1))
    [body] = table["body"].to_pylist()
    changed = table.set_column(3, table.schema.field("body"), pa.array([body[:-1] + b"y"]))
    with pytest.raises(JournalFailed, match="the records 0 to 0 have been changed"):
        list(decoded(changed, EventEntry))
