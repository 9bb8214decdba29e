"""The last message of a client that vanishes (MQTT 5, 3.1.2.5)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqtt5 import Will

from nearcast.broker.access.limits import Quotas
from nearcast.broker.publishing.message import Message, size_of_kept
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.sessions.session import Session
from nearcast.broker.sessions.sessions import Departed, Sessions, WillRow
from nearcast.errors import Denied, InvalidInput, QuotaExceeded
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.publication import delivery_properties, publication

log: Final = logging.getLogger(__name__)


def row_of(will: Will) -> WillRow:
    return WillRow(
        will.topic,
        will.payload or b"",
        int(will.qos),
        will.retain,
        will.will_delay_interval,
        will.message_expiry_interval,
        will.payload_format_indicator,
        will.content_type,
        will.response_topic,
        will.correlation_data,
        tuple(will.user_properties),
    )


@dataclass(slots=True, eq=False)
class Wills:
    sessions: Sessions
    publishing: Publishing
    quotas: Quotas
    now: Callable[[], Instant]

    def made(self, session: Session, will: Will | None) -> None:
        """On a new connection."""
        self.sessions.wills.pop(session.client, None)
        if will is not None:
            self.sessions.wills[session.client] = Departed(row_of(will))

    def cancelled(self, session: Session) -> None:
        """The client said goodbye."""
        self.sessions.wills.pop(session.client, None)

    def vanished(self, session: Session) -> None:
        """The connection was lost: the delay begins."""
        departed = self.sessions.wills.get(session.client)
        if departed is None or departed.will is None:
            return
        if departed.will.delay == 0 or not session.durable:
            self.publish(session)
        else:
            departed.will_due = self.now() + departed.will.delay * MICROSECONDS

    def publish(self, session: Session) -> None:
        """Now: the delay is over, or the session."""
        departed = self.sessions.wills.pop(session.client, None)
        if departed is None or departed.will is None:
            return
        will, now = departed.will, self.now()
        try:
            read = publication(will.topic, will.payload, will.properties, will.expiry)
            position = self.publishing.presence.position(session.client)
            event = read.event(
                self.publishing.next_id(), now, session.client, position, session.announced.get(read.topic)
            )
            # Once more: its place and reach are where the client vanished, not where it said its will.
            meter = None
            if session.rights is not None:
                session.rights.check_event(event)
                meter = self.publishing.meter(session.rights, event)
        except (InvalidInput, Denied) as error:
            log.info("the will of client %s is not published: %s", session.identity, error)
            return
        message = Message(
            read.topic,
            will.payload,
            will.qos,
            will.retain,
            None if will.expiry is None else now + will.expiry * MICROSECONDS,
            will.payload_format,
            will.content_type,
            will.response_topic,
            will.correlation,
            will.properties,
            tuple(delivery_properties(event)),
            event.id,
        )
        message.retain = will.retain and self._may_retain(message)
        try:
            self.publishing.event(event, message, session, _unheard, read.channel, archived=read.addressed, meter=meter)
        except QuotaExceeded as error:
            log.info("the will of client %r is not published: %s", session.client, error)

    def _may_retain(self, message: Message) -> bool:
        others, size = self.publishing.retained.without(message.topic)
        try:
            if message.payload:
                self.quotas.check_retained(others, size + size_of_kept(message))
        except QuotaExceeded:
            return False  # who is there hears it all the same
        return True

    def due(self) -> None:
        now = self.now()
        for client, departed in list(self.sessions.wills.items()):
            if departed.will_due is not None and departed.will_due <= now:
                session = self.sessions.all.get(client)
                if session is not None:
                    self.publish(session)
                    self.sessions.dirty(session)


def _unheard(_code: object, _reason: str | None) -> None:
    """Nobody waits for the acknowledgement of a will."""
