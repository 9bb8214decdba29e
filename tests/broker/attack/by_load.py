"""Too much, too slow, too many: the broker has to hang up, or to say no, and to have taken little until then."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.broker.attack.attacking import FLOODS, KNOWN, PATIENCE, STRANGERS, Attack, Outcome, Target
from tests.broker.attack.by_http import basic

MOST: Final = 12 * 1024 * 1024
"""Bytes after which whoever was not stopped has got through: buffers of the system hold some, too."""

BLOCK: Final = b"b" * 16_384
CHUNKED: Final = b"POST /events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
FIELDS: Final = b"".join(b"a%d: " % number + b"b" * 100 + b"\r\n" for number in range(150))
CHUNK: Final = b"4000\r\n" + BLOCK + b"\r\n"
PIPELINED: Final = b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n" * 400


def endless(first: bytes, more: bytes) -> Iterator[bytes]:
    yield first
    while True:
        yield more


async def sent_without_end(target: Target, port: str, first: bytes, more: bytes, known: bool = False) -> Outcome:
    """Until the broker hangs up, with what it said."""
    reader, writer = await target.connection(port, KNOWN if known else STRANGERS)
    said = bytearray()

    async def listen() -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                said.extend(data[: 65_536 - len(said)])

    listening, sent = asyncio.create_task(listen()), 0
    try:
        with contextlib.suppress(ConnectionError):
            for piece in endless(first, more):
                writer.write(piece)
                await asyncio.wait_for(writer.drain(), PATIENCE)
                sent += len(piece)
                if listening.done() or sent > MOST:
                    break
    finally:
        listening.cancel()
        writer.transport.abort()
    through = sent > MOST or (port == "http" and b"HTTP/1.1 2" in said)
    return Outcome(through, said[9:12].decode("latin-1") if said.startswith(b"HTTP/1.1 ") else "hung up")


async def trickled(target: Target, port: str, first: bytes, more: bytes) -> Outcome:
    """A little every half second: given up in time, however often something comes."""
    reader, writer = await target.connection(port)
    begun = time.monotonic()
    writer.write(first)
    try:
        while time.monotonic() - begun < target.connect_time + PATIENCE:
            try:
                data = await asyncio.wait_for(reader.read(65_536), 0.5)
            except TimeoutError:
                writer.write(more)
            except ConnectionError:
                return Outcome(False, "hung up")
            else:
                if not data:
                    return Outcome(False, "hung up")
        return Outcome(True, "held")
    finally:
        writer.transport.abort()


async def opened(target: Target, port: str, addresses: tuple[str, ...] = STRANGERS) -> Outcome:
    """And nothing more: there is nothing to get through to, but it costs."""
    _, writer = await target.connection(port, addresses)
    writer.transport.abort()
    return Outcome(False, "closed again")


async def pipelined_flood(target: Target) -> Outcome:
    """On one connection after the other, as fast as it goes."""
    reader, writer = await target.connection("http", FLOODS)
    try:
        writer.write(PIPELINED)
        with contextlib.suppress(ConnectionError):
            data = await asyncio.wait_for(reader.read(65_536), PATIENCE)
            return Outcome(b"HTTP/1.1 2" in data, data[9:12].decode("latin-1"))
        return Outcome(False, "hung up")
    finally:
        writer.transport.abort()


def attacks(_target: Target) -> list[Attack]:
    mallory = b"".join(f"{name}: {value}\r\n".encode() for name, value in basic("mallory", "mallory").items())
    without_end: tuple[tuple[str, str, bytes, bytes, bool], ...] = (
        ("a packet", "mqtt", b"\x10\xff\xff\xff\x7f", BLOCK, False),
        ("a head", "http", b"GET / HTTP/1.1\r\nX-A: ", BLOCK, False),
        ("many headers", "http", b"GET / HTTP/1.1\r\n", FIELDS, False),
        ("a path", "http", b"GET /", BLOCK, False),
        ("a body", "http", b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n", BLOCK, False),
        ("a WebSocket's head", "websocket", b"GET /mqtt HTTP/1.1\r\n", BLOCK, False),
        ("a body in chunks", "http", CHUNKED + b"\r\n", CHUNK, False),
        ("a body in chunks, by mallory", "http", CHUNKED + mallory + b"\r\n", CHUNK, True),
        ("trailers", "http", CHUNKED + b"\r\n0\r\n", FIELDS, False),
        ("trailers, by mallory", "http", CHUNKED + mallory + b"\r\n2\r\n[]\r\n0\r\n", FIELDS, True),
        ("one trailer", "http", CHUNKED + b"\r\n0\r\nX: ", BLOCK, False),
        ("an extension of a chunk", "http", CHUNKED + b"\r\n5;x=", BLOCK, False),
        ("requests on one connection", "http", PIPELINED, PIPELINED, False),
    )
    slow = (
        ("MQTT", "mqtt", b"\x10", b"\x7f"),
        ("WebSocket", "websocket", b"G", b"E"),
        ("a head", "http", b"G", b"E"),
        ("a body", "http", b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b"x"),
        ("a trailer", "http", CHUNKED + b"\r\n0\r\nX: ", b"x"),
        ("a TLS handshake", "mqtts", b"\x16\x03\x01\x02\x00\x01", b"\x00"),
    )
    return [
        *(
            Attack(f"oversized: {name}", partial(sent_without_end, port=port, first=first, more=more, known=known))
            for name, port, first, more, known in without_end
        ),
        *(Attack(f"slow: {name}", partial(trickled, port=port, first=a, more=b)) for name, port, a, b in slow),
        *(Attack(f"flood: {port}", partial(opened, port=port)) for port in ("mqtt", "http", "websocket", "mqtts")),
    ]


def floods() -> list[Attack]:
    """At full speed."""
    return [
        *(
            Attack(f"full flood: {port}", partial(opened, port=port, addresses=FLOODS))
            for port in ("mqtt", "http", "mqtt", "websocket")
        ),
        Attack("full flood: requests", pipelined_flood),
    ]
