"""Connections over HTTP from strangers: what is no body is bounded wherever it stands, and requests that nobody waits for do not pile up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from tests.broker.talker import broker, run, serving
from tests.waiting import PATIENCE, until

from nearcast.broker.http import guarded
from nearcast.broker.http.guarded import LARGEST_HEAD
from nearcast.broker.server import Server

HTTP = {"http_port": "any"}
CHUNKED = (
    b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
)
MOST_SENT = 16 * LARGEST_HEAD + 4 * 1024 * 1024
"""Bytes after which a connection that is to be cut off should be: what is on its way through the system counts, too."""


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*server.addresses["http"])
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def sent_until_cut_off(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pieces: Iterator[bytes]
) -> int:
    """How many bytes could be sent before the broker hung up."""
    sent = 0
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.wait_for(writer.drain(), PATIENCE)
            sent += len(piece)
            if sent > MOST_SENT or reader.at_eof():
                break
    except ConnectionError:
        pass
    return sent


def endless(first: bytes, more: bytes) -> Iterator[bytes]:
    yield first
    while True:
        yield more


@pytest.mark.parametrize("anonymous", ["always", "never"])
@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"0\r\n", b"".join(b"a%d: " % number + b"b" * 100 + b"\r\n" for number in range(100))),
        (b"0\r\nX: ", b"b" * 10_000),
        (b"5;x=", b"b" * 10_000),
        (b"2\r\n{}\r\n0\r\n", b"a:\r\n" * 2_500),
    ],
    ids=["many trailers", "one endless trailer", "an endless extension of a chunk", "many small trailers"],
)
def test_what_follows_a_chunked_body_is_bounded(tmp_path: Path, anonymous: str, first: bytes, more: bytes) -> None:
    """Also after the answer: a stranger's 401 comes before the end of what it sends."""

    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            sent = await sent_until_cut_off(reader, writer, endless(CHUNKED + first, more))
            assert sent < MOST_SENT

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": anonymous})


def test_who_goes_on_sending_after_the_answer_is_cut_off(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            sent = await sent_until_cut_off(reader, writer, endless(CHUNKED, b"2710\r\n" + b"b" * 10_000 + b"\r\n"))
            assert sent < MOST_SENT

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": "never"})


def test_who_does_not_end_an_answered_request_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "LINGER", 0.05)

    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            writer.write(CHUNKED)
            said = await asyncio.wait_for(reader.read(), PATIENCE)
            assert said.startswith(b"HTTP/1.1 401")

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": "never"})


def test_the_rest_of_a_refused_request_leaves_the_connection_open(tmp_path: Path) -> None:
    """As of a browser that is asked for a password while its form is still on its way."""

    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            writer.write(CHUNKED)
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).startswith(b"HTTP/1.1 401")
            writer.write(b"2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await asyncio.wait_for(reader.readuntil(b"ok\n"), PATIENCE)
            assert b"HTTP/1.1 200" in answer

    broker(tmp_path, scenario, listen=HTTP, access={"anonymous": "never"})


def test_trailers_are_no_headers(tmp_path: Path) -> None:
    """Nobody says who it is after it was asked."""

    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            writer.write(CHUNKED + b"2\r\n{}\r\n0\r\nAuthorization: Basic cm9vdDpyb290\r\nConnection: close\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            assert head.startswith(b"HTTP/1.1 400"), "an empty event, of somebody anonymous"

    broker(tmp_path, scenario, listen=HTTP)


@pytest.mark.parametrize(
    "head", [b"X-A: " + b"a" * LARGEST_HEAD, b"a:\r\n" * (guarded.MOST_FIELDS + 300)], ids=["large", "many headers"]
)
def test_heads_that_are_too_large_are_refused(tmp_path: Path, head: bytes) -> None:
    async def scenario(server: Server) -> None:
        async with connected(server) as (reader, writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + head)
            assert (await asyncio.wait_for(reader.readline(), PATIENCE)).startswith(b"HTTP/1.1 400")
            assert b"application/problem+json" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)

    broker(tmp_path, scenario, listen=HTTP)


def test_requests_that_nobody_waits_for_are_all_answered_and_do_not_pile_up(tmp_path: Path) -> None:
    """However many come at once, only those of one piece are taken out of it; the rest waits with its sender."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    requests = 3_000

    async def story() -> None:
        async with serving(tmp_path, listen=HTTP) as server:
            assert server._http is not None
            state = server._http._server.server_state
            async with connected(server) as (reader, writer):
                writer.write(request * requests)
                answered = waiting = 0
                while answered < requests:
                    data = await asyncio.wait_for(reader.readuntil(b"ok\n"), PATIENCE)
                    answered += data.count(b"ok\n")
                    for each in state.connections:
                        waiting = max(waiting, len(each.pipeline))  # type: ignore[union-attr]  # as this protocol has it
                assert 0 < waiting <= guarded.PIECE // len(request) + 1

    run(story())


def test_a_large_body_comes_whole_in_pieces_and_in_chunks(tmp_path: Path) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "x", "type": "a/b", "data": "x" * 700_000}

    async def scenario(server: Server) -> None:
        host, port = server.addresses["http"]
        body = httpx.Request("POST", "http://x", json=event).content

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 777):
                yield body[at : at + 777]

        headers = {"content-type": "application/cloudevents+json"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False, timeout=PATIENCE) as client:
            for content in (body, chunks()):
                answer = await client.post("/events", content=content, headers=headers)
                assert answer.status_code == 201, answer.text
            found = (await client.get("/events", headers={"accept": "application/cloudevents-batch+json"})).json()
            assert [len(each["data"]) for each in found] == [700_000, 700_000]

    broker(tmp_path, scenario, listen=HTTP)


def test_who_hangs_up_in_the_middle_leaves_nothing_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server) -> None:
        assert server._http is not None
        state = server._http._server.server_state
        async with connected(server) as (_, writer):
            writer.write(CHUNKED + b"2\r\n{}\r\n")
            await until(lambda: bool(state.tasks))
        await until(lambda: not state.tasks)
        assert not caplog.records

    broker(tmp_path, scenario, listen=HTTP)
