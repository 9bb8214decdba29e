"""One subscription that begins in the past, on its way to the present: how far it has come, and what waits for it.

What gives it the stored events is ``replaying``; all of them are in ``replays``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.temporal.held_back import HeldBackMessages, hold_back
from nearcast.broker.temporal.stored_events import Inquiry
from nearcast.model.time import Instant
from nearcast.model.topic import topic_matches

WINDOW: Final = 128
"""Stored events that one subscription may have on their way."""


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
    held_back: HeldBackMessages
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

    def hold_restored(self) -> None:
        """Messages that were held back when the broker fell are owed, and so in the queue: they wait again."""
        session, boundary = self.session, self.inquiry.boundary
        others = [held for held in session.held.values() if held is not self.held]
        queue, session.queue = session.queue, type(session.queue)()
        for out in queue:
            message = out.message
            alone = (
                message.offset is not None
                and message.offset >= boundary
                and topic_matches(self.held.subscription.topic, message.topic)
                and not any(topic_matches(held.subscription.topic, message.topic) for held in others)
            )
            if not alone or not hold_back([self.held_back], message, out.qos, out.identifiers, out.near, out.retain):
                session.queue.append(out)

    async def something_happens(self, until: Callable[[], bool]) -> None:
        """Until that is so."""
        while not until():
            self.asked.clear()
            await self.asked.wait()

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
        """If all that asked for the message are still catching up; the first that has done so gives it out."""
        queues = []
        for each in held:
            replay = self.all.get(each.subscription.id)
            if replay is None or replay.live:
                return False
            queues.append(replay.held_back)
        return bool(queues) and hold_back(queues, message, qos, identifiers, near, retain)

    def go_on(self) -> None:
        for replay in self.all.values():
            replay.asked.set()
