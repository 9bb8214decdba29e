"""What is in a backup, and what becomes of damaged ones, of full disks and of kills."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.broker.talker import serving, talking
from tests.broker.upkeep import killed
from tests.broker.upkeep.commands import nearcast
from tests.small_disk import MEGABYTE, small_disk

from nearcast.broker.access.users import add_user
from nearcast.broker.settings import AccessSettings, BrokerSettings
from nearcast.broker.settings import JournalSettings as JournalSection
from nearcast.broker.upkeep.backup import back_up
from nearcast.broker.upkeep.manifest import BACKUP_FORMAT, DATA, FILE, JournalExtent, KeptFile, Manifest, read_manifest
from nearcast.broker.upkeep.restore import restore, verify
from nearcast.errors import BackupFailed
from nearcast.journal.upgrades import FORMAT


async def _publish(folder: Path, first: int, count: int, *, export: bool = False) -> None:
    async with serving(folder, tls={}, listen={"tls_port": "any"}) as server:
        async with talking(server, "teller") as teller:
            for number in range(first, first + count):
                await teller.tell(f"news/{number}", b"x" * 50)
        if export:
            await asyncio.to_thread(server.broker.archive.export)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with everything in it: events in lake and journal, users, a certificate."""
    folder = tmp_path_factory.mktemp("kept") / "data"
    asyncio.run(_publish(folder, 0, 20, export=True))
    asyncio.run(_publish(folder, 20, 20))
    add_user(folder / "users", "ada", "a password")
    return folder


def events_in_lake(lake: Path) -> Counter[str]:
    return Counter(
        topic
        for file in sorted(lake.glob("events/*/*.parquet"))
        for topic in pq.ParquetFile(file).read(["topic"])["topic"].to_pylist()
    )


def test_everything_is_there_and_a_restored_broker_exports_the_rest_once(data: Path, tmp_path: Path) -> None:
    manifest = back_up(BrokerSettings(data=data), tmp_path / "backup")
    paths = {file.path for file in manifest.files}
    assert {"journal/journal.sqlite", "identities.db", "users", "certificate.pem", "key.pem"} <= paths
    assert "lake/_exported" in paths
    assert not [path for path in paths if path.endswith(("-wal", "-shm", "lock", "reserve"))]
    assert verify(tmp_path / "backup") == read_manifest(tmp_path / "backup") == manifest
    again = tmp_path / "again"
    restore(tmp_path / "backup", again)
    for name in ("users", "key.pem", "identities.db"):
        assert stat.S_IMODE((again / name).stat().st_mode) == 0o600
        assert (again / name).read_bytes() == (tmp_path / "backup" / "data" / name).read_bytes()
    assert sum(events_in_lake(again / "lake").values()) == 20
    asyncio.run(_publish(again, 40, 5, export=True))
    assert events_in_lake(again / "lake") == Counter({f"news/{number}": 1 for number in range(45)})


def test_a_backup_hands_nobody_the_rights_of_who_restores_it(tmp_path: Path) -> None:
    """Set-user-ID and the like: no broker has them in its data folder, whoever wrote such a manifest wants something."""
    backup, content = tmp_path / "backup", b"#!/bin/sh"
    (backup / DATA).mkdir(parents=True)
    (backup / DATA / "tool").write_bytes(content)
    file = KeptFile("tool", len(content), hashlib.sha256(content).hexdigest(), 0o7754)
    manifest = Manifest(
        backup_format=BACKUP_FORMAT,
        nearcast="0",
        data_format=FORMAT,
        begun="",
        finished="",
        journal=JournalExtent(0, 0, 0),
        files=(file,),
    )
    (backup / FILE).write_bytes(manifest.sealed().encoded())
    restore(backup, tmp_path / "again")
    assert stat.S_IMODE((tmp_path / "again" / "tool").stat().st_mode) == 0o754


def test_what_an_unfinished_export_put_into_the_lake_is_left_out(data: Path, tmp_path: Path) -> None:
    """It is in the journal, and will be exported by the restored broker: with other names it would be there twice."""
    exported = int((data / "lake" / "_exported").read_text())
    early = next((data / "lake" / "events").glob("*/*.parquet"))
    later = early.with_name(f"{exported:020}-{exported + 9:020}.parquet")
    later.write_bytes(early.read_bytes())
    try:
        manifest = back_up(BrokerSettings(data=data), tmp_path / "backup")
    finally:
        later.unlink()
    names = {Path(file.path).name for file in manifest.files}
    assert early.name in names
    assert later.name not in names


def test_lake_and_users_may_lie_elsewhere(data: Path, tmp_path: Path) -> None:
    lake, users = tmp_path / "lake", tmp_path / "who"
    (lake / "events").mkdir(parents=True)
    (lake / "events" / f"{0:020}-{1:020}.parquet").write_bytes(b"parquet")
    users.write_text("grace:hash\n")
    settings = BrokerSettings(data=data, access=AccessSettings(passwords=users), journal=JournalSection(lake=lake))
    back_up(settings, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "again")
    assert (tmp_path / "again" / "lake" / "events" / f"{0:020}-{1:020}.parquet").read_bytes() == b"parquet"
    assert (tmp_path / "again" / "users").read_text() == "grace:hash\n"


@pytest.mark.parametrize("link", [True, False])
def test_files_of_the_lake_cost_no_room_unless_copies_are_asked_for(data: Path, tmp_path: Path, link: bool) -> None:
    back_up(BrokerSettings(data=data), tmp_path / "backup", link=link)
    there = next((data / "lake" / "events").glob("*/*.parquet"))
    kept = tmp_path / "backup" / "data" / there.relative_to(data)
    assert kept.read_bytes() == there.read_bytes()
    assert (kept.stat().st_ino == there.stat().st_ino) == link


def _flip(path: Path) -> None:
    """One bit in the middle; in a copy, since it may be a file of the lake under another name."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])


def _lead_away(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("data/journal/journal.sqlite", _flip, r"journal\.sqlite is damaged.*take another backup"),
        ("data/journal/journal.sqlite", _cut, r"cut off: \d+ of \d+ bytes"),
        ("data/identities.db", Path.unlink, "missing from the backup"),
        ("data/users", _lead_away, "cannot be read"),
        ("manifest.json", _flip, r"manifest\.json (is damaged|names)"),
        ("manifest.json", _cut, None),
        ("manifest.json", lambda path: path.write_bytes(path.read_bytes()[:-40]), "is damaged"),
        ("manifest.json", Path.unlink, "is no backup"),
    ],
)
def test_a_damaged_backup_is_refused_and_nothing_is_made(
    data: Path, tmp_path: Path, name: str, damage: Callable[[Path], None], said: str | None
) -> None:
    back_up(BrokerSettings(data=data), tmp_path / "backup")
    damage(tmp_path / "backup" / name)
    if said is None:  # the last line break of the manifest says nothing
        verify(tmp_path / "backup")
        return
    with pytest.raises(BackupFailed, match=said):
        verify(tmp_path / "backup")
    with pytest.raises(BackupFailed, match=said):
        restore(tmp_path / "backup", tmp_path / "again")
    assert {path.name for path in tmp_path.iterdir()} == {"backup"}


def test_a_manifest_that_leads_out_of_the_folder_is_refused(data: Path, tmp_path: Path) -> None:
    from msgspec.structs import replace

    manifest = back_up(BrokerSettings(data=data), tmp_path / "backup")
    first, *rest = manifest.files
    for path in ("../out", "/etc/out", "lake/../../out", ""):
        false = replace(manifest, files=(replace(first, path=path), *rest)).sealed()
        (tmp_path / "backup" / "manifest.json").write_bytes(false.encoded())
        with pytest.raises(BackupFailed, match="outside the data folder"):
            restore(tmp_path / "backup", tmp_path / "again")


@pytest.mark.parametrize("key", ["backup_format", "data_format"])
def test_a_backup_of_a_newer_version_is_refused(data: Path, tmp_path: Path, key: str) -> None:
    from msgspec.structs import replace

    manifest = back_up(BrokerSettings(data=data), tmp_path / "backup")
    newer = replace(manifest, **{key: 99}).sealed()
    (tmp_path / "backup" / "manifest.json").write_bytes(newer.encoded())
    with pytest.raises(BackupFailed, match="newer nearcast"):
        restore(tmp_path / "backup", tmp_path / "again")


def test_the_command_says_what_is_wrong_in_one_line_and_changes_nothing(data: Path, tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("mine")
        assert "not empty" in await nearcast("backup", tmp_path / "full", "--data", data, status=1)
        assert "no data folder" in await nearcast("backup", tmp_path / "b", "--data", tmp_path, status=1)
        assert "elsewhere" in await nearcast("backup", data / "inside", "--data", data, status=1)
        await nearcast("backup", tmp_path / "b", "--data", data)
        assert "whole" in await nearcast("restore", "--help")
        await nearcast("restore", tmp_path / "b", "--verify")
        refused = await nearcast("restore", tmp_path / "b", "--data", tmp_path / "full", status=1)
        assert "not empty" in refused
        assert len(refused.splitlines()) == 1
        assert "--verify" in await nearcast("restore", tmp_path / "b", status=2)

    asyncio.run(story())
    assert {path.name for path in tmp_path.iterdir()} == {"full", "b"}
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"data", "manifest.json"}


def test_a_folder_named_by_a_dot_or_by_way_of_a_link_is_seen_as_what_it_is(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(data)
    with pytest.raises(BackupFailed, match="lies in"):
        back_up(BrokerSettings(data=data), tmp_path / "link" / "inside")
    back_up(BrokerSettings(data=tmp_path / "link"), tmp_path / "backup")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    restore(tmp_path / "backup", Path())
    assert (tmp_path / "empty" / "journal" / "journal.sqlite").exists()


def test_a_disk_that_fills_meanwhile_leaves_nothing(data: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 30 * MEGABYTE) as disk:

        def fill(_done: int, _of: int) -> None:
            if not (disk / "other").exists():
                with contextlib.suppress(OSError):
                    (disk / "other").write_bytes(bytes(40 * MEGABYTE))

        with pytest.raises(BackupFailed, match="there is room"):
            back_up(BrokerSettings(data=data), disk / "backup", link=False, told=fill)
        assert [path.name for path in disk.iterdir()] == ["other"]


def test_a_full_disk_leaves_nothing(data: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2 * MEGABYTE) as disk:
        with pytest.raises(BackupFailed, match="has room for"):
            back_up(BrokerSettings(data=data), disk / "backup", link=False)
        assert not list(disk.iterdir())


@pytest.mark.parametrize("what", ["backup", "restore"])
def test_a_kill_at_any_step_leaves_all_or_nothing_and_the_next_one_tidies_up(
    data: Path, tmp_path: Path, what: str
) -> None:
    back_up(BrokerSettings(data=data), tmp_path / "backup")
    source = data if what == "backup" else tmp_path / "backup"
    target = tmp_path / "there" / "target"

    def attempt(step: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, killed.__file__, what, str(source), str(target), str(step)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    whole = attempt(0)
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stdout)
    assert steps > 30
    seen = set()
    for step in sorted({1, 2, 3, steps // 3, 2 * steps // 3, steps - 3, steps - 2, steps - 1, steps}):
        for path in (target, *target.rglob("*")):
            if path.is_file():
                path.unlink()
        subprocess.run(["rm", "-rf", str(target)], check=True)
        assert attempt(step).returncode == -signal.SIGKILL
        seen.add(target.exists())
        if target.exists():
            _check_whole(what, target, tmp_path)
        assert all(path.name.startswith(".") for path in target.parent.iterdir() if path != target)
    assert seen == {True, False}
    subprocess.run(["rm", "-rf", str(target)], check=True)
    assert attempt(0).returncode == 0
    assert [path.name for path in target.parent.iterdir()] == ["target"], "what the killed ones left is still there"


def _check_whole(what: str, target: Path, folder: Path) -> None:
    if what == "backup":
        verify(target)
        return
    files = json.loads((folder / "backup" / "manifest.json").read_text())["files"]
    for file in files:
        assert (target / file["path"]).stat().st_size == file["size"]


def test_a_backup_that_is_interrupted_leaves_nothing_at_all(data: Path, tmp_path: Path) -> None:
    def interrupt(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(BrokerSettings(data=data), tmp_path / "backup", told=interrupt)
    assert not list(tmp_path.iterdir())


def test_one_that_is_being_made_is_not_taken_for_abandoned(data: Path, tmp_path: Path) -> None:
    inner: list[str] = []

    def another(_done: int, _of: int) -> None:
        if not inner:
            inner.append("once")
            back_up(BrokerSettings(data=data), tmp_path / "backup")

    with pytest.raises(BackupFailed, match="meanwhile"):
        back_up(BrokerSettings(data=data), tmp_path / "backup", told=another)
    verify(tmp_path / "backup")
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]
