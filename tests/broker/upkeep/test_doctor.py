"""``nearcast doctor``: whatever is wrong is planted for real, and found; a broker that is well has nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.broker.talker import run, serving, talking
from tests.broker.upkeep import stored_folder
from tests.broker.upkeep.commands import nearcast
from tests.served import served
from tests.small_disk import MEGABYTE, small_disk
from tests.waiting import free_port

from nearcast.broker.access import certificates as making
from nearcast.broker.access.certificates import make_certificate
from nearcast.broker.access.users import add_user
from nearcast.broker.upkeep.doctor.examination import examine
from nearcast.broker.upkeep.doctor.findings import Finding, worst

PORTS = '[listen]\nport = {}\nhttp_port = "off"\ntls_port = {}\n'


async def _live(folder: Path) -> None:
    for round_ in range(2):
        async with serving(folder, listen={"tls_port": "any"}) as server:
            async with talking(server, "teller") as teller:
                for number in range(10):
                    await teller.tell(f"news/{round_}/{number}", bytes(3000))
            await asyncio.to_thread(server.broker.archive.export)
    add_user(folder / "users", "ada", "a password")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("well") / "data"
    asyncio.run(_live(folder))
    return folder


@pytest.fixture
def data(pristine: Path, tmp_path: Path) -> Path:
    shutil.copytree(pristine, tmp_path / "data", ignore=shutil.ignore_patterns("reserve"))
    return tmp_path / "data"


def settings(folder: Path, more: str = "", port: int | str = '"off"', tls_port: int | str = '"any"') -> Path:
    path = folder / "broker.toml"
    path.write_text(PORTS.format(port, tls_port) + more)
    return path


def examined(data: Path, more: str = "", *, quick: bool = False, **ports: Any) -> list[Finding]:
    return examine(settings(data.parent, more, **ports), data, quick=quick)


def bad(findings: list[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity in {"warning", "problem"} and "synchronised" not in each.what]


@pytest.mark.parametrize("quick", [True, False])
def test_one_that_is_well_has_nothing(data: Path, quick: bool) -> None:
    before = {
        path: path.stat().st_mtime_ns
        for path in data.rglob("*")
        if path.is_file() and path.suffix in {".parquet", ".sqlite", ".db", ".pem"}
    }
    found = examined(data, quick=quick)
    assert bad(found) == []
    areas = {each.area for each in found}
    assert areas >= {
        "settings",
        "broker",
        "disk",
        "clock",
        "ports",
        "certificates",
        "users",
        "secrets",
        "journal",
        "identities",
        "lake",
    }
    assert before == {path: path.stat().st_mtime_ns for path in before}, "something was changed"
    assert not list(data.glob(".doctor*"))


def _sql(data: Path, statement: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(data / "journal" / "journal.sqlite", isolation_level=None)) as journal:
        journal.execute(statement, values)
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _lake_file(data: Path, number: int = 0) -> Path:
    return sorted((data / "lake" / "events").glob("*/*.parquet"))[number]


def _flip(path: Path) -> None:
    """A byte at the end of the first page of ids: data, not a word about it."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(0).column(1)
        end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    content = bytearray(path.read_bytes())
    content[end - 3] ^= 0xFF
    path.write_bytes(content)


def _overwrite_pages(data: Path) -> None:
    path = data / "journal" / "journal.sqlite"
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 4] = bytes(4096 * 2)
    path.write_bytes(content)


def _dated(data: Path, before: timedelta, after: timedelta) -> None:
    """A certificate that is valid from then to then."""
    valid, earlier = making._VALID, making._EARLIER
    try:
        making._VALID, making._EARLIER = after, before  # type: ignore[misc]
        make_certificate(data / "certificate.pem", data / "key.pem")
    finally:
        making._VALID, making._EARLIER = valid, earlier  # type: ignore[misc]


def _doubled(data: Path) -> None:
    path = _lake_file(data)
    shutil.copy(path, path.with_name(f"{1:020}-{9:020}.parquet"))


def _gap_in_lake(data: Path) -> None:
    exported = int((data / "lake" / "_exported").read_text())
    shutil.copy(_lake_file(data), _lake_file(data, 1).with_name(f"{exported + 5:020}-{exported + 9:020}.parquet"))
    _sql(data, "UPDATE mark SET value = ? WHERE name = 'exported'", exported + 10)


DAY = timedelta(days=1)
PLANTED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "records damaged": (lambda data: _sql(data, "UPDATE stretch SET body = zeroblob(size) WHERE first = 0"), "problem", "records 0 to .* damaged"),
    "records missing": (lambda data: _sql(data, "DELETE FROM stretch WHERE first = (SELECT first FROM stretch ORDER BY first LIMIT 1 OFFSET 3)"), "warning", "are missing"),
    "records twice": (lambda data: _sql(data, "UPDATE stretch SET count = count + 1 WHERE first = 0"), "problem", "there twice"),
    "pages damaged": (_overwrite_pages, "problem", "journal.sqlite"),
    "newer format": (lambda data: _sql(data, "PRAGMA user_version = 77"), "problem", "format 77"),
    "journal of something else": (lambda data: _sql(data, "PRAGMA application_id = 5"), "problem", "something else"),
    "ahead of the clock": (lambda data: _sql(data, "UPDATE stretch SET last_time = ? WHERE first = (SELECT max(first) FROM stretch)", time.time_ns() // 1000 + 10**9), "problem", "ahead of the clock"),
    "no identities": (lambda data: (data / "identities.db").unlink(), "problem", "identities.db is missing"),
    "identities damaged": (lambda data: (data / "identities.db").write_bytes(b"nonsense" * 999), "problem", "identities.db"),
    "identities readable": (lambda data: (data / "identities.db").chmod(0o644), "warning", "others may read.*identities.db"),
    "users damaged": (lambda data: (data / "users").write_text("ada:nothing\n"), "problem", "line 1"),
    "journal readable": (lambda data: (data / "journal/journal.sqlite").chmod(0o644), "warning", "others may read.*journal.sqlite"),
    "users readable": (lambda data: (data / "users").chmod(0o640), "warning", "others may read.*users"),
    "key readable": (lambda data: (data / "key.pem").chmod(0o644), "warning", "others may read.*key.pem"),
    "key of another": (lambda data: make_certificate(data / "certificate.pem", data.parent / "other.pem"), "problem", "no certificate and its key"),
    "certificate expires": (lambda data: _dated(data, DAY, 10 * DAY), "warning", "expires in 9 days"),
    "certificate expired": (lambda data: _dated(data, 10 * DAY, -DAY), "problem", "has expired"),
    "certificate of tomorrow": (lambda data: _dated(data, -DAY, 100 * DAY), "problem", "not valid before"),
    "lake cut off": (lambda data: _lake_file(data).write_bytes(_lake_file(data).read_bytes()[:-9]), "problem", "parquet is damaged"),
    "lake page flipped": (lambda data: _flip(_lake_file(data)), "problem", "parquet is damaged"),
    "lake missing": (lambda data: shutil.rmtree(data / "lake"), "problem", "lake is missing"),
    "lake of another": (lambda data: (data / "lake" / "_exported").write_text("999999\n"), "problem", "not of the same|below offset 999999"),
    "lake mark damaged": (lambda data: (data / "lake" / "_exported").write_text("many\n"), "problem", "is no number"),
    "lake doubled": (_doubled, "problem", "the same offsets"),
    "lake with a gap": (_gap_in_lake, "warning", "are in no file"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_the_data_is_found(data: Path, name: str) -> None:
    import re

    plant, severity, said = PLANTED[name]
    plant(data)
    found = bad(examined(data))
    hits = [each for each in found if re.search(said, each.what) and each.severity == severity]
    assert hits, found
    assert all(each.advice for each in hits)


def test_secrets_that_others_may_read_are_found_wherever_the_settings_name_them(data: Path) -> None:
    for name in ("tokens", "brokers"):
        (data / name).write_text("a long secret that nobody guesses, of fifty bytes!!")
        (data / name).chmod(0o644)
    more = f"""
        [access.jwt]
        secret = "{data / "tokens"}"
        algorithms = ["HS256"]
        issuer = "x"
        audience = "y"
        [federation]
        listen = "127.0.0.1:0"
        secret_file = "{data / "brokers"}"
    """
    said = [each.what for each in bad(examined(data, more)) if each.severity == "warning"]
    assert [f"others may read or change {data / name}" for name in ("tokens", "brokers")] == said


def test_the_journal_is_its_owners_alone(pristine: Path) -> None:
    """It says whose sessions the identities of the records are."""
    assert all(path.stat().st_mode & 0o077 == 0 for path in (pristine / "journal").iterdir())


def test_settings_that_cannot_be_are_found(data: Path) -> None:
    for more, said in (
        ("[limts]\n", "limits"),
        ("[log]\nlevel = 'loud'\n", "log.level"),
        ("[[schemes.rule]]\nwhen = 'x'\n", "schemes.rule"),
    ):
        found = examined(data, more)
        assert worst(found) == "problem"
        assert said in found[0].what, found
    assert worst(examine(data / "nowhere.toml", data)) == "problem"


def test_a_port_that_is_taken_is_found(data: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        [found] = bad(examined(data, port=other.getsockname()[1]))
        assert (found.area, found.severity) == ("ports", "problem")


def test_a_disk_without_room_is_found(data: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 20 * MEGABYTE) as disk:
        (disk / "data").mkdir()
        [found] = [each for each in bad(examine(settings(tmp_path), disk / "data")) if each.area == "disk"][:1]
        assert found.severity == "problem"
    found = next(each for each in bad(examined(data, "[journal]\nretention_size = '900 TiB'\n")) if each.area == "disk")
    assert found.severity == "warning"


def test_a_folder_of_the_earlier_format_is_no_problem(tmp_path: Path) -> None:
    data = stored_folder.unpacked(tmp_path)
    found = examined(data)
    assert not [each for each in bad(found) if each.area != "secrets"]
    assert any("next start makes it format" in each.what for each in found)


def test_the_command_on_a_running_broker_finds_nothing_and_disturbs_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        with served(tmp_path, PORTS.format(free_port(), '"any"').replace('"off"', '"any"')) as broker:
            async with talking(broker, "teller") as teller:
                going = True

                async def publish() -> int:
                    count = 0
                    while going:
                        await teller.tell("news", b"x")
                        count += 1
                    return count

                publishing = asyncio.create_task(publish())
                config = tmp_path / "doctor.toml"
                config.write_text(f"[listen]\nport = {broker.port}\n")
                http_port = str(broker.addresses["http"][1])
                asked = ("doctor", "--data", broker.data, "--config", config, "--http-port", http_port)
                answer = json.loads(await nearcast(*asked, "--json"))
                going = False
                assert await publishing > 10
            said = {each["what"] for each in answer["findings"]}
            assert answer["verdict"] in {"ok", "note"}, answer
            assert sum("answers" in each for each in said) == 2
            assert any(each.startswith("process ") for each in said), said
            (broker.data / "identities.db").chmod(0o644)
            assert "others may read" in await _printed(*asked, status=1)
        (broker.data / "users").write_text("x")
        assert "problem" in await _printed(*asked, status=2)

    run(story())


async def _printed(*arguments: str | Path, status: int) -> str:
    from tests.served import COMMAND

    process = await asyncio.create_subprocess_exec(COMMAND, *map(str, arguments), stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == status, out
    return out.decode()


def test_dates_are_in_the_universal_time(data: Path) -> None:
    until = datetime.now(UTC) + timedelta(days=825)
    assert any(f"{until:%Y}" in each.what for each in examined(data) if each.area == "certificates")
