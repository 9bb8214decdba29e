"""Subscriptions that begin in the past: first what is stored, in its order, then what comes; nothing missing, nothing twice.

The seam is an offset of the journal, taken in the same turn of the loop in which the router begins to know the subscription:
an event below it was routed before, one above it afterwards, and each event has one offset.  So what is stored is read up to
there, live messages for that subscription alone are held back meanwhile, and nobody has to compare anything.

A message that another subscription of the client asked for as well goes out at once, for both: one copy per client
(product.md); a new subscription into the past replays for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from nearcast.broker.background import Background
from nearcast.broker.entries import message_in
from nearcast.broker.holding import Holding, read_again
from nearcast.broker.message import Message
from nearcast.broker.past import Inquiry, StoredEvents, Withdrawn
from nearcast.broker.presence import Presence
from nearcast.broker.session import Held, Session
from nearcast.errors import InvalidProperty, NearcastError
from nearcast.journal import Journal, Put, Then
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.model.topic import topic_matches
from nearcast.mqtt import names
from nearcast.mqtt.requests import subscription_id

REPLAYS: Final = "replays"
HIGHEST_STORED_QOS: Final = 1
WINDOW: Final = 128
"""Stored events that one subscription may have on their way."""

MADE_AT_ONCE: Final = 256
"""Messages that are made of what was read in one step of the worker."""

MOST_READING: Final = 32
"""Replays that have the journal open, and a part of it in memory, at the same time; the others wait for their turn."""

SOON: Final = 0.5
"""Seconds for which one of them waits for its client to take what it has read, before it lets another one read."""

IN_A_ROW: Final = 32
"""Given out before others get a turn of the loop."""

log: Final = logging.getLogger("nearcast.broker")


class ReplayRow(msgspec.Struct, frozen=True, array_like=True):
    boundary: int
    at: Instant
    lat: float | None
    lon: float | None
    batch: int | None
    allowed: int
    """So many may be given out before the client is to ask for more."""

    cursor: int
    """Everything below is confirmed."""

    given: int
    """How many that was."""


@dataclass(frozen=True, slots=True)
class ReplayStatistics:
    under_way: int
    waiting: int
    """Of these, the ones whose client is to ask for more."""

    begun: int
    given: int
    held_back: int


@dataclass(slots=True, eq=False, repr=False)
class Given:
    """Stored events on their way, and how far everything is confirmed."""

    cursor: int
    count: int
    """Given out in all."""

    on_their_way: dict[int, None] = field(default_factory=dict)
    changed: Callable[[], None] = lambda: None

    def out(self, offset: int) -> None:
        self.count += 1
        self.on_their_way[offset] = None

    def confirmed(self, offset: int) -> None:
        self.on_their_way.pop(offset, None)
        self.cursor = next(iter(self.on_their_way), max(self.cursor, offset + 1))
        self.changed()

    @property
    def confirmed_count(self) -> int:
        return self.count - len(self.on_their_way)


@dataclass(slots=True, eq=False, repr=False)
class Replay:
    """One subscription on its way from the past to the present."""

    session: Session
    held: Held
    inquiry: Inquiry
    batch: int | None
    allowed: int
    given: Given
    holding: Holding
    total: int | None = None
    """How many there were when the client subscribed."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Something happened that it may have waited for."""

    task: asyncio.Task[None] | None = None
    live: bool = False
    """Everything that was stored has been given out."""

    stored: bool = False
    """There is a row of it on disk, or on its way there."""

    is_waiting: bool = False
    """For the client to ask for more."""

    @property
    def is_full(self) -> bool:
        """A batch is complete."""
        return self.batch is not None and self.given.count >= self.allowed

    def has_room(self) -> bool:
        connection = self.session.connection
        return (
            connection is not None
            and not connection.congested
            and len(self.session.queue) < WINDOW
            and len(self.given.on_their_way) < WINDOW
        )

    def row(self) -> ReplayRow:
        inquiry, position = self.inquiry, self.inquiry.position
        lat, lon = (None, None) if position is None else (position.lat, position.lon)
        return ReplayRow(
            inquiry.boundary,
            inquiry.at,
            lat,
            lon,
            self.batch,
            self.allowed,
            self.given.cursor,
            self.given.confirmed_count,
        )


@dataclass(slots=True, eq=False, repr=False)
class SessionReplays:
    """Those of one session."""

    all: dict[str, Replay] = field(default_factory=dict)

    def hold_back(
        self, held: tuple[Held, ...], message: Message, qos: int, identifiers: tuple[int, ...], near: bool, retain: bool
    ) -> bool:
        """If all that asked for the message are still catching up."""
        replay = None
        for each in held:
            replay = self.all.get(each.subscription.id)
            if replay is None or replay.live:
                return False
        return replay is not None and replay.holding.add(message, qos, identifiers, near, retain)

    def go_on(self) -> None:
        for replay in self.all.values():
            replay.asked.set()


@dataclass(slots=True, eq=False, repr=False)
class Replays:
    """All of them."""

    journal: Journal
    presence: Presence
    background: Background
    withdrawn: Withdrawn
    now: Callable[[], Instant]
    _replays: dict[str, SessionReplays] = field(default_factory=dict)
    _unsaved: dict[str, Replay] = field(default_factory=dict)
    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_READING))
    _begun: int = 0
    _given: int = 0

    def statistics(self) -> ReplayStatistics:
        replays = [replay for those in self._replays.values() for replay in those.all.values()]
        return ReplayStatistics(
            len(replays),
            sum(replay.is_waiting for replay in replays),
            self._begun,
            self._given,
            sum(len(replay.holding.waiting) for replay in replays),
        )

    # What clients ask for

    def begin(self, session: Session, held: Held, batch: int | None) -> list[Put]:
        """In the same turn in which the router is told of the subscription; what is to be written with it."""
        self.end(session, held)
        inquiry = Inquiry(
            session.identity,
            held.subscription,
            self.now(),
            self.presence.position(session.client),
            self.journal.head,
        )
        replay = self._replay(session, held, inquiry, batch, batch or 0, 0, 0)
        self._begun += 1
        return [self._put(session, held, replay)] if session.durable else []

    def start(self, session: Session, held: Held) -> None:
        """The subscription, and all that was written before it, is on disk."""
        replay = self._find(session, held.subscription.id)
        if replay is not None and replay.held is held and replay.task is None:
            replay.task = asyncio.get_running_loop().create_task(self._run(replay))

    def end(self, session: Session, held: Held) -> None:
        """The subscription is not wanted any more."""
        replay = self._find(session, held.subscription.id)
        if replay is None:
            return
        if replay.task is not None:
            replay.task.cancel()
        self._forget(replay)
        replay.holding.release()

    def more(self, session: Session, topic_filter: str, name: str, then: Then | None) -> None:
        """The next batch."""
        replay = self._asked_for(session, topic_filter, name)
        if replay.batch is not None:
            replay.allowed = replay.given.count + replay.batch
        self._answered(replay, then)

    def enough(self, session: Session, topic_filter: str, name: str, then: Then | None) -> None:
        """No more of what is stored; what comes, from now on."""
        replay = self._asked_for(session, topic_filter, name)
        replay.inquiry = replace(replay.inquiry, boundary=min(replay.inquiry.boundary, self._reached(replay)))
        replay.batch = None
        self._answered(replay, then)

    def _asked_for(self, session: Session, topic_filter: str, name: str) -> Replay:
        replay = self._find(session, subscription_id(topic_filter, name))
        if replay is None:
            named = f" of the name {name!r:.60}" if name else ""
            raise InvalidProperty(
                f"no stored events are waiting for a subscription to {topic_filter!r:.80}{named}; subscribe with {names.SINCE} first"
            )
        return replay

    def _answered(self, replay: Replay, then: Then | None) -> None:
        replay.is_waiting = False
        replay.asked.set()
        puts = [self._put(replay.session, replay.held, replay)] if replay.session.durable else []
        if puts or then is not None:
            self.journal.write(puts=puts, then=then)

    @staticmethod
    def _reached(replay: Replay) -> int:
        return max([replay.given.cursor, *(offset + 1 for offset in replay.given.on_their_way)])

    # One replay

    async def _run(self, replay: Replay) -> None:
        try:
            if replay.batch is not None:
                replay.total = replay.given.count + await self._count(replay)
            await self._give_stored(replay)
            await self._give_held_back(replay)
        except NearcastError as error:
            # The subscription goes on with what comes: to end it would lose that as well.
            log.warning("stored events of %r for %r: %s", replay.held.filter, replay.session.client, error)
            await self._give_held_back(replay)

    async def _count(self, replay: Replay) -> int:
        events = StoredEvents(self.journal, replay.inquiry, self.withdrawn)
        async with self._reading:
            work = self.background.start(events.chunks(replay.given.cursor))
            try:
                count = 0
                while (chunk := await work.next()) is not None:
                    count += len(chunk)
                return count
            finally:
                work.close()

    async def _give_stored(self, replay: Replay) -> None:
        first: int | None = replay.given.cursor
        while first is not None:
            async with self._reading:
                first = await self._give_some(replay, first)
            if first is not None:
                # That may last: nothing is kept open or in memory meanwhile.
                replay.is_waiting = replay.is_full
                await self._something_happens(replay, lambda: not replay.is_full and replay.has_room())
                replay.is_waiting = False

    async def _give_some(self, replay: Replay, first: int) -> int | None:
        """Until the client takes no more; where to go on then, or none: that was all."""
        work = self.background.start(self._messages(replay.inquiry, first))
        waiting: list[tuple[int, Message]] = []  # in the order of the end: the next one last
        try:
            while True:
                # One ahead: the last of a batch says whether there are more.
                while len(waiting) < 2 and (chunk := await work.next()) is not None:
                    waiting = [*reversed(chunk), *waiting]
                if not waiting or waiting[-1][0] >= replay.inquiry.boundary:
                    return None
                if replay.is_full or not await self._has_room_soon(replay):
                    return waiting[-1][0]
                offset, message = waiting.pop()
                self._give(replay, offset, message, last=not waiting)
                if not replay.given.count % IN_A_ROW:
                    await asyncio.sleep(0)
        finally:
            work.close()

    async def _has_room_soon(self, replay: Replay) -> bool:
        if replay.has_room() or replay.session.connection is None:
            return replay.has_room()
        try:
            async with asyncio.timeout(SOON):
                await self._something_happens(replay, replay.has_room)
        except TimeoutError:
            return False
        return True

    def _messages(self, inquiry: Inquiry, first: int) -> Generator[list[tuple[int, Message]], None, None]:
        for chunk in StoredEvents(self.journal, inquiry, self.withdrawn).chunks(first):
            for start in range(0, len(chunk), MADE_AT_ONCE):
                yield [(offset, message_in(entry, offset)) for offset, entry in chunk[start : start + MADE_AT_ONCE]]

    def _give(self, replay: Replay, offset: int, message: Message, *, last: bool) -> None:
        session, held, given = replay.session, replay.held, replay.given
        if offset in self.withdrawn or (message.expires is not None and message.expires <= self.now()):
            return
        # It is not among what is owed since its publication: the row of the replay says how far it has come.
        message.offset, message.of = None, offset
        qos = min(message.qos, held.qos, HIGHEST_STORED_QOS)
        given.out(offset)
        self._given += 1
        if replay.batch is not None and (last or given.count >= replay.allowed):
            total = given.count if last else max(replay.total or 0, given.count + 1)
            message.near_properties = (*message.near_properties, (names.PAST, f"{given.count} of {total}"))
        session.deliver(message, qos, held.identifiers, near=held.near, confirmed=lambda: given.confirmed(offset))
        if not qos:
            given.confirmed(offset)

    @staticmethod
    async def _something_happens(replay: Replay, until: Callable[[], bool]) -> None:
        while not until():
            replay.asked.clear()
            await replay.asked.wait()

    async def _give_held_back(self, replay: Replay) -> None:
        """What came meanwhile; when nothing of it is left, the subscription is like any other."""
        holding, session = replay.holding, replay.session
        count = 0
        while holding.waiting:
            again: dict[int, Message] = {}
            offsets = holding.unread()
            if offsets:
                work = self.background.start(read_again(self.journal, offsets))
                try:
                    while (chunk := await work.next()) is not None:
                        again.update(chunk)
                finally:
                    work.close()
            for _ in range(min(len(offsets) or 1, len(holding.waiting))):
                await self._something_happens(replay, replay.has_room)
                if not holding.waiting:
                    break
                each = holding.take()
                message = each.message or again.get(each.offset or -1)
                if message is not None:
                    session.deliver(message, each.qos, each.identifiers, near=each.near, retain=each.retain)
                elif each.offset is not None:
                    session.give_up(each.offset)  # retention was faster
                count += 1
                if not count % IN_A_ROW:
                    await asyncio.sleep(0)
        replay.live = True
        self._confirmed(replay)

    # On disk

    def _confirmed(self, replay: Replay) -> None:
        if replay.live and not replay.given.on_their_way:
            self._forget(replay)
        elif replay.session.durable:
            self._unsaved[_key(replay.session, replay.held)] = replay

    def flush(self) -> None:
        """Write how far each has come; what gets lost of that is given out again."""
        unsaved, self._unsaved = self._unsaved, {}
        puts = [self._put(replay.session, replay.held, replay) for replay in unsaved.values() if replay.session.alive]
        if puts:
            self.journal.write(puts=puts)

    def _put(self, session: Session, held: Held, replay: Replay | None) -> Put:
        value = None if replay is None else msgspec.msgpack.encode(replay.row())
        if replay is not None:
            replay.stored = True
        return Put(REPLAYS, _key(session, held), value)

    def _forget(self, replay: Replay) -> None:
        session, held = replay.session, replay.held
        replay.live = True  # nothing is held back for it any more
        those = self._replays.get(session.client)
        if those is None or those.all.get(held.subscription.id) is not replay:
            return
        del those.all[held.subscription.id]
        if not those.all:
            del self._replays[session.client]
            session.catching_up = None
        self._unsaved.pop(_key(session, held), None)
        if replay.stored:  # whether or not the session still lasts
            self.journal.write(puts=[self._put(session, held, None)])

    def _find(self, session: Session, held_id: str) -> Replay | None:
        those = self._replays.get(session.client)
        return None if those is None else those.all.get(held_id)

    def _replay(
        self, session: Session, held: Held, inquiry: Inquiry, batch: int | None, allowed: int, cursor: int, count: int
    ) -> Replay:
        given = Given(cursor, count)
        replay = Replay(session, held, inquiry, batch, allowed, given, Holding(session))
        given.changed = lambda: self._confirmed(replay)
        those = self._replays.setdefault(session.client, SessionReplays())
        those.all[held.subscription.id] = replay
        session.catching_up = those
        return replay

    def load(self, sessions: dict[str, Session]) -> None:
        """After a restart, when subscriptions and messages are back: go on from what was confirmed."""
        orphans = []
        for key, data in self.journal.load(REPLAYS).items():
            client, _, held_id = key.partition("\0")
            session = sessions.get(client)
            held = None if session is None else session.held.get(held_id)
            if session is None or held is None:
                orphans.append(Put(REPLAYS, key, None))
                continue
            row = msgspec.msgpack.decode(data, type=ReplayRow)
            position = None if row.lat is None or row.lon is None else Point(row.lat, row.lon)
            inquiry = Inquiry(session.identity, held.subscription, row.at, position, row.boundary)
            allowed = max(row.allowed, row.given)
            replay = self._replay(session, held, inquiry, row.batch, allowed, row.cursor, row.given)
            replay.stored = True
            _hold_restored(replay)
            self.start(session, held)
        if orphans:
            self.journal.write(puts=orphans)

    def rows_of(self, _offsets: set[int]) -> list[Put]:
        """Of events that are unpublished: none, since rows hold no events."""
        return []

    def withdraw(self, offsets: set[int]) -> None:
        """These were unpublished."""
        for those in self._replays.values():
            for replay in those.all.values():
                replay.holding.withdraw(offsets)

    def close(self) -> None:
        """End everything; what is on disk says where to go on."""
        self.flush()
        for those in self._replays.values():
            for replay in those.all.values():
                if replay.task is not None:
                    replay.task.cancel()


def _key(session: Session, held: Held) -> str:
    return f"{session.client}\0{held.subscription.id}"


def _hold_restored(replay: Replay) -> None:
    """Messages that were held back when the broker fell are owed, and so in the queue: they wait again."""
    session, boundary = replay.session, replay.inquiry.boundary
    others = [held for held in session.held.values() if held is not replay.held]
    queue, session.queue = session.queue, type(session.queue)()
    for out in queue:
        message = out.message
        alone = (
            message.offset is not None
            and message.offset >= boundary
            and topic_matches(replay.held.subscription.topic, message.topic)
            and not any(topic_matches(held.subscription.topic, message.topic) for held in others)
        )
        if not alone or not replay.holding.add(message, out.qos, out.identifiers, out.near, out.retain):
            session.queue.append(out)
