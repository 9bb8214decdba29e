"""Data of the format before: brought up to date when a broker starts, however often it is killed meanwhile, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.broker.upkeep import stored_folder, upgraded
from tests.broker.upkeep.commands import nearcast
from tests.served import ServedBroker, served

from nearcast.errors import JournalFailed
from nearcast.journal import EventEntry, Journal, JournalSettings
from nearcast.journal.identities import Identities
from nearcast.journal.upgrades import FORMAT

SETTINGS = f"""
{stored_folder.SETTINGS}
[journal]
retention_age = "36500d"
"""


def _format(data: Path) -> int:
    with contextlib.closing(sqlite3.connect(data / "journal" / "journal.sqlite")) as journal:
        return int(journal.execute("PRAGMA user_version").fetchone()[0])


def _content(data: Path) -> dict[str, list[Any]]:
    """Every row but the marks, byte by byte."""
    with contextlib.closing(sqlite3.connect(data / "journal" / "journal.sqlite")) as journal:
        stretches = journal.execute("SELECT * FROM stretch ORDER BY first").fetchall()
        state = journal.execute("SELECT * FROM state ORDER BY name, key").fetchall()
    with contextlib.closing(sqlite3.connect(data / "identities.db")) as identities:
        known = identities.execute("SELECT * FROM identity ORDER BY client").fetchall()
    return {"stretch": stretches, "state": state, "identity": known}


def _opened(data: Path, step: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, upgraded.__file__, str(data), str(step)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_broker_goes_on_where_one_of_the_earlier_format_was_killed(tmp_path: Path) -> None:
    async def story() -> None:
        data = stored_folder.unpacked(tmp_path)
        assert _format(data) == 1
        with served(tmp_path, SETTINGS) as broker:
            assert [line for line in broker.said if "was of format 1 and is now of format 2" in line]
            await stored_folder.check(broker)
        assert _format(data) == FORMAT
        assert not [line for line in broker.said if "Traceback" in line or " ERROR " in line or "not restored" in line]

    asyncio.run(story())


def test_every_record_session_subscription_and_identity_is_kept_whenever_it_is_killed(tmp_path: Path) -> None:
    before = _content(stored_folder.unpacked(tmp_path / "before"))
    assert len(before["stretch"]) > 10
    assert {name for name, _, _ in before["state"]} >= {"sessions", "subscriptions", "retained"}
    assert before["identity"]
    whole = _opened(stored_folder.unpacked(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stdout)
    formats = set()
    data = stored_folder.unpacked(
        tmp_path / "again"
    )  # the same folder again and again, killed one statement later each time
    for step in range(1, steps + 1):
        assert _opened(data, step).returncode in {-signal.SIGKILL, 0}  # once it is up to date, there is less to do
        formats.add(_format(data))
        assert _content(data) == before
    fresh = [stored_folder.unpacked(tmp_path / f"fresh{step}") for step in range(1, steps + 1, 3)]
    for number, folder in enumerate(fresh):
        assert _opened(folder, 1 + 3 * number).returncode == -signal.SIGKILL
        formats.add(_format(folder))
        assert _content(folder) == before
        assert _opened(folder).returncode == 0
        assert _format(folder) == FORMAT
        assert _content(folder) == before
    assert formats == {1, FORMAT}


def test_events_can_be_read_and_the_offset_of_the_upgrade_is_known(tmp_path: Path) -> None:
    data = stored_folder.unpacked(tmp_path)
    journal = Journal.open(data / "journal", JournalSettings(), lambda call, *rest: call(*rest), lambda: 0)
    try:
        events = [each for chunk in journal.read(0) for _, each in chunk if isinstance(each, EventEntry)]
        assert journal.mark_of("upgraded") == journal.head > 0
    finally:
        journal.close()
    assert [each.topic for each in events if each.topic.startswith("news/")] == [
        f"news/{number}" for number in range(stored_folder.WAITING)
    ]


def test_what_a_newer_version_wrote_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = stored_folder.unpacked(tmp_path)
    with contextlib.closing(sqlite3.connect(data / "journal" / "journal.sqlite")) as journal:
        journal.execute("PRAGMA user_version = 3")
        journal.commit()
    before = _content(data)
    broker = ServedBroker(tmp_path, SETTINGS)
    with pytest.raises(AssertionError, match=r"newer nearcast \(format 3, and this one knows up to 2\)"):
        broker.start()
    assert _format(data) == 3
    assert _content(data) == before


def test_a_database_of_something_else_is_not_taken_for_identities(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "identities.db")) as other:
        other.execute("PRAGMA application_id = 7")
        other.execute("CREATE TABLE accounts (name)")
    with pytest.raises(JournalFailed, match="something else"):
        Identities(tmp_path / "identities.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "identities.db")) as other:
        assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("accounts",)]


def test_a_backup_of_the_earlier_format_is_restored_and_then_brought_up_to_date(tmp_path: Path) -> None:
    async def story() -> None:
        data = stored_folder.unpacked(tmp_path)
        await nearcast("backup", tmp_path / "backup", "--data", data)
        assert _format(data) == 1, "a backup changes nothing"
        again = tmp_path / "elsewhere"
        await nearcast("restore", tmp_path / "backup", "--data", again / "data")
        with served(again, SETTINGS) as broker:
            await stored_folder.check(broker)

    asyncio.run(story())
