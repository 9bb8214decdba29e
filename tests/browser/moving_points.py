"""Many moving points from a server that does nothing else: what the page can draw is measured without a broker beside it.

It speaks the part of the contract that the map needs (docs/dashboard.md): who is looking, the world, the live feed.  What else a test wants
it to say it is given: ``answers``, and what is ``told`` after the beginning.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import numpy as np
import uvicorn
from tests.waiting import wait_until

import nearcast

STATIC: Final = Path(nearcast.__file__).parent / "dashboard" / "static"
KINDS: Final = {".html": b"text/html", ".css": b"text/css", ".js": b"text/javascript", ".svg": b"image/svg+xml"}
ORIGIN: Final = (49.8728, 8.6512)
PERIOD_S: Final = 0.25
ROW: Final = np.dtype(
    [
        ("index", "<u4"),
        ("dx", "<f4"),
        ("dy", "<f4"),
        ("scheme", "u1"),
        ("role", "u1"),
        ("heading", "<u2"),
    ]
)


class MovingPoints:
    """People who walk straight on, and turn at the border; all of them are in every snapshot."""

    def __init__(self, count: int) -> None:
        random = np.random.default_rng(7)
        self.rows = np.zeros(count, ROW)
        self.rows["index"] = np.arange(count)
        self.rows["scheme"] = 1 + np.arange(count) % 3
        self.rows["heading"] = 0xFFFF
        self.place = random.uniform(-0.02, 0.02, (count, 2))
        self.speed = random.normal(0, 0.00002, (count, 2))

    def step(self) -> bytes:
        self.place += self.speed
        self.speed[np.abs(self.place) > 0.02] *= -1
        self.rows["dx"], self.rows["dy"] = self.place.T
        head = b"\x01\x01\x00\x00" + len(self.rows).to_bytes(4, "little")
        return head + (time.time_ns() // 1000).to_bytes(8, "little") + self.rows.tobytes()

    def hello(self) -> dict[str, Any]:
        return {
            "kind": "hello",
            "names": {str(index): f"walker-{index}" for index in range(len(self.rows))},
            "period_ms": int(PERIOD_S * 1000),
            "origin": {"lat": ORIGIN[0], "lon": ORIGIN[1]},
            "schemes": ["", "RADIAL", "EGRID(factor=10)", "ATTRACT"],
            "roles": ["", "walker", "newcomer"],
        }


def world() -> dict[str, Any]:
    lat, lon = ORIGIN
    steps = [float(step) for step in np.linspace(-0.02, 0.02, 41)]
    streets = [[lat + step, lon - 0.02, lat + step, lon + 0.02] for step in steps]
    streets += [[lat - 0.02, lon + step, lat + 0.02, lon + step] for step in steps]
    return {
        "name": "points",
        "bounds": {"south": lat - 0.02, "west": lon - 0.02, "north": lat + 0.02, "east": lon + 0.02},
        "streets": streets,
        "points": [],
        "attribution": None,
        "schemes": [],
        "roles": [],
    }


class Application:
    """ASGI by hand: a few answers, the files of the page, one WebSocket."""

    def __init__(self, count: int) -> None:
        self.points = MovingPoints(count)
        self.refusing = False
        self.full = ""
        """Why there is no room for one page more; empty: there is."""

        self.more: dict[str, Any] = {}
        """In ``hello``."""

        self.told: list[dict[str, Any]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropping = asyncio.Event()
        self.answers: dict[str, Any] = {
            "api/me": {"user": None, "may_see": True, "may_command": False},
            "api/world": world(),
            "api/past/extent": {"oldest": None, "newest": None},
        }
        """By path; a function is given the parameters of the question and may take its time.  None: something went wrong."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        name = scope.get("path", "").removeprefix("/dashboard/")
        if scope["type"] == "websocket":
            await self.feed(receive, send)
        elif scope["type"] == "http" and name in self.answers:
            await self._answer(send, name, dict(parse_qsl(scope["query_string"].decode())))
        elif scope["type"] == "http" and (file := STATIC / (name or "index.html")).is_file():
            await answer(send, 200, KINDS[file.suffix], file.read_bytes())
        elif scope["type"] == "http":
            await answer(send, 404, b"application/json", b'{"detail": "not here"}')

    async def _answer(self, send: Any, name: str, query: dict[str, str]) -> None:
        found = self.answers[name]
        if callable(found):
            found = found(query)
        if inspect.isawaitable(found):
            found = await found
        if found is None:
            await answer(send, 500, b"application/json", b'{"detail": "something went wrong"}')
        else:
            await answer(send, 200, b"application/json", msgspec.json.encode(found))

    def drop(self) -> None:
        """All connections, from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._dropping.set)

    async def feed(self, receive: Any, send: Any) -> None:
        await receive()
        if self.refusing:
            await send({"type": "websocket.close", "code": 1013})
            return
        self._loop, self._dropping = asyncio.get_running_loop(), asyncio.Event()
        await send({"type": "websocket.accept"})
        if self.full:
            await send({"type": "websocket.close", "code": 4429, "reason": self.full})
            return
        await send({"type": "websocket.send", "text": msgspec.json.encode(self.points.hello() | self.more).decode()})
        if self.told:
            await send({"type": "websocket.send", "text": msgspec.json.encode(self.told).decode()})
        gone = asyncio.create_task(self._until_gone(receive))
        while not gone.done() and not self._dropping.is_set():
            await send({"type": "websocket.send", "bytes": self.points.step()})
            await asyncio.wait([gone], timeout=PERIOD_S)
        if not gone.done():
            gone.cancel()
            await send({"type": "websocket.close", "code": 1001})

    async def _until_gone(self, receive: Any) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass


async def answer(send: Any, status: int, kind: bytes, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    """Of the page."""

    points: Application


@contextmanager
def moving_points(count: int) -> Iterator[Served]:
    application = Application(count)
    config = uvicorn.Config(
        application,
        port=0,
        log_level="error",
        lifespan="off",
        ws="websockets-sansio",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(f"http://127.0.0.1:{port}/dashboard/", application)
    finally:
        server.should_exit = True
        thread.join()
