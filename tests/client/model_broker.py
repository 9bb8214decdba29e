"""The broker's side of MQTT 5 sessions, as simple as can be, for the client's side to be tested against; and a lossy link between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import mqtt5
from mqtt5 import PublishPacket, QoS

from nearcast.client.protocol import Answered, ClientProtocol, Delivered, Flow, Receipt


@dataclass
class ModelBroker:
    window: int
    """Publications of the client that it allows to be unacknowledged."""

    accepted: list[bytes] = field(default_factory=list)
    received: set[int] = field(default_factory=set)
    in_flight: dict[int, tuple[bytes, int, bool]] = field(default_factory=dict)
    """Packet id: payload, quality, released."""

    unacknowledged: set[int] = field(default_factory=set)
    confirmed: list[bytes] = field(default_factory=list)
    output: list[mqtt5.Packet] = field(default_factory=list)
    last_id: int = 0

    def connect(self, *, session_kept: bool) -> mqtt5.ConnAckPacket:
        self.output = []
        self.unacknowledged = set()
        if not session_kept:
            self.received.clear()
            self.in_flight.clear()
        for number, (payload, qos, released) in self.in_flight.items():
            self.output.append(mqtt5.PubRelPacket(number) if released else _publish(number, payload, qos, again=True))
        return mqtt5.ConnAckPacket(session_present=session_kept, receive_max=self.window)

    def deliver(self, payload: bytes, qos: int, receive_maximum: int) -> bool:
        if len(self.in_flight) >= receive_maximum:
            return False
        self.last_id += 1
        self.in_flight[self.last_id] = payload, qos, False
        self.output.append(_publish(self.last_id, payload, qos, again=False))
        return True

    def hear(self, packet: mqtt5.Packet) -> None:
        match packet:
            case PublishPacket(packet_id=int(number)):
                self._take(packet, number)
            case mqtt5.PubRelPacket():
                self.received.discard(packet.packet_id)
                self.unacknowledged.discard(packet.packet_id)
                self.output.append(mqtt5.PubCompPacket(packet.packet_id))
            case mqtt5.PubAckPacket() | mqtt5.PubCompPacket():
                payload, _, _ = self.in_flight.pop(packet.packet_id)
                if isinstance(packet, mqtt5.PubAckPacket):
                    self.confirmed.append(payload)
            case mqtt5.PubRecPacket():
                payload, qos, released = self.in_flight[packet.packet_id]
                if not released:
                    self.confirmed.append(payload)
                self.in_flight[packet.packet_id] = payload, qos, True
                self.output.append(mqtt5.PubRelPacket(packet.packet_id))
            case _:
                raise AssertionError(f"a client does not send {packet}")

    def _take(self, packet: PublishPacket, number: int) -> None:
        self.unacknowledged.add(number)
        assert len(self.unacknowledged) <= self.window, "the receive maximum"
        if packet.qos == QoS.AT_LEAST_ONCE:
            self.accepted.append(packet.payload)
            self.unacknowledged.discard(number)
            self.output.append(mqtt5.PubAckPacket(number))
            return
        if number not in self.received:
            assert not (packet.duplicate and packet.payload in self.accepted), "taken twice"
            self.accepted.append(packet.payload)
            self.received.add(number)
        self.output.append(mqtt5.PubRecPacket(number))


def _publish(number: int, payload: bytes, qos: int, *, again: bool) -> PublishPacket:
    return PublishPacket("to/client", payload, qos=QoS(qos), packet_id=number, duplicate=again)


@dataclass
class LossyLink:
    """Carries packets between both; what is under way when it breaks is gone."""

    client: ClientProtocol
    broker: ModelBroker
    receive_maximum: int = 8
    to_broker: deque[mqtt5.Packet] = field(default_factory=deque)
    to_client: deque[mqtt5.Packet] = field(default_factory=deque)
    flows: dict[bytes, Flow] = field(default_factory=dict)
    answered: list[Flow] = field(default_factory=list)
    delivered: list[bytes] = field(default_factory=list)
    held: deque[tuple[bytes, Receipt]] = field(default_factory=deque)
    taken: list[bytes] = field(default_factory=list)

    def connect(self, *, session_kept: bool) -> None:
        self.client.lost()
        self.to_broker.clear()
        self.to_client.clear()
        self.client.established(self.broker.connect(session_kept=session_kept))
        self._collect()

    def publish(self, payload: bytes, qos: int) -> None:
        self.flows[payload] = self.client.send(
            lambda number: PublishPacket("to/broker", payload, qos=QoS(qos), packet_id=number).write(), qos
        )
        self._collect()

    def carry_up(self, count: int) -> None:
        for _ in range(min(count, len(self.to_broker))):
            self.broker.hear(self.to_broker.popleft())
        self._collect()

    def carry_down(self, count: int) -> None:
        for _ in range(min(count, len(self.to_client))):
            happened = self.client.receive(self.to_client.popleft())
            match happened:
                case Delivered(packet=packet, receipt=Receipt() as receipt):
                    self.delivered.append(packet.payload)
                    self.held.append((packet.payload, receipt))
                    unacknowledged = self.client.statistics().unacknowledged
                    assert unacknowledged <= self.receive_maximum
                case Answered(flow=flow):
                    self.answered.append(flow)
        self._collect()

    def take(self, count: int) -> None:
        """The application takes what has come."""
        for _ in range(min(count, len(self.held))):
            payload, receipt = self.held.popleft()
            self.taken.append(payload)
            self.client.acknowledge(receipt)
        self._collect()

    def settle(self) -> None:
        """Until nothing is under way."""
        self._collect()
        while self.to_broker or self.to_client or self.held:
            self.carry_up(100)
            self.carry_down(100)
            self.take(100)

    def _collect(self) -> None:
        output = memoryview(self.client.take_output())
        while output:
            packet, used = mqtt5.read(output)
            self.to_broker.append(packet)
            output = output[used:]
        self.to_client.extend(self.broker.output)
        self.broker.output = []
