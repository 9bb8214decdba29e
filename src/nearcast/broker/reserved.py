"""Topics that speak to the broker itself: where I am, what my context is, what I take back (docs/mqtt.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqtt5 import PubAckReasonCode

from nearcast.broker.access import ClientLimits, Principal
from nearcast.broker.access.limits import Quotas
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.ports import Acknowledge
from nearcast.broker.sessions.session import Session
from nearcast.errors import Denied, InvalidContext, InvalidProperty, JournalFailed, NearcastError
from nearcast.journal import Then
from nearcast.model.time import Instant
from nearcast.mqtt.names import Reserved, ReservedTopic
from nearcast.mqtt.observations import consent_in
from nearcast.mqtt.positions import context_in, position_in

Answer = Callable[[NearcastError | None], None]
Handler = Callable[[Session, Principal, str, bytes, Answer | None], None]
"""What follows the topic, the payload, and whom to tell when it is on disk (nobody: it need not be waited for)."""


@dataclass(slots=True, eq=False)
class ReservedTopics:
    presence: Presence
    quotas: Quotas
    handlers: dict[ReservedTopic, Handler]
    """Of those that others carry out."""

    now: Callable[[], Instant]

    def handle(
        self,
        session: Session,
        principal: Principal,
        limits: ClientLimits,
        topic: Reserved,
        payload: bytes,
        acknowledge: Acknowledge | None,
    ) -> None:
        """Carry it out; raises before anything has happened if it cannot be."""
        then = None if acknowledge is None else _answer(acknowledge)
        match topic.kind:
            case ReservedTopic.POSITION:
                limits.check_position(self.now())
                self.presence.reported(session, position_in(payload), then)
            case ReservedTopic.CONTEXT:
                self._context(session, limits, topic.rest, payload, then)
            case ReservedTopic.ACCEPT:
                if payload not in {b"true", b"false"}:
                    raise InvalidProperty(f"the payload is true or false, not {payload[:20]!r}")
                self.presence.accepts(session, payload == b"true", then)
            case ReservedTopic.OBSERVABLE:
                self.presence.observable(session, consent_in(payload), then)
            case ReservedTopic.PROBLEMS | ReservedTopic.PRESENCE:
                raise InvalidProperty(f"{topic.kind.topic} is where only the broker speaks; subscribe to it")
            case kind:
                self.handlers[kind](session, principal, topic.rest, payload, then)

    def _context(self, session: Session, limits: ClientLimits, name: str, payload: bytes, then: Then | None) -> None:
        context = context_in(payload)
        known = self.presence.contexts(session.client)
        if context is None:
            if name not in known:
                raise InvalidContext(f"there is no context {name!r} to deregister")
            self.presence.registered(session, name, None, then)
            return
        if name not in known:
            self.quotas.check_contexts(len(known))
        if context.position is not None:
            limits.check_position(self.now())
            self.presence.moved(session, context.position)
        self.presence.registered(session, name, context.attributes, then)


def _answer(acknowledge: Acknowledge) -> Answer:
    def written(failed: NearcastError | None) -> None:
        match failed:
            case None:
                acknowledge(PubAckReasonCode.SUCCESS, None)
            case JournalFailed():
                acknowledge(PubAckReasonCode.QUOTA_EXCEEDED, str(failed))
            case Denied():
                acknowledge(PubAckReasonCode.NOT_AUTHORIZED, str(failed))
            case _:
                acknowledge(PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, str(failed))

    return written
