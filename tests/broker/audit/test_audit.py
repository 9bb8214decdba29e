"""The audit log: who addressed, observed or commanded whom; nothing else, and nothing that can be changed unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.broker.talker import Talker, run, serving, talking
from tests.broker.test_http import CLOUD_EVENT, asking
from tests.clocks import HandClock
from tests.waiting import wait_until
from typer.testing import CliRunner

from nearcast.broker.access.users import add_user
from nearcast.broker.audit import audit
from nearcast.broker.audit.audit import Audit
from nearcast.broker.audit.chain import Entry, Head, entries, files_of, last_of, line_of, verified
from nearcast.broker.server import Server
from nearcast.broker.settings import AuditSettings
from nearcast.cli.app import app
from nearcast.errors import InvalidRecord
from nearcast.journal import Journal, JournalSettings
from nearcast.journal.identities import Identities
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.settings_files import Duration, Size

REACH = '{"circle": 500, "at": [8.65, 49.87]}'
HERE = b'{"type": "Point", "coordinates": [8.65, 49.87]}'
DAY = {"clean_start": False, "session_expiry_interval": 86_400}


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    opened = Journal.open(tmp_path / "journal", JournalSettings(), lambda then: then(), HandClock().now)
    yield opened
    opened.close()


def log_of(tmp_path: Path, journal: Journal, clock: HandClock | None = None, **changes: Any) -> Audit:
    return Audit(AuditSettings(**changes), tmp_path / "audit", journal, (clock or HandClock()).now)


def event() -> Event:
    return Event("e", "t", 0, reach=Circle(500, Point(49.87, 8.65)), to="kind = 'car'")


def write(log: Audit, count: int) -> None:
    for number in range(count):
        log.addressed("ann", event(), [f"r{number}"], number)
    log.close()
    wait_until(lambda: log._journal.load("audit").get("head") == msgspec.msgpack.encode(log._head))


def read(folder: Path) -> list[Entry]:
    return [line.entry for line in entries(folder / "audit")]


def test_entries_hang_together_over_files_and_restarts(tmp_path: Path, journal: Journal) -> None:
    for _ in range(4):
        write(log_of(tmp_path, journal, file_size=Size.of("300 B")), 3)
    assert [entry.n for entry in read(tmp_path)] == list(range(1, 13))
    assert len(files_of(tmp_path / "audit")) > 1
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "audit").iterdir())
    assert (tmp_path / "audit").stat().st_mode & 0o077 == 0
    found = verified(tmp_path / "audit")
    assert (found.first, found.head.n) == (1, 12)
    assert read(tmp_path)[0].ways == ("context", "region")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_whatever_is_changed_left_out_or_moved_is_noticed(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("log") / "audit"
    folder.mkdir()
    before, lines = "0" * 64, []
    for n in range(1, 9):
        line, before = line_of(Entry(n, n, "addressed", by=f"b{n}", whom=(f"w{n}",)), before)
        lines.append(line)
    known = Head(8, before, 1)
    content = b"".join(lines)
    path = folder / "000000000001.log"
    path.write_bytes(content)
    verified(folder, known)
    match data.draw(st.sampled_from(["flip", "drop", "swap", "double", "forge"])):
        case "flip":
            at = data.draw(st.integers(0, len(content) - 1))
            byte = data.draw(st.integers(1, 255))
            changed = content[:at] + bytes([content[at] ^ byte]) + content[at + 1 :]
        case "drop":
            first = data.draw(st.integers(0, 7))
            changed = b"".join(lines[:first] + lines[data.draw(st.integers(first + 1, 8)) :])
        case "swap":
            at = data.draw(st.integers(0, 6))
            changed = b"".join([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])
        case "double":
            at = data.draw(st.integers(0, 7))
            changed = b"".join([*lines[: at + 1], *lines[at:]])
        case _:
            at = data.draw(st.integers(0, 7))
            forged, _ = line_of(Entry(at + 1, 7, "addressed", by="eve"), "0" * 64)
            changed = b"".join([*lines[:at], forged, *lines[at + 1 :]])
    path.write_bytes(changed)
    with pytest.raises(InvalidRecord):
        verified(folder, known)


def test_what_is_cut_off_while_nobody_looks_is_noticed_at_the_next_start(tmp_path: Path, journal: Journal) -> None:
    write(log_of(tmp_path, journal), 5)
    (path,) = files_of(tmp_path / "audit")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    log = log_of(tmp_path, journal)
    write(log, 1)
    with pytest.raises(InvalidRecord, match="entry 3 is missing"):
        verified(tmp_path / "audit")
    assert [entry.did for entry in read(tmp_path)][2:] == ["lost", "addressed"]


def test_a_fall_in_the_middle_of_a_line_costs_that_line_only(tmp_path: Path, journal: Journal) -> None:
    write(log_of(tmp_path, journal), 2)
    (path,) = files_of(tmp_path / "audit")
    with path.open("ab") as file:
        file.write(b'{"n":3,"ti')
    assert last_of(tmp_path / "audit").n == 2
    write(log_of(tmp_path, journal), 1)
    assert verified(tmp_path / "audit").head.n == 3


def test_retention_takes_whole_files_and_the_rest_is_still_verified(tmp_path: Path, journal: Journal) -> None:
    for _ in range(6):
        write(log_of(tmp_path, journal, file_size=Size.of("100 B"), retention_size=Size.of("800 B")), 2)
    found = verified(tmp_path / "audit")
    assert found.first > 1
    assert found.head.n == 12
    clock = HandClock(4_000_000_000_000_000)
    write(log_of(tmp_path, journal, clock, file_size=Size.of("100 B"), retention_age=Duration.of("1d")), 1)
    log_of(tmp_path, journal, clock).close()  # what was noted at the end goes with the next start
    assert verified(tmp_path / "audit").files == 1


def test_a_disk_that_cannot_be_written_loses_nothing_that_fits_into_memory(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, journal)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        log.addressed("ann", event(), ["r"], 1)
        log.flush()
        assert log._writing is not None
        log._finish(log._writing)
        assert log.statistics().problem is not None
    write(log, 1)
    assert verified(tmp_path / "audit").head.n == 2
    assert log.statistics().problem is None


def test_what_waits_for_a_disk_has_a_bound_in_people_too_and_what_is_lost_is_counted(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand entries may be waiting, each with ten thousand receivers: that would be the memory of the machine."""
    monkeypatch.setattr(audit, "MOST_NAMED", 100)
    log = log_of(tmp_path, journal)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    def people() -> int:
        waiting = [*log._handed, *log._waiting]
        return sum(len(parts.get("whom", ())) for _, _, parts in waiting) + sum(map(len, log._seen.values()))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        for number in range(40):
            log.addressed("ann", event(), [f"r{number}-{each}" for each in range(10)], number)
            log.observed("ann", [f"o{number}-{each}" for each in range(10)], ["enter"])
            log.flush()
            if log._writing is not None and number % 3:
                log._finish(log._writing)
            assert people() <= 2 * (100 + 10)  # what is being written, and what waits meanwhile
    assert log.statistics().lost > 0
    log.close()
    assert sum(entry.count or 0 for entry in read(tmp_path) if entry.did == "lost") == log.statistics().lost


def test_of_each_second_it_is_written_once_who_was_told_of_whom(tmp_path: Path, journal: Journal) -> None:
    log = log_of(tmp_path, journal)
    for _ in range(100):
        log.observed("ann", ["bob"], ["enter"])
        log.observed("ann", ["cy"], ["enter"])
        log.observed("ann", ["bob"], ["leave"])
    log.close()
    said = [(entry.did, entry.by, entry.ways, entry.whom) for entry in read(tmp_path)]
    assert said == [
        ("observed", "ann", ("enter",), ("bob", "cy")),
        ("observed", "ann", ("leave",), ("bob",)),
    ]


def test_a_broker_writes_who_addressed_and_commanded_whom_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "planteduser", "plantedpassword")
    login: dict[str, Any] = {"username": "planteduser", "password": b"plantedpassword"}

    async def story(server: Server) -> None:
        hearing = await Talker.open(server)
        await hearing.connect("planted-reader", **login, **DAY)
        await hearing.tell("$nearcast/position", HERE)
        await hearing.tell("$nearcast/context/x", b'{"kind": "plantedkind"}')
        await hearing.subscribe("planted/#")
        to = [
            ("nc-to", "kind = 'plantedkind'"),
            ("nc-reach", REACH),
            ("nc-place", "49.87,8.65"),
            ("nc-id", "plantedid"),
        ]
        async with talking(server, "planted-sender", **login) as sender, asking(server) as client:
            await sender.tell("planted/x", b"plantedpayload", to)
            sender.publish("planted/x", b"plantedpayload", [("nc-reach", REACH)])
            await sender.tell("planted/x", b"plantedpayload", [("nc-when", "overlaps(time, '-10m', 'now')"), *to[:1]])
            await sender.tell("planted/plain", b"plantedpayload")
            for _ in range(4):
                await hearing.heard()
            cloud = {"specversion": "1.0", "id": "1", "source": "x", "type": "planted/x", "reach": REACH, "data": "x"}
            auth = ("planteduser", "plantedpassword")
            await client.post("/events/", json=cloud, headers=CLOUD_EVENT, auth=auth)
            await client.post("/transitions", json={"scheme": "EGRID"}, auth=auth)

    async def with_broker() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            await story(server)

    run(with_broker())
    said = read(tmp_path)
    identities = Identities(tmp_path / "identities.db")
    reader, sender = identities.of("planteduser\0planted-reader"), identities.of("planteduser\0planted-sender")
    identities.close()
    messages = [entry for entry in said if entry.did == "addressed" and entry.by == sender]
    assert sorted(entry.ways for entry in messages) == [("context", "region"), ("context", "time"), ("region",)]
    assert all(entry.whom == (reader,) for entry in messages)
    assert [entry.what for entry in said if entry.did == "commanded"] == ["transition to EGRID"]
    for path in (tmp_path / "audit").iterdir():
        text = path.read_text()
        assert "planted" not in text
        assert "49.87" not in text
    verified(tmp_path / "audit")
    runner = CliRunner()
    shown = runner.invoke(app, ["audit", "--data", str(tmp_path), "--user", "planteduser", "--did", "addressed"])
    assert shown.exit_code == 0, shown.output
    assert len(shown.stdout.splitlines()) >= 3
    assert runner.invoke(app, ["audit", "--data", str(tmp_path), "--user", "nobody"]).stdout == ""
    proof = runner.invoke(app, ["audit", "--data", str(tmp_path), "--verify"])
    assert "nothing was changed" in proof.stdout, proof.output
