"""What a client publishes on its connection, and how that is acknowledged (MQTT 5, 3.3 to 3.7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from mqtt5 import (
    DisconnectReasonCode,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PubCompReasonCode,
    PublishPacket,
    PubRecPacket,
    PubRecReasonCode,
    QoS,
)

from nearcast.broker.access import ClientLimits, Principal
from nearcast.broker.access.limits import work_of
from nearcast.broker.connections.connection import Connection
from nearcast.broker.connections.reasons import Reasons
from nearcast.broker.connections.services import Services
from nearcast.broker.publishing.message import size_of, with_properties
from nearcast.broker.publishing.qos0_batch import Gathered
from nearcast.broker.publishing.qos1_batch import Promised
from nearcast.broker.sessions.session import Session
from nearcast.broker.sessions.sessions import INCOMING
from nearcast.broker.tracing.tracer import Trace
from nearcast.errors import Denied, InvalidInput, InvalidTopic, JournalFailed, NearcastError, QuotaExceeded, Refused
from nearcast.journal import Put
from nearcast.model.time import MICROSECONDS
from nearcast.mqtt.names import RESERVED, ReservedTopic, reserved
from nearcast.mqtt.positions import position_in
from nearcast.mqtt.publication import is_plain, place_alone, plain_topic, publication
from nearcast.mqtt.stream import V311

log: Final = logging.getLogger(__name__)
FAILURE: Final = 0x80
"""Reason codes from here on say that something was refused."""

AT_MOST_ONCE: Final = QoS.AT_MOST_ONCE
AT_LEAST_ONCE: Final = QoS.AT_LEAST_ONCE
WAIT_FOR_DISK: Final = 20_000
"""Microseconds for which a publisher is not read from when the disk does not keep up."""

POSITION: Final = ReservedTopic.POSITION.topic

End = Callable[[DisconnectReasonCode, str], None]


class Incoming:
    """Of one client, on one connection."""

    __slots__ = (
        "_aliases",
        "_connection",
        "_end",
        "_reasons",
        "_services",
        "_session",
        "_unanswered",
        "_uncompleted",
        "limits",
        "principal",
    )

    def __init__(
        self,
        services: Services,
        connection: Connection,
        session: Session,
        principal: Principal,
        limits: ClientLimits,
        reasons: Reasons,
        end: End,
    ) -> None:
        self._services: Final = services
        self._connection: Final = connection
        self._session: Final = session
        self.principal = principal
        self.limits = limits
        self._reasons: Final = reasons
        self._end: Final = end
        self._aliases: dict[int, str] | None = None
        """Most clients have none."""

        self._unanswered = 0
        """Publishes of quality 1 and 2 that count for the receive maximum (MQTT 5, 4.9)."""

        self._uncompleted: set[int] | None = None
        """Packet ids of those of quality 2, which count until their PUBCOMP; most clients have none."""

    def publish(self, packet: PublishPacket) -> None:
        services, session = self._services, self._session
        topic, aliased = packet.topic, packet.topic_alias
        if aliased is not None:
            topic = self._resolved(topic, aliased)
            if not topic:
                return
        if self.limits.limited:
            pause = self.limits.published(size_of(packet, topic) + work_of(packet.user_properties), services.now())
            if pause:
                self._slow_down(pause)
        if services.tracer is not None and not topic.startswith(RESERVED):
            trace = services.tracer.begin(packet.user_properties, "mqtt")
            if trace is not None:  # by the way of a single message, on which it can be watched
                self._publish_any(
                    with_properties(packet, topic, trace.properties(packet.user_properties)), topic, trace
                )
                return
        if self.principal.metered and topic != POSITION:
            self._publish_any(packet, topic)  # each by itself: it is counted whom it goes to
        elif packet.qos is not AT_MOST_ONCE or packet.retain:
            plain = is_plain(topic, packet.user_properties) and not session.announced
            if plain and packet.qos is AT_LEAST_ONCE and not packet.retain and services.publishing.beyond is None:
                self._promise(packet, topic)
            else:
                self._publish_any(packet, topic)
        elif topic[0] == "$":
            if topic == POSITION and packet.payload:
                self._move(packet.payload)
            else:
                self._publish_any(packet, topic)
        elif session.announced:
            self._publish_any(packet, topic)
        elif packet.user_properties:
            self._publish_told(packet, topic)
        elif services.publishing.keeps(topic):
            self._publish_any(packet, topic)
        else:
            self._publish_plain(packet, topic)

    def _publish_plain(self, packet: PublishPacket, topic: str) -> None:
        """Nothing but a topic, and not to be stored."""
        services = self._services
        if not self.principal.may_publish_plain(topic):
            self.complain(f"no rule allows {self.principal} to publish to {topic!r}")
            return
        try:
            services.quotas.check_topic(topic)
        except QuotaExceeded as error:
            self.complain(str(error))
        else:
            services.publishing.plain(self._session, packet, topic)

    def _move(self, payload: bytes) -> None:
        """Where the client is; nobody waits for an answer, so that many reports can go together."""
        services = self._services
        try:
            self.limits.check_position(services.now())
            report = position_in(payload)
            if report is not None and (report.time is not None or report.accuracy is not None):
                report = services.reserved.presence.judged(self._session, report)
        except NearcastError as error:
            self.complain(str(error))
            return
        if report is None:
            return  # it came late, or twice
        services.batching.move(self._session, report)
        if services.batching.behind:
            self._slow_down(WAIT_FOR_DISK)

    def _publish_told(self, packet: PublishPacket, topic: str) -> None:
        """With properties, quality 0: if nothing in them depends on the publisher, many can go together."""
        batching, properties = self._services.batching, packet.user_properties
        alone = self._services.publishing.beyond is None
        if packet.message_expiry_interval is not None or not batching.open or not alone:
            self._publish_any(packet, topic)
            return
        try:
            self._services.quotas.check_topic(topic)
            self._services.quotas.check_properties(properties)
            place, read = place_alone(properties), None
            if place is None or not self.principal.unrestricted:
                read = publication(topic, packet.payload, properties)
                if read.id is not None or not read.is_absolute:
                    self._publish_any(packet, topic)
                    return
                # Whatever is wrong with it is found out now, by making it.
                self.principal.check_event(read.event("-", self._services.now(), self._session.client, None))
                place = read.place
            batching.publish(Gathered(self._session, packet, topic, place, read, self.complain))
        except NearcastError as error:
            self.complain(str(error))
        if batching.behind:
            self._slow_down(WAIT_FOR_DISK)

    def _promise(self, packet: PublishPacket, topic: str) -> None:
        """Nothing but a topic, quality 1: those of one turn go to the disk together."""
        services = self._services
        if not self._count():
            return
        try:
            services.quotas.check_topic(topic)
            if not self.principal.may_publish_plain(topic):
                raise Denied(f"no rule allows {self.principal} to publish to {topic!r} without a place")
        except NearcastError as error:
            self.refuse(packet, error)
            return
        services.batching.promise(Promised(self, self._session, packet, topic))
        if services.batching.behind:
            self._slow_down(WAIT_FOR_DISK)

    def keep(self, promised: list[tuple[int, bool]]) -> None:
        """Publishes of quality 1 are on disk: their packet ids, and whether anybody gets them."""
        self._unanswered -= len(promised)
        connection = self._connection
        if self._session.connection is connection:
            told = connection.version != V311
            connection.write_all(
                [
                    b"\x40\x02" + packet_id.to_bytes(2)
                    if wanted or not told
                    else b"\x40\x03" + packet_id.to_bytes(2) + b"\x10"
                    for packet_id, wanted in promised
                ]
            )

    def refuse(self, packet: PublishPacket, error: NearcastError) -> None:
        """A publish of quality 1 that was taken up is not carried out."""
        self._acknowledging(packet)(_puback_code(error), str(error))

    def _publish_any(self, packet: PublishPacket, topic: str, trace: Trace | None = None) -> None:
        """Raises nothing: what is wrong is said in the acknowledgement, or as a problem."""
        services, session = self._services, self._session
        services.batching.settle()
        qos, packet_id = int(packet.qos), packet.packet_id
        if qos and not self._take_up(packet):
            return
        if services.publishing.journal.is_behind:
            self._slow_down(WAIT_FOR_DISK)
        acknowledge = self._acknowledging(packet)
        puts = [Put(INCOMING, session.key(packet_id or 0), b"")] if qos == 2 and session.durable else []
        try:
            services.quotas.check_topic(topic)
            services.quotas.check_properties(packet.user_properties)
            asked = reserved(topic)
            if asked is not None:
                # The id of quality 2 need not be on disk for these: to say again where I am changes nothing.
                services.reserved.handle(
                    session, self.principal, self.limits, asked, packet.payload, acknowledge if qos else None
                )
                return
            if packet.retain and packet.payload:
                others, size = services.publishing.retained.without(plain_topic(topic))
                services.quotas.check_retained(others, size + size_of(packet, topic))
            services.publishing.publish(session, packet, topic, acknowledge, self.principal, puts, trace)
        except NearcastError as error:
            if trace is not None:
                trace.end(type(error).__name__)
            if qos:
                acknowledge(_puback_code(error), str(error))
            else:
                self.complain(str(error))

    def _take_up(self, packet: PublishPacket) -> bool:
        """Whether it is a new one."""
        session, packet_id = self._session, packet.packet_id or 0
        if int(packet.qos) == 2 and packet_id in session.incoming:
            if packet_id not in session.unwritten:
                self._connection.send(PubRecPacket(packet_id))
            return False
        if not self._count():
            return False
        if int(packet.qos) == 2:
            session.incoming.add(packet_id)
            session.unwritten.add(packet_id)
            if self._uncompleted is None:
                self._uncompleted = set()
            self._uncompleted.add(packet_id)
        return True

    def _count(self) -> bool:
        """Whether one more may be unanswered."""
        self._unanswered += 1
        if self._unanswered <= self._services.settings.inflight:
            return True
        self._end(DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, "more unacknowledged publishes than the CONNACK allowed")
        return False

    def _acknowledging(self, packet: PublishPacket) -> Callable[[PubAckReasonCode, str | None], None]:
        qos, packet_id, session = int(packet.qos), packet.packet_id or 0, self._session

        def acknowledge(code: PubAckReasonCode, why: str | None) -> None:
            if not qos:
                return
            session.unwritten.discard(packet_id)
            failed = int(code) >= FAILURE
            if qos == 1:
                self._unanswered -= 1
            elif failed:
                session.incoming.discard(packet_id)
                self._complete(packet_id)
            if session.connection is not self._connection:
                return
            if failed and self._connection.version == V311:
                # That version cannot say no; a client whose connection ends tries again, or asks somebody.
                log.info("client %s: publish refused: %s", session.identity, why)
                self._connection.close()
            elif qos == 1:
                self._connection.send(PubAckPacket(packet_id, reason_code=code, reason_str=self._reasons.answer(why)))
            else:
                refusal = PubRecReasonCode(int(code))
                self._connection.send(
                    PubRecPacket(packet_id, reason_code=refusal, reason_str=self._reasons.answer(why))
                )

        return acknowledge

    def released(self, packet_id: int) -> None:
        """A PUBREL has come."""
        session, connection = self._session, self._connection
        if packet_id not in session.incoming:
            connection.send(PubCompPacket(packet_id, reason_code=PubCompReasonCode.PACKET_ID_NOT_FOUND))
            return
        session.incoming.discard(packet_id)

        def written(failed: JournalFailed | None) -> None:
            if failed is not None:
                session.incoming.add(packet_id)  # as it is on disk; the client will release it once more
            elif session.connection is connection:
                self._complete(packet_id)
                connection.send(PubCompPacket(packet_id))

        if session.durable:
            # Before it is said: a new message under this id must not be taken for the old one after a restart.
            session.store.journal.write(puts=(Put(INCOMING, session.key(packet_id), None),), then=written)
        else:
            written(None)

    def _complete(self, packet_id: int) -> None:
        """One of quality 2 is over, and makes room, if it was of this connection."""
        if self._uncompleted is not None and packet_id in self._uncompleted:
            self._uncompleted.discard(packet_id)
            self._unanswered -= 1

    def _resolved(self, topic: str, alias: int) -> str:
        """The topic that a topic alias stands for (MQTT 5, 3.3.2.3.4); nothing if there is none."""
        if not 0 < alias <= self._services.settings.topic_aliases:
            self._end(DisconnectReasonCode.TOPIC_ALIAS_INVALID, f"topic alias {alias} was not allowed")
            return ""
        if self._aliases is None:
            self._aliases = {}
        if topic:
            self._aliases[alias] = topic
            return topic
        known = self._aliases.get(alias, "")
        if not known:
            self._end(DisconnectReasonCode.PROTOCOL_ERROR, f"topic alias {alias} stands for nothing yet")
        return known

    def _slow_down(self, microseconds: int) -> None:
        self._connection.pause()
        asyncio.get_running_loop().call_later(microseconds / MICROSECONDS, self._connection.go_on)

    def complain(self, problem: str) -> None:
        """Quality 0 has no acknowledgement: whoever wants to hear of problems subscribes to them."""
        log.debug("client %s: %s", self._session.identity, problem)
        self._session.complain(problem)


def _puback_code(error: NearcastError) -> PubAckReasonCode:
    match error:
        case Refused():
            try:
                return PubAckReasonCode(error.reason)
            except ValueError:
                return PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        case InvalidTopic():
            return PubAckReasonCode.TOPIC_NAME_INVALID
        case InvalidInput():
            return PubAckReasonCode.PAYLOAD_FORMAT_INVALID
        case JournalFailed():
            return PubAckReasonCode.QUOTA_EXCEEDED
        case _:
            return PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
