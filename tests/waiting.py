"""Waiting for what happens in real time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 60.0
"""Seconds after which something that should have happened never will; a machine under load is slow, not broken."""

SPARK_PATIENCE: Final = 240.0
"""The same for Spark: a driver or a master takes long to come up on a machine that has other work."""


async def until(
    condition: Callable[[], bool], running: asyncio.Task[None] | None = None, *, pause: float = 0.002
) -> None:
    """Wait for something to become true; if what should make it true ends meanwhile, so does the wait.

    ``pause`` (seconds) is how long it may be true unnoticed: 0.0 looks after every turn of the loop.
    """
    async with asyncio.timeout(PATIENCE):
        while not condition():
            if running is not None and running.done():
                await running
                raise AssertionError("it has stopped, and it is still not true")
            await asyncio.sleep(pause)


def wait_until(
    condition: Callable[[], bool], patience: float = PATIENCE, problem: Callable[[], str] = lambda: "not true"
) -> None:
    """The same without an event loop: for what other threads and processes do."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"{problem()} after {patience:g} s"
        time.sleep(0.02)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Of the loopback; for servers that cannot choose one and say which it is."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
