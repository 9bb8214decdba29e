"""A subscription, as the application reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from nearcast.client.inbox import Stream, StreamStatistics
from nearcast.errors import TimedOut
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
"""Seconds between questions whether all of a time frame that is over has come; the broker does not say so by itself."""


@dataclass(slots=True, eq=False)
class Events(AsyncIterable[Event]):
    """The events of one subscription, to be read with ``async for``.

    The subscription begins when it is first read or entered, and ends when its ``async with`` block is left, ``close`` is
    called, or, where it is written directly into ``async for``, with that loop.
    """

    _stream: Stream
    _begin: Callable[[Stream], Awaitable[None]]
    _finish: Callable[[Stream], Awaitable[None]]
    _ask_more: Callable[[Stream], Awaitable[bool]]
    _now: Callable[[], Instant]

    _begun: bool = False
    _entered: bool = False
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __aenter__(self) -> Self:
        self._entered = True
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._read()

    async def _read(self) -> AsyncGenerator[Event, None]:
        try:
            while True:
                try:
                    event = await self.__anext__()
                except StopAsyncIteration:
                    return
                yield event
        finally:
            if not self._entered:
                await self.close()

    async def __anext__(self) -> Event:
        await self.open()
        await self._more_or_end()
        event = await self._stream.take()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self, timeout: float) -> Event:  # noqa: ASYNC109 - so that callers without a loop have one too
        """The next event, or ``TimedOut`` after so many seconds without one; ``StopAsyncIteration`` at the end."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except TimeoutError:
            raise TimedOut(f"no event came within {timeout:g} s") from None

    async def open(self) -> None:
        """Subscribe, unless that has been done."""
        async with self._beginning:
            if not self._begun:
                await self._begin(self._stream)
                self._begun = True

    async def close(self) -> None:
        """Unsubscribe; what has come and was not read is gone."""
        async with self._beginning:
            begun, self._begun = self._begun, True
            if begun:
                await self._finish(self._stream)
            else:
                self._stream.end(drop=True)

    async def more(self) -> bool:
        """Ask for the next batch of stored events; reading does that by itself.  False if the broker has none for this subscription."""
        self._stream.stored = None
        return await self._ask_more(self._stream)

    def statistics(self) -> StreamStatistics:
        """What has come, waits to be read, and was dropped."""
        return self._stream.statistics()

    async def _more_or_end(self) -> None:
        """Before waiting: the next batch, if one is there; the end, if nothing can come any more."""
        stream, pause = self._stream, _FIRST_PAUSE
        while not stream.waiting:
            if stream.stored is not None and stream.stored[0] < stream.stored[1]:
                await self.more()
            elif stream.ends is None:
                return
            left = 0 if stream.ends is None else (stream.ends - self._now()) / MICROSECONDS
            if stream.ends is not None and left <= 0 and not await self.more():
                # The answer came after all that was stored and all that came meanwhile.
                if not stream.waiting:
                    stream.end()
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left, pause)):
                    await stream.arrival()
                    return
            pause = min(2 * pause, _LONGEST_PAUSE)
