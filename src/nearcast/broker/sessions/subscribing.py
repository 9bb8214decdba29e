"""Subscriptions as they come and go: checked, held, kept on disk, and given what is retained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from mqtt5 import RetainHandling, SubAckReasonCode, SubscribePacket, TopicFilter, UnsubAckReasonCode

from nearcast.broker.access import Principal
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.retained import Retained
from nearcast.broker.publishing.router import Router
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.sessions.sessions import Sessions, SubscriptionRow
from nearcast.broker.sliced_work import SlicedWork
from nearcast.errors import Denied, InvalidInput, InvalidTopic, JournalFailed, NearcastError, QuotaExceeded
from nearcast.journal import Journal, Put, SubscriptionEntry
from nearcast.model.area_text import area_text
from nearcast.model.delivery import in_area
from nearcast.model.evaluation import evaluate
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.mqtt import names
from nearcast.mqtt.publication import delivered_event
from nearcast.mqtt.requests import SubscriptionRequest, Words, subscription_request, unsubscribed_id

Properties = Sequence[tuple[str, str]]
Subscribed = Callable[[list[SubAckReasonCode], str | None], None]
Unsubscribed = Callable[[list[UnsubAckReasonCode], str | None], None]
GRANTED: Final = (
    SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE,
    SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE,
    SubAckReasonCode.GRANTED_QOS_EXACTLY_ONCE,
)
_FOR_SOME: Final = frozenset({names.REACH, names.TO, names.WHEN})
"""Properties by which a message concerns some and not others."""


class Past(Protocol):
    """Subscriptions that begin in the past (``temporal.replays``)."""

    def begin(self, session: Session, held: Held, batch: int | None) -> list[Put]:
        """In the turn in which the router is told of it: from here on it is live; what is to be written with it."""

    def start(self, session: Session, held: Held) -> None:
        """It is on disk: give it what is stored, then what comes."""

    def end(self, session: Session, held: Held) -> None:
        """It is not wanted any more."""


@dataclass(slots=True, eq=False)
class Subscribing:
    journal: Journal
    sessions: Sessions
    router: Router
    retained: Retained
    presence: Presence
    past: Past
    turns: SlicedWork
    now: Callable[[], Instant]
    most: int = 1_000
    """Subscriptions of one client."""

    most_bytes: int = 256 * 1024
    """Of their areas and filters, together."""

    def subscribe(
        self, session: Session, principal: Principal, packet: SubscribePacket, acknowledge: Subscribed
    ) -> None:
        """Every filter by itself: one that is refused does not harm the others."""
        codes: list[SubAckReasonCode] = []
        new: set[str] = set()
        size, said = session.held_size, sum(len(value) for _, value in packet.user_properties)
        words = Words()
        accepted: list[tuple[Held, SubscriptionRequest, TopicFilter, bool]] = []
        puts: list[Put] = []
        entries: list[SubscriptionEntry] = []
        why: str | None = None
        now = self.now()
        for wanted in packet.topic_filters:
            try:
                request = subscription_request(wanted.pattern, packet.user_properties, words)
                known = session.held.get(request.id)
                # Both before more is made of it: so what is refused costs little.
                if known is None and request.id not in new and len(session.held) + len(new) >= self.most:
                    raise QuotaExceeded(f"a client may hold {self.most} subscriptions; give one up first")
                # What stands in a prefix is in the topic filter.
                growth = said + (len(request.filter) if request.addressed else 0) - (known.size if known else 0)
                if growth > 0 and size + growth > self.most_bytes:
                    raise QuotaExceeded(
                        f"areas and filters of a client's subscriptions have at most {self.most_bytes} characters together; give one up first"
                    )
                held = self._checked(principal, request, wanted, packet.subscription_id, now, words)
                size += held.size - (0 if known is None else known.size)
                if known is None:
                    new.add(request.id)
            except NearcastError as error:
                codes.append(_refusal(error))
                why = why or str(error)
                continue
            accepted.append((held, request, wanted, known is not None))
            codes.append(GRANTED[held.qos])
            if session.durable:
                puts.append(self.sessions.subscription_row(session, held.subscription.id, row_of(held)))
            if held.observation is None:  # records name nobody: who observes whom is for the audit
                entries.append(_entry(session, held, "subscribed", now))
        replaced: list[Held] = []
        for held, request, _, _ in accepted:
            old = session.held.get(held.subscription.id)
            if old is not None:
                replaced.append(old)
                self.past.end(session, old)
            self.router.subscribe(session, held)
            if request.begins_in_the_past and held.group is None:
                puts += self.past.begin(session, held, request.batch)

        def written(failed: JournalFailed | None) -> None:
            if failed is not None:
                for held, _, _, _ in accepted:
                    self.past.end(session, held)
                    self.router.unsubscribe(session, held)
                for held in replaced:  # what was granted before, and is on disk, holds
                    if session.alive:
                        self.router.subscribe(session, held)
                acknowledge([SubAckReasonCode.QUOTA_EXCEEDED] * len(codes), str(failed))
                return
            acknowledge(codes, why)
            for held, request, wanted, known in accepted:
                self._give(session, held, request, wanted, known)

        if puts or entries:
            self.journal.write(entries, puts, written)
        else:
            written(None)

    def _checked(
        self,
        principal: Principal,
        request: SubscriptionRequest,
        wanted: TopicFilter,
        identifier: int | None,
        now: Instant,
        words: Words,
    ) -> Held:
        relative = request.area is not None and request.area.is_relative
        if request.group is not None and (relative or request.since is not None):
            raise InvalidTopic("members of a shared subscription have no place and no past in common; leave both out")
        held = held_of(
            request, int(wanted.max_qos), wanted.no_local, wanted.retain_as_published, identifier, now, words
        )
        if request.observation is not None:
            principal.check_observation(request.observation.area)
        else:
            principal.check_subscription(held.subscription, now)
        return held

    def restore(self, session: Session, row: SubscriptionRow) -> None:
        """After a restart."""
        request = subscription_request(row.filter, row.properties)
        held = held_of(request, row.qos, row.no_local, row.retain_as_published, row.identifier, row.since)
        self.router.subscribe(session, held)

    def unsubscribe(
        self, session: Session, patterns: Sequence[str], properties: Properties, acknowledge: Unsubscribed
    ) -> None:
        codes, entries, ended = [], [], []
        puts: list[Put] = []
        now = self.now()
        for pattern in patterns:
            try:
                held = session.held.get(unsubscribed_id(pattern, properties))
            except InvalidInput:
                codes.append(UnsubAckReasonCode.TOPIC_FILTER_INVALID)
                continue
            if held is None:
                codes.append(UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED)
                continue
            codes.append(UnsubAckReasonCode.SUCCESS)
            puts += self.end(session, held)
            ended.append(held)
            if held.observation is None:
                entries.append(_entry(session, held, "unsubscribed", now))

        def written(failed: JournalFailed | None) -> None:
            if failed is None:
                acknowledge(codes, None)
            else:
                for held in ended:  # it is on disk, and so it holds
                    if session.alive and held.subscription.id not in session.held:
                        self.router.subscribe(session, held)
                acknowledge([UnsubAckReasonCode.UNSPECIFIED_ERROR] * len(codes), str(failed))

        if entries or puts:
            self.journal.write(entries, puts, written)
        else:
            written(None)

    def end(self, session: Session, held: Held) -> list[Put]:
        """It is over, whoever wants it so; what is to be written for that."""
        self.past.end(session, held)
        self.router.unsubscribe(session, held)
        return [self.sessions.subscription_row(session, held.subscription.id, None)] if session.durable else []

    # What is there already

    def _give(
        self, session: Session, held: Held, request: SubscriptionRequest, wanted: TopicFilter, known: bool
    ) -> None:
        if not session.alive or session.held.get(held.subscription.id) is not held:
            return
        if request.begins_in_the_past and held.group is None:
            self.past.start(session, held)
            return  # what is retained is among what is stored, or older than asked for
        handling = wanted.retain_handling
        if held.group is not None or held.observation is not None or handling == RetainHandling.SEND_NEVER:
            return
        if handling == RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS and known:
            return
        self.turns.begin(session, self._hand_out(session, held))

    def _hand_out(self, session: Session, held: Held) -> Iterator[None]:
        """What is retained, step by step."""
        first = True
        for some in self.retained.matching(held.subscription.topic):
            if not first:
                yield
            first = False
            if not session.alive or session.held.get(held.subscription.id) is not held:
                return
            for message in some:
                if self._wants(session, held.subscription, message):
                    session.deliver(message, min(message.qos, held.qos), held.identifiers, near=held.near, retain=True)

    def _wants(self, session: Session, subscription: Subscription, message: Message) -> bool:
        """As for an event that happens now: whoever retains a message says that it holds still."""
        everything = subscription.area is None and subscription.where is None
        if everything and not any(name in _FOR_SOME for name, _ in message.near_properties):
            return True
        event = delivered_event(
            message.topic, message.payload, message.near_properties, None, id=message.event or "-", received=self.now()
        )
        known, located = self.presence.known(session.client), self.router.is_located(session.client)
        around = subscription.area is not None and subscription.area.is_relative
        return (
            event.when is None
            and ((around and not located) or in_area(subscription.area, event.place, known.position))
            and (subscription.where is None or evaluate(subscription.where, event.properties()) is True)
            and known.concerned(event, located=located)
        )


def held_of(
    request: SubscriptionRequest,
    qos: int,
    no_local: bool,
    retain_as_published: bool,
    identifier: int | None,
    now: Instant,
    words: Words | None = None,
) -> Held:
    if request.observation is not None:
        qos = min(qos, 1)  # nothing is told twice in one life of the broker, and more is not promised
    return Held(
        request.filter,
        request.name,
        request.subscription(now, qos, no_local=no_local, words=words),
        qos,
        no_local,
        retain_as_published,
        () if identifier is None else (identifier,),
        request.addressed,
        request.group,
        tuple(request.resolved(now).properties()) if request.addressed else (),
        now,
        request.observation,
    )


def row_of(held: Held) -> SubscriptionRow:
    """What is kept of it."""
    return SubscriptionRow(
        held.filter,
        held.properties,
        held.qos,
        held.no_local,
        held.retain_as_published,
        held.identifiers[0] if held.identifiers else None,
        held.since,
    )


def _entry(session: Session, held: Held, what: str, now: Instant) -> SubscriptionEntry:
    subscription = held.subscription
    return SubscriptionEntry(
        now,
        session.identity,
        subscription.id,
        "subscribed" if what == "subscribed" else "unsubscribed",
        subscription.topic,
        None if subscription.area is None else area_text(subscription.area),
        None if subscription.where is None else predicate_text(subscription.where),
        subscription.frame.since,
        subscription.frame.until,
        held.no_local,
    )


def _refusal(error: NearcastError) -> SubAckReasonCode:
    match error:
        case Denied():
            return SubAckReasonCode.NOT_AUTHORIZED
        case QuotaExceeded():
            return SubAckReasonCode.QUOTA_EXCEEDED
        case InvalidTopic():
            return SubAckReasonCode.TOPIC_FILTER_INVALID
        case _:
            return SubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
