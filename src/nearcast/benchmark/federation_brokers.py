"""Brokers of one federation on this machine, each a process, which fall and rise again."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from nearcast.benchmark.peers.server import program
from nearcast.errors import BenchmarkError

_PATIENCE: Final = 180.0
"""Seconds for a broker to be ready: the machine is busy."""

_SETTINGS: Final = """
[federation]
name = "{name}"
listen = "127.0.0.1:{federation}"
join = {join}
secret_file = "{secret}"
replicate = {replicate}

[log]
level = "info"

[[access.rule]]
anonymous = true
publish = ["#"]
subscribe = ["#"]
may_address = true
plans = true
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class FederatedBroker:
    """``nearcast serve``, on the same ports in all its lives."""

    def __init__(self, folder: Path, name: str, join: list[int], secret: Path, *, replicate: bool = False) -> None:
        self.name: Final = name
        self.port: Final = free_port()
        self.federation: Final = free_port()
        self.lives = 0
        self.log: Final[list[str]] = []
        self._folder: Final = folder / name
        self._folder.mkdir()
        self._settings: Final = self._folder / "settings.toml"
        contacts = json.dumps([f"127.0.0.1:{port}" for port in join])
        self._settings.write_text(
            _SETTINGS.format(
                name=name,
                federation=self.federation,
                join=contacts,
                secret=secret,
                replicate=json.dumps(replicate),
            )
        )
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def up(self) -> bool:
        return self._process is not None

    async def start(self) -> None:
        """Until it is ready."""
        command = program("nearcast") or ""
        options = {
            "--port": str(self.port),
            "--http-port": "off",
            "--data": str(self._folder / "data"),
            "--config": str(self._settings),
        }
        process = await asyncio.create_subprocess_exec(
            command,
            "serve",
            *(part for option in options.items() for part in option),
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
        )
        ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(process, ready))
        try:
            async with asyncio.timeout(_PATIENCE):
                if not await ready:
                    said = self.log[-1] if self.log else "it said nothing"
                    raise BenchmarkError(f"broker {self.name} did not start: {said}")
        except BaseException as error:
            with suppress(ProcessLookupError):
                process.kill()
            if isinstance(error, TimeoutError):
                raise BenchmarkError(f"broker {self.name} was not ready within {_PATIENCE:g} s") from None
            raise
        self.lives += 1
        self._process = process

    async def _read(self, process: asyncio.subprocess.Process, ready: asyncio.Future[bool]) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.log.append(line.decode(errors="replace").rstrip())
            if self.log[-1] == "ready" and not ready.done():
                ready.set_result(True)
        if not ready.done():
            ready.set_result(False)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        await process.wait()
        if self._reading is not None:
            await self._reading

    async def kill(self) -> None:
        """As the power would."""
        await self.end(signal.SIGKILL)


async def started(
    folder: Path, size: int, progress: Callable[[str], None], *, replicate: bool = False
) -> list[FederatedBroker]:
    """So many, all of which have joined."""
    if program("nearcast") is None:
        raise BenchmarkError("the command nearcast is not installed")
    secret = folder / "secret"
    secret.write_text(secrets.token_hex(32))
    brokers: list[FederatedBroker] = []
    try:
        for number in range(size):
            join = [broker.federation for broker in brokers[:2]]
            broker = FederatedBroker(folder, f"b{number}", join, secret, replicate=replicate)
            brokers.append(broker)
            await broker.start()
        progress(f"{size} brokers are up")
        async with asyncio.timeout(_PATIENCE):
            while not all(any(f"has {size} brokers" in line for line in broker.log) for broker in brokers):  # noqa: ASYNC110 - processes
                await asyncio.sleep(0.05)
    except BaseException:
        for broker in brokers:
            await broker.kill()
        raise
    return brokers
