"""What an attacker found in how people are let in, and kept out."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
from mqtt5 import ConnAckPacket, ConnAckReasonCode, ConnectPacket
from tests.broker.talker import Talker, broker, run, settings_for, talking
from tests.waiting import until

from nearcast.broker.access import Access, Peer
from nearcast.broker.access.attempts import AT_ONCE
from nearcast.broker.access.users import add_user, revoke_user
from nearcast.broker.server import Server
from nearcast.errors import NotAuthenticated, QuotaExceeded
from nearcast.journal.store import Store


def test_who_is_revoked_on_its_way_in_does_not_get_in(tmp_path: Path) -> None:
    """Its password was right, and its connection was not open yet when the open ones were looked through."""
    users = tmp_path / "users"
    add_user(users, "ada", "secret")

    async def scenario(server: Server) -> None:
        journal, go_on = server.broker.journal, threading.Event()

        def wait(_store: Store) -> None:
            go_on.wait()

        journal.ask(wait)
        try:
            talker = await Talker.open(server)
            talker.send(ConnectPacket("phone", username="ada", password=b"secret", clean_start=True))
            await until(lambda: "phone" in server.broker.sessions.all)
            revoke_user(users, "ada")
            server.broker._look_at_users()
        finally:
            go_on.set()
        answer = await talker.next(ConnAckPacket)
        assert answer.reason_code == ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
        await talker.closed()
        async with talking(server, "honest"):
            assert "phone" not in server.broker.services.lifecycle.conversations

    broker(tmp_path, scenario)


def test_a_page_in_a_browser_of_this_machine_commands_nothing(tmp_path: Path) -> None:
    """Nobody needs a password who is here; a page of another site, which a browser here has opened, is not."""

    async def scenario(server: Server) -> None:
        host, port = server.addresses["http"]
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as client:
            for headers in ({}, {"origin": f"http://{host}:{port}"}, {"host": f"localhost:{port}"}):
                assert (await client.get("/status", headers=headers)).status_code == 200
            for headers in ({"origin": "https://elsewhere.example"}, {"origin": "null"}):
                assert (await client.post("/reload", headers=headers)).status_code == 403
            for empty in ({}, {"authorization": "Bearer"}, {"authorization": "Basic Og=="}):
                headers = {"host": f"elsewhere.example:{port}", **empty}
                for route in ("/status", "/events", "/explain?event=a&client=b"):
                    assert (await client.get(route, headers=headers)).status_code == 401

    broker(tmp_path, scenario, listen={"http_port": "any"})


def test_reloaded_limits_hold_for_wrong_passwords_too(tmp_path: Path) -> None:
    there = Peer("203.0.113.7", 50_000, tls=True)
    add_user(tmp_path / "users", "ada", "secret")

    async def wrong(access: Access, times: int) -> set[type[Exception]]:
        raised = set[type[Exception]]()
        for number in range(times):
            try:
                await access.authenticate("phone", "ada", b"%d" % number, there)
            except (NotAuthenticated, QuotaExceeded) as error:
                raised.add(type(error))
        return raised

    async def scenario() -> None:
        access = Access(settings_for(tmp_path, limits={"wrong_passwords_per_minute": 0}), lambda: 0)
        assert await wrong(access, AT_ONCE + 1) == {NotAuthenticated}
        access.adopt(Access(settings_for(tmp_path, limits={"wrong_passwords_per_minute": 1}), lambda: 0))
        assert await wrong(access, AT_ONCE + 1) == {NotAuthenticated, QuotaExceeded}
        access.close()

    run(scenario())
