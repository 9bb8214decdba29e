"""Events for whoever was in a context (historical), will be (future, until they expire), or both (Contextcast, 6.2).

At publication the recorded past is judged on a worker thread (``context_history``).  An event that can still become relevant is then kept:
each report of a client steps the events that may hold where it was or is, and timers step those that the passing of time decides.
Interest is judged at the moment at which the predicate becomes true; a client gets one copy ever.

Every delivery is recorded, with its receivers, before it goes out: what a durable session is owed is found there after a restart, and
so is who has had the event.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.audit import Audit
from nearcast.broker.known_context import KnownContext
from nearcast.broker.on_disk import on_disk
from nearcast.broker.presence import Presence
from nearcast.broker.publishing import ports
from nearcast.broker.publishing.entries import Owed, entry_of, event_in, message_in
from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.router import Router, Target
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.sessions.sessions import Sessions
from nearcast.broker.temporal.background import Background
from nearcast.broker.temporal.context_history import ContextHistory
from nearcast.broker.temporal.validity import Validities
from nearcast.errors import JournalFailed, NearcastError, QuotaExceeded
from nearcast.journal import DeliveryEntry, EventEntry, Journal, Put
from nearcast.journal.entries import time_of
from nearcast.matching.reach_index import ReachIndex
from nearcast.model.acceptance import accepted
from nearcast.model.delivery import in_area
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant

MOMENTS: Final = "moments"
AT_ONCE: Final = 500
"""Receivers of one record, and of one turn of the loop."""

Later = Callable[[float, Callable[[], None]], object]
"""Has a function called after so many seconds: ``loop.call_later``."""

log: Final = logging.getLogger(__name__)


class AddressedRow(msgspec.Struct, frozen=True, array_like=True):
    offset: int
    judged: bool
    """The past was judged; only what comes matters."""

    event: EventEntry


@dataclass(frozen=True, slots=True)
class AddressingStatistics:
    pending: int
    everywhere: int
    """Of these, the ones that are tested with every report: without a reach, or with a very large one."""

    tested: int
    """Pairs of a pending event and a client whose report may concern it."""

    delivered: int


@dataclass(slots=True, eq=False, repr=False)
class Pending:
    """An event that may still become relevant to somebody."""

    key: str
    event: Event
    entry: EventEntry
    offset: int
    validities: Validities
    ends: Instant | None = None
    done: set[str] = field(default_factory=set)
    """Identities that have had it."""

    backlog: list[tuple[str, Instant, KnownContext]] | None = field(default_factory=list)
    """What changed while the past is being judged."""

    looks: dict[str, Instant] = field(default_factory=dict)
    """When each client is looked at next: one look for all its reports until then, since that one finds when the next is due."""

    withdrawn: bool = False

    @property
    def lapses(self) -> Instant | None:
        lifetime = self.event.lifetime
        return None if lifetime is None else self.event.published + lifetime


@dataclass(slots=True, eq=False, repr=False)
class TemporalAddressing(ports.TemporalAddressing):
    journal: Journal
    sessions: Sessions
    router: Router
    presence: Presence
    background: Background
    now: Callable[[], Instant]
    later: Later
    most: int = 10_000
    most_per_client: int = 100
    most_without_reach: int = 500
    audit: Audit | None = None
    _pending: dict[str, Pending] = field(default_factory=dict)
    _publishers: Counter[str | None] = field(default_factory=Counter)
    _index: ReachIndex = field(default_factory=ReachIndex)
    _known: dict[str, KnownContext] = field(default_factory=dict)
    """Of each client, never changed in place: a worker may be looking."""

    _clients: dict[str, str] = field(default_factory=dict)
    """By their identities."""

    _identities: dict[str, str] = field(default_factory=dict)
    """The same the other way round."""

    _due: list[tuple[Instant, str, str]] = field(default_factory=list)
    """When to look again at which event, because of which client (an empty name: because it ends)."""

    _armed: Instant | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _tested: int = 0
    _delivered: int = 0

    def statistics(self) -> AddressingStatistics:
        return AddressingStatistics(len(self._pending), self._index.everywhere, self._tested, self._delivered)

    # What is published

    def check(self, publisher: Session | None, event: Event) -> None:
        if event.reach is None and self._index.everywhere >= self.most_without_reach:
            raise QuotaExceeded(
                f"{self.most_without_reach} events wait for somebody anywhere, and each is looked at with every report; give it a reach"
            )
        if len(self._pending) >= self.most:
            raise QuotaExceeded(
                f"{self.most} events are waiting for somebody to come into their context; publish it later, or without {_WHEN}"
            )
        if publisher is not None and self._publishers[publisher.identity] >= self.most_per_client:
            raise QuotaExceeded(
                f"{self.most_per_client} events of this client are waiting for their time; unpublish one, or give them a lifetime"
            )

    def row(self, entry: EventEntry, offset: int) -> Put:
        row = AddressedRow(offset, judged=False, event=entry)
        return Put(MOMENTS, _key(entry.publisher, entry.id), msgspec.msgpack.encode(row))

    def publish(self, event: Event, message: Message, publisher: Session | None) -> None:
        assert message.offset is not None
        identity = message.publisher if publisher is None else publisher.identity
        pending = self._keep(event, entry_of(event, message, identity), message.offset)
        self._judge_past(pending, since=None)

    def _keep(self, event: Event, entry: EventEntry, offset: int) -> Pending:
        key = _key(entry.publisher, entry.id)
        if key in self._pending:
            self._forget(self._pending[key])
        pending = Pending(key, event, entry, offset, Validities(event))
        self._pending[key] = pending
        self._publishers[entry.publisher] += 1
        self._index.add(key, event.reach)
        return pending

    def _judge_past(self, pending: Pending, since: Instant | None) -> None:
        task = asyncio.get_running_loop().create_task(self._judged(pending, since))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _judged(self, pending: Pending, since: Instant | None) -> None:
        """``since``: what became true up to then was seen to before a restart."""
        event = pending.event
        interested = self._interested(event)
        history = ContextHistory(
            self.journal,
            event,
            self.journal.head,
            self.now(),
            dict(self._known),
            dict(self._clients),
            None if event.to is not None else interested,  # who takes what is addressed to it may be anybody
        )
        try:
            with contextlib.suppress(JournalFailed):  # what failed is no part of the past
                await on_disk(self.journal)
            work = self.background.start(history.run())
            try:
                await work.finish()
            finally:
                work.close()
        except NearcastError as error:
            log.warning("the past was not judged for event %r: %s", event.id, error)
        if self._pending.get(pending.key) is not pending:
            return  # unpublished meanwhile
        relevant = [client for client, at in history.decided.items() if since is None or at > since]
        await self._deliver(
            pending, [target for client in relevant if (target := self._copy(pending, client, interested)) is not None]
        )
        self._follow(pending, history)

    def _follow(self, pending: Pending, history: ContextHistory) -> None:
        """From now on, report by report; or not at all, if nothing more can come."""
        if self._pending.get(pending.key) is not pending:
            return
        pending.validities, backlog, pending.backlog = history.validities, pending.backlog or [], None
        ends = [end for end in (history.ends, pending.lapses) if end is not None]
        pending.ends = min(ends, default=None)
        if history.historical or (pending.ends is not None and pending.ends < self.now()):
            self._end(pending)
            return
        row = AddressedRow(pending.offset, judged=True, event=pending.entry)
        self.journal.write(puts=[Put(MOMENTS, pending.key, msgspec.msgpack.encode(row))])
        for at, client in history.due:
            self._look_again(at, pending, client)
        if pending.ends is not None:
            self._look_again(pending.ends + 1, pending, None)
        for client, at, known in backlog:
            self._step(pending, client, at, known)
        self._arm()

    # What clients report

    def watch(self, client: str, at: Instant) -> None:
        """Something has changed of that client: it came, moved, said something of itself, or is gone."""
        before = self._known.get(client)
        session = self.sessions.all.get(client)
        if session is None:
            known = KnownContext()
            self._known.pop(client, None)
            self._clients.pop(self._identities.pop(client, ""), None)
        else:
            known = self._known[client] = self.presence.known(client).copy()
            self._clients[session.identity] = client
            self._identities[client] = session.identity
        if not self._pending:
            return
        for key in list(self._index.near(known.position, None if before is None else before.position)):
            pending = self._pending[key]
            self._tested += 1
            if pending.backlog is not None:
                pending.backlog.append((client, at, known))
            else:
                self._step(pending, client, at, known)
        self._arm()

    def _step(self, pending: Pending, client: str, at: Instant, known: KnownContext) -> None:
        decided = pending.validities.changed(client, at, known)
        if decided.next is not None:
            self._look_again(decided.next, pending, client)
        if decided.at is not None:
            self._due_now(pending, client)

    def _due_now(self, pending: Pending, client: str) -> None:
        target = self._copy(pending, client, None)
        if target is not None:
            self._write(pending, [target])

    # Time

    def _look_again(self, at: Instant, pending: Pending, client: str | None) -> None:
        if client is not None:
            if pending.looks.get(client, at + 1) <= at:
                return
            pending.looks[client] = at
        heapq.heappush(self._due, (at, pending.key, client or ""))

    def tick(self) -> None:
        """See to what the passing of time decides."""
        now = self.now()
        self._armed = None
        while self._due and self._due[0][0] <= now:
            at, key, client = heapq.heappop(self._due)
            pending = self._pending.get(key)
            if pending is None or pending.backlog is not None:
                continue
            if not client:
                if pending.ends is not None and pending.ends < now:
                    self._end(pending)
                continue
            if pending.looks.get(client) == at:
                del pending.looks[client]
            decided = pending.validities.passed(client, now)
            if decided.next is not None:
                self._look_again(decided.next, pending, client)
            if decided.at is not None:
                self._due_now(pending, client)
        self._arm()

    def _arm(self) -> None:
        if self._due and (self._armed is None or self._due[0][0] < self._armed):
            self._armed = self._due[0][0]
            self.later(max(0.0, (self._armed - self.now()) / MICROSECONDS), self.tick)

    # Interest and delivery

    def _interested(self, event: Event) -> dict[str, Target]:
        """Whose subscriptions ask for it now, wherever and whatever they are."""
        found: dict[str, Target] = {}
        for target in self.router.targets(event.for_everybody()).targets:
            own = target.without_own() if target.picky and target.session.client == event.publisher else target
            if own is not None:
                found[target.session.client] = own
        return found

    def _copy(self, pending: Pending, client: str, interested: dict[str, Target] | None) -> Target | None:
        """What the client gets of it, if it wants it and has not had it."""
        event, session = pending.event, self.sessions.all.get(client)
        if session is None or not session.alive or session.identity in pending.done:
            return None
        if pending.lapses is not None and self.now() >= pending.lapses:
            return None
        if interested is not None:
            target = interested.get(client)
            if target is not None and target.session is session:
                return target
        else:
            asking = self._asking(session, event)
            if asking:
                return Target.of(session, asking)
        if event.to is not None and self.presence.takes_addressed(client) and session.may_receive(event.topic):
            return Target.of(session, [])
        return None

    def _asking(self, session: Session, event: Event) -> list[Held]:
        position = self.presence.position(session.client)
        return [
            each
            for each in session.held.values()
            if each.group is None
            and accepted(each.subscription, event, session.client)
            and in_area(each.subscription.area, event.place, position)
        ]

    async def _deliver(self, pending: Pending, targets: list[Target]) -> None:
        for start in range(0, len(targets), AT_ONCE):
            self._write(pending, targets[start : start + AT_ONCE])
            await asyncio.sleep(0)

    def _write(self, pending: Pending, targets: list[Target]) -> None:
        """Record who gets it; when that is on disk, they do."""
        pending.done.update(target.session.identity for target in targets)
        qos = pending.entry.qos
        lasting = [target for target in targets if target.session.durable and min(qos, target.qos)]
        owed: list[Owed] = [
            (target.session.identity, min(qos, target.qos), target.near, target.identifiers) for target in lasting
        ]
        receivers = tuple(target.session.identity for target in targets)
        entry = msgspec.structs.replace(pending.entry, receivers=receivers, owed=tuple(owed))
        offset = -1

        def written(failed: JournalFailed | None) -> None:
            if failed is not None:
                # Nobody has had it; who comes into the context once more may.
                pending.done.difference_update(receivers)
            if failed is not None or pending.withdrawn:
                for target in lasting:
                    target.session.give_up(offset)
            else:
                self._send(message_in(entry, offset), pending, targets)
                if self.audit is not None:
                    self.audit.addressed(pending.entry.publisher, pending.event, receivers, pending.offset)

        offset = self.journal.write((DeliveryEntry(self.now(), pending.offset, entry),), then=written)
        for target in lasting:
            target.session.owe(offset)

    def _send(self, message: Message, pending: Pending, targets: Iterable[Target]) -> None:
        message.of = pending.offset
        for target in targets:
            session = target.session
            if session.alive or session.forward is not None:  # gone to another broker: it follows
                self._delivered += 1
                session.deliver(message, min(message.qos, target.qos), target.identifiers, near=target.near)

    # The end, and a new beginning

    def _forget(self, pending: Pending) -> None:
        if self._pending.get(pending.key) is pending:
            del self._pending[pending.key]
            self._index.remove(pending.key)
            self._publishers[pending.entry.publisher] -= 1
            if not self._publishers[pending.entry.publisher]:
                del self._publishers[pending.entry.publisher]

    def _end(self, pending: Pending) -> None:
        self._forget(pending)
        self.journal.write(puts=[Put(MOMENTS, pending.key, None)])

    def rows_of(self, offsets: set[int]) -> list[Put]:
        return [Put(MOMENTS, pending.key, None) for pending in self._pending.values() if pending.offset in offsets]

    def withdraw(self, offsets: set[int]) -> None:
        for pending in [each for each in self._pending.values() if each.offset in offsets]:
            pending.withdrawn = True
            self._forget(pending)

    def load(self) -> None:
        """After a restart, when sessions and presence are back."""
        at = self.now()
        for client in self.sessions.all:
            self.watch(client, at)
        rows = [msgspec.msgpack.decode(data, type=AddressedRow) for data in self.journal.load(MOMENTS).values()]
        if not rows:
            return
        by_offset: dict[int, Pending] = {}
        for row in rows:
            publisher = self._clients.get(row.event.publisher or "", row.event.publisher)
            by_offset[row.offset] = self._keep(event_in(row.event, publisher), row.event, row.offset)
        for chunk in self.journal.read(max(self.journal.oldest, min(by_offset)), kinds=(DeliveryEntry,)):
            for _, record in chunk:
                if type(record) is DeliveryEntry and record.of in by_offset:
                    by_offset[record.of].done.update(record.event.receivers)
        until = self._last_recorded()
        for row in rows:
            self._judge_past(by_offset[row.offset], until if row.judged else None)

    def _last_recorded(self) -> Instant | None:
        """About when the broker fell."""
        last = None
        for chunk in self.journal.read(max(self.journal.oldest, self.journal.head - 1)):
            last = time_of(chunk[-1][1])
        return last

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


_WHEN: Final = "a temporal predicate"


def _key(publisher: str | None, event: str) -> str:
    return f"{publisher or ''}\0{event}"
