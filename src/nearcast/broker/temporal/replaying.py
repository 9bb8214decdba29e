"""How a subscription that begins in the past is given what is stored, at the pace of its client, and then what came meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.publishing.entries import message_in
from nearcast.broker.publishing.message import Message
from nearcast.broker.temporal.background import Background
from nearcast.broker.temporal.held_back import read_again
from nearcast.broker.temporal.replay import Replay
from nearcast.broker.temporal.stored_events import Inquiry, StoredEvents, Withdrawn
from nearcast.errors import NearcastError
from nearcast.journal import Journal
from nearcast.model.time import Instant
from nearcast.mqtt import names

HIGHEST_STORED_QOS: Final = 1
MADE_AT_ONCE: Final = 256
"""Messages that are made of what was read in one step of the worker."""

MOST_READING: Final = 32
"""Replays that have the journal open, and a part of it in memory, at the same time; the others wait for their turn."""

SOON: Final = 0.5
"""Seconds for which one of them waits for its client to take what it has read, before it lets another one read."""

IN_A_ROW: Final = 32
"""Given out before others get a turn of the loop."""

log: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, repr=False)
class Replaying:
    """For all replays of a broker."""

    journal: Journal
    background: Background
    withdrawn: Withdrawn
    now: Callable[[], Instant]
    given: int = 0
    """Stored events, to all of them."""

    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_READING))

    async def run(self, replay: Replay) -> None:
        """From where it is to the present."""
        try:
            if replay.batch is not None:
                replay.total = replay.given.count + await self._count(replay)
            await self._give_stored(replay)
            await self._give_held_back(replay)
        except NearcastError as error:
            # The subscription goes on with what comes: to end it would lose that as well.
            log.warning("stored events for %s: %s", replay.session.identity, error)
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
                await replay.something_happens(lambda: not replay.is_full and replay.has_room())
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
                await replay.something_happens(replay.has_room)
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
        self.given += 1
        if replay.batch is not None and (last or given.count >= replay.allowed):
            total = given.count if last else max(replay.total or 0, given.count + 1)
            message.near_properties = (*message.near_properties, (names.PAST, f"{given.count} of {total}"))
        session.deliver(message, qos, held.identifiers, near=held.near, confirmed=lambda: given.confirmed(offset))
        if not qos:
            given.confirmed(offset)

    async def _give_held_back(self, replay: Replay) -> None:
        """What came meanwhile; when nothing of it is left, the subscription is like any other."""
        held_back = replay.held_back
        count = 0
        while held_back.waiting:
            again: dict[int, Message] = {}
            offsets = held_back.unread()
            wanted = set(offsets)
            if offsets:
                work = self.background.start(read_again(self.journal, offsets))
                try:
                    while (chunk := await work.next()) is not None:
                        again.update(chunk)
                finally:
                    work.close()
            for _ in range(len(offsets) or 1):
                if held_back.waiting:
                    await replay.something_happens(replay.has_room)
                if not held_back.waiting:
                    break
                each = held_back.waiting[0]
                if each.message is None and not each.gone and each.offset not in wanted:
                    break  # others were withdrawn meanwhile, and so it comes earlier than it was read
                held_back.take()
                message = each.message or again.get(each.offset or -1)
                if each.gone:
                    pass  # another subscription was faster
                elif message is not None:
                    held_back.give(each, message)
                else:
                    held_back.give_up(each)  # retention was faster
                count += 1
                if not count % IN_A_ROW:
                    await asyncio.sleep(0)
        replay.live = True
        replay.given.changed()
