"""Events on their way to other brokers and from them: whom they concern, and that they are carried out once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from mqtt5 import PubAckReasonCode, PublishPacket

from nearcast.broker.federation.acquaintances import Acquaintances
from nearcast.broker.federation.custody import Custody, Kept
from nearcast.broker.federation.event_ids import EventIds, Standing
from nearcast.broker.federation.interests import Interests
from nearcast.broker.federation.parcels import Done
from nearcast.broker.federation.replicas import Replicas
from nearcast.broker.federation.wire import EVENT, SECOND_LOOK, EventBody, encode, event_body
from nearcast.broker.publishing.entries import continued, entry_of, event_in, message_in, plain_event
from nearcast.broker.publishing.message import Message, message_of
from nearcast.broker.publishing.ports import FAILURE, Acknowledge
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.publishing.router import Route
from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidInput, JournalFailed, NearcastError
from nearcast.journal import Journal, Put
from nearcast.journal.entries import key_of
from nearcast.matching.entries import questions
from nearcast.model.event import Event
from nearcast.model.time import Instant
from nearcast.overlay.routing.reference import Reference
from nearcast.runtime.live.addresses import name_of

log: Final = logging.getLogger(__name__)

Loose = Callable[[str, bytes, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class FederatedEventsStatistics:
    sent: int
    """Events that concern another broker."""

    arrived: int
    repeated: int
    """Events that had come before, by whatever way."""

    remembered: int


@dataclass(slots=True, eq=False)
class Concerning:
    """An event that is published here, and the other brokers that it concerns."""

    puts: Sequence[Put]
    concerned: bool
    then: Callable[[JournalFailed | None], None]
    later: Callable[[Acknowledge], Acknowledge] = lambda acknowledge: acknowledge

    def written(self, failed: JournalFailed | None) -> None:
        self.then(failed)

    def after(self, acknowledge: Acknowledge) -> Acknowledge:
        return self.later(acknowledge)


@dataclass(slots=True, eq=False)
class FederatedEvents:
    me: str
    journal: Journal
    publishing: Publishing
    custody: Custody
    ids: EventIds
    gone: EventIds
    """Events that were taken back."""

    interests: Interests
    replicas: Replicas
    knowledge: Reference
    acquaintances: Acquaintances
    loose: Loose
    came: Callable[[Session], bool]
    """Whether the client came from another broker."""

    now: Callable[[], Instant]
    _sent: int = 0
    _arrived: int = 0
    _repeated: int = 0

    def statistics(self) -> FederatedEventsStatistics:
        return FederatedEventsStatistics(self._sent, self._arrived, self._repeated, len(self.ids))

    def concerned(self, event: Event) -> list[str]:
        """The other brokers that it is for."""
        now, known = self.now(), self.acquaintances
        # Who has been missing since this broker started, and of whom nobody here could tell: it decides itself, when it returns.
        found = {broker for broker in known if not self.interests.knows(broker)}
        if event.when is not None:  # whoever was or will be there: each broker knows its own
            found.update(self.interests.brokers)
        elif event.to is None:
            found.update(self.interests.wanting(event.topic))
        else:
            found.update(name_of(origin) for origin in self.knowledge.concerned(questions(event.conjuncts)))
        return sorted(broker for broker in found if broker != self.me and not known.given_up(broker, now))

    # Published here

    def outbound(self, event: Event, message: Message, publisher: Session | None, channel: str | None) -> Concerning:
        brokers = self.concerned(event)
        self._sent += bool(brokers)
        key = message.key = message.key or key_of(None if publisher is None else publisher.client, event.id)
        needed = bool(brokers) or self.replicas.on
        body = encode(EventBody(entry_of(event, message, None), message.retain, channel)) if needed else b""
        if not message.qos and event.when is None:

            def go(failed: JournalFailed | None) -> None:
                if failed is None and brokers:
                    self.loose(EVENT, body, brokers)

            return Concerning((), bool(brokers), go)
        self.replicas.check()
        puts = [] if self.ids.standing(key) is not Standing.NEW else [self.ids.begin(key)]
        fresh = bool(puts)
        if brokers:
            self.custody.check_room(len(body))
            puts += self.custody.begin(key, EVENT, body, brokers)

        def written(failed: JournalFailed | None) -> None:
            if fresh:
                self.ids.end(key, failed=failed is not None)
            if brokers:
                self.custody.end(key, brokers, failed=failed is not None)
            if failed is None:
                self.replicas.ask(key, body, brokers)
            else:
                self.replicas.drop(key)

        return Concerning(puts, bool(brokers), written, lambda acknowledge: self.replicas.after(key, acknowledge))

    def came_before(self, publisher: Session, event: str) -> bool:
        key = key_of(publisher.client, event)
        return key in self.gone or self.ids.standing(key) is not Standing.NEW

    def pass_on(
        self,
        event: Event,
        message: Message,
        publisher: Session,
        acknowledge: Acknowledge,
        channel: str | None,
        puts: Sequence[Put],
    ) -> None:
        self._repeated += 1
        concerning = self.outbound(event, message, publisher, channel)
        answer = concerning.after(acknowledge)

        def written(failed: JournalFailed | None) -> None:
            concerning.written(failed)
            if failed is None:
                answer(PubAckReasonCode.SUCCESS, None)
            else:
                answer(PubAckReasonCode.QUOTA_EXCEEDED, str(failed))

        self.journal.write(puts=[*puts, *concerning.puts], then=written)

    def plain(self, packet: PublishPacket, topic: str, publisher: Session) -> None:
        brokers = self.interests.wanting(topic)
        if brokers:
            self._sent += 1
            message = message_of(packet, topic, self.now())
            event = plain_event(message, self.publishing.next_id(), publisher.client, self.now())
            self.loose(EVENT, encode(EventBody(entry_of(event, message, None), False, None)), brokers)

    # From another broker

    def arrive(self, key: str, body: bytes, puts: list[Put], done: Done) -> None:
        """Carry it out as if it had been published here; ``puts`` are written with it, then ``done`` is told."""
        if key in self.gone:
            self.journal.write(puts=puts, then=done)
            return
        standing = self.ids.standing(key)
        if standing is Standing.UNDECIDED:
            # The first one is on its way to the disk; if that fails, this one is needed.
            self.journal.write(then=lambda _failed: self.arrive(key, body, puts, done))
            return
        if standing is Standing.KNOWN:
            self._repeated += 1
            self.journal.write(puts=puts, then=done)
            return
        try:
            read = event_body(body)
            event = event_in(read.entry)
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput) as error:  # of another version
            log.warning("an event from another broker cannot be read, and is given up: %s", error)
            self.journal.write(puts=puts, then=done)
            return
        self._arrived += 1
        message = message_in(read.entry, -1)
        message.offset, message.retain, message.key = None, read.retain, key
        if self.publishing.tracer is not None:
            message.trace = self.publishing.tracer.begin(message.properties, "federation")
            if message.trace is not None:
                event = continued(event, message, message.trace)
        if not message.qos and event.when is None:
            self.publishing.event(
                event, message, None, _unheard, read.channel, archived=_addressed(event), arrived=True
            )
            done(None)
            return
        rows = [*puts, self.ids.begin(key)]

        def acknowledge(code: PubAckReasonCode, why: str | None) -> None:
            failed = JournalFailed(why or "not written") if int(code) >= FAILURE else None
            self.ids.end(key, failed=failed is not None)
            done(failed)

        if not message.qos:  # for another time: it must not get lost, although nobody hears of it
            message.qos = 1
        try:
            self.publishing.event(event, message, None, acknowledge, read.channel, rows, archived=True, arrived=True)
        except Exception as error:  # were it left undecided, it would be waited for without end
            self.ids.end(key, failed=True)
            done(JournalFailed(str(error)))
            if not isinstance(error, NearcastError):
                raise
            log.info("an event from another broker is not taken yet: %s", error)

    # Kept for a broker that cannot be reached

    def reconsider(self, kept: Kept, gone_to: Iterable[str]) -> None:
        """Those that it is for may be elsewhere by now: clients of that broker have gone to these."""
        try:
            event = event_in(event_body(kept.body).entry)
        except (msgspec.DecodeError, InvalidInput):
            return
        again = set(gone_to)
        further = [broker for broker in self.concerned(event) if broker not in kept.ever and broker not in again]
        if further:
            self.custody.add(kept.key, EVENT, kept.body, further)
        if self.me in again:
            self.look_again(kept.key, kept.body, [], _nothing)
        again -= {self.me, *kept.waiting}
        if again:
            self.custody.add(f"{kept.key} again", SECOND_LOOK, kept.body, sorted(again))

    def look_again(self, key: str, body: bytes, puts: list[Put], done: Done) -> None:
        """Is it for somebody who came here from another broker since it was here?"""
        if key in self.gone or self.ids.standing(key) is Standing.NEW:
            self.arrive(key, body, puts, done)
            return
        try:
            read = event_body(body)
            event = event_in(read.entry)
        except (msgspec.DecodeError, InvalidInput):
            self.journal.write(puts=puts, then=done)
            return
        route = self.publishing.router.targets(event, read.channel) if event.when is None else Route(())
        newcomers = [target for target in route.targets if self.came(target.session)]
        message = message_in(read.entry, -1)
        message.offset, message.key = None, key
        if not any(key not in (target.session.had or ()) for target in newcomers):
            self.journal.write(puts=puts, then=done)
            return

        def acknowledge(code: PubAckReasonCode, why: str | None) -> None:
            done(JournalFailed(why or "not written") if int(code) >= FAILURE else None)

        try:
            self.publishing.event(
                event,
                message,
                None,
                acknowledge,
                read.channel,
                puts,
                archived=True,
                route=Route(newcomers),
                arrived=True,
            )
        except NearcastError as error:
            done(JournalFailed(str(error)))


def _nothing(_failed: JournalFailed | None) -> None:
    """It is tried again anyway, or not."""


def _addressed(event: Event) -> bool:
    return event.to is not None or event.place is not None or event.reach is not None


def _unheard(_code: PubAckReasonCode, _why: str | None) -> None:
    """Nobody waits for the acknowledgement of quality 0."""
