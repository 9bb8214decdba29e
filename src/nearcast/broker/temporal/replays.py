"""Subscriptions that begin in the past: first what is stored, in its order, then what comes; nothing missing, nothing twice.

The seam is an offset of the journal, taken in the same turn of the loop in which the router begins to know the subscription:
an event below it was routed before, one above it afterwards, and each event has one offset.  So what is stored is read up to
there, live messages for that subscription alone are held back meanwhile, and nobody has to compare anything.

A message that another subscription of the client asked for as well goes out at once, for both: one copy per client
(product.md); a new subscription into the past replays for itself.  If that one is catching up, too, it goes out for both as soon
as one of them has come to it: none that is in the present waits for one that is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from nearcast.broker.presence import Presence
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.temporal.held_back import HeldBackMessages
from nearcast.broker.temporal.replay import Given, Replay, ReplayRow, SessionReplays
from nearcast.broker.temporal.replaying import Replaying
from nearcast.broker.temporal.stored_events import Inquiry
from nearcast.errors import InvalidProperty
from nearcast.journal import Journal, Put, Then
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.mqtt import names
from nearcast.mqtt.requests import subscription_id

REPLAYS: Final = "replays"


@dataclass(frozen=True, slots=True)
class ReplayStatistics:
    under_way: int
    waiting: int
    """Of these, the ones whose client is to ask for more."""

    begun: int
    given: int
    held_back: int
    """Messages, counted for each subscription that waits for them."""


@dataclass(slots=True, eq=False, repr=False)
class Replays:
    """All of them."""

    journal: Journal
    presence: Presence
    replaying: Replaying
    now: Callable[[], Instant]
    _replays: dict[str, SessionReplays] = field(default_factory=dict)
    _unsaved: dict[str, Replay] = field(default_factory=dict)
    _begun: int = 0

    def statistics(self) -> ReplayStatistics:
        replays = [replay for those in self._replays.values() for replay in those.all.values()]
        return ReplayStatistics(
            len(replays),
            sum(replay.is_waiting for replay in replays),
            self._begun,
            self.replaying.given,
            sum(len(replay.held_back.waiting) for replay in replays),
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
            replay.task = asyncio.get_running_loop().create_task(self.replaying.run(replay))

    def end(self, session: Session, held: Held) -> None:
        """The subscription is not wanted any more."""
        replay = self._find(session, held.subscription.id)
        if replay is None:
            return
        if replay.task is not None:
            replay.task.cancel()
        self._forget(replay)
        replay.held_back.release()

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
        replay = Replay(session, held, inquiry, batch, allowed, given, HeldBackMessages(session))
        given.changed = lambda: self._confirmed(replay)
        those = self._replays.setdefault(session.client, SessionReplays())
        those.all[held.subscription.id] = replay
        session.catching_up = those
        return replay

    def load(self, sessions: dict[str, Session]) -> None:
        """After a restart, when subscriptions and messages are back: go on from what was confirmed."""
        redelivery = []
        for key, data in self.journal.load(REPLAYS).items():
            client, _, held_id = key.partition("\0")
            session = sessions.get(client)
            held = None if session is None else session.held.get(held_id)
            if session is None or held is None:
                redelivery.append(Put(REPLAYS, key, None))
                continue
            row = msgspec.msgpack.decode(data, type=ReplayRow)
            position = None if row.lat is None or row.lon is None else Point(row.lat, row.lon)
            inquiry = Inquiry(session.identity, held.subscription, row.at, position, row.boundary)
            allowed = max(row.allowed, row.given)
            replay = self._replay(session, held, inquiry, row.batch, allowed, row.cursor, row.given)
            replay.stored = True
            replay.hold_restored()
            self.start(session, held)
        if redelivery:
            self.journal.write(puts=redelivery)

    def rows_of(self, _offsets: set[int]) -> list[Put]:
        """Of events that are unpublished: none, since rows hold no events."""
        return []

    def withdraw(self, offsets: set[int]) -> None:
        """These were unpublished."""
        for those in self._replays.values():
            for replay in those.all.values():
                replay.held_back.withdraw(offsets)

    def close(self) -> None:
        """End everything; what is on disk says where to go on."""
        self.flush()
        for those in self._replays.values():
            for replay in those.all.values():
                if replay.task is not None:
                    replay.task.cancel()


def _key(session: Session, held: Held) -> str:
    return f"{session.client}\0{held.subscription.id}"
