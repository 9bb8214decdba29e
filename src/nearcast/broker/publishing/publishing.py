"""The way of a publish: checks, receivers, journal, delivery, acknowledgement.

Quality 0 goes out at once.  Qualities 1 and 2 are on disk, with their receivers, before anybody hears of them: what was
acknowledged survives, and what was not can be published again without being doubled.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from mqtt5 import PubAckReasonCode, PublishPacket

from nearcast.broker.access.people import Meter, People
from nearcast.broker.audit import Audit
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.entries import Owed, entry_of, plain_event
from nearcast.broker.publishing.message import Message, Properties
from nearcast.broker.publishing.retained import Retained
from nearcast.broker.publishing.router import Route, Router, Target
from nearcast.broker.sessions.session import Rights, Session
from nearcast.broker.tracing.tracer import Trace, Tracer
from nearcast.errors import Denied, JournalFailed, NearcastError
from nearcast.journal import EventEntry, Journal, Put, Then
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.time import to_text as instant_text
from nearcast.model.topic import topic_matches
from nearcast.mqtt import names
from nearcast.mqtt.publication import Publication, delivery_properties, is_plain, publication
from nearcast.mqtt.stream import V5
from nearcast.runtime.durations import SLOW, Durations, DurationStatistics

Acknowledge = Callable[[PubAckReasonCode, str | None], None]


FAILURE: Final = 0x80
"""Reason codes from here on say that something was refused."""

RECENT: Final = 200_000
"""So many ids that publishers gave are remembered, so that an event that is sent again is not doubled."""


@dataclass(frozen=True, slots=True)
class PublishingStatistics:
    published: int
    delivered: int
    repeated: int
    """Events that came again under the id that their publisher had given them."""

    delivery_time: DurationStatistics
    """Of copies, from their publication until they are handed to connections and queues."""


class TemporalAddressing(Protocol):
    """Events for whoever was or will be in a context."""

    def check(self, publisher: Session | None, event: Event) -> None:
        """``QuotaExceeded`` if no further one can be waited for."""

    def row(self, entry: EventEntry, offset: int) -> Put:
        """What is to be written with the event, so that a restart does not end the waiting."""

    def publish(self, event: Event, message: Message, publisher: Session | None) -> None:
        """It is on disk."""


class Outbound(Protocol):
    """An event on its way to other brokers."""

    puts: Sequence[Put]
    """What is to be written with the event."""

    concerned: bool
    """Whether there is a broker that it is for."""

    def written(self, failed: JournalFailed | None) -> None:
        """The event is on disk, or need not be; or it could not be written."""

    def after(self, acknowledge: Acknowledge) -> Acknowledge:
        """How to acknowledge it: perhaps not at once."""


class Beyond(Protocol):
    """Other brokers of the same federation."""

    def key(self, publisher: Session | None, event: str) -> str:
        """Under which an event of that id is recognised by all brokers."""

    def outbound(self, event: Event, message: Message, publisher: Session | None, channel: str | None) -> Outbound:
        """Whom else the event concerns; raises ``QuotaExceeded`` if too much waits for them."""

    def after(self, publisher: Session, event: str, acknowledge: Acknowledge) -> Acknowledge:
        """How to acknowledge an event that comes again: perhaps not before the first one is."""

    def came_before(self, publisher: Session, event: str) -> bool:
        """Whether an event of that id came by another broker, and is here already."""

    def pass_on(
        self,
        event: Event,
        message: Message,
        publisher: Session,
        acknowledge: Acknowledge,
        channel: str | None,
        puts: Sequence[Put],
    ) -> None:
        """Such an event, for the other brokers only: the one by which it came may be gone."""

    def plain(self, packet: PublishPacket, topic: str, publisher: Session) -> None:
        """A message of quality 0 that has nothing but a topic."""


class Spectator(Protocol):
    """Somebody who looks on for a while.  Told after the copies have gone out; it is nobody's turn until it returns."""

    def seen(self, event: Event, copies: Sequence[Target]) -> None:
        """One event, and who got it."""

    def seen_plain(self, topic: str, publisher: Session, targets: Sequence[Target]) -> None:
        """A message of quality 0 that has nothing but a topic."""

    def seen_together(
        self, count: int, event: Callable[[int], Event], receivers: Callable[[int], Sequence[int]]
    ) -> None:
        """So many events that went together; each can be asked for, and its receivers by the matcher's numbers."""


def _nothing() -> None: ...


@dataclass(slots=True, eq=False)
class Publishing:
    journal: Journal
    router: Router
    presence: Presence
    retained: Retained
    addressing: TemporalAddressing
    now: Callable[[], Instant]
    keep: Sequence[str] = ()
    """Topic filters of plain messages that are archived as well."""

    settle: Callable[[], None] = _nothing
    """Called before anything is published: what was published before goes out before it."""

    beyond: Beyond | None = None
    people: People | None = None
    """Counts how many people messages go to whose senders have a quota of them."""

    audit: Audit | None = None
    """Told of messages that choose their receivers by place, context or time."""

    spectator: Spectator | None = None
    """Nearly always nobody: the way of a message must not cost more because it might be looked at."""

    tracer: Tracer | None = None
    _prefix: str = field(default_factory=lambda: secrets.token_hex(6))
    _count: int = 0
    _delivered: int = 0
    _repeated: int = 0
    _recent: dict[tuple[str, str], None] = field(default_factory=dict)
    _delivery_time: Durations = field(default_factory=lambda: Durations(SLOW))

    def statistics(self) -> PublishingStatistics:
        return PublishingStatistics(self._count, self._delivered, self._repeated, self._delivery_time.statistics())

    def keeps(self, topic: str) -> bool:
        """Whether plain messages of that topic are archived."""
        return bool(self.keep) and any(topic_matches(each, topic) for each in self.keep)

    def plain(self, session: Session, packet: PublishPacket, topic: str) -> None:
        """A message of quality 0 that has nothing but a topic: the most frequent by far."""
        self.settle()
        self._count += 1
        if self.beyond is not None:
            self.beyond.plain(packet, topic, session)
        route = self.router.route(topic)
        if not route.plain or packet.topic_alias is not None or packet.message_expiry_interval is not None:
            self._plain(session, packet, topic, route)
            return
        data, message = packet.write(), None
        self._delivered += len(route.targets)
        if self.spectator is not None:
            self.spectator.seen_plain(topic, session, route.targets)
        for target in route.targets:
            receiver = target.session
            connection = receiver.connection
            if (
                connection is not None
                and connection.version == V5
                and receiver.largest is None
                and not connection.congested
            ):
                connection.write(data)
            else:
                if message is None:
                    message = message_of(packet, topic, self.now())
                receiver.deliver(message, 0, (), near=False)

    def _plain(self, session: Session, packet: PublishPacket, topic: str, route: Route) -> None:
        message = message_of(packet, topic, self.now())
        if route.groups or any(target.near for target in route.targets):
            message.near_properties = (
                *message.properties,
                (names.ID, self.next_id()),
                (names.PUBLISHED, instant_text(self.now())),
            )
        copies = self.chosen(route, session)
        self.deliver(copies, message)
        if self.spectator is not None:
            self.spectator.seen_plain(topic, session, copies)

    def publish(
        self,
        session: Session,
        packet: PublishPacket,
        topic: str,
        acknowledge: Acknowledge,
        rights: Rights,
        puts: Sequence[Put] = (),
        trace: Trace | None = None,
    ) -> None:
        """Any message; ``puts`` are written with it.  Raises ``InvalidInput`` or ``Denied`` before anything has happened."""
        self.settle()
        if is_plain(topic, packet.user_properties) and not session.announced:
            if not rights.may_publish_plain(topic):
                raise Denied(f"no rule allows {rights} to publish to {topic!r} without a place")
            self._publish_plain(session, packet, topic, acknowledge, puts, rights)
            return
        read = publication(topic, packet.payload, packet.user_properties, packet.message_expiry_interval)
        now = self.now()
        position = self.presence.position(session.client)
        event = read.event(self.next_id(), now, session.client, position, session.announced.get(read.topic))
        names.check_unreserved(event.topic)
        rights.check_event(event)
        meter = self.meter(rights, event)
        if event.when is not None:
            self.addressing.check(session, event)
        if read.id is not None and self._came_before(session, read.id):
            if self.beyond is not None:
                acknowledge = self.beyond.after(session, read.id, acknowledge)
            self._finish((session.identity, read.id), puts, acknowledge)
            if trace is not None:
                trace.end("Repeated")
            return
        message = message_of(packet, read.topic, now)
        message.event = event.id
        message.near_properties = _told(event, read, message.properties)
        message.trace = trace
        try:
            if read.id is not None and self.beyond is not None and self.beyond.came_before(session, read.id):
                self._repeated += 1
                answer = self._unless_refused((session.identity, read.id), acknowledge)
                self.beyond.pass_on(event, message, session, answer, read.channel, puts)
            else:
                self.event(
                    event, message, session, acknowledge, read.channel, puts, archived=read.addressed, meter=meter
                )
        except BaseException:
            if read.id is not None:  # it is not here: when it comes again, it is new
                self._recent.pop((session.identity, read.id), None)
            raise

    def _unless_refused(self, key: tuple[str, str], acknowledge: Acknowledge) -> Acknowledge:
        """Who is refused will try again, and is not to be told then that it is there already."""

        def answer(code: PubAckReasonCode, why: str | None) -> None:
            if int(code) >= FAILURE:
                self._recent.pop(key, None)
            acknowledge(code, why)

        return answer

    def _publish_plain(
        self,
        session: Session,
        packet: PublishPacket,
        topic: str,
        acknowledge: Acknowledge,
        puts: Sequence[Put],
        rights: Rights,
    ) -> None:
        """Nothing but a topic, and yet to be stored: no need to read what is not there, nor to look for who is known."""
        now, route = self.now(), self.router.route(topic)
        message = message_of(packet, topic, now)
        message.event = self.next_id()
        event = plain_event(message, message.event, session.client, now)
        if message.retain or not route.plain:
            message.near_properties = tuple(delivery_properties(event))
        self.event(event, message, session, acknowledge, puts=puts, route=route, meter=self.meter(rights, event))

    def meter(self, rights: Rights, event: Event) -> Meter | None:
        """What counts the people that it goes to; hardly any sender needs one."""
        return self.people.meter(rights, event) if self.people is not None and rights.metered else None

    def event(
        self,
        event: Event,
        message: Message,
        publisher: Session | None,
        acknowledge: Acknowledge,
        channel: str | None = None,
        puts: Sequence[Put] = (),
        *,
        archived: bool = False,
        route: Route | None = None,
        arrived: bool = False,
        meter: Meter | None = None,
        sender: str | None = None,
    ) -> None:
        """An event, from a client or from elsewhere; its ``route`` if that is known.  ``arrived``: from another broker.

        ``meter``: ``QuotaExceeded`` before anything has happened if it would go to more people than it may.  Such an event stays
        here: nobody could count those at other brokers before they have it.  ``sender``: the identity of one without a session.
        """
        self.settle()
        if publisher is not None:
            message.publisher = publisher.identity
        beyond = None if arrived or meter is not None else self.beyond
        if event.when is not None:
            self.addressing.check(publisher, event)
        trace = message.trace
        begun = 0 if trace is None else trace.now()
        if route is None:
            route = Route(()) if event.when is not None else self.router.targets(event, channel)
        copies = self.chosen(route, publisher)
        counted = [] if meter is None else list(meter.count(sum(each.session is not publisher for each in copies)))
        self._count += 1
        if trace is not None:
            trace.about(event.id, event.topic, message.qos, len(event.payload))
            trace.took("match", begun, receivers=len(copies))
            begun = trace.now()
        if self.beyond is not None:
            message.key = message.key or self.beyond.key(publisher, event.id)
            copies = _fresh(copies, message.key)
        outbound = None if beyond is None else beyond.outbound(event, message, publisher, channel)
        answer = acknowledge if outbound is None else outbound.after(acknowledge)
        more = [*counted, self.retained.set(message)] if message.retain else counted
        kept = self.retained.messages.get(event.topic)

        def write(entries: Sequence[EventEntry], rows: Sequence[Put], then: Then | None = None) -> int:
            try:
                return self.journal.write(entries, rows, then)
            except NearcastError as error:  # it does not even try
                if message.retain:
                    self.retained.written(event.topic, kept, failed=True)
                if outbound is not None:
                    outbound.written(JournalFailed(str(error)))
                _forget(copies, message.key)
                raise

        if not message.qos and not archived and event.when is None and not self.keeps(event.topic):
            if more:
                write((), more)
            if message.retain:
                self.retained.written(event.topic, kept, failed=False)  # nobody waits for it
            self.deliver(copies, message)
            self.timed(event.published, len(copies))
            self._account(event, copies, publisher, sender, None)
            if self.spectator is not None:
                self.spectator.seen(event, copies)
            if outbound is not None:
                outbound.written(None)
            if trace is not None:
                trace.end()
            return
        identity = message.publisher
        lasting = [target for target in copies if target.qos and target.session.durable] if message.qos else []
        receivers = [target.session.identity for target in copies]
        entry = entry_of(event, message, identity, receivers, owed_to(lasting, message.qos))
        if event.when is not None:
            more.append(self.addressing.row(entry, self.journal.head))
        if outbound is not None:
            more += outbound.puts

        def written(failed: JournalFailed | None) -> None:
            if trace is not None:
                trace.took("journal", begun, owed=len(lasting), failed=failed is not None)
            if message.retain:
                self.retained.written(event.topic, kept, failed=failed is not None)
            if outbound is not None:
                outbound.written(failed)
            if failed is not None:
                _forget(copies, message.key)
                for target in lasting:
                    target.session.give_up(offset)
                self._recent.pop((identity or "", event.id), None)
                answer(PubAckReasonCode.QUOTA_EXCEEDED, str(failed))
                if trace is not None:
                    trace.end("JournalFailed")
                return
            self.deliver(copies, message)
            self.timed(event.published, len(copies))
            self._account(event, copies, publisher, sender, message.offset)
            if self.spectator is not None:
                self.spectator.seen(event, copies)
            if event.when is not None:
                self.addressing.publish(event, message, publisher)
            nobody = not copies and event.when is None and not (outbound is not None and outbound.concerned)
            told = nobody and _may_be_told(publisher, event)
            answer(PubAckReasonCode.NO_MATCHING_SUBSCRIBERS if told else PubAckReasonCode.SUCCESS, None)
            if trace is not None:
                trace.end()

        if message.qos:
            offset = message.offset = write((entry,), [*more, *puts], written)
            for target in lasting:
                target.session.owe(offset)
        else:
            message.offset = write((entry,), more)
            written(None)

    def _account(
        self, event: Event, copies: Sequence[Target], publisher: Session | None, sender: str | None, offset: int | None
    ) -> None:
        """For the audit log; of one that speaks of another time, those who get it are told of when they do."""
        if self.audit is None or event.when is not None or (event.to is None and event.reach is None):
            return
        by = sender if publisher is None else publisher.identity
        self.audit.addressed(by, event, [target.session.identity for target in copies], offset)

    def _finish(self, key: tuple[str, str], puts: Sequence[Put], acknowledge: Acknowledge) -> None:
        """It is there already: only the acknowledgement was lost."""
        self._repeated += 1

        def written(failed: JournalFailed | None) -> None:
            if failed is None and key in self._recent:
                acknowledge(PubAckReasonCode.SUCCESS, None)
            else:  # perhaps it was the first one, a moment ago, that could not be written
                acknowledge(PubAckReasonCode.QUOTA_EXCEEDED, str(failed or "it could not be written; send it again"))

        self.journal.write(puts=puts, then=written)

    # Delivery

    def chosen(self, route: Route, publisher: Session | None) -> list[Target]:
        """Who gets a copy: the publisher only if it wants its own, of each group the one whose turn it is."""
        targets = list(route.targets)
        if publisher is not None:
            for place, target in enumerate(targets):
                if target.picky and target.session is publisher:
                    own = target.without_own()
                    targets[place : place + 1] = [] if own is None else [own]
                    break
        for group in route.groups:
            chosen = group.choose()
            if chosen is not None:
                targets.append(Target.of(chosen[0], [chosen[1]]))
        return targets

    def together(self, events: int, copies: int) -> None:
        """So many were published and go out, but not one by one."""
        self._count += events
        self._delivered += copies

    def timed(self, published: Instant, copies: int) -> None:
        """So many copies of what was published then have been handed over."""
        if copies:
            self._delivery_time.add((self.now() - published) / MICROSECONDS, copies)

    def deliver(self, targets: Sequence[Target], message: Message) -> None:
        """A copy for each of them."""
        self._delivered += len(targets)
        if message.trace is None:
            self.copy(targets, message)
            return
        delivered = message.trace.delivering(len(targets))
        self.copy(targets, message)
        delivered()
        message.trace = None  # a message that is retained is not traced again when somebody subscribes

    def copy(self, targets: Sequence[Target], message: Message) -> None:
        """The same for copies that are counted already."""
        qos, retain = message.qos, message.retain
        last: tuple[int, bool, tuple[int, ...], bool] | None = None
        data = b""
        for chosen in targets:
            followed = chosen.session.alive or chosen.session.forward is not None
            target = chosen if followed else self.router.instead_of(chosen)
            if target is None:
                continue
            session = target.session
            quality = qos if qos < target.qos else target.qos
            kept = retain and target.retain_as_published
            if session.catching_up is not None and session.catching_up.hold_back(
                target.held, message, quality, target.identifiers, target.near, kept
            ):
                continue
            connection = session.connection
            if quality or connection is None or connection.congested or session.largest is not None:
                session.deliver(
                    message, quality, target.identifiers, near=target.near, retain=kept, shared=target.shared
                )
                continue
            # Nearly all receivers of an event get the same bytes.
            form = connection.version, target.near, target.identifiers, kept
            if form != last:
                last = form
                data, _ = message.parts(
                    connection.version,
                    near=target.near,
                    qos=0,
                    retain=kept,
                    identifiers=target.identifiers,
                    now=self.now(),
                )
            connection.write(data)

    # Identity of events

    def next_id(self) -> str:
        # Unique without a look at the disk: the prefix is new with every start.
        self._given += 1
        return f"{self._prefix}-{self._given:x}"

    _given: int = 0

    def _came_before(self, session: Session, event: str) -> bool:
        key = session.identity, event
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        return False

    def remember(self, publisher: str, event: str) -> None:
        """After a restart: this event is there already."""
        self._recent[publisher, event] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


def _told(event: Event, read: Publication, given: Properties) -> Properties:
    """What subscriptions with place, context or time are told."""
    if read.is_absolute and event.reach is None:  # nor was one announced
        # All is said already but who it is and when it was: reading it to write it again would take half of the time.
        own = () if read.id is not None else ((names.ID, event.id),)
        return (*given, *own, (names.PUBLISHED, instant_text(event.published)))
    return tuple(delivery_properties(event))


def _fresh(copies: list[Target], key: str) -> list[Target]:
    """Without those who had it already, from the broker where they were before."""
    return [target for target in copies if target.session.had is None or target.session.had.add(key)]


def _may_be_told(publisher: Session | None, event: Event) -> bool:
    """Whether the publisher may be told that nobody gets it.

    Of what is for a place or for certain people that would say whether somebody is there, which those who are there have not agreed to.
    """
    rights = None if publisher is None else publisher.rights
    return rights is None or rights.unrestricted or (event.place is None and event.reach is None and event.to is None)


def _forget(copies: Sequence[Target], key: str | None) -> None:
    """They did not get it."""
    for target in copies:
        if target.session.had is not None and key is not None:
            target.session.had.pop(key, None)


def owed_to(targets: Sequence[Target], qos: int) -> tuple[Owed, ...]:
    """What is written of those who are owed a message of that quality."""
    return tuple(
        [(target.session.identity, min(qos, target.qos), target.near, target.identifiers) for target in targets]
    )


def message_of(packet: PublishPacket, topic: str, now: Instant) -> Message:
    expiry = packet.message_expiry_interval
    properties: Properties = tuple(packet.user_properties)
    return Message(
        topic,
        packet.payload,
        int(packet.qos),
        packet.retain,
        None if expiry is None else now + expiry * MICROSECONDS,
        packet.payload_format_indicator,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        properties,
        properties,
    )
