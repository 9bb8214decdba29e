"""A broker with its dashboard, and pages that look at it: real HTTP, real WebSockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tests.broker.talker import run, settings_for
from tests.waiting import PATIENCE
from websockets.asyncio.client import ClientConnection, connect

from nearcast.broker.server import Server
from nearcast.dashboard.application import dashboard
from nearcast.dashboard.positions import FULL, RECORD

Story = Callable[[Server, httpx.AsyncClient], Coroutine[Any, Any, None]]
WORD = {"x-nearcast": "1"}


@contextlib.asynccontextmanager
async def showing(folder: Path, **changes: Any) -> AsyncIterator[Server]:
    settings = settings_for(folder, **{"listen": {"http_port": "any"}, **changes})
    server = Server(settings, dashboard(settings.dashboard))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def asking(server: Server, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    host, port = server.addresses["http"]
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=30.0, **options) as client:
        yield client


def shown(folder: Path, story: Story, **changes: Any) -> None:
    async def with_broker() -> None:
        async with showing(folder, **changes) as server, asking(server) as client:
            await story(server, client)

    run(with_broker())


class Viewer:
    """A page: what it was told, put together as a page does."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.names: dict[int, str] = {}
        self.schemes: list[str] = []
        self.roles: list[str] = []
        self.where: dict[int, tuple[float, float]] = {}
        self.kinds: dict[int, tuple[str, str]] = {}
        self.headings: dict[int, int] = {}
        self.hello: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.hellos = 0
        self.frames = 0

    async def hear(self) -> None:
        """One message more."""
        message = await asyncio.wait_for(self.connection.recv(), PATIENCE)
        if isinstance(message, bytes):
            self._see(message)
            return
        told = json.loads(message)
        for each in told if isinstance(told, list) else [told]:
            self._take(each)

    async def until(self, condition: Callable[[Viewer], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition(self):
                await self.hear()

    async def say(self, **wish: Any) -> None:
        await self.connection.send(json.dumps(wish))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.messages if each["kind"] == kind]

    def at(self, client: str) -> tuple[float, float] | None:
        """Where that client is drawn."""
        return next((self.where.get(index) for index, name in self.names.items() if name == client), None)

    def kind_of(self, client: str) -> tuple[str, str] | None:
        """Its scheme and its role."""
        return next((self.kinds.get(index) for index, name in self.names.items() if name == client), None)

    def _take(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if message["kind"] == "hello":
            self.hello = message
            self.hellos += 1
            self.names = {int(index): name for index, name in message["names"].items()}
            self.schemes, self.roles = message["schemes"], message["roles"]
            self.where.clear()
        elif message["kind"] == "names":
            for index in message.get("gone", ()):
                del self.names[index]
                self.where.pop(index, None)
            self.names |= {int(index): name for index, name in message.get("add", {}).items()}
            self.schemes, self.roles = message.get("schemes", self.schemes), message.get("roles", self.roles)

    def _see(self, frame: bytes) -> None:
        self.frames += 1
        version, flags, _, count, _at = struct.unpack_from("<BBHIq", frame)
        assert version == 1
        rows = np.frombuffer(frame, RECORD, offset=16)
        assert len(rows) == count
        if flags & FULL:
            self.where.clear()
        origin = self.hello["origin"]
        for index, dx, dy, scheme, role, heading in rows.tolist():
            if math.isnan(dx):
                self.where.pop(index, None)
                continue
            self.where[index] = origin["lat"] + dy, origin["lon"] + dx
            self.kinds[index] = self.schemes[scheme], self.roles[role]
            self.headings[index] = heading


@contextlib.asynccontextmanager
async def looking(server: Server, **options: Any) -> AsyncIterator[Viewer]:
    host, port = server.addresses["http"]
    async with connect(f"ws://{host}:{port}/dashboard/live", max_size=None, **options) as connection:
        yield Viewer(connection)
