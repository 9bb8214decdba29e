"""The journal says what a client refuses, so that whoever reads it later can tell who should have got what."""

from __future__ import annotations

from pathlib import Path

from tests.broker.talker import broker, talking

from nearcast.broker.server import Server
from nearcast.journal import ClientEntry, SubscriptionEntry


def test_the_journal_says_what_a_client_refuses(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada:
            await ada.subscribe("mine", no_local=True)
            await ada.subscribe("all")
            await ada.tell("$nearcast/accept", b"true")
            await ada.tell("$nearcast/accept", b"false")
            stored = server.broker.journal.read(0, kinds=(SubscriptionEntry, ClientEntry))
            records = [record for chunk in stored for _, record in chunk]
        held = {each.filter: each.no_local for each in records if isinstance(each, SubscriptionEntry)}
        assert held == {"mine": True, "all": False}
        states = [each.what for each in records if isinstance(each, ClientEntry)]
        assert states == ["joined", "accepting", "declining"]

    broker(tmp_path, scenario)
