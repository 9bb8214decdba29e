"""How fast somebody may ask and publish by HTTP, and that strangers do not slow down whoever is known."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.broker.access.minting import Issuer
from tests.broker.talker import all_said, broker, run, settings_for
from tests.broker.test_http import CLOUD_EVENT, CLOUD_EVENTS, asking, cloud_event
from tests.waiting import PATIENCE, until

from nearcast.broker.access import Access, Peer
from nearcast.broker.access.attempts import TOKENS_AT_ONCE
from nearcast.broker.access.users import add_user
from nearcast.broker.http import events, scans
from nearcast.broker.server import Server
from nearcast.errors import NotAuthenticated, QuotaExceeded
from nearcast.settings_files import Duration

AT_ONCE = 8
THERE = Peer("203.0.113.7", 50_000, tls=True)


def limits(**rates: float) -> dict[str, Any]:
    """So many at once, and then none for as long as any test takes."""
    return {"loopback": True, "burst": Duration(AT_ONCE * 1_000_000_000), **rates}


RARE = 0.001
HTTP = {"http_port": "any"}


def test_a_stranger_that_asks_too_fast_is_told_to_wait_and_the_others_go_on(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "ada", "secret")

    async def scenario(server: Server) -> None:
        async with asking(server) as client, asking(server, auth=("ada", "secret")) as ada:
            assert (await ada.get("/status")).status_code == 200  # as a stranger, and known from now on
            for _ in range(AT_ONCE - 1):
                assert (await client.get("/status")).status_code == 401
            for method, path in (("GET", "/status"), ("HEAD", "/status"), ("POST", "/events"), ("GET", "/nowhere")):
                answer = await client.request(method, path)
                assert answer.status_code == 429
                assert answer.headers["content-type"] == "application/problem+json"
                assert int(answer.headers["retry-after"]) > 900
                assert answer.headers["connection"] == "close"
                if method != "HEAD":
                    assert answer.json()["title"] == "QuotaExceeded"
            for _ in range(AT_ONCE):
                assert (await ada.get("/status")).status_code == 200
            assert (await ada.get("/status")).status_code == 429
        assert server.broker.statistics().callers.refused == 5
        assert server.broker.statistics().refusals["http"]["limit"] == 5

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": "never"}, limits=limits(requests_per_second=RARE))


def test_who_sends_many_requests_at_once_gets_its_share_and_one_refusal(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.addresses["http"])
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2_000)
        said = await all_said(reader)
        writer.close()
        assert said.count(b"HTTP/1.1 200") == AT_ONCE
        assert server.broker.statistics().callers.refused == 1

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": "never"}, limits=limits(requests_per_second=RARE))


def test_websockets_are_requests_too(tmp_path: Path) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}

    async def scenario(server: Server) -> None:
        async with asking(server) as client:
            for _ in range(AT_ONCE + 2):
                answer = await client.get("/x", headers=upgrade | {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
                assert answer.status_code in {403, 404}
        assert server.broker.statistics().callers.refused == 2

    broker(tmp_path, scenario, listen=HTTP, limits=limits(requests_per_second=RARE))


def test_changed_limits_hold_at_once(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with asking(server) as client:
            for _ in range(AT_ONCE):
                assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/healthz")).status_code == 429
            changed = settings_for(tmp_path, limits=limits(requests_per_second=0)).limits
            server.broker.services.callers.change(changed)
            assert (await client.get("/healthz")).status_code == 200

    broker(tmp_path, scenario, listen=HTTP, limits=limits(requests_per_second=RARE))


def test_what_is_published_by_http_has_the_rates_of_clients(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "ada", "secret")

    async def scenario(server: Server) -> None:
        async with asking(server) as client:
            batch = [cloud_event(number) for number in range(AT_ONCE)]
            assert (await client.post("/events", json=batch, headers=CLOUD_EVENTS)).status_code == 201
            answer = await client.post("/events", json=cloud_event(9), headers=CLOUD_EVENT)
            assert answer.status_code == 429, answer.text
            assert int(answer.headers["retry-after"]) > 900
            ada = httpx.BasicAuth("ada", "secret")
            assert (await client.post("/events", json=batch, headers=CLOUD_EVENTS, auth=ada)).status_code == 201
            assert (await client.post("/events", json=batch[:1], headers=CLOUD_EVENTS, auth=ada)).status_code == 429
        assert server.broker.statistics().publishing.published == 2 * AT_ONCE

    broker(tmp_path, scenario, listen=HTTP, limits=limits(publishes_per_second=RARE))


def test_queries_take_turns_with_all_who_read_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, reading, most = threading.Event(), 0, 0
    lock = threading.Lock()

    def find(*_given: Any) -> list[Any]:
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
        go_on.wait(PATIENCE)
        with lock:
            reading -= 1
        return []

    monkeypatch.setattr(events, "_find", find)

    async def scenario(server: Server) -> None:
        pool = httpx.Limits(max_connections=200)
        async with asking(server, limits=pool) as client:
            asked = [asyncio.create_task(client.get("/events")) for _ in range(scans.MOST_WAITING + 20)]
            try:
                await until(lambda: sum(each.done() for each in asked) >= 20 - scans.AT_ONCE)
            finally:
                go_on.set()
            answers = [each.status_code for each in await asyncio.gather(*asked)]
        assert answers.count(429) == 20 - scans.AT_ONCE
        assert answers.count(200) == scans.MOST_WAITING + scans.AT_ONCE
        assert most == scans.AT_ONCE

    broker(tmp_path, scenario, listen=HTTP)


def test_forged_tokens_are_not_looked_at_without_end_and_good_ones_get_in(tmp_path: Path) -> None:
    """Beyond the limit only those get in from there whose token was good before; passwords are counted apart."""
    issuer, stranger = Issuer(), Issuer()
    add_user(tmp_path / "users", "ada", "secret")
    settings = settings_for(tmp_path, access={"jwt": issuer.settings(tmp_path)})
    now = [1_800_000_000.0]
    good, forged = (each.token("bob", exp=now[0] + 10_000).encode() for each in (issuer, stranger))
    fresh = issuer.token("eve", exp=now[0] + 10_000).encode()

    async def scenario() -> None:
        access = Access(settings, lambda: int(now[0] * 1e6))
        assert (await access.authenticate("phone", None, good, THERE)).user == "bob"
        for _ in range(TOKENS_AT_ONCE):
            with pytest.raises(NotAuthenticated):
                await access.authenticate("phone", None, forged, THERE)
        for _ in range(10):
            with pytest.raises(QuotaExceeded, match="too many wrong tokens"):
                await access.authenticate("phone", None, forged, THERE)
        found = access.statistics().tokens
        assert found is not None
        assert found.refused == TOKENS_AT_ONCE, "the rest was not looked at"
        with pytest.raises(QuotaExceeded):
            await access.authenticate("phone", None, fresh, THERE)
        assert (await access.authenticate("phone", None, good, THERE)).user == "bob"
        assert (await access.authenticate("phone", "ada", b"secret", THERE)).user == "ada"
        elsewhere = Peer("198.51.100.1", 50_000, tls=True)
        assert (await access.authenticate("phone", None, fresh, elsewhere)).user == "eve"
        now[0] += 2
        assert (await access.authenticate("phone", None, fresh, THERE)).user == "eve"
        access.close()

    run(scenario())


def test_a_recognised_token_holds_no_longer_than_it_says_and_no_longer_than_its_key(tmp_path: Path) -> None:
    issuer, other = Issuer(), Issuer()
    now = [1_800_000_000.0]
    token = issuer.token("bob", exp=now[0] + 100).encode()
    settings = settings_for(tmp_path, access={"jwt": issuer.settings(tmp_path)})
    access = Access(settings, lambda: int(now[0] * 1e6))

    async def scenario() -> None:
        assert access.recognised(None, token) is None
        await access.authenticate("phone", None, token, THERE)
        assert access.recognised(None, token) == "bob"
        now[0] += 1_000
        assert access.recognised(None, token) is None
        with pytest.raises(NotAuthenticated):
            await access.authenticate("phone", None, token, THERE)
        later = issuer.token("bob", exp=now[0] + 100).encode()
        await access.authenticate("phone", None, later, THERE)
        jwt = settings.access.jwt
        assert jwt is not None
        jwt.file.write_bytes(other.public)
        assert access.recognised(None, later) is None
        with pytest.raises(NotAuthenticated):
            await access.authenticate("phone", None, later, THERE)
        access.close()

    run(scenario())
