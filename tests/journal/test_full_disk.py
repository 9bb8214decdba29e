"""A disk that is full or refuses to be written: everybody is told, nothing breaks, and it goes on when it can."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journal.journal_calls import Opened, event, opened
from tests.small_disk import MEGABYTE, small_disk
from tests.waiting import PATIENCE

from nearcast.errors import JournalFailed
from nearcast.journal import Put
from nearcast.journal.store import Store

DISK = 12 * MEGABYTE
SMALL: dict[str, Any] = {"checkpoint_bytes": MEGABYTE, "retry_every": 0.01}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", DISK) as folder:
        yield folder


def fill(it: Opened, size: int = 20_000) -> list[int]:
    """Write until that fails; gives the offsets of what is on disk."""
    durable: list[int] = []
    while True:
        first = it.write(event(it.journal.head, size=size), puts=(Put("last", "event", str(it.journal.head).encode()),))
        it.settle()
        if it.outcomes[-1][1] is not None:
            return durable
        durable.append(first)
        assert first < 2_000


def test_a_full_disk_fails_writes_with_a_reason_and_loses_nothing_that_was_acknowledged(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(4 * MEGABYTE))
    with opened(disk / "journal", **SMALL) as it:
        durable = fill(it)
        assert "the disk is full; make room" in str(it.outcomes[-1][1])
        assert it.journal.problem == str(it.outcomes[-1][1])
        for number in range(3):
            assert "full" in str(it.failed(event(-number, size=20_000)))
        assert [offset for offset, _ in it.all()] == durable
        assert it.journal.load("last") == {"event": str(durable[-1]).encode()}

        ballast.unlink()
        it.recover()
        later = it.written(event(9_999, size=20_000))
        assert later > durable[-1] + 3
    with opened(disk / "journal", **SMALL) as it:
        assert [offset for offset, _ in it.all()] == [*durable, later]
        assert it.journal.head == later + 1


def test_what_failed_on_a_full_disk_does_not_appear_after_a_restart(disk: Path) -> None:
    with opened(disk / "journal", **SMALL) as it:
        durable = fill(it)
    with opened(disk / "journal", **SMALL) as it:
        assert [offset for offset, _ in it.all()] == durable
        assert it.journal.head == durable[-1] + 1


def test_with_a_bound_on_its_size_a_journal_never_fills_a_disk_that_is_large_enough(disk: Path) -> None:
    with opened(disk / "journal", **SMALL, keep_bytes=4 * MEGABYTE) as it:
        for number in range(3 * DISK // 20_000):
            it.written(event(number, size=20_000))
        it.journal.trim().result(PATIENCE)
        statistics = it.journal.statistics()
        assert statistics.failed_writes == 0
        assert statistics.bytes <= 4 * MEGABYTE
        assert it.all(statistics.oldest)[-1][0] == it.journal.head - 1


def test_what_retention_deletes_on_a_full_disk_can_be_used_again_and_again(disk: Path) -> None:
    with opened(disk / "journal", **SMALL, keep_for=1_000) as it:
        assert (disk / "journal" / "reserve").exists()
        for _ in range(4):
            durable = fill(it)
            it.now += 1_000_000_000  # all of it is old enough to go
            it.recover()
            it.written(event(0, size=20_000))
            assert it.journal.oldest > durable[-1]
            it.now -= 1_000_000_000


def test_what_was_exported_can_be_noted_on_a_full_disk_and_makes_room(disk: Path, tmp_path: Path) -> None:
    with opened(disk / "journal", **SMALL, keep_bytes=MEGABYTE, lake=tmp_path / "lake") as it:
        durable = fill(it)  # nothing is exported, so nothing may go
        it.journal.set_exported(durable[-1] + 1)
        it.recover()
        it.written(event(9_999, size=20_000))
        it.journal.trim().result(PATIENCE)
        assert it.journal.statistics().bytes <= MEGABYTE


def test_a_database_that_may_not_grow_fails_writes_and_recovers_without_being_root(tmp_path: Path) -> None:
    def limit(pages: int) -> None:
        def set_limit(store: Store) -> None:
            store._connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

        it.journal._writer.ask(set_limit).result()

    with opened(tmp_path, **SMALL) as it:
        limit(300)
        durable = fill(it)
        assert "full" in str(it.journal.problem)
        limit(10_000)
        it.recover()
        later = it.written(event(1, size=20_000))
        assert [offset for offset, _ in it.all()] == [*durable, later]


def test_a_disk_that_becomes_read_only_fails_writes_and_recovers(tmp_path: Path) -> None:
    def read_only(state: str) -> None:
        def switch(store: Store) -> None:
            store._connection.execute(f"PRAGMA query_only = {state}")

        it.journal._writer.ask(switch).result()

    with opened(tmp_path, **SMALL) as it:
        first = it.written(event(0))
        read_only("ON")
        assert "cannot be written" in str(it.failed(event(1)))
        assert it.all() == [(first, event(0))]
        read_only("OFF")
        it.recover()
        later = it.written(event(2))
        assert it.all() == [(first, event(0)), (later, event(2))]


def test_a_read_only_disk_is_refused_when_the_journal_is_opened(disk: Path) -> None:
    with opened(disk / "journal") as it:
        it.written(event(0))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(JournalFailed, match="allow writing"), opened(disk / "journal"):
        pass
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    with opened(disk / "journal") as it:
        assert it.all() == [(0, event(0))]


def test_the_log_in_front_of_the_database_stays_short_while_somebody_reads(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoint_bytes=MEGABYTE) as it:
        for number in range(4):
            it.written(event(number, size=MEGABYTE))
        reading = it.journal.read(0)
        next(reading)
        longest = 0
        for number in range(400):
            it.written(event(number, size=50_000))
            longest = max(longest, (tmp_path / "journal.sqlite-wal").stat().st_size)
        assert longest < 3 * MEGABYTE
        assert sum(map(len, reading)) > 0
