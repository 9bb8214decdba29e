"""What a client says on its connection, packet by packet (MQTT 5, chapter 3)."""

from __future__ import annotations

import asyncio
import logging
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
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    PubRelReasonCode,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
    Will,
)

from nearcast.broker.access import ClientLimits, Principal
from nearcast.broker.access.limits import work_of
from nearcast.broker.connections.connection import Connection
from nearcast.broker.connections.incoming import FAILURE, Incoming
from nearcast.broker.connections.reasons import Reasons
from nearcast.broker.connections.services import Services
from nearcast.broker.sessions.session import Session
from nearcast.errors import (
    InvalidInput,
    JournalFailed,
    NotAuthenticated,
    ProtocolError,
    QuotaExceeded,
    Refused,
)
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt import names
from nearcast.mqtt.client_ids import generated
from nearcast.mqtt.publication import publication

log: Final = logging.getLogger(__name__)


class Conversation:
    """With one client, on one connection."""

    __slots__ = (
        "_admitted",
        "_checking",
        "_connection",
        "_incoming",
        "_limits",
        "_principal",
        "_reasons",
        "_services",
        "_waiting",
        "began",
        "keep_alive",
        "session",
    )

    def __init__(self, services: Services, connection: Connection) -> None:
        self._services: Final = services
        self._connection: Final = connection
        self.session: Session | None = None
        self.began: Final = services.now()
        self.keep_alive = 0
        self._principal: Principal
        self._limits: ClientLimits
        self._incoming: Incoming
        self._reasons = Reasons()
        self._waiting: list[Packet] | None = None
        """What came while the client was being checked."""

        self._checking: asyncio.Task[None] | None = None
        self._admitted = False
        services.open[self] = None
        try:
            services.admission.opened(connection.peer.address, services.now())
            self._admitted = True
            services.half_open[self] = None
            if len(services.half_open) > services.most_half_open:
                next(iter(services.half_open)).give_way()
        except QuotaExceeded as error:
            services.refusals.add(connection.listener, "crowded")
            # One line for each would be another way to fill a disk: how many they are stands in the statistics.
            log.debug("refused a connection from %s: %s", connection.peer.address, error)
            connection.close()

    # From the connection

    def heard(self, packet: Packet) -> None:
        if self.session is not None:
            if type(packet) is PublishPacket:
                self._incoming.publish(packet)
            elif type(packet) is PubAckPacket:
                self.session.acknowledged(packet.packet_id)
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
        self._services.batching.settle()
        if self.session is None:
            self._services.refusals.add(self._connection.listener, "protocol")
        self._connection.refuse(error, connected=self.session is not None)

    def lost(self) -> None:
        self._services.open.pop(self, None)
        self._services.half_open.pop(self, None)
        if self._admitted:
            self._services.admission.closed(self._connection.peer.address)
        if self._checking is not None:
            self._checking.cancel()
        self._leave(politely=False)

    def uncongested(self) -> None:
        if self.session is not None:
            self.session.go_on()

    @property
    def address(self) -> str:
        """Of the other end."""
        return self._connection.peer.address

    @property
    def principal(self) -> Principal | None:
        """Who that is; none: nobody knows yet."""
        return None if self.session is None else self._principal

    def __str__(self) -> str:
        # By its identity: what is in a log stays there, whoever is erased.
        who = "a client" if self.session is None else f"client {self.session.identity}"
        return f"{who} at {self._connection.peer.address}"

    # Coming

    def give_way(self) -> None:
        """To those who come: it has said nothing for longer than all others."""
        self._services.half_open.pop(self, None)
        self._connection.abort()

    def _connect(self, packet: ConnectPacket) -> None:
        self._services.half_open.pop(self, None)
        self._reasons = Reasons(packet.max_packet_size, packet.request_problem_info)
        self._waiting = []
        self._connection.pause()
        self._checking = asyncio.get_running_loop().create_task(self._check(packet))

    async def _check(self, packet: ConnectPacket) -> None:
        connection, services = self._connection, self._services
        client = packet.client_id or generated()
        try:
            if packet.authentication_method is not None:
                raise Refused("no enhanced authentication here", int(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD))
            if "\0" in client:
                raise Refused("a client id holds no NUL", int(ConnAckReasonCode.CLIENT_ID_NOT_VALID))
            services.quotas.check_client(client)
            generation = services.access.generation
            principal = await services.access.authenticate(client, packet.username, packet.password, connection.peer)
            if client not in services.lifecycle.sessions.all:
                services.quotas.check_sessions(len(services.lifecycle.sessions.all))
            services.lifecycle.check_owner(client, principal)  # before it is told anything of what that session knows
            if packet.will is not None:
                self._check_will(principal, client, packet.will)
            if services.federation is not None:
                await services.federation.arrive(client, principal.user, clean=packet.clean_start)
            self._principal = (
                principal if generation == services.access.generation else services.access.again(principal)
            )
            self._limits = services.quotas.of_client(connection.peer)
            services.batching.settle()  # who comes now comes after what was published before
            services.lifecycle.enter(
                packet,
                client,
                connection.version,
                self._principal,
                self,
                lambda session, present, failed: self._entered(packet, session, present, failed),
            )
        except Refused as error:
            self._refuse_connect(_connack_code(error.reason), str(error), error)
        except InvalidInput as error:
            self._refuse_connect(ConnAckReasonCode.TOPIC_NAME_INVALID, str(error), error)
        except Exception as error:  # who is not answered would wait for ever
            log.exception("%s: it was not let in", self)
            self._refuse_connect(ConnAckReasonCode.UNSPECIFIED_ERROR, "the broker failed; see its log", error)
        self._checking = None

    def judge_again(self, *, limits_changed: bool) -> None:
        """The rules have changed, and perhaps the limits: they hold for those who are connected, too."""
        known: Principal | None = getattr(self, "_principal", None)
        if known is None:
            return  # it will be judged by what holds when it is known who it is
        self._principal = self._services.access.again(known)
        if limits_changed:
            self._limits = self._services.quotas.of_client(known.peer)
        if self.session is not None:
            self.session.rights = self._incoming.principal = self._principal
            self._incoming.limits = self._limits

    def _check_will(self, principal: Principal, client: str, will: Will) -> None:
        """As if it were published now: what it says of place and people is checked as well."""
        self._services.quotas.check_topic(will.topic)
        self._services.quotas.check_properties(will.user_properties)
        read = publication(will.topic, will.payload or b"", will.user_properties, will.message_expiry_interval)
        names.check_unreserved(read.topic)
        position = self._services.publishing.presence.position(client)
        principal.check_event(read.event(client, self._services.now(), client, position))

    def _refuse_connect(self, code: ConnAckReasonCode, why: str, error: Exception | None = None) -> None:
        """``error``: for whoever counts the reasons; without one the broker itself could not."""
        listener = self._connection.listener
        self._services.refusals.add_error(listener, RuntimeError() if error is None else error)
        log.info("%s: refused: %s", self, why)
        self._connection.send(ConnAckPacket(reason_code=code, reason_str=self._reasons.fitting(why)))
        self._connection.close()

    def _entered(self, packet: ConnectPacket, session: Session, present: bool, failed: JournalFailed | None) -> None:
        connection, services = self._connection, self._services
        if services.lifecycle.conversations.get(session.client) is not self:
            return  # the client came by yet another connection, which has the session now
        if connection.closing:
            services.lifecycle.left(session, self, politely=False)
            return
        if failed is not None:
            self._refuse_connect(ConnAckReasonCode.SERVER_UNAVAILABLE, str(failed))
            services.lifecycle.left(session, self, politely=True)
            return
        if not services.access.holds(self._principal):
            # Revoked while it was on its way in: whoever looked through the open connections did not find it there.
            error = NotAuthenticated("wrong user name or password")
            self._refuse_connect(_connack_code(error.reason), str(error), error)
            services.lifecycle.left(session, self, politely=True)
            return
        if services.federation is not None:
            services.federation.entered(session, clean=packet.clean_start)
        longest = services.settings.keep_alive // MICROSECONDS
        self.keep_alive = packet.keep_alive if 0 < packet.keep_alive <= longest else longest
        asked = packet.session_expiry_interval
        connection.send(
            ConnAckPacket(
                session_present=present,
                session_expiry_interval=None if session.expiry == asked else session.expiry,
                assigned_client_id=None if packet.client_id else session.client,
                server_keep_alive=None if self.keep_alive == packet.keep_alive else self.keep_alive,
                receive_max=services.settings.inflight,
                topic_alias_max=services.settings.topic_aliases,
                max_packet_size=services.largest_packet,
            )
        )
        self.session = session
        self._incoming = Incoming(services, connection, session, self._principal, self._limits, self._reasons, self.end)
        services.lifecycle.resumed(session, connection, present)
        waiting, self._waiting = self._waiting or [], None
        for held in waiting:
            if connection.closing:
                return
            self.heard(held)
        connection.go_on()

    # The rest

    def _other(self, packet: Packet) -> None:
        session, connection = self.session, self._connection
        assert session is not None
        match packet:
            case PubRecPacket():
                self._received(session, packet)
            case PubRelPacket():
                self._incoming.released(packet.packet_id)
            case PubCompPacket():
                session.acknowledged(packet.packet_id)
            case SubscribePacket():
                self._services.batching.settle()
                self._subscribe(session, packet)
            case UnsubscribePacket():
                self._services.batching.settle()
                self._unsubscribe(session, packet)
            case PingReqPacket():
                self._services.batching.settle()  # its answer says that all before it has been done
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

    def _subscribe(self, session: Session, packet: SubscribePacket) -> None:
        def acknowledge(codes: list[SubAckReasonCode], why: str | None) -> None:
            if session.connection is self._connection:
                reason = self._reasons.answer(why, len(codes))
                self._connection.send(SubAckPacket(packet.packet_id, codes, reason_str=reason))

        try:
            self._services.quotas.check_properties(packet.user_properties)
            self._limits.check_subscribe(
                self._services.now(), len(packet.topic_filters), work_of(packet.user_properties)
            )
            for wanted in packet.topic_filters:
                self._services.quotas.check_topic(wanted.pattern)
        except QuotaExceeded as error:
            acknowledge([SubAckReasonCode.QUOTA_EXCEEDED] * len(packet.topic_filters), str(error))
            return
        self._services.subscribing.subscribe(session, self._principal, packet, acknowledge)

    def _unsubscribe(self, session: Session, packet: UnsubscribePacket) -> None:
        def acknowledge(codes: list[UnsubAckReasonCode], why: str | None) -> None:
            if session.connection is self._connection:
                reason = self._reasons.answer(why, len(codes))
                self._connection.send(UnsubAckPacket(packet.packet_id, codes, reason_str=reason))

        self._services.subscribing.unsubscribe(session, packet.patterns, packet.user_properties, acknowledge)

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

    def dismissed(self) -> None:
        """Whoever that was is being erased."""
        self.end(DisconnectReasonCode.ADMINISTRATIVE_ACTION, "nothing is kept of this client any more")

    def moved(self) -> None:
        """The client came to another broker.  Not "taken over", which tells clients to stay away: if it is here all the same, it may
        come again, and then both brokers know.
        """
        self.end(DisconnectReasonCode.USE_ANOTHER_SERVER, "another broker of the federation has this client now")

    def end(self, code: DisconnectReasonCode, why: str) -> None:
        """The broker ends it."""
        log.info("%s: disconnected: %s", self, why)
        self._services.batching.settle()  # nothing may follow the DISCONNECT
        if self.session is not None:
            self._connection.send(DisconnectPacket(reason_code=code, reason_str=self._reasons.fitting(why)))
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
            self._services.batching.settle()  # what it published, and what is for it, before it is gone
            self._services.lifecycle.left(session, self, politely=politely, expiry=expiry)
            del self._incoming  # which knows this one, too: see ``Connection.connection_lost``

    # From time to time

    def look_after(self, now: Instant) -> None:
        """Once a second: is it still there, and does it take what it gets?"""
        connection, settings = self._connection, self._services.settings
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
        elif self._principal.until is not None and now >= self._principal.until:
            self.end(DisconnectReasonCode.MAX_CONNECT_TIME, "the token has expired; connect with a new one")
        elif connection.partial_since and now - connection.partial_since > settings.packet_timeout:
            self.end(DisconnectReasonCode.PROTOCOL_ERROR, "a packet has begun and does not end")
        elif connection.congested and now - connection.congested_since > settings.slow_consumer:
            self.cut_off()


def _connack_code(reason: int) -> ConnAckReasonCode:
    try:
        return ConnAckReasonCode(reason)
    except ValueError:
        return ConnAckReasonCode.UNSPECIFIED_ERROR
