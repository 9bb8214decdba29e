"""What one is told of other clients, as the application reads it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

import msgspec

from nearcast.client.events import Events
from nearcast.client.inbox import StreamStatistics
from nearcast.model.event import Event
from nearcast.model.geometry import Point


class _Payload(msgspec.Struct):
    who: str
    what: str
    fence: str
    at: datetime
    lat: float
    lon: float
    reason: str | None = None
    since: datetime | None = None
    near: str | None = None
    metres: float | None = None


_PAYLOAD = msgspec.json.Decoder(_Payload)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a client did."""

    who: str
    kind: str
    """``enter``, ``leave``, ``cross``, ``stay`` or ``near``."""

    what: str
    """The same; of ``near`` whether it came (``enter``), went (``leave``) or did both between two reports (``cross``)."""

    fence: str
    """The name of the subscription."""

    at: datetime
    place: Point
    """Where on its way that was."""

    reason: str | None = None
    """``appeared`` or ``gone``: it did not come there or go, but was not known before, or is not any more."""

    since: datetime | None = None
    """When a stay began."""

    near: str | None = None
    """To whom it came near."""

    metres: float | None = None


def notice_in(event: Event) -> Notice:
    said = _PAYLOAD.decode(event.payload)
    kind = event.topic.split("/")[2]
    place = Point(said.lat, said.lon)
    return Notice(
        said.who, kind, said.what, said.fence, said.at, place, said.reason, said.since, said.near, said.metres
    )


@dataclass(slots=True, eq=False)
class Notices(AsyncIterable[Notice]):
    """What one subscription tells, to be read with ``async for``; as ``Events``."""

    events: Events

    async def __aenter__(self) -> Self:
        await self.events.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.events.close()

    def __aiter__(self) -> AsyncIterator[Notice]:
        return self._read()

    async def _read(self) -> AsyncGenerator[Notice, None]:
        async for event in self.events:
            yield notice_in(event)

    async def __anext__(self) -> Notice:
        return notice_in(await anext(self.events))

    async def next(self, timeout: float) -> Notice:  # noqa: ASYNC109 - so that callers without a loop have one too
        """The next one, or ``TimedOut`` after so many seconds without."""
        return notice_in(await self.events.next(timeout))

    async def open(self) -> None:
        """Subscribe, unless that has been done."""
        await self.events.open()

    async def close(self) -> None:
        """Unsubscribe."""
        await self.events.close()

    def statistics(self) -> StreamStatistics:
        return self.events.statistics()
