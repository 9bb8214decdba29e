"""MQTT 5 as a client speaks it, without a socket and without a clock.

A ``ClientProtocol`` is one session: it outlives connections.  Packets go in through ``receive``, which says what has happened;
bytes come out of ``take_output``.  Section numbers are those of the MQTT 5 specification.

What was sent with quality of service 1 or 2 and not acknowledged is sent again on the next connection, in order, under its
packet id.  What was received is acknowledged when its receiver says so, not before: whoever is slow is sent nothing more than
the receive maximum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import mqtt5
from mqtt5 import PubCompReasonCode, PublishPacket, PubRelReasonCode

from nearcast.errors import ProtocolError

AT_LEAST_ONCE: Final = 1
EXACTLY_ONCE: Final = 2
HIGHEST_PACKET_ID: Final = 65_535
_FAILURE: Final = 0x80
"""Reason codes from here on are refusals (2.4)."""

_DUPLICATE: Final = 0x08
_PROTOCOL_ERROR: Final = 0x82

Write = Callable[[int], bytes]
"""The bytes of a packet under the packet id that it is given."""


@dataclass(slots=True, eq=False)
class Flow:
    """Something that was sent, or is to be, and waits for the broker's answer."""

    qos: int
    """Of a publication; 0 for SUBSCRIBE and UNSUBSCRIBE, which are outside the window."""

    write: Write
    packet_id: int = 0
    data: bytes = b""
    """As it was sent; none until it was."""

    sent: bool = False
    """In the present connection."""

    in_window: bool = False
    """It counts against the broker's receive maximum (4.9)."""

    released: bool = False
    """Quality 2: received by the broker, so that only the release is left."""

    abandoned: bool = False
    """Nobody waits for it any more."""


@dataclass(slots=True, eq=False)
class Receipt:
    """What is owed to the broker for a delivery: its acknowledgement, once its receiver has taken it."""

    packet_id: int
    qos: int
    connection: int
    """The number of the connection on which it came last."""

    content: int
    """What tells this message from others of the same packet id."""

    taken: bool = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """A PUBLISH of the broker; ``receipt`` is to be given to ``acknowledge``; quality 0 has none."""

    packet: PublishPacket
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The broker has answered; ``reasons`` are its codes: one, or one for each topic filter."""

    flow: Flow
    reasons: tuple[int, ...]
    message: str | None

    @property
    def refused(self) -> bool:
        return any(reason >= _FAILURE for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The broker ends the connection and says why."""

    reason: int
    message: str | None


@dataclass(frozen=True, slots=True)
class Ponged:
    """The broker is still there."""


Happened = Delivered | Answered | Dismissed | Ponged


@dataclass(frozen=True, slots=True)
class ProtocolStatistics:
    in_flight: int
    waiting: int
    """Publications that the broker's receive maximum holds back."""

    sent_again: int
    unacknowledged: int
    """Deliveries that their receivers have not taken yet."""


@dataclass(slots=True, eq=False)
class ClientProtocol:
    """One session."""

    connection: int = 0
    """Counts connections; what belongs to an earlier one is void."""

    connected: bool = False
    window: int = HIGHEST_PACKET_ID
    """The broker's receive maximum (4.9)."""

    _flows: dict[int, Flow] = field(default_factory=dict)
    """Sent in one of the connections, in order, by packet id."""

    _unsent: deque[Flow] = field(default_factory=deque)
    """Those of them that are still to be sent again in this connection."""

    _waiting: deque[Flow] = field(default_factory=deque)
    _in_window: int = 0
    _received: dict[int, Receipt] = field(default_factory=dict)
    """Deliveries whose packet ids are in use: not acknowledged, or, with quality 2, not released."""

    _output: list[bytes] = field(default_factory=list)
    _output_size: int = 0
    _last_id: int = 0
    _sent_again: int = 0

    def statistics(self) -> ProtocolStatistics:
        held = sum(not receipt.taken for receipt in self._received.values())
        return ProtocolStatistics(len(self._flows), len(self._waiting), self._sent_again, held)

    # Bytes

    @property
    def output_size(self) -> int:
        return self._output_size

    def take_output(self) -> bytes:
        """What is to be sent; whatever is taken counts as sent."""
        data = b"".join(self._output)
        self._output.clear()
        self._output_size = 0
        return data

    def _put(self, data: bytes) -> None:
        self._output.append(data)
        self._output_size += len(data)

    # Connections

    def established(self, acknowledgement: mqtt5.ConnAckPacket) -> None:
        """The broker has accepted a new connection: take up what was left (4.4)."""
        self.connection += 1
        self.connected = True
        self.window = acknowledgement.receive_max
        self._in_window = 0
        self._output.clear()
        self._output_size = 0
        if not acknowledgement.session_present:
            # The broker has forgotten both sides: a release without its publication says nothing to it, and what it
            # delivered under these packet ids will not come again.
            self._received.clear()
            for flow in self._flows.values():
                flow.released, flow.data = False, b""
        for flow in list(self._flows.values()):
            # What nobody waits for need not come again; but quality 2 must, or the broker would go on waiting for its release.
            if flow.abandoned and (flow.qos < EXACTLY_ONCE or not acknowledgement.session_present):
                del self._flows[flow.packet_id]
            flow.sent = flow.in_window = False
        self._unsent = deque(self._flows.values())
        self._pump()

    def lost(self) -> None:
        """The connection is gone."""
        self.connected = False
        self._output.clear()
        self._output_size = 0

    def ping(self) -> None:
        self._put(mqtt5.PingReqPacket().write())

    def disconnect(self, packet: mqtt5.DisconnectPacket) -> None:
        self._put(packet.write())
        self.connected = False

    # Sending

    def publish_once(self, data: bytes) -> None:
        """Quality 0: sent now or never."""
        if self.connected:
            self._put(data)

    def send(self, write: Write, qos: int = 0) -> Flow:
        """A publication of quality 1 or 2, or (0) a SUBSCRIBE or UNSUBSCRIBE; it is sent until it is answered."""
        flow = Flow(qos, write)
        self._waiting.append(flow)
        if self.connected:
            self._pump()
        return flow

    def abandon(self, flow: Flow) -> None:
        """Nobody waits for the answer any more."""
        flow.abandoned = True
        if not flow.packet_id and flow in self._waiting:
            self._waiting.remove(flow)

    def _pump(self) -> None:
        """Send what the window allows: first what was sent before, in its order (4.6)."""
        while self._unsent and self._has_room(self._unsent[0]):
            self._send_again(self._unsent.popleft())
        while not self._unsent and self._waiting and self._has_room(self._waiting[0]):
            packet_id = self._next_id()
            if packet_id is None:
                return
            flow = self._waiting.popleft()
            flow.packet_id = packet_id
            flow.data = flow.write(packet_id)
            self._flows[packet_id] = flow
            self._transmit(flow, flow.data)

    def _has_room(self, flow: Flow) -> bool:
        return not flow.qos or flow.released or self._in_window < self.window

    def _send_again(self, flow: Flow) -> None:
        self._sent_again += 1
        if flow.released:
            flow.sent = True
            self._put(mqtt5.PubRelPacket(flow.packet_id).write())
        elif not flow.data:  # its session is gone: to the new one it is new
            flow.data = flow.write(flow.packet_id)
            self._transmit(flow, flow.data)
        else:
            again = bytes((flow.data[0] | _DUPLICATE,)) + flow.data[1:] if flow.qos else flow.data
            self._transmit(flow, again)

    def _transmit(self, flow: Flow, data: bytes) -> None:
        flow.sent = True
        if flow.qos:
            flow.in_window = True
            self._in_window += 1
        self._put(data)

    def _next_id(self) -> int | None:
        if len(self._flows) >= HIGHEST_PACKET_ID:
            return None
        candidate = self._last_id
        while True:
            candidate = candidate % HIGHEST_PACKET_ID + 1
            if candidate not in self._flows:
                self._last_id = candidate
                return candidate

    # Receiving

    def receive(self, packet: mqtt5.Packet) -> Happened | None:
        """Take a packet of the broker; ``ProtocolError`` if it cannot be one."""
        match packet:
            case PublishPacket():
                return self._delivered(packet)
            case mqtt5.PubAckPacket():
                return self._answered(packet.packet_id, AT_LEAST_ONCE, (int(packet.reason_code),), packet.reason_str)
            case mqtt5.PubRecPacket():
                return self._recorded(packet)
            case mqtt5.PubCompPacket():
                return self._completed(packet)
            case mqtt5.PubRelPacket():
                self._release(packet.packet_id)
                return None
            case mqtt5.SubAckPacket() | mqtt5.UnsubAckPacket():
                reasons = tuple(int(reason) for reason in packet.reason_codes)
                return self._answered(packet.packet_id, 0, reasons, packet.reason_str)
            case mqtt5.PingRespPacket():
                return Ponged()
            case mqtt5.DisconnectPacket():
                return Dismissed(int(packet.reason_code), packet.reason_str)
            case _:
                raise ProtocolError(
                    f"the broker sent a {type(packet).__name__}, which has no place here", _PROTOCOL_ERROR
                )

    def _answered(self, packet_id: int, qos: int, reasons: tuple[int, ...], message: str | None) -> Answered | None:
        flow = self._flows.get(packet_id)
        if flow is None or flow.qos != qos or not flow.sent:
            return None  # of something that was given up
        return self._finish(flow, reasons, message)

    def _finish(self, flow: Flow, reasons: tuple[int, ...], message: str | None) -> Answered:
        del self._flows[flow.packet_id]
        self._in_window -= flow.in_window
        self._pump()
        return Answered(flow, reasons, message)

    def _recorded(self, packet: mqtt5.PubRecPacket) -> Answered | None:
        """The broker has the publication of quality 2, or refuses it (4.3.3)."""
        flow = self._flows.get(packet.packet_id)
        if flow is None or flow.qos != EXACTLY_ONCE or not flow.sent:
            self._put(mqtt5.PubRelPacket(packet.packet_id, reason_code=PubRelReasonCode.PACKET_ID_NOT_FOUND).write())
            return None
        if int(packet.reason_code) >= _FAILURE:
            return self._finish(flow, (int(packet.reason_code),), packet.reason_str)
        flow.released = True
        self._put(mqtt5.PubRelPacket(packet.packet_id).write())
        return None

    def _completed(self, packet: mqtt5.PubCompPacket) -> Answered | None:
        flow = self._flows.get(packet.packet_id)
        if flow is None or not flow.released:
            return None
        # "Packet id not found" as well: it was released before, and only the answer was lost.
        return self._finish(flow, (0,), None)

    def _delivered(self, packet: PublishPacket) -> Delivered | None:
        if packet.packet_id is None:
            return Delivered(packet, None)
        known = self._received.get(packet.packet_id)
        content = 0
        qos = int(packet.qos)
        if qos == AT_LEAST_ONCE:
            # A broker that was killed may have given the packet id to another message, and call that a duplicate too.
            content = hash((packet.topic, packet.payload, tuple(packet.user_properties)))
        if (
            known is not None
            and known.qos == qos
            and known.content == content
            and (packet.duplicate or known.qos == EXACTLY_ONCE)
        ):
            known.connection = self.connection
            if known.taken:  # already, only the answer was lost
                self._answer(known)
            return None
        receipt = Receipt(packet.packet_id, qos, self.connection, content)
        self._received[packet.packet_id] = receipt
        return Delivered(packet, receipt)

    def acknowledge(self, receipt: Receipt) -> None:
        """The delivery has reached its receiver."""
        if receipt.taken or self._received.get(receipt.packet_id) is not receipt:
            return  # its session is gone
        receipt.taken = True
        # What has not come again in this connection will, and is answered then.
        if self.connected and receipt.connection == self.connection:
            self._answer(receipt)

    def _answer(self, receipt: Receipt) -> None:
        if receipt.qos == AT_LEAST_ONCE:
            del self._received[receipt.packet_id]
            self._put(mqtt5.PubAckPacket(receipt.packet_id).write())
        else:
            self._put(mqtt5.PubRecPacket(receipt.packet_id).write())

    def _release(self, packet_id: int) -> None:
        known = self._received.get(packet_id)
        if known is not None and known.qos == EXACTLY_ONCE and known.taken:
            del self._received[packet_id]
            self._put(mqtt5.PubCompPacket(packet_id).write())
        else:
            self._put(mqtt5.PubCompPacket(packet_id, reason_code=PubCompReasonCode.PACKET_ID_NOT_FOUND).write())
