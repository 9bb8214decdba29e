"""An event loop in virtual time, and groups of neighbours of our own: what the tests of the live half share."""

from __future__ import annotations

import asyncio
import itertools
import os
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tests.clocks import START
from tests.waiting import PATIENCE, free_port

from nearcast.runtime.live import LiveClock, LiveRuntime, UdpNetwork

T = TypeVar("T")
_numbers: Final = itertools.count()


class _NoWaiting(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits, and nothing will ever happen"
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never waits: when there is nothing to do, it is later."""

    def __init__(self) -> None:
        self._virtual = _NoWaiting()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def work(self, seconds: float) -> None:
        """Time goes by while a callback is at work."""
        self._virtual.now += seconds

    def clock(self) -> LiveClock:
        return LiveClock(wall=lambda: START * 1_000, monotonic=lambda: round(self.time() * 1e9))


def in_virtual_time(story: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(story(loop))


def live(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Tell the story in real time, but not for ever."""
    return asyncio.run(asyncio.wait_for(story(), PATIENCE))


async def started(runtime: LiveRuntime) -> asyncio.Task[None]:
    """Run it beside the story; its hosts have joined."""
    running = asyncio.create_task(runtime.run())
    await asyncio.sleep(0)
    return running


def neighbourhood(interface: str = "wifi") -> UdpNetwork:
    """A group of its own: tests that run side by side, or two runs of all tests, do not hear each other."""
    number = os.getpid() * 64 + next(_numbers)
    return UdpNetwork(
        interface, group=f"239.255.{number // 256 % 256}.{number % 256}", group_port=free_port(socket.SOCK_DGRAM)
    )
