"""What is done to the audit log by hand is said for as long as something of that time is left, whatever is written afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.broker.audit.test_audit import event, log_of, read, write
from tests.clocks import HandClock
from tests.waiting import wait_until

from nearcast.broker.audit.audit import Audit
from nearcast.broker.audit.chain import TABLE, entries, files_of, known_in, line_of, verified
from nearcast.broker.upkeep.doctor.audit import audit
from nearcast.errors import InvalidRecord
from nearcast.journal import Journal, JournalSettings
from nearcast.settings_files import Size

SMALL: dict[str, Any] = {"file_size": Size.of("300 B")}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path / "journal", JournalSettings(), lambda then: then(), HandClock().now)
    yield opened
    opened.close()


def verify(folder: Path, journal: Journal) -> None:
    known = known_in(journal.load(TABLE))
    verified(folder / "audit", known.head, known.broken)


def settled(log: Audit) -> None:
    """What was written is noted in the journal, and retention is done."""
    log.flush()
    if log._writing is not None:
        log._finish(log._writing)
    wait_until(lambda: known_in(log._journal.load(TABLE)).head == log._head)
    log._worker.submit(lambda: None).result()


def rewritten(folder: Path) -> None:
    """With a chain of its own, as whoever knows how it is made would do it."""
    (path,) = files_of(folder)
    found, before, text = [line.entry for line in entries(folder)], "0" * 64, b""
    for entry in found:
        line, before = line_of(msgspec.structs.replace(entry, by="innocent") if entry.n >= 3 else entry, before)
        text += line
    path.write_bytes(text)


def lengthened(folder: Path) -> None:
    """The same, and something is added."""
    rewritten(folder)
    (path,) = files_of(folder)
    *_, last = entries(folder)
    line, _ = line_of(msgspec.structs.replace(last.entry, n=last.entry.n + 1), last.hash)
    path.write_bytes(path.read_bytes() + line)


def cut_off(folder: Path) -> None:
    (path,) = files_of(folder)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def deleted(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize("tampered", [rewritten, lengthened, cut_off, deleted])
def test_what_is_done_while_the_broker_is_down_is_said_after_it_has_started_and_written(
    tmp_path: Path, journal: Journal, tampered: Callable[[Path], None]
) -> None:
    write(log_of(tmp_path, journal), 5)
    verify(tmp_path, journal)
    tampered(tmp_path / "audit")
    for _ in range(2):
        log = log_of(tmp_path, journal)
        assert log.statistics().broken is not None
        write(log, 2)
        with pytest.raises(InvalidRecord):
            verify(tmp_path, journal)
        assert [entry.what for entry in read(tmp_path) if entry.did == "lost"] != []


def test_the_oldest_file_that_somebody_deletes_while_the_broker_works_is_missed_after_the_next_write(
    tmp_path: Path, journal: Journal
) -> None:
    log = log_of(tmp_path, journal, **SMALL)
    for _ in range(3):
        for number in range(3):
            log.addressed("ann", event(), ["r"], number)
        settled(log)
    oldest, *others = files_of(tmp_path / "audit")
    assert others
    oldest.unlink()
    log.addressed("ann", event(), ["r"], 9)
    settled(log)
    assert "missing at the beginning" in (log.statistics().broken or "")
    log.addressed("ann", event(), ["r"], 10)
    write(log, 0)
    with pytest.raises(InvalidRecord, match="missing at the beginning"):
        verify(tmp_path, journal)


def test_what_was_found_is_said_until_retention_has_taken_everything_of_that_time(
    tmp_path: Path, journal: Journal
) -> None:
    write(log_of(tmp_path, journal), 5)
    rewritten(tmp_path / "audit")
    log = log_of(tmp_path, journal, file_size=Size.of("100 B"), retention_size=Size.of("3 KiB"))
    said = []
    for number in range(20):
        log.addressed("ann", event(), ["r"], number)
        settled(log)
        said.append(log.statistics().broken is not None)
    assert said[0]
    assert not said[-1]
    assert said == sorted(said, reverse=True)
    verify(tmp_path, journal)
    log.close()


def test_who_falls_between_noting_what_retention_takes_and_taking_it_is_not_taken_for_somebody_who_tampered(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: dict[str, Any] = {"file_size": Size.of("100 B"), "retention_size": Size.of("800 B")}
    log = log_of(tmp_path, journal, **bounds)
    with monkeypatch.context() as patch:
        patch.setattr("nearcast.broker.audit.audit._delete", list)
        for number in range(9):
            log.addressed("ann", event(), ["r"], number)
            settled(log)
    assert known_in(journal.load(TABLE)).head.oldest > 1
    assert len(files_of(tmp_path / "audit")) == 9
    log.close()
    again = log_of(tmp_path, journal, **bounds)
    assert again.statistics().broken is None
    assert len(files_of(tmp_path / "audit")) < 9
    again.close()
    verify(tmp_path, journal)


def test_entries_that_the_disk_was_too_slow_for_are_counted_and_are_nobodys_deed(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.broker.audit.audit.MOST_WAITING", 3)
    log = log_of(tmp_path, journal)
    write(log, 10)
    known = known_in(journal.load(TABLE))
    assert verified(tmp_path / "audit", known.head, known.broken).lost == 7
    assert {each.severity for each in audit(tmp_path, quick=False)} == {"ok", "warning"}


@pytest.mark.parametrize("quick", [False, True])
def test_the_doctor_says_it(tmp_path: Path, journal: Journal, quick: bool) -> None:
    assert [each.severity for each in audit(tmp_path, quick=quick)] == ["note"]
    write(log_of(tmp_path, journal), 5)
    assert [each.severity for each in audit(tmp_path, quick=quick)] == ["ok"]
    cut_off(tmp_path / "audit")
    assert [each.severity for each in audit(tmp_path, quick=quick)] == ["problem"]
    write(log_of(tmp_path, journal), 1)
    assert [each.severity for each in audit(tmp_path, quick=quick)] == ["problem"]
