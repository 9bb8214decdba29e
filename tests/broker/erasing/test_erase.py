"""Erasing a person leaves no trace: shown by a search for markers that it has planted wherever a client can."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.broker.erasing.markers import MARKER, found_below, in_text, traces
from tests.broker.erasing.planting import CLIENT, EXPIRY, PASSWORD, USER, asked, plant, told
from tests.broker.talker import Talker, run
from tests.broker.upkeep.commands import nearcast
from tests.served import ServedBroker

from nearcast.broker.access.users import add_user
from nearcast.broker.observation.notices import NOTICES
from nearcast.broker.observation.stays import STAYS
from nearcast.broker.presence import PRESENCE
from nearcast.broker.sessions.sessions import SUBSCRIPTIONS
from nearcast.journal import Journal, JournalSettings
from nearcast.journal.archive import Archive
from nearcast.journal.database import FILE
from nearcast.journal.identities import Identities
from nearcast.journal.reading import load

LOUD = '[log]\nlevel = "debug"\n'


def served(folder: Path) -> ServedBroker:
    server = ServedBroker(folder, LOUD)
    for user in (USER, "bob"):
        add_user(server.data / "users", user, PASSWORD)
    return server


def exported(server: ServedBroker) -> None:
    """What a broker does every minute."""
    lake = server.data / "lake"
    journal = Journal.open(server.data / "journal", JournalSettings(lake=lake), lambda function: function(), lambda: 0)
    Archive(journal, lake, 60.0).export()
    journal.close()


def identities_of(server: ServedBroker) -> tuple[str, ...]:
    opened = Identities(server.data / "identities.db")
    found = opened.of_user(USER).values()
    opened.close()
    return tuple(found)


def metrics(server: ServedBroker) -> str:
    return asked(server, "/metrics")


def looked_at(server: ServedBroker, at: str) -> dict[str, str]:
    """What the dashboard shows of others, of that time, and of what was done."""
    then = urllib.parse.quote(at)
    pages = (
        "client?name=other",
        f"past?at={then}",
        f"past?at={then}&window=3000",
        "sessions",
        "subscriptions",
        "plans",
    )
    return {page: asked(server, f"/dashboard/api/{page}") for page in pages}


def shown(pages: dict[str, str]) -> set[str]:
    """Which of them tell something of the person: its names, or where it was."""
    return {page.partition("?")[0] for page, text in pages.items() if MARKER in text or "8.6512345" in text}


def kept_of(server: ServedBroker, table: str) -> int:
    """Rows of the durable state in which the person is named."""
    rows = load(server.data / "journal" / FILE, table)
    return sum(MARKER in key or MARKER.encode() in row for key, row in rows.items())


async def others_are_well(server: ServedBroker, rounds: int = 2) -> None:
    """What is not the person's is as it was: sessions, queues, retained messages, the past."""
    other = await Talker.open(server)
    await other.connect(
        "other", username="bob", password=PASSWORD.encode(), clean_start=False, session_expiry_interval=EXPIRY
    )
    await told(other, "news/again", b"still here")
    late = await Talker.open(server)
    await late.connect("late", username="bob", password=PASSWORD.encode())
    await late.subscribe("kept/#", 1)
    assert (await late.heard()).payload == b"retained stays"
    await late.subscribe("news/#", 1, [("nc-since", "-2h")])
    heard = {(await late.heard()).payload for _ in range(rounds + 1)}
    assert heard == {b"stays", b"still here"}
    await late.nothing()
    other.close()
    late.close()


def test_a_user_is_erased_while_no_broker_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = served(tmp_path)
        await asyncio.to_thread(server.start)
        await plant(server)
        await asyncio.to_thread(server.kill)
        exported(server)  # of one half in the lake, of the other in the journal alone
        await asyncio.to_thread(server.start)
        await plant(server)
        said = metrics(server)
        await asyncio.to_thread(server.stop)
        identities = identities_of(server)
        planted = traces(server.data, identities)
        assert all(kept_of(server, table) > 0 for table in (PRESENCE, NOTICES, STAYS, SUBSCRIPTIONS)), "by others"
        assert {"users", "identities.db", "journal/journal.sqlite"} <= planted.keys(), planted
        assert any(name.startswith("lake/events") for name in planted)
        counted = json.loads(await nearcast("erase", USER, "--data", server.data, "--dry-run", "--json"))
        assert traces(server.data, identities) == planted, "it only counts"
        erased = json.loads(await nearcast("erase", USER, "--data", server.data, "--json"))
        assert erased == counted
        assert min(erased[name] for name in ("records", "state", "lake", "receivers")) > 0
        assert traces(server.data, identities) == {}
        assert "nothing is known" in await nearcast("erase", USER, "--data", server.data, status=1)
        await nearcast("backup", tmp_path / "backup", "--data", server.data)
        assert traces(tmp_path / "backup", identities) == {}
        await asyncio.to_thread(server.start)
        await others_are_well(server)
        said += metrics(server)
        await asyncio.to_thread(server.stop)
        assert traces(server.data, identities) == {}
        assert in_text(said) == []
        assert in_text("\n".join(server.said)) == [], "not even the log of its days names it"

    run(scenario())


def test_a_user_is_erased_while_the_broker_works(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = served(tmp_path)
        await asyncio.to_thread(server.start)
        await plant(server)
        await asyncio.to_thread(server.kill)
        exported(server)
        await asyncio.to_thread(server.start)
        await plant(server)
        person = await Talker.open(server)
        await person.connect(CLIENT, username=USER, password=PASSWORD.encode(), clean_start=False)
        identities = identities_of(server)
        await asyncio.to_thread(asked, server, "/dashboard/api/transitions", USER, '{"scheme": "EGRID"}')
        at = datetime.now(UTC).isoformat()
        before = await asyncio.to_thread(looked_at, server, at)
        assert shown(before) == {"client", "past", "sessions", "subscriptions", "plans"}
        counted = json.loads(await nearcast("erase", USER, "--data", server.data, "--dry-run", "--json"))
        erased = json.loads(await nearcast("erase", USER, "--data", server.data, "--json"))
        assert min(erased[name] for name in ("records", "lake", "receivers")) > 0
        after = await asyncio.to_thread(looked_at, server, at)
        assert shown(after) == set(), "nor is it remembered by who showed it"
        assert "somebody who was erased" in after["plans"]
        assert erased["lake"] == counted["lake"]
        await person.closed()
        again = await Talker.open(server)
        refused = await again.connect(CLIENT, username=USER, password=PASSWORD.encode())
        assert int(refused.reason_code) >= 0x80
        await nearcast("backup", tmp_path / "backup", "--data", server.data)
        assert traces(server.data, identities) == {}
        assert traces(tmp_path / "backup", identities) == {}
        await others_are_well(server)
        assert in_text(metrics(server)) == []
        await asyncio.to_thread(server.stop)
        assert traces(server.data, identities) == {}, "nor does it come back from memory"
        assert in_text("\n".join(server.said)) == []

    run(scenario())


def test_a_client_without_a_user_is_erased_by_its_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = served(tmp_path)
        await asyncio.to_thread(server.start)
        await plant(server, None)
        await asyncio.to_thread(server.kill)
        exported(server)
        (server.data / "users").write_text("")
        add_user(server.data / "users", "bob", PASSWORD)
        both = ("--client", CLIENT, "--client", f"{CLIENT}-2", "--client", f"{MARKER}-old")
        assert found_below(server.data)
        await nearcast("erase", *both, "--data", server.data)
        assert found_below(server.data) == {}
        assert "nothing is known" in await nearcast("erase", *both, "--data", server.data, status=1)
        await asyncio.to_thread(server.start)
        await others_are_well(server, 1)
        await asyncio.to_thread(server.stop)

    run(scenario())


@pytest.mark.parametrize("arguments", [("nobody",), ("--client", "nobody")])
def test_whom_nobody_knows_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async def scenario() -> None:
        server = served(tmp_path)
        await asyncio.to_thread(server.start)
        await asyncio.to_thread(server.stop)
        assert "nothing is known" in await nearcast("erase", *arguments, "--data", server.data, status=1)
        assert "no data folder" in await nearcast("erase", *arguments, "--data", tmp_path / "other", status=1)

    run(scenario())
