"""Old records go, the oldest first; what is not in the lake stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.clocks import START
from tests.journal.journal_calls import Opened, event, opened
from tests.waiting import PATIENCE

from nearcast.errors import OffsetTrimmed


def trimmed(it: Opened) -> int:
    it.journal.trim().result(PATIENCE)
    return it.journal.oldest


def test_records_go_when_they_are_older_than_allowed(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=100) as it:
        for number in range(10):
            it.written(event(10 * number), event(10 * number + 9))
        it.now = START + 100 + 39  # the record of 39 is exactly as old as is allowed
        assert trimmed(it) == 6
        it.now += 1
        assert trimmed(it) == 8
        assert [offset for offset, _ in it.all(8)] == list(range(8, 20))


def test_records_go_when_there_is_more_than_allowed(tmp_path: Path) -> None:
    with opened(tmp_path, keep_bytes=50_000) as it:
        for number in range(200):
            it.written(event(number, size=1_000))
        oldest = trimmed(it)
        kept = it.journal.statistics()
        assert 48_000 < kept.bytes <= 50_000
        assert kept.stretches == 200 - oldest
        assert [offset for offset, _ in it.all(oldest)] == list(range(oldest, 200))
    with opened(tmp_path, keep_bytes=50_000) as it:
        again = it.journal.statistics()
        assert (again.bytes, again.stretches, again.oldest) == (kept.bytes, kept.stretches, kept.oldest)


def test_the_bound_on_bytes_is_kept_while_records_are_written_without_being_asked(tmp_path: Path) -> None:
    with opened(tmp_path, keep_bytes=50_000, retry_every=1_000.0) as it:
        for number in range(200):
            it.written(event(number, size=1_000))
            assert it.journal.statistics().bytes <= 1.05 * 50_000 + 2_000


def test_without_a_bound_everything_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.written(event(0))
        it.now = START + 10**15
        assert trimmed(it) == 0


def test_what_is_not_in_the_lake_yet_stays_however_old_it_is(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=1, keep_bytes=1, lake=tmp_path / "lake") as it:
        it.now = START + 10**9
        it.written(event(0))
        it.written(event(1), event(2))
        it.written(event(3))
        assert trimmed(it) == 0
        it.journal.set_exported(2)  # in the middle of a stretch, which goes as a whole or not at all
        assert trimmed(it) == 1
        it.journal.set_exported(3)
        assert trimmed(it) == 3
    with opened(tmp_path, keep_for=1, keep_bytes=1, lake=tmp_path / "lake") as it:
        assert it.journal.exported == 3


def test_offsets_go_on_after_everything_was_deleted_and_the_journal_opened_anew(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=1) as it:
        for number in range(300):
            it.write(event(number))
        it.settle()
        it.now = START + 10**9
        assert trimmed(it) == 300
    with opened(tmp_path) as it:
        assert (it.journal.head, it.journal.durable, it.journal.oldest) == (300, 300, 300)
        assert it.written(event(1)) == 300
        assert it.all(300) == [(300, event(1))]


def test_who_reads_what_was_deleted_is_told_so_and_from_where_to_go_on(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=1) as it:
        it.written(event(0))
        it.written(event(10))
        it.now = START + 11
        trimmed(it)
        with pytest.raises(
            OffsetTrimmed, match="offset 0 was deleted by retention; the oldest that is left is 1"
        ) as told:
            it.all(0)
        assert it.all(told.value.oldest) == [(1, event(10))]


def test_who_is_reading_when_it_is_deleted_is_told_too(tmp_path: Path) -> None:
    with opened(tmp_path, keep_for=1) as it:
        for number in range(4):
            it.written(event(number, size=3_000_000))
        reading = it.journal.read(0)
        assert [offset for offset, _ in next(reading)] == [0]
        it.now = START + 10**9
        trimmed(it)
        with pytest.raises(OffsetTrimmed, match="offset 1"):
            next(reading)
