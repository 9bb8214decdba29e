"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nearcast.files import write_whole


@pytest.mark.parametrize("data", ["grün\n", b"\x00\xff", ""])
def test_what_is_written_takes_the_place_of_what_was_there(tmp_path: Path, data: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_text("a longer text that was there")
    write_whole(path, data)
    assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_mode_that_is_asked_for_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafted: list[int] = []
    sync = os.fsync

    def synced(descriptor: int) -> None:
        drafted.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    write_whole(tmp_path / "secret", "word", 0o600)
    assert drafted[0] == stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_the_data_are_on_disk_before_their_name_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "file", []
    path.write_text("old")
    sync = os.fsync

    def synced(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else path.read_text())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    write_whole(path, "new")
    assert steps == ["old", "folder"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_where_it_fails_what_was_there_stays_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if failing == "fsync" else Path, failing, refuse)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"
