"""The way of a publish: checks, receivers, journal, delivery, acknowledgement.

Quality 0 goes out at once.  Qualities 1 and 2 are on disk, with their receivers, before anybody hears of them: what was
acknowledged survives, and what was not can be published again without being doubled.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mqtt5 import PubAckReasonCode, PublishPacket

from nearcast.broker.access.people import Meter, People
from nearcast.broker.audit import Audit
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.dispatch import Dispatch
from nearcast.broker.publishing.entries import entry_of, owed_to, plain_event
from nearcast.broker.publishing.message import Message, Properties, message_of
from nearcast.broker.publishing.ports import FAILURE, Acknowledge, Beyond, Spectator, TemporalAddressing
from nearcast.broker.publishing.recent import Key, RecentIds
from nearcast.broker.publishing.retained import Retained
from nearcast.broker.publishing.router import Route, Router
from nearcast.broker.publishing.underway import Underway, forget, fresh
from nearcast.broker.sessions.session import Rights, Session
from nearcast.broker.tracing.tracer import Trace, Tracer
from nearcast.errors import Denied, JournalFailed, NearcastError
from nearcast.journal import EventEntry, Journal, Put, Then
from nearcast.model.event import Event
from nearcast.model.time import Instant
from nearcast.model.time import to_text as instant_text
from nearcast.model.topic import topic_matches
from nearcast.mqtt import names
from nearcast.mqtt.publication import Publication, delivery_properties, is_plain, publication
from nearcast.mqtt.stream import V5
from nearcast.runtime.durations import DurationStatistics


@dataclass(frozen=True, slots=True)
class PublishingStatistics:
    published: int
    delivered: int
    repeated: int
    """Events that came again under the id that their publisher had given them."""

    delivery_time: DurationStatistics
    """Of copies, from their publication until they are handed to connections and queues."""


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
    dispatch: Dispatch = field(init=False)
    _given: int = 0
    _count: int = 0
    _repeated: int = 0
    _recent: RecentIds = field(default_factory=RecentIds)

    def __post_init__(self) -> None:
        self.dispatch = Dispatch(self.router, self.now)

    def statistics(self) -> PublishingStatistics:
        dispatch = self.dispatch
        return PublishingStatistics(
            self._count, dispatch.delivered, self._repeated, dispatch.delivery_time.statistics()
        )

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
        self.dispatch.delivered += len(route.targets)
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
        copies = route.chosen(session)
        self.dispatch.deliver(copies, message)
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
        if read.id is not None and not self._recent.add(session.identity, read.id):
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
                answer = self._unless_refused(session.identity, read.id, acknowledge)
                self.beyond.pass_on(event, message, session, answer, read.channel, puts)
            else:
                self.event(
                    event, message, session, acknowledge, read.channel, puts, archived=read.addressed, meter=meter
                )
        except BaseException:
            if read.id is not None:
                self._recent.forget(session.identity, read.id)
            raise

    def _unless_refused(self, publisher: str, event: str, acknowledge: Acknowledge) -> Acknowledge:
        """Who is refused will try again, and is not to be told then that it is there already."""

        def answer(code: PubAckReasonCode, why: str | None) -> None:
            if int(code) >= FAILURE:
                self._recent.forget(publisher, event)
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
        if event.when is not None:
            self.addressing.check(publisher, event)
        trace = message.trace
        begun = 0 if trace is None else trace.now()
        if route is None:
            route = Route(()) if event.when is not None else self.router.targets(event, channel)
        copies = route.chosen(publisher)
        rows = [] if meter is None else list(meter.count(sum(each.session is not publisher for each in copies)))
        self._count += 1
        if trace is not None:
            trace.about(event.id, event.topic, message.qos, len(event.payload))
            trace.took("match", begun, receivers=len(copies))
            begun = trace.now()
        outbound = None
        if self.beyond is not None:
            message.key = message.key or self.beyond.key(publisher, event.id)
            copies = fresh(copies, message.key)
            if not arrived and meter is None:
                outbound = self.beyond.outbound(event, message, publisher, channel)
        answer = acknowledge if outbound is None else outbound.after(acknowledge)
        if message.retain:
            rows.append(self.retained.set(message))
        retained = self.retained.messages.get(event.topic)
        by = sender if publisher is None else publisher.identity
        way = Underway(event, message, publisher, by, copies, outbound, answer, retained, begun)
        if message.qos or archived or event.when is not None or self.keeps(event.topic):
            self._store(way, rows, puts)
        else:
            self._at_once(way, rows)

    def _at_once(self, way: Underway, rows: Sequence[Put]) -> None:
        """Nobody waits for the disk."""
        trace = way.message.trace
        if rows:
            self._write(way, (), rows)
        if way.message.retain:
            self.retained.written(way.event.topic, way.retained, failed=False)
        self._go_out(way)
        if way.outbound is not None:
            way.outbound.written(None)
        if trace is not None:
            trace.end()

    def _store(self, way: Underway, rows: list[Put], puts: Sequence[Put]) -> None:
        """It goes out when it is on disk; of quality 0, as soon as it will be.  ``puts``: what only an acknowledgement needs."""
        event, message = way.event, way.message
        if message.qos:
            way.lasting = [target for target in way.copies if target.qos and target.session.durable]
        receivers = [target.session.identity for target in way.copies]
        entry = entry_of(event, message, message.publisher, receivers, owed_to(way.lasting, message.qos))
        if event.when is not None:
            rows.append(self.addressing.row(entry, self.journal.head))
        if way.outbound is not None:
            rows += way.outbound.puts
        if not message.qos:
            message.offset = self._write(way, (entry,), rows)
            self._written(way, None)
            return
        message.offset = self._write(way, (entry,), [*rows, *puts], lambda failed: self._written(way, failed))
        for target in way.lasting:
            target.session.owe(message.offset)

    def _write(
        self, way: Underway, entries: Sequence[EventEntry], rows: Sequence[Put], then: Then | None = None
    ) -> int:
        try:
            return self.journal.write(entries, rows, then)
        except NearcastError as error:  # it does not even try
            if way.message.retain:
                self.retained.written(way.event.topic, way.retained, failed=True)
            if way.outbound is not None:
                way.outbound.written(JournalFailed(str(error)))
            forget(way.copies, way.message.key)
            raise

    def _written(self, way: Underway, failed: JournalFailed | None) -> None:
        event, message = way.event, way.message
        trace = message.trace
        if trace is not None:
            trace.took("journal", way.matched, owed=len(way.lasting), failed=failed is not None)
        if message.retain:
            self.retained.written(event.topic, way.retained, failed=failed is not None)
        if way.outbound is not None:
            way.outbound.written(failed)
        if failed is not None:
            self._give_up(way, failed)
            return
        self._go_out(way)
        if event.when is not None:
            self.addressing.publish(event, message, way.publisher)
        code = PubAckReasonCode.NO_MATCHING_SUBSCRIBERS if way.told_unheard else PubAckReasonCode.SUCCESS
        way.acknowledge(code, None)
        if trace is not None:
            trace.end()

    def _give_up(self, way: Underway, failed: JournalFailed) -> None:
        message = way.message
        forget(way.copies, message.key)
        if message.offset is not None:
            for target in way.lasting:
                target.session.give_up(message.offset)
        self._recent.forget(message.publisher or "", way.event.id)
        way.acknowledge(PubAckReasonCode.QUOTA_EXCEEDED, str(failed))
        if message.trace is not None:
            message.trace.end("JournalFailed")

    def _go_out(self, way: Underway) -> None:
        event, copies = way.event, way.copies
        self.dispatch.deliver(copies, way.message)
        self.dispatch.timed(event.published, len(copies))
        if self.audit is not None and event.when is None and not (event.to is None and event.reach is None):
            # Of one that speaks of another time, those who get it are told of when they do.
            receivers = [target.session.identity for target in copies]
            self.audit.addressed(way.sender, event, receivers, way.message.offset)
        if self.spectator is not None:
            self.spectator.seen(event, copies)

    def _finish(self, key: Key, puts: Sequence[Put], acknowledge: Acknowledge) -> None:
        """It is there already: only the acknowledgement was lost."""
        self._repeated += 1

        def written(failed: JournalFailed | None) -> None:
            if failed is None and key in self._recent:
                acknowledge(PubAckReasonCode.SUCCESS, None)
            else:  # perhaps it was the first one, a moment ago, that could not be written
                acknowledge(PubAckReasonCode.QUOTA_EXCEEDED, str(failed or "it could not be written; send it again"))

        self.journal.write(puts=puts, then=written)

    # Identity of events

    def next_id(self) -> str:
        # Unique without a look at the disk: the prefix is new with every start.
        self._given += 1
        return f"{self._prefix}-{self._given:x}"

    def together(self, events: int, copies: int) -> None:
        """So many were published and go out, but not one by one."""
        self._count += events
        self.dispatch.delivered += copies

    def remember(self, publisher: str, event: str) -> None:
        """After a restart: this event is there already."""
        self._recent.add(publisher, event)


def _told(event: Event, read: Publication, given: Properties) -> Properties:
    """What subscriptions with place, context or time are told."""
    if read.is_absolute and event.reach is None:  # nor was one announced
        # All is said already but who it is and when it was: reading it to write it again would take half of the time.
        own = () if read.id is not None else ((names.ID, event.id),)
        return (*given, *own, (names.PUBLISHED, instant_text(event.published)))
    return tuple(delivery_properties(event))
