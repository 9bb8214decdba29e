"""A broker as the archive of a crowd: the port ``Archive`` of ``nearcast.crowdstore``, over a client.

Objects are events of the topic ``crowd/VENUE``: tags are tags, the content is the payload (sealed as it was), and attributes say whose
object it is and all else that its owner said of it.  Beside it bridges keep two topics for each other:

- ``crowd/VENUE/withdrawn`` has the words by which owners withdrew objects.  Only who has published an event may take it back at the
  broker; so the bridge that took the object up does so when it reads this, if need be when it returns, and to all bridges it is gone.
- ``crowd/VENUE/bookmark`` has an event without a meaning.  A broker tells nobody that an event was taken back, so what is missing is how
  one finds out; but retention deletes as well, the oldest first.  What is missing although something older is there was taken back.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from nearcast.client.client import Client
from nearcast.crowdstore.bridge import Archived, Contents, identifier_of, withdrawal_in
from nearcast.crowdstore.objects import Metadata, Publication, Withdrawal
from nearcast.errors import Denied, InvalidEvent, InvalidInput, NearcastError, TimedOut
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.time import to_text as instant_text
from nearcast.runtime.host import Component, Host

TOPIC: Final = "crowd/"
OWNER: Final = "crowd_owner"
NAME: Final = "crowd_name"
METADATA: Final = "crowd_metadata"
"""The attribute with all that the owner said of its object: MessagePack, in base 64."""

PERIOD: Final = 10.0
"""Seconds between two looks into the archive."""

OVERLAP: Final = 5.0
"""Seconds by which looks for what is new overlap: events do not come in the exact order of their publication."""

RATE: Final = 100_000
"""Bytes a second, on average, that looks at all that is there may read: they find what was taken back."""

HEAD: Final = 1_000
"""Bytes of an event that are not its payload, roughly."""

SINCE: Final = "1970-01-01T00:00:00Z"

log: Final = logging.getLogger(__name__)

_metadata: Final = msgspec.msgpack.Decoder(Metadata).decode


@dataclass(frozen=True, slots=True)
class MqttArchiveStatistics:
    kept: int
    forgotten: int
    looks: int
    whole: int
    """Of these, the ones at all that is there."""

    failed: int
    """Orders that the broker refused; those that only took too long are tried again."""

    foreign: int
    """Events that are withdrawn and still there, because another bridge has published them."""

    unreadable: int
    """Events that claim to be objects of a crowd, or withdrawals, and are none."""

    waiting: int


class MqttArchive(Component):
    """A component of a live host, before its ``Bridge``, to which it is handed.  The client belongs to whoever made it."""

    def __init__(self, client: Client, venue: str, *, period: float = PERIOD) -> None:
        if not venue or any(sign in venue for sign in "#+\0"):
            raise InvalidInput(f"{venue!r} cannot be a part of a topic; a venue is called such as 'stadium'")
        self._client: Final = client
        self._topic: Final = TOPIC + venue
        self._withdrawals: Final = f"{self._topic}/withdrawn"
        self._bookmarks: Final = f"{self._topic}/bookmark"
        self._venue: Final = venue
        self._period: Final = period
        self._orders: Final[deque[Callable[[], Awaitable[object]] | None]] = deque()
        self._ordered: Final = asyncio.Event()
        self._contents: Contents | None = None
        self._worker: asyncio.Task[None] | None = None

        self._known: Final[dict[str, Instant]] = {}
        """Ids of events that have been read, and when each was published."""

        self._expected: Final[dict[str, Instant]] = {}
        """The same of events that the crowd has from here: those of them that are not there were taken back in an earlier life."""

        self._gone: Final[dict[str, Withdrawal]] = {}
        """Ids of objects that their owners have withdrawn, here or elsewhere."""

        self._foreign: Final[dict[str, None]] = {}
        """Of these, those that another bridge has to take back."""

        self._newest = self._since = 0
        """When the newest event was published, and what was published since when may be new."""

        self._newest_found = self._whole_due = 0.0
        """By the clock of the event loop."""

        self._kept = self._forgotten = self._looks = self._whole = self._failed = self._unreadable = 0
        self.problem: NearcastError | None = None
        """Why the last order failed that did."""

        self._host: Host

    def start(self, host: Host) -> None:
        self._host = host
        self._worker = asyncio.create_task(self._work())
        host.timers.every(self._period, self._look_soon, first=0.0)

    def stop(self) -> None:
        """What has been ordered is still done."""
        self._order(None)

    async def done(self) -> None:
        """Wait until there is nothing more to do, after the host has left."""
        if self._worker is not None:
            self.stop()
            await self._worker

    def statistics(self) -> MqttArchiveStatistics:
        return MqttArchiveStatistics(
            self._kept, self._forgotten, self._looks, self._whole, self._failed, len(self._foreign), self._unreadable,
            len(self._orders),
        )  # fmt: skip

    # The port

    def open(self, contents: Contents) -> None:
        self._contents = contents

    def close(self) -> None:
        self._contents = None

    def expect(self, identifier: str, published: Instant) -> None:
        self._expected[identifier] = published

    def keep(self, identifier: str, publication: Publication) -> None:
        self._order(partial(self._keep, identifier, publication))

    def forget(self, identifier: str, word: Withdrawal) -> None:
        self._gone[identifier] = word
        self._order(partial(self._forget, identifier, word))

    # What is ordered is done in its turn: what is withdrawn must not be there before it is published

    def _order(self, order: Callable[[], Awaitable[object]] | None) -> None:
        self._orders.append(order)
        self._ordered.set()

    def _look_soon(self) -> None:
        if self._contents is not None and not self._orders:
            self._order(self._look)

    async def _work(self) -> None:
        while True:
            while not self._orders:
                self._ordered.clear()
                await self._ordered.wait()
            order = self._orders[0]
            if order is None:
                return
            try:
                await order()
            except TimedOut as problem:
                self.problem = problem
                if self._contents is None:
                    return  # the host has left, and the broker cannot be reached
                continue
            except NearcastError as problem:
                self._failed += 1
                self.problem = problem
                log.warning("archive of %s: %s", self._venue, problem)
            self._orders.popleft()

    async def _keep(self, identifier: str, publication: Publication) -> None:
        await self._look()  # another bridge may have been faster
        if identifier in self._known or identifier in self._gone:
            return
        metadata = publication.metadata
        said = {
            OWNER: metadata.key.owner,
            NAME: metadata.key.name,
            METADATA: base64.b64encode(msgspec.msgpack.encode(metadata)).decode(),
        }
        await self._client.publish(
            self._topic, publication.content, id=identifier, place=None, tags=metadata.tags, attributes=said
        )
        self._kept += 1

    async def _forget(self, identifier: str, word: Withdrawal) -> None:
        await self._take_back(identifier)
        await self._client.publish(
            self._withdrawals, msgspec.msgpack.encode(word), id=f"withdrawn-{identifier}", place=None
        )
        self._forgotten += 1

    async def _take_back(self, identifier: str) -> None:
        try:
            await self._client.unpublish(identifier)
        except Denied as problem:
            self._foreign[identifier] = None
            log.info("archive of %s: the bridge that has published it takes it back: %s", self._venue, problem)
        except InvalidEvent:
            pass  # it is not there

    async def _look(self) -> None:
        """At what is new, or at everything if it is time."""
        loop, connections = asyncio.get_running_loop(), self._connections()
        begun, expected = loop.time(), {**self._expected, **self._known}
        whole = begun >= self._whole_due
        since = SINCE if whole else instant_text(self._since)
        times: dict[str, Instant] = {}
        found: dict[str, Event] = {}
        marked, size = False, 0
        async for event in self._client.subscribe(f"{self._topic}/#", since=since, until="now", retained=False):
            if event.topic not in (self._topic, self._withdrawals, self._bookmarks):
                continue  # of another venue, whose name goes on after a slash
            marked = marked or event.topic == self._bookmarks
            times[event.id] = event.published
            size += HEAD + len(event.payload)
            if event.id not in self._known:
                found[event.id] = event
        self._looks += 1
        newest = max(times.values(), default=0)
        if newest > self._newest:
            self._newest, self._newest_found = newest, begun
            self._since = newest - round(OVERLAP * MICROSECONDS)
        elif begun - self._newest_found >= OVERLAP:
            self._since = self._newest
        self._known.update((identifier, event.published) for identifier, event in found.items())
        gone: dict[str, Withdrawal | None] = {}
        # While the connection was lost, the broker may not have told everything.
        if whole and connections == self._connections():
            self._whole += 1
            self._whole_due = loop.time() + max(self._period, size / RATE)
            gone.update(dict.fromkeys(self._missing(expected, times)))
            if not marked:
                self._order(self._mark)
        gone.update(self._words(found.values()))
        news = self._news(found.values())
        # As a callback of the host: whatever is raised there is reported as ever.
        self._host.timers.after(0.0, partial(self._tell, news, gone))

    async def _mark(self) -> None:
        await self._client.publish(self._bookmarks, place=None, attributes={"crowd_venue": self._venue})

    def _missing(self, expected: Mapping[str, Instant], times: Mapping[str, Instant]) -> Iterator[str]:
        """What was taken back; what retention has deleted is only known no more."""
        oldest = min(times.values(), default=None)
        for identifier, published in expected.items():
            if identifier not in times:
                for known in (self._known, self._expected, self._foreign):
                    known.pop(identifier, None)
                if oldest is not None and oldest < published:
                    yield identifier

    def _words(self, found: Iterable[Event]) -> dict[str, Withdrawal]:
        """Of owners who withdraw something; what of that is from here is taken back."""
        words: dict[str, Withdrawal] = {}
        for event in found:
            if event.topic == self._withdrawals:
                word = withdrawal_in(event.payload)
                if word is None:
                    self._unreadable += 1
                elif identifier_of(word) not in self._gone:
                    words[identifier_of(word)] = word
        self._gone.update(words)
        for identifier in words:
            if identifier in self._known:
                self._order(partial(self._take_back, identifier))
        return words

    def _news(self, found: Iterable[Event]) -> dict[str, Archived]:
        """Of them, what is not withdrawn and can be read."""
        news: dict[str, Archived] = {}
        for event in found:
            if event.topic == self._topic and event.id in self._gone:
                self._order(partial(self._take_back, event.id))
            elif event.topic == self._topic:
                archived = self._archived(event)
                if archived is None:
                    self._unreadable += 1
                else:
                    news[event.id] = archived
        return news

    def _tell(self, news: Mapping[str, Archived], gone: Mapping[str, Withdrawal | None]) -> None:
        if self._contents is not None:
            self._contents(news, gone)

    def _archived(self, event: Event) -> Archived | None:
        said, metadata = event.attributes.get(METADATA), None
        if said is not None or OWNER in event.attributes:
            try:
                metadata = _metadata(base64.b64decode(str(said), validate=True))
            except (msgspec.DecodeError, ValueError, RecursionError):
                return None
        return Archived(event.published, tuple(sorted(event.tags)) or (self._venue,), event.payload, metadata)

    def _connections(self) -> int:
        return self._client.statistics().link.connections
