"""A broker as the archive of a crowd: the port ``Archive`` of ``nearcast.crowdstore``, over a client.

Objects are events of the topic ``crowd/VENUE``: tags are tags, the content is the payload, and two attributes say whose object it was.  The
broker recognises an event that is published again by its id.  What it has is read from its archive again and again: it tells nobody that
an event was taken back, so what is missing there is how one finds out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from nearcast.client.client import Client
from nearcast.crowdstore.bridge import Archived, Contents
from nearcast.crowdstore.objects import ObjectKey, Publication
from nearcast.errors import InvalidInput, NearcastError, TimedOut
from nearcast.model.event import Event
from nearcast.runtime.host import Component, Host

TOPIC: Final = "crowd/"
OWNER: Final = "crowd_owner"
NAME: Final = "crowd_name"
PERIOD: Final = 10.0
"""Seconds between two looks into the archive."""

SINCE: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class MqttArchiveStatistics:
    kept: int
    forgotten: int
    looks: int
    failed: int
    """Orders that the broker refused; those that only took too long are tried again."""

    waiting: int


class MqttArchive(Component):
    """A component of a live host, before its ``Bridge``, to which it is handed.  The client belongs to whoever made it."""

    def __init__(self, client: Client, venue: str, *, period: float = PERIOD) -> None:
        if not venue or any(sign in venue for sign in "#+\0"):
            raise InvalidInput(f"{venue!r} cannot be a part of a topic; a venue is called such as 'stadium'")
        self._client: Final = client
        self._topic: Final = TOPIC + venue
        self._venue: Final = venue
        self._period: Final = period
        self._orders: Final[asyncio.Queue[Callable[[], Awaitable[object]] | None]] = asyncio.Queue()
        self._contents: Contents | None = None
        self._worker: asyncio.Task[None] | None = None
        self._kept = self._forgotten = self._looks = self._failed = 0
        self.problem: NearcastError | None = None
        """Why the last order failed that did."""

        self._host: Host

    def start(self, host: Host) -> None:
        self._host = host
        self._worker = asyncio.create_task(self._work())
        host.timers.every(self._period, self._look_soon, first=0.0)

    def stop(self) -> None:
        """What has been ordered is still done."""
        self._orders.put_nowait(None)

    async def done(self) -> None:
        """Wait until there is nothing more to do, after the host has left."""
        if self._worker is not None:
            self.stop()
            await self._worker

    def statistics(self) -> MqttArchiveStatistics:
        return MqttArchiveStatistics(self._kept, self._forgotten, self._looks, self._failed, self._orders.qsize())

    # The port

    def open(self, contents: Contents) -> None:
        self._contents = contents

    def close(self) -> None:
        self._contents = None

    def keep(self, identifier: str, publication: Publication) -> None:
        self._orders.put_nowait(partial(self._keep, identifier, publication))

    def forget(self, identifier: str) -> None:
        self._orders.put_nowait(partial(self._forget, identifier))

    # What is ordered is done in its turn

    def _look_soon(self) -> None:
        if self._contents is not None and self._orders.empty():
            self._orders.put_nowait(self._look)

    async def _work(self) -> None:
        while (order := await self._orders.get()) is not None:
            try:
                await order()
            except TimedOut as problem:
                self.problem = problem
                self._orders.put_nowait(order)
                if self._contents is None:
                    return  # the host has left, and the broker cannot be reached
            except NearcastError as problem:
                self._failed += 1
                self.problem = problem

    async def _keep(self, identifier: str, publication: Publication) -> None:
        metadata = publication.metadata
        origin = {OWNER: metadata.key.owner, NAME: metadata.key.name}
        await self._client.publish(
            self._topic, publication.content, id=identifier, place=None, tags=metadata.tags, attributes=origin
        )
        self._kept += 1

    async def _forget(self, identifier: str) -> None:
        await self._client.unpublish(identifier)
        self._forgotten += 1

    async def _look(self) -> None:
        found: dict[str, Archived] = {}
        async for event in self._client.subscribe(self._topic, since=SINCE, until="now", retained=False):
            found[event.id] = self._archived(event)
        self._looks += 1
        # As a callback of the host: whatever is raised there is reported as ever.
        self._host.timers.after(0.0, partial(self._tell, found))

    def _tell(self, found: dict[str, Archived]) -> None:
        if self._contents is not None:
            self._contents(found)

    def _archived(self, event: Event) -> Archived:
        owner, name = event.attributes.get(OWNER), event.attributes.get(NAME)
        origin = ObjectKey(owner, name) if isinstance(owner, str) and isinstance(name, str) else None
        return Archived(tuple(sorted(event.tags)) or (self._venue,), event.payload, origin)
