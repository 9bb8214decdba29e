"""``kill -9`` at any moment: nothing acknowledged is lost, nothing is half there, and nobody has to repair anything."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journal import crash_child
from tests.journal.journal_calls import event, opened

from nearcast.errors import JournalFailed
from nearcast.journal.database import FILE


def killed_after(folder: Path, acknowledgements: int) -> tuple[tuple[int, int], dict[int, int]]:
    """Where a child began (offset, group), and what it said was acknowledged (group, first offset) before it died."""
    with subprocess.Popen([sys.executable, crash_child.__file__, folder], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(acknowledgements + 1)]
        child.send_signal(signal.SIGKILL)
        lines += [line for line in child.stdout if line.endswith("\n")]
    said = [(int(first), int(second)) for first, second in map(str.split, lines)]
    return said[0], dict(said[1:])


@pytest.mark.parametrize("seed", range(3))
def test_after_a_kill_everything_acknowledged_is_there_and_every_group_is_whole(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    end, last_group = 0, 0
    for _ in range(4):
        began, acknowledged = killed_after(tmp_path, generator.choice([0, 1, generator.randrange(2_000)]))
        assert began == (end, last_group)
        with opened(tmp_path) as it:
            found: dict[int, list[int]] = {}
            for offset, record in it.all(end):
                found.setdefault(crash_child_group(record), []).append(offset)
            for group, first in acknowledged.items():
                assert found[group] == list(range(first, first + crash_child.size_of(group)))
            assert list(found) == list(range(last_group + 1, last_group + 1 + len(found)))
            assert all(len(offsets) == crash_child.size_of(group) for group, offsets in found.items())
            last_group += len(found)
            end += sum(map(len, found.values()))
            assert it.journal.head == end
            assert it.journal.load("groups") == ({"last": str(last_group).encode()} if last_group else {})


def crash_child_group(record: object) -> int:
    assert hasattr(record, "at")
    return int(record.at)


def test_a_second_journal_in_the_same_folder_is_refused_while_the_first_is_open(tmp_path: Path) -> None:
    refused = pytest.raises(JournalFailed, match=f"in use by process {os.getpid()}: a broker runs on it")
    with opened(tmp_path), refused, opened(tmp_path):
        pass
    with opened(tmp_path) as it:
        assert it.journal.head == 0


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"nonsense" * 1_000)
    with pytest.raises(JournalFailed, match=r"damaged.*backup"), opened(tmp_path):
        pass
    assert (tmp_path / FILE).read_bytes() == b"nonsense" * 1_000


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE accounts (name)")
    other.close()
    with pytest.raises(JournalFailed, match="something else"), opened(tmp_path):
        pass


def test_a_journal_of_a_newer_nearcast_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(JournalFailed, match="newer nearcast"), opened(tmp_path):
        pass


def test_a_file_that_was_cut_off_is_noticed_and_explained(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(200):
            it.written(event(number, size=10_000))
    with (tmp_path / FILE).open("r+b") as file:
        file.truncate(700_000)

    def read_all() -> None:
        with opened(tmp_path) as it:
            it.all()

    with pytest.raises(JournalFailed, match="damaged"):
        read_all()


@pytest.mark.parametrize("position", [0, 3, 40, -1])
def test_a_record_that_the_disk_has_changed_is_not_handed_out(tmp_path: Path, position: int) -> None:
    with opened(tmp_path) as it:
        it.written(event(0))
        it.written(event(1))
        it.written(event(2))
    with sqlite3.connect(tmp_path / FILE) as other:
        body = bytearray(other.execute("SELECT body FROM stretch WHERE first = 1").fetchone()[0])
        body[position] ^= 1
        other.execute("UPDATE stretch SET body = ? WHERE first = 1", (body,))
    other.close()
    with opened(tmp_path) as it:
        with pytest.raises(JournalFailed, match=r"records 1 to 1 cannot be read.*read on from 2"):
            it.all()
        assert it.all(2) == [(2, event(2))]


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalFailed, match="choose another folder"), opened(tmp_path / "file" / "journal"):
        pass
