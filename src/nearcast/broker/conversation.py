"""What a client says on its connection, packet by packet (MQTT 5, chapter 3)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqtt5 import (
    AuthPacket,
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    Packet,
    PingReqPacket,
    PingRespPacket,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PubCompReasonCode,
    PublishPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
    PubRelReasonCode,
    QoS,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
    Will,
)

from nearcast.broker.access import Access, Admission, ClientLimits, Principal
from nearcast.broker.access.limits import Quotas
from nearcast.broker.connection import Connection, Listener
from nearcast.broker.message import Message
from nearcast.broker.publishing import Publishing
from nearcast.broker.reception import Reception
from nearcast.broker.reserved import ReservedTopics
from nearcast.broker.session import Session
from nearcast.broker.sessions import INCOMING
from nearcast.broker.settings import SessionSettings
from nearcast.broker.subscribing import Subscribing
from nearcast.errors import (
    InvalidInput,
    InvalidTopic,
    JournalFailed,
    NearcastError,
    ProtocolError,
    QuotaExceeded,
    Refused,
)
from nearcast.journal import Put
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt import names
from nearcast.mqtt.names import ReservedTopic, reserved
from nearcast.mqtt.publication import publication

log: Final = logging.getLogger("nearcast.broker")
V311: Final = 4
FAILURE: Final = 0x80
"""Reason codes from here on say that something was refused."""

BESIDE_A_REASON: Final = 24
"""Bytes of an answer, at most, apart from its reason and its list of codes."""

AT_MOST_ONCE: Final = QoS.AT_MOST_ONCE
WAIT_FOR_DISK: Final = 20_000
"""Microseconds for which a publisher is not read from when the disk does not keep up."""

PROBLEMS: Final = ReservedTopic.PROBLEMS.topic


@dataclass(frozen=True, slots=True)
class House:
    """All that a conversation calls upon; one for the whole broker."""

    settings: SessionSettings
    largest_packet: int
    access: Access
    admission: Admission
    quotas: Quotas
    reception: Reception
    publishing: Publishing
    subscribing: Subscribing
    reserved: ReservedTopics
    now: Callable[[], Instant]
    open: dict[Conversation, None]
    """All conversations, in the order in which they began."""


class Conversation(Listener):
    """With one client, on one connection."""

    __slots__ = (
        "_admitted",
        "_aliases",
        "_checking",
        "_connection",
        "_house",
        "_largest",
        "_limits",
        "_principal",
        "_tells_reasons",
        "_unanswered",
        "_waiting",
        "began",
        "keep_alive",
        "session",
    )

    def __init__(self, house: House, connection: Connection) -> None:
        self._house: Final = house
        self._connection: Final = connection
        self.session: Session | None = None
        self.began: Final = house.now()
        self.keep_alive = 0
        self._principal: Principal
        self._limits: ClientLimits
        self._largest: int | None = None
        self._tells_reasons = True
        self._aliases: dict[int, str] = {}
        self._unanswered = 0
        """Publishes of quality 1 and 2 that were not acknowledged yet."""

        self._waiting: list[Packet] | None = None
        """What came while the client was being checked."""

        self._checking: asyncio.Task[None] | None = None
        self._admitted = False
        house.open[self] = None
        try:
            house.admission.opened(connection.peer.address, house.now())
            self._admitted = True
        except QuotaExceeded as error:
            log.warning("refused a connection from %s: %s", connection.peer.address, error)
            connection.close()

    # From the connection

    def heard(self, packet: Packet) -> None:
        if self.session is not None:
            if type(packet) is PublishPacket:
                self._publish(packet)
            else:
                self._other(packet)
        elif self._waiting is not None:
            self._waiting.append(packet)
        elif isinstance(packet, ConnectPacket):
            self._connect(packet)
        else:
            self.misunderstood(
                ProtocolError("the first packet is a CONNECT (3.1)", int(DisconnectReasonCode.PROTOCOL_ERROR))
            )

    def misunderstood(self, error: ProtocolError) -> None:
        log.info("%s: %s", self, error)
        self._connection.refuse(error, connected=self.session is not None)

    def lost(self) -> None:
        self._house.open.pop(self, None)
        if self._admitted:
            self._house.admission.closed(self._connection.peer.address)
        if self._checking is not None:
            self._checking.cancel()
        self._leave(politely=False)

    def uncongested(self) -> None:
        if self.session is not None:
            self.session.go_on()

    def __str__(self) -> str:
        who = "a client" if self.session is None else f"client {self.session.client!r}"
        return f"{who} at {self._connection.peer.address}"

    # Coming

    def _connect(self, packet: ConnectPacket) -> None:
        self._largest, self._tells_reasons = packet.max_packet_size, packet.request_problem_info
        self._waiting = []
        self._connection.pause()
        self._checking = asyncio.get_running_loop().create_task(self._check(packet))

    async def _check(self, packet: ConnectPacket) -> None:
        connection, house = self._connection, self._house
        client = packet.client_id or f"nearcast-{secrets.token_hex(8)}"
        try:
            if packet.authentication_method is not None:
                raise Refused("no enhanced authentication here", int(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD))
            if "\0" in client:
                raise Refused("a client id holds no NUL", int(ConnAckReasonCode.CLIENT_ID_NOT_VALID))
            principal = await house.access.authenticate(client, packet.username, packet.password, connection.peer)
            if client not in house.reception.sessions.all:
                house.quotas.check_sessions(len(house.reception.sessions.all))
            if packet.will is not None:
                self._check_will(principal, client, packet.will)
            self._principal = principal
            self._limits = house.quotas.of_client(connection.peer)
            house.reception.enter(
                packet,
                client,
                connection.version,
                principal,
                self,
                lambda session, present, failed: self._entered(packet, session, present, failed),
            )
        except Refused as error:
            self._refuse_connect(_connack_code(error.reason), str(error))
        except InvalidInput as error:
            self._refuse_connect(ConnAckReasonCode.TOPIC_NAME_INVALID, str(error))
        self._checking = None

    def _check_will(self, principal: Principal, client: str, will: Will) -> None:
        """As if it were published now: what it says of place and people is checked as well."""
        self._house.quotas.check_topic(will.topic)
        read = publication(will.topic, will.payload or b"", will.user_properties, will.message_expiry_interval)
        names.check_unreserved(read.topic)
        position = self._house.publishing.presence.position(client)
        principal.check_event(read.event(client, self._house.now(), client, position))

    def _refuse_connect(self, code: ConnAckReasonCode, why: str) -> None:
        log.info("%s: refused: %s", self, why)
        self._connection.send(ConnAckPacket(reason_code=code, reason_str=self._fitting(why)))
        self._connection.close()

    def _entered(self, packet: ConnectPacket, session: Session, present: bool, failed: JournalFailed | None) -> None:
        connection, house = self._connection, self._house
        if house.reception.conversations.get(session.client) is not self:
            return  # the client came by yet another connection, which has the session now
        if connection.closing:
            house.reception.left(session, self, politely=False)
            return
        if failed is not None:
            self._refuse_connect(ConnAckReasonCode.SERVER_UNAVAILABLE, str(failed))
            house.reception.left(session, self, politely=True)
            return
        longest = house.settings.keep_alive // MICROSECONDS
        self.keep_alive = packet.keep_alive if 0 < packet.keep_alive <= longest else longest
        asked = packet.session_expiry_interval
        connection.send(
            ConnAckPacket(
                session_present=present,
                session_expiry_interval=None if session.expiry == asked else session.expiry,
                assigned_client_id=None if packet.client_id else session.client,
                server_keep_alive=None if self.keep_alive == packet.keep_alive else self.keep_alive,
                receive_max=house.settings.inflight,
                topic_alias_max=house.settings.topic_aliases,
                max_packet_size=house.largest_packet,
            )
        )
        self.session = session
        house.reception.resumed(session, connection, present)
        waiting, self._waiting = self._waiting or [], None
        for held in waiting:
            if connection.closing:
                return
            self.heard(held)
        connection.go_on()

    # Publishing

    def _publish(self, packet: PublishPacket) -> None:
        house, session = self._house, self.session
        assert session is not None
        topic, aliased = packet.topic, packet.topic_alias
        if aliased is not None:
            topic = self._resolved(topic, aliased)
            if not topic:
                return
        if self._limits.limited:
            pause = self._limits.published(len(packet.payload), house.now())
            if pause:
                self._slow_down(pause)
        plain = packet.qos == AT_MOST_ONCE and not packet.retain and topic[0] != "$" and not packet.user_properties
        if not plain or session.announced or house.publishing.keeps(topic):
            self._publish_any(session, packet, topic)
        elif not self._principal.may_publish_plain(topic):
            self._complain(session, f"no rule allows {self._principal} to publish to {topic!r}")
        else:
            try:
                house.quotas.check_topic(topic)
            except QuotaExceeded as error:
                self._complain(session, str(error))
            else:
                house.publishing.plain(session, packet, topic)

    def _publish_any(self, session: Session, packet: PublishPacket, topic: str) -> None:
        """Raises nothing: what is wrong is said in the acknowledgement, or as a problem."""
        qos, packet_id = int(packet.qos), packet.packet_id
        if qos and not self._take_up(session, packet):
            return
        if self._house.publishing.journal.is_behind:
            self._slow_down(WAIT_FOR_DISK)
        acknowledge = self._acknowledging(session, packet)
        puts = [Put(INCOMING, session.key(packet_id or 0), b"")] if qos == 2 and session.durable else []
        try:
            self._house.quotas.check_topic(topic)
            asked = reserved(topic)
            if asked is not None:
                # The id of quality 2 need not be on disk for these: to say again where I am changes nothing.
                self._house.reserved.handle(
                    session, self._principal, self._limits, asked, packet.payload, acknowledge if qos else None
                )
                return
            if packet.retain and packet.payload:
                retained = self._house.publishing.retained
                others, size = retained.without(topic)
                self._house.quotas.check_retained(others, size + len(packet.payload))
            self._house.publishing.publish(session, packet, topic, acknowledge, self._principal, puts)
        except NearcastError as error:
            if qos:
                acknowledge(_puback_code(error), str(error))
            else:
                self._complain(session, str(error))

    def _take_up(self, session: Session, packet: PublishPacket) -> bool:
        """Whether it is a new one."""
        packet_id = packet.packet_id or 0
        if int(packet.qos) == 2 and packet_id in session.incoming:
            if packet_id not in session.unwritten:
                self._connection.send(PubRecPacket(packet_id))
            return False
        self._unanswered += 1
        if self._unanswered > self._house.settings.inflight:
            self.end(
                DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, "more unacknowledged publishes than the CONNACK allowed"
            )
            return False
        if int(packet.qos) == 2:
            session.incoming.add(packet_id)
            session.unwritten.add(packet_id)
        return True

    def _acknowledging(self, session: Session, packet: PublishPacket) -> Callable[[PubAckReasonCode, str | None], None]:
        qos, packet_id = int(packet.qos), packet.packet_id or 0

        def acknowledge(code: PubAckReasonCode, why: str | None) -> None:
            if not qos:
                return
            self._unanswered -= 1
            session.unwritten.discard(packet_id)
            failed = int(code) >= FAILURE
            if qos == 2 and failed:
                session.incoming.discard(packet_id)
            if session.connection is not self._connection:
                return
            if failed and self._connection.version == V311:
                # That version cannot say no; a client whose connection ends tries again, or asks somebody.
                log.info("%s: publish refused: %s", self, why)
                self._connection.close()
            elif qos == 1:
                self._connection.send(PubAckPacket(packet_id, reason_code=code, reason_str=self._reason(why)))
            else:
                refusal = PubRecReasonCode(int(code))
                self._connection.send(PubRecPacket(packet_id, reason_code=refusal, reason_str=self._reason(why)))

        return acknowledge

    def _resolved(self, topic: str, alias: int) -> str:
        """The topic that a topic alias stands for (MQTT 5, 3.3.2.3.4); nothing if there is none."""
        if not 0 < alias <= self._house.settings.topic_aliases:
            self.end(DisconnectReasonCode.TOPIC_ALIAS_INVALID, f"topic alias {alias} was not allowed")
            return ""
        if topic:
            self._aliases[alias] = topic
            return topic
        known = self._aliases.get(alias, "")
        if not known:
            self.end(DisconnectReasonCode.PROTOCOL_ERROR, f"topic alias {alias} stands for nothing yet")
        return known

    def _slow_down(self, microseconds: int) -> None:
        self._connection.pause()
        asyncio.get_running_loop().call_later(microseconds / MICROSECONDS, self._connection.go_on)

    def _complain(self, session: Session, problem: str) -> None:
        """Quality 0 has no acknowledgement: whoever wants to hear of problems subscribes to them."""
        log.debug("%s: %s", self, problem)
        if PROBLEMS in session.held:
            held = session.held[PROBLEMS]
            session.deliver(Message(PROBLEMS, problem.encode()), 0, held.identifiers, near=False)

    # The rest

    def _other(self, packet: Packet) -> None:
        session, connection = self.session, self._connection
        assert session is not None
        match packet:
            case PubAckPacket():
                session.acknowledged(packet.packet_id)
            case PubRecPacket():
                self._received(session, packet)
            case PubRelPacket():
                self._released(session, packet.packet_id)
            case PubCompPacket():
                session.acknowledged(packet.packet_id)
            case SubscribePacket():
                self._subscribe(session, packet)
            case UnsubscribePacket():
                self._unsubscribe(session, packet)
            case PingReqPacket():
                connection.send(PingRespPacket())
            case DisconnectPacket():
                self._goodbye(session, packet)
            case AuthPacket():
                self.end(DisconnectReasonCode.PROTOCOL_ERROR, "no enhanced authentication was agreed upon")
            case _:
                self.end(DisconnectReasonCode.PROTOCOL_ERROR, f"a client sends no {type(packet).__name__}")

    def _received(self, session: Session, packet: PubRecPacket) -> None:
        if int(packet.reason_code) >= FAILURE:
            session.acknowledged(packet.packet_id)  # it does not want it
        elif not session.received(packet.packet_id):
            self._connection.send(PubRelPacket(packet.packet_id, reason_code=PubRelReasonCode.PACKET_ID_NOT_FOUND))

    def _released(self, session: Session, packet_id: int) -> None:
        if packet_id not in session.incoming:
            self._connection.send(PubCompPacket(packet_id, reason_code=PubCompReasonCode.PACKET_ID_NOT_FOUND))
            return
        session.incoming.discard(packet_id)
        connection = self._connection

        def written(failed: JournalFailed | None) -> None:
            if failed is not None:
                session.incoming.add(packet_id)  # as it is on disk; the client will release it once more
            elif session.connection is connection:
                connection.send(PubCompPacket(packet_id))

        if session.durable:
            # Before it is said: a new message under this id must not be taken for the old one after a restart.
            session.store.journal.write(puts=(Put(INCOMING, session.key(packet_id), None),), then=written)
        else:
            written(None)

    def _subscribe(self, session: Session, packet: SubscribePacket) -> None:
        def acknowledge(codes: list[SubAckReasonCode], why: str | None) -> None:
            if session.connection is self._connection:
                reason = self._reason(why, len(codes))
                self._connection.send(SubAckPacket(packet.packet_id, codes, reason_str=reason))

        try:
            self._limits.check_subscribe(self._house.now(), len(packet.topic_filters))
            for wanted in packet.topic_filters:
                self._house.quotas.check_topic(wanted.pattern)
        except QuotaExceeded as error:
            acknowledge([SubAckReasonCode.QUOTA_EXCEEDED] * len(packet.topic_filters), str(error))
            return
        self._house.subscribing.subscribe(session, self._principal, packet, acknowledge)

    def _unsubscribe(self, session: Session, packet: UnsubscribePacket) -> None:
        def acknowledge(codes: list[UnsubAckReasonCode], why: str | None) -> None:
            if session.connection is self._connection:
                reason = self._reason(why, len(codes))
                self._connection.send(UnsubAckPacket(packet.packet_id, codes, reason_str=reason))

        self._house.subscribing.unsubscribe(session, packet.patterns, packet.user_properties, acknowledge)

    def _reason(self, why: str | None, beside: int = 0) -> str | None:
        """For an answer, if the client wants to be told reasons (MQTT 5, 3.1.2.11.7)."""
        return self._fitting(why, beside) if self._tells_reasons else None

    def _fitting(self, why: str | None, beside: int = 0) -> str | None:
        """A reason, unless it would make the packet larger than the client takes (MQTT 5, 3.1.2.11.4)."""
        if why is None or self._largest is None:
            return why
        return why if len(why.encode()) + beside + BESIDE_A_REASON <= self._largest else None

    # Going

    def _goodbye(self, session: Session, packet: DisconnectPacket) -> None:
        expiry = packet.session_expiry_interval
        if expiry is not None and expiry and not session.durable:
            self.end(
                DisconnectReasonCode.PROTOCOL_ERROR, "a session that was to end with its connection cannot be prolonged"
            )
            return
        self._leave(politely=packet.reason_code != DisconnectReasonCode.DISCONNECT_WITH_WILL_MESSAGE, expiry=expiry)
        self._connection.close()

    def taken_over(self) -> None:
        """The client came by another connection."""
        self.end(
            DisconnectReasonCode.SESSION_TAKEN_OVER, "another connection with this client id took the session over"
        )

    def end(self, code: DisconnectReasonCode, why: str) -> None:
        """The broker ends it."""
        log.info("%s: disconnected: %s", self, why)
        if self.session is not None:
            self._connection.send(DisconnectPacket(reason_code=code, reason_str=self._fitting(why)))
        self._leave(politely=False)
        self._connection.close()

    def cut_off(self) -> None:
        """It takes nothing: there is no use in telling it."""
        log.warning("%s takes nothing any more: cut off", self)
        self._leave(politely=False)
        self._connection.abort()

    def abandon(self) -> None:
        """At the end of everything: what it did not take by now it will not get."""
        self._connection.abort()

    def _leave(self, *, politely: bool, expiry: int | None = None) -> None:
        session, self.session = self.session, None
        if session is not None:
            self._house.reception.left(session, self, politely=politely, expiry=expiry)

    # From time to time

    def look_after(self, now: Instant) -> None:
        """Once a second: is it still there, and does it take what it gets?"""
        connection, settings = self._connection, self._house.settings
        if connection.closing:
            # Who takes not even the goodbye would hold its memory for ever.
            if now - connection.closing_since > settings.connect_timeout:
                connection.abort()
        elif self.session is None:
            if self._checking is None and now - self.began > settings.connect_timeout:
                connection.close()
        elif now - connection.heard_at > self.keep_alive * MICROSECONDS * 3 // 2:
            self.end(
                DisconnectReasonCode.KEEP_ALIVE_TIMEOUT,
                f"nothing was heard for 1.5 times the keep-alive of {self.keep_alive} s",
            )
        elif connection.congested and now - connection.congested_since > settings.slow_consumer:
            self.cut_off()


def _connack_code(reason: int) -> ConnAckReasonCode:
    try:
        return ConnAckReasonCode(reason)
    except ValueError:
        return ConnAckReasonCode.UNSPECIFIED_ERROR


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
        case _:
            return PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
