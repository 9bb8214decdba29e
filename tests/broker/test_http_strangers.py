"""Strangers over HTTP: refused before anything else is done for them, and no more often than once for each connection."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from tests.broker.talker import all_said, broker
from tests.broker.test_http import asking
from tests.waiting import until

from nearcast.broker.access.users import add_user, revoke_user
from nearcast.broker.server import Server

HTTP = {"http_port": "any"}
NEVER = {"anonymous": "never"}


@pytest.mark.parametrize("header", [b"", b"Authorization: Basic " + base64.b64encode(b"ada:guess") + b"\r\n"])
def test_of_many_requests_at_once_a_stranger_has_one_refused(tmp_path: Path, header: bytes) -> None:
    add_user(tmp_path / "users", "ada", "secret")

    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.addresses["http"])
        writer.write((b"GET /status HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n") * 100)
        said = await all_said(reader)
        writer.close()
        assert said.count(b"HTTP/1.1 ") == said.count(b"HTTP/1.1 401") == 1
        assert b"connection: close" in said.lower()
        assert server.broker.statistics().access.refused == 1

    broker(tmp_path, scenario, listen=HTTP, access=NEVER)


def test_who_is_still_sending_a_body_is_told_and_not_hung_up_on(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with asking(server) as client:
            for content in (b"[]", b"[" * 100_000):
                answer = await client.post("/events", content=content)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == 'Basic realm="nearcast"'
                assert answer.headers["content-type"] == "application/problem+json"
                assert "connection" not in answer.headers

    broker(tmp_path, scenario, listen=HTTP, access=NEVER)


def test_who_asks_is_looked_at_before_what_is_asked_for(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "ada", "secret")

    async def scenario(server: Server) -> None:
        async with asking(server) as client, asking(server, auth=("ada", "secret")) as ada:
            for method, path, known in (
                ("GET", "/events?limit=none", 400),
                ("POST", "/plans", 400),
                ("GET", "/journal/stretches", 400),
            ):
                assert (await client.request(method, path)).status_code == 401
                assert (await ada.request(method, path)).status_code == known
            for path in ("/healthz", "/readyz"):
                assert (await client.get(path)).status_code == 200
            assert (await client.delete("/status")).status_code == 405
        # Who is let in is looked at once, although both the door and the route ask.
        assert server.broker.statistics().access.admitted == 3

    broker(tmp_path, scenario, listen=HTTP, access=NEVER)


def test_who_is_revoked_while_the_body_comes_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users"
    add_user(users, "ada", "secret")

    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.addresses["http"])
        ada = base64.b64encode(b"ada:secret").decode()
        body = b'{"scheme": "EGRID(factor=9)"}'
        writer.write(
            f"POST /transitions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic {ada}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        await until(lambda: server.broker.statistics().access.admitted == 1)
        await asyncio.to_thread(revoke_user, users, "ada")
        writer.write(body)
        assert (await all_said(reader)).startswith(b"HTTP/1.1 401")
        writer.close()

    broker(tmp_path, scenario, listen=HTTP, access=NEVER)
