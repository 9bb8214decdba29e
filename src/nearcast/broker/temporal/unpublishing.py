"""Taking an event back: from its unpublishing on nothing of it is delivered; what was delivered before stands (product.md)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from nearcast.broker.on_disk import on_disk
from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.retained import RETAINED, Retained
from nearcast.broker.sessions.session import Session
from nearcast.broker.sessions.sessions import Sessions
from nearcast.broker.temporal.background import Background
from nearcast.errors import Denied, JournalFailed, NearcastError, OffsetTrimmed, QuotaExceeded, UnknownName
from nearcast.journal import EventEntry, Journal, Put, Then, UnpublishEntry
from nearcast.model.time import Instant

FIRST_LOOK: Final = 20_000
"""Records looked at first, from the newest on; each further look is four times as long."""

MOST_AT_ONCE: Final = 8
"""Of one client: each may mean to look through the whole journal."""

Answer = Callable[[NearcastError | None], None]
Found = list[tuple[int, EventEntry]]


class Keeper(Protocol):
    """Whoever keeps copies of events to deliver them later."""

    def rows_of(self, offsets: set[int]) -> list[Put]:
        """What is to be written when these are unpublished."""

    def withdraw(self, offsets: set[int]) -> None:
        """These were unpublished."""


class Elsewhere(Protocol):
    """Other brokers of the same federation."""

    def key(self, client: str, event: str) -> str:
        """Under which all brokers recognise an event of that client."""

    def unpublish(self, event: str, keys: Iterable[str]) -> tuple[list[Put], Then]:
        """What is to be written so that they hear of it, and what to tell when that is decided."""


@dataclass(frozen=True, slots=True)
class UnpublishingStatistics:
    unpublished: int
    """Events that are still in the journal."""

    refused: int


@dataclass(slots=True, eq=False, repr=False)
class Unpublishing:
    """``offsets`` are those of all events that were unpublished, as far as the journal goes back."""

    journal: Journal
    sessions: Sessions
    retained: Retained
    background: Background
    now: Callable[[], Instant]
    keepers: list[Keeper] = field(default_factory=list)
    elsewhere: Elsewhere | None = None
    offsets: set[int] = field(default_factory=set)
    _refused: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _looking: Counter[str] = field(default_factory=Counter)

    def statistics(self) -> UnpublishingStatistics:
        return UnpublishingStatistics(len(self.offsets), self._refused)

    def unpublish(self, session: Session, event: str, answer: Answer, *, others: bool = False) -> None:
        """Take the event of that id back; ``others``: the client may do so with what somebody else published."""
        if self._looking[session.identity] >= MOST_AT_ONCE:
            raise QuotaExceeded(f"{MOST_AT_ONCE} events are being taken back already; wait for an answer")
        self._looking[session.identity] += 1
        task = asyncio.get_running_loop().create_task(self._unpublish(session, event, answer, others))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def taken_back(self, event: str, key: str, puts: Sequence[Put], then: Then) -> None:
        """At another broker: whatever is here of the event of that key; ``puts`` are written with that."""
        task = asyncio.get_running_loop().create_task(self._taken_back(event, key, puts, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _taken_back(self, event: str, key: str, puts: Sequence[Put], then: Then) -> None:
        try:
            await on_disk(self.journal)
            work, found = self.background.start(found_by_id(self.journal, event)), Found()
            try:
                while (some := await work.next()) is not None:
                    found += [each for each in some if each[0] not in self.offsets and each[1].key == key]
            finally:
                work.close()
            await self._write(found, puts)
        except NearcastError as error:
            then(error if isinstance(error, JournalFailed) else JournalFailed(str(error)))
        else:
            then(None)

    async def _unpublish(self, session: Session, event: str, answer: Answer, others: bool) -> None:
        identity = session.identity
        try:
            key = None if self.elsewhere is None else self.elsewhere.key(session.client, event)
            found = await self._found(event, None if others else identity, key)
            if self.elsewhere is None or key is None:
                await self._write(found)
            else:
                keys = {entry.key for _, entry in found if entry.key is not None} or {key}
                puts, written = self.elsewhere.unpublish(event, keys)
                try:
                    await self._write(found, puts)
                except JournalFailed as failed:
                    written(failed)
                    raise
                written(None)
        except NearcastError as error:
            self._refused += 1
            answer(error)
        else:
            answer(None)
        finally:
            self._looking[identity] -= 1
            if not self._looking[identity]:
                del self._looking[identity]

    async def _found(self, event: str, publisher: str | None, key: str | None) -> Found:
        """What that publisher, or anybody, published under that id and is there.  ``key``: of the publisher's event, which may have
        come from another broker, or be only there.
        """
        await on_disk(self.journal)  # what is on its way to the disk may be what is meant
        work = self.background.start(found_by_id(self.journal, event))
        foreign = False
        try:
            while (found := await work.next()) is not None:
                there = [each for each in found if each[0] not in self.offsets]
                own = [each for each in there if publisher in {None, each[1].publisher} or key == (each[1].key or "")]
                if own:
                    return own
                foreign = foreign or bool(there)
        finally:
            work.close()
        if key is not None and not foreign:
            return []
        raise _refusal(event, foreign=foreign)

    async def _write(self, found: Found, more: Sequence[Put] = ()) -> None:
        at = self.now()
        gone = {offset for offset, _ in found}
        entries = [UnpublishEntry(at, entry.id, offset) for offset, entry in found]
        puts = [put for keeper in self.keepers for put in keeper.rows_of(gone)]
        topics = [entry.topic for _, entry in found if self._retains(entry)]
        puts += [Put(RETAINED, topic, None) for topic in topics]
        await on_disk(self.journal, entries, [*puts, *more])
        self.offsets |= gone
        for _, entry in found:
            if self._retains(entry):
                self.retained.forget(entry.topic)
        for keeper in self.keepers:
            keeper.withdraw(gone)
        for session in self.sessions:
            session.withdraw(lambda message: _origin(message) in gone)

    def _retains(self, entry: EventEntry) -> bool:
        message = self.retained.messages.get(entry.topic)
        return message is not None and message.event == entry.id

    def load(self) -> None:
        """After a restart."""
        for chunk in self.journal.read(self.journal.oldest, kinds=(UnpublishEntry,)):
            self.offsets.update(
                entry.offset for _, entry in chunk if type(entry) is UnpublishEntry and entry.offset is not None
            )

    def tidy(self) -> None:
        """Forget those that retention has deleted."""
        oldest = self.journal.oldest
        self.offsets -= {offset for offset in self.offsets if offset < oldest}

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def found_by_id(journal: Journal, event: str) -> Generator[Found, None, None]:
    """Events of that id, the newest stretch first; for a worker thread."""
    last, size = journal.head, FIRST_LOOK
    while last > journal.oldest:
        first = max(journal.oldest, last - size)
        try:
            for chunk in journal.read(first, last, kinds=(EventEntry,)):
                yield [(offset, entry) for offset, entry in chunk if type(entry) is EventEntry and entry.id == event]
        except OffsetTrimmed:
            continue
        last, size = first, size * 4


def _origin(message: Message) -> int | None:
    return message.offset if message.of is None else message.of


def _refusal(event: str, *, foreign: bool) -> NearcastError:
    if foreign:
        return Denied(f"event {event!r:.80} was published by somebody else; only its publisher can take it back")
    return UnknownName(
        f"there is no event {event!r:.80}: it was never kept (quality 0 without place, context or time), has been "
        "unpublished already, or is older than the journal"
    )
