"""All parts of the broker but the listeners, put together; and how they get through a restart."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from mqtt5 import DisconnectReasonCode

from nearcast.broker.access import Access, Admission, Callers
from nearcast.broker.access.access import AccessStatistics
from nearcast.broker.access.callers import CallersStatistics
from nearcast.broker.access.limits import AdmissionStatistics, Quotas
from nearcast.broker.access.people import People, PeopleStatistics
from nearcast.broker.answering import Answering, AnsweringStatistics
from nearcast.broker.audit import Audit, AuditStatistics
from nearcast.broker.audit.observing import ObservationAudit
from nearcast.broker.connections.connection import Connection, Flusher, Terms, Traffic
from nearcast.broker.connections.conversation import Conversation
from nearcast.broker.connections.services import Services
from nearcast.broker.erasing.live import ErasingStatistics, LiveErasing
from nearcast.broker.federation.federation import Federation
from nearcast.broker.federation.statistics import FederationStatistics
from nearcast.broker.logs import ProblemLog
from nearcast.broker.observation.observation import Observation, ObservationStatistics
from nearcast.broker.presence import Presence, PresenceStatistics
from nearcast.broker.publishing.batching import Batching, BatchingStatistics
from nearcast.broker.publishing.entries import message_in
from nearcast.broker.publishing.publishing import Publishing, PublishingStatistics
from nearcast.broker.publishing.retained import Retained
from nearcast.broker.publishing.router import Router, RouterStatistics
from nearcast.broker.refusals import Refusals
from nearcast.broker.reserved import ReservedTopics
from nearcast.broker.schemes.live import SchemesStatistics
from nearcast.broker.schemes.planners import Planners, PlannersStatistics
from nearcast.broker.schemes.plans import Plans
from nearcast.broker.schemes.scheming import Scheming
from nearcast.broker.sessions.lifecycle import SessionLifecycle
from nearcast.broker.sessions.redelivery import RedeliveryStatistics
from nearcast.broker.sessions.session import Outgoing, SessionLimits
from nearcast.broker.sessions.sessions import Sessions, SessionsStatistics
from nearcast.broker.sessions.subscribing import Subscribing
from nearcast.broker.sessions.wills import Wills
from nearcast.broker.settings import BrokerSettings
from nearcast.broker.sliced_work import SlicedWork
from nearcast.broker.temporal.service import TemporalService, TemporalStatistics
from nearcast.broker.tracing.settings import TracingSettings
from nearcast.broker.tracing.tracer import Tracer, TracingStatistics
from nearcast.broker.upkeep.reload import Reloaded
from nearcast.errors import InvalidInput, OffsetTrimmed
from nearcast.journal import DeliveryEntry, EventEntry, Journal, JournalStatistics
from nearcast.journal import JournalSettings as StorageSettings
from nearcast.journal.archive import Archive, ArchiveStatistics
from nearcast.journal.identities import Identities
from nearcast.matching import Matcher
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.names import ReservedTopic
from nearcast.runtime.durations import SLOW, Durations, DurationStatistics
from nearcast.runtime.live.clock import LiveClock
from nearcast.runtime.ports import Clock

log: Final = logging.getLogger(__name__)
LOOK_BACK: Final = 10_000
"""Records read at the start even if nobody is owed them: whose acknowledgement was lost in the fall may send them again."""


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    connections: int
    bytes_in: int
    bytes_out: int
    packets_in: int
    retained: int
    sessions: SessionsStatistics
    publishing: PublishingStatistics
    routing: RouterStatistics
    presence: PresenceStatistics
    observation: ObservationStatistics
    journal: JournalStatistics
    archive: ArchiveStatistics
    access: AccessStatistics
    admission: AdmissionStatistics
    callers: CallersStatistics
    people: PeopleStatistics
    audit: AuditStatistics
    planners: PlannersStatistics
    answering: AnsweringStatistics
    schemes: SchemesStatistics
    time: TemporalStatistics
    batching: BatchingStatistics
    redelivery: RedeliveryStatistics
    erasing: ErasingStatistics
    federation: FederationStatistics | None
    """None if it is alone."""

    refusals: dict[str, dict[str, int]]
    """By listener and reason."""

    loop_lag: DurationStatistics
    """How late the loop's look-after comes, once a second."""

    tracing: TracingStatistics | None
    """None if nothing is traced."""


class Broker:
    """Everything on one event loop; ``load`` before anybody is let in."""

    def __init__(self, settings: BrokerSettings, loop: asyncio.AbstractEventLoop, clock: Clock | None = None) -> None:
        self.settings = settings
        """As they are in effect."""

        self.loop: Final = loop
        self.clock: Final[Clock] = clock or LiveClock()
        now = self.clock.now
        storage = StorageSettings(
            keep_for=settings.journal.retention_age,
            keep_bytes=settings.journal.retention_size,
            lake=settings.lake,
        )
        self.journal: Final = Journal.open(settings.data / "journal", storage, loop.call_soon_threadsafe, now)
        self.archive: Final = Archive(self.journal, settings.lake, storage.export_every)
        self.identities: Final = Identities(settings.data / "identities.db")
        self.access: Final = Access(settings, now)
        self.sessions: Final = Sessions(
            self.journal,
            self.identities,
            now,
            SessionLimits(settings.session.queue_messages, settings.session.inflight, settings.session.queue_bytes),
        )
        self.audit: Final = Audit(settings.audit, settings.data / "audit", self.journal, now)
        matcher = Matcher()
        self.presence: Final = Presence(self.journal, matcher, now, rules=settings.positions.rules)
        self.router: Final = Router(self.sessions.all, self.presence, now, matcher)
        self.scheming: Final = Scheming(
            settings.schemes, self.clock, self.journal, self.sessions.all, self.presence, loop.call_soon
        )
        self.router.schemes = self.scheming.live
        self.observation: Final = Observation(self.journal, self.sessions, self.presence, now, loop.call_later)
        self.router.observers = self.observation
        if self.audit.on:
            self.observation.audit = ObservationAudit(self.audit, self.sessions.all)
        self.retained: Final = Retained(self.journal, now)
        self.temporal: Final = TemporalService(
            self.journal, self.sessions, self.router, self.presence, self.retained, now, loop.call_later
        )
        self.publishing: Final = Publishing(
            self.journal,
            self.router,
            self.presence,
            self.retained,
            self.temporal.addressing,
            now,
            settings.journal.keep,
        )
        self.people: Final = People(self.journal, lambda user: self.identities.of(f"{user}\0"), now)
        self.publishing.people = self.people
        self.publishing.audit = self.temporal.addressing.audit = self.audit if self.audit.on else None
        quotas = Quotas(settings.limits)
        self.wills: Final = Wills(self.sessions, self.publishing, quotas, now)
        self.subscribing: Final = Subscribing(
            self.journal,
            self.sessions,
            self.router,
            self.retained,
            self.presence,
            self.temporal.replays,
            SlicedWork(loop.call_soon),
            now,
            settings.limits.subscriptions_per_client,
            int(settings.limits.subscription_bytes_per_client),
        )
        self.lifecycle: Final = SessionLifecycle(
            self.journal,
            self.sessions,
            self.router,
            self.presence,
            self.wills,
            self.temporal.replays,
            now,
            settings.session.max_expiry // MICROSECONDS,
            self.scheming,
            lambda session: [*self.temporal.forget(session), *self.observation.forget(session)],
        )
        self.reserved: Final = ReservedTopics(
            self.presence, quotas, {ReservedTopic.SCHEME: self.scheming.heard, **self.temporal.handlers()}, now
        )
        flusher = Flusher(loop)
        self.batching: Final = Batching(self.publishing, self.presence, flusher.expect)
        flusher.settle = self.router.settle = self.presence.settle = self.publishing.settle = self.batching.settle
        self.services: Final = Services(
            settings.session,
            settings.limits.packet,
            self.access,
            Admission(settings.limits),
            quotas,
            Callers(settings.limits),
            self.lifecycle,
            self.publishing,
            self.subscribing,
            self.reserved,
            self.batching,
            now,
            {},
            Refusals(listener.name for listener in settings.listen.listeners()),
            most_half_open=settings.limits.half_open,
        )
        self.federation: Final = Federation(settings.federation, self) if settings.federation.is_on else None
        if self.federation is not None:
            self._federate(self.federation)
        self.tracer: Final = _tracer(settings.tracing, now)
        self.services.tracer = self.publishing.tracer = self.tracer
        self.traffic: Final = Traffic()
        self.terms: Final = Terms(
            flusher,
            self.traffic,
            now,
            settings.limits.packet,
            settings.session.output_bytes,
            partial(Conversation, self.services),
        )
        self.answering: Final = Answering(self.journal, self.sessions, self.temporal.unpublishing.offsets, now)
        self.plans: Final = Plans(
            self.journal,
            self.sessions,
            self.scheming,
            now,
            Planners(settings.schemes.planners, settings.schemes.audience, now),
        )
        self._problems: Final = ProblemLog(
            {"journal": lambda: self.journal.problem, "lake": lambda: self.archive.problem}
        )
        self.erasing: Final = LiveErasing(self)
        self._users = self.access.version()
        self._ticking: asyncio.TimerHandle | None = None
        self.reload: Callable[[], Awaitable[Reloaded]] | None = None
        """Reads the settings anew, where there is somebody who knows where they are."""
        self._due = 0.0
        self._loop_lag: Final = Durations(SLOW)

    def _federate(self, federation: Federation) -> None:
        """Whatever happens to a client here, the other brokers may have to know."""
        watch, forgetting = self.presence.watch, self.lifecycle.forgetting

        def changed(client: str, at: Instant) -> None:
            watch(client, at)
            federation.changed(client)

        self.presence.watch = changed
        self.presence.willing = federation.changed
        self.router.watch = lambda session: federation.changed(session.client)
        self.lifecycle.forgetting = lambda session: [*forgetting(session), *federation.forgotten(session)]
        self.publishing.beyond = self.services.federation = federation
        self.temporal.unpublishing.elsewhere = federation.withdrawals

    def identity_of(self, user: str | None, door: str) -> str | None:
        """Under which it is recorded what somebody did who came by another door than MQTT."""
        return None if user is None else self.identities.of(f"{user}\0{door}")

    def statistics(self) -> BrokerStatistics:
        return BrokerStatistics(
            connections=len(self.services.open),
            bytes_in=self.traffic.bytes_in,
            bytes_out=self.traffic.bytes_out,
            packets_in=self.traffic.packets_in,
            retained=len(self.retained),
            sessions=self.sessions.statistics(),
            publishing=self.publishing.statistics(),
            routing=self.router.statistics(),
            presence=self.presence.statistics(),
            observation=self.observation.statistics(),
            journal=self.journal.statistics(),
            archive=self.archive.statistics(),
            access=self.access.statistics(),
            admission=self.services.admission.statistics(),
            callers=self.services.callers.statistics(),
            people=self.people.statistics(),
            audit=self.audit.statistics(),
            planners=self.plans.planners.statistics(),
            answering=self.answering.statistics(),
            schemes=self.scheming.live.statistics(),
            time=self.temporal.statistics(),
            batching=self.batching.statistics(),
            redelivery=self.lifecycle.redelivery.statistics(),
            erasing=self.erasing.statistics(),
            federation=None if self.federation is None else self.federation.statistics(),
            refusals=self.services.refusals.statistics(),
            loop_lag=self._loop_lag.statistics(),
            tracing=None if self.tracer is None else self.tracer.statistics(),
        )

    def connection(self, *, tls: bool = False) -> Connection:
        """For a listener: the protocol of a new connection."""
        return Connection(self.terms, tls=tls)

    # Start and end

    def load(self) -> None:
        """Take up what an earlier life of this broker left."""
        subscriptions = self.sessions.load()
        for session in self.sessions:
            session.rights = self.access.absent(self.sessions.users.get(session.client), session.client)
        self.retained.load()
        self.presence.load(self.sessions.all)
        self.scheming.load()
        self.observation.begin_loading()
        for client, rows in subscriptions.items():
            for row in rows:
                try:
                    self.subscribing.restore(self.sessions.all[client], row)
                except InvalidInput as error:  # of a later version, or the rules of filters have become stricter
                    log.warning("a subscription of %s was not restored: %s", self.sessions.all[client].identity, error)
        self.temporal.load()
        if self.federation is not None:
            self.federation.load()
        self._restore_messages()
        self.observation.load()
        self.temporal.resume()
        if self.federation is not None:
            self.federation.resume()

    def _restore_messages(self) -> None:
        """Who was owed what: it stands beside each event in the journal."""
        by_identity = {session.identity: session for session in self.sessions if session.durable}
        found: dict[str, list[Outgoing]] = {session.client: [] for session in by_identity.values()}
        first = max(min(self.sessions.oldest_unconfirmed(), self.journal.head - LOOK_BACK), self.journal.oldest)
        with contextlib.suppress(OffsetTrimmed):
            for chunk in self.journal.read(first, kinds=(EventEntry, DeliveryEntry)):
                for offset, record in chunk:
                    entry, origin = (record.event, record.of) if isinstance(record, DeliveryEntry) else (record, offset)
                    if not isinstance(entry, EventEntry):
                        continue
                    if entry.publisher is not None:
                        self.publishing.remember(entry.publisher, entry.id)
                    if entry.key is not None:
                        for identity in entry.receivers:
                            receiver = by_identity.get(identity)
                            if receiver is not None and receiver.had is not None:
                                unconfirmed = self.sessions.unconfirmed(receiver, offset)
                                receiver.had.add(entry.key, confirmed=not unconfirmed)
                    if not entry.owed or origin in self.temporal.unpublishing.offsets:
                        continue
                    message = None
                    for identity, qos, near, identifiers in entry.owed:
                        session = by_identity.get(identity)
                        if session is not None and self.sessions.unconfirmed(session, offset):
                            message = message or message_in(entry, offset)
                            message.of = origin
                            shared = self.router.shared_by(session, message.topic, identifiers)
                            out = Outgoing(message, qos, False, near, identifiers, shared=shared)
                            found[session.client].append(out)
        self.sessions.restore_messages(found)

    def run(self) -> None:
        """From now on, look after everything once a second."""
        self.scheming.live.start()
        self.archive.start()
        self._tick_later()

    def _tick_later(self) -> None:
        self._due = self.loop.time() + 1.0
        self._ticking = self.loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._loop_lag.add(self.loop.time() - self._due)
        self._tick_later()
        self._problems.look()
        self.erasing.look()
        self._look_at_users()
        now = self.clock.now()
        for conversation in list(self.services.open):
            conversation.look_after(now)
        self.wills.due()
        self.lifecycle.expire()
        gone = self.retained.expire()
        if gone:
            self.journal.write(puts=gone)
        self.sessions.flush()
        self.presence.flush()
        self.temporal.flush()
        self.audit.flush()

    def _look_at_users(self) -> None:
        """Who has another password now, or none, was let in by something that holds no more."""
        version = self.access.version()
        if version == self._users:
            return
        self._users = version
        for conversation in list(self.services.open):
            principal = conversation.principal
            if principal is not None and not self.access.holds(principal):
                conversation.end(
                    DisconnectReasonCode.NOT_AUTHORIZED, "log in again: that password does not hold any more"
                )

    def close(self) -> None:
        """Say goodbye to everybody and bring everything to disk."""
        if self._ticking is not None:
            self._ticking.cancel()
        self.erasing.close()
        for conversation in list(self.services.open):
            conversation.end(DisconnectReasonCode.SERVER_SHUTTING_DOWN, "the broker is shutting down")
        self.batching.settle()
        self.scheming.stop()
        self.sessions.flush()
        self.presence.flush()
        self.observation.close()
        self.temporal.close()
        self.access.close()
        self.audit.close()
        self.archive.close()
        self.journal.close()
        self.identities.close()
        if self.tracer is not None:
            self.tracer.close()


def _tracer(settings: TracingSettings, now: Callable[[], Instant]) -> Tracer | None:
    if not settings.is_on:
        return None
    # A third of a second to import, which nobody waits for who does without.
    from nearcast.broker.tracing.exporting import provider_for

    return Tracer(settings, now, provider_for(settings))
