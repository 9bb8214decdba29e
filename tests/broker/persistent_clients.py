"""Publishers and subscribers that keep their half of MQTT's promises while the broker falls again and again.

Their memory is never lost: packet ids that they received and did not see released (MQTT 5, 4.3.3), messages that were not
acknowledged.  So whatever is missing or doubled in the end is the broker's doing.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable

from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    Packet,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
)

from nearcast.mqtt.stream import PacketReader, encode

DAY = 86_400
FEW_PACKET_IDS = 60
"""So that ids are used again and again."""

Address = Callable[[], tuple[str, int] | None]


class PersistentClient:
    """Connects, and connects again when the connection is lost, until it is told to end."""

    receive_max = 65_535

    def __init__(self, client: str, address: Address, chance: random.Random) -> None:
        self.client = client
        self.address = address
        self.chance = chance
        self.known = False
        """Whether the broker has confirmed a session of this client: from then on it must be present."""

        self.connections = 0
        self.away = asyncio.Event()
        """While it is set, the client stays away."""

        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _run(self) -> None:
        while True:
            address = None if self.away.is_set() else self.address()
            if address is not None:
                with contextlib.suppress(OSError):
                    await self._converse(*await asyncio.open_connection(*address))
            await asyncio.sleep(0.01)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        packets = PacketReader(version=5)
        try:
            connect = ConnectPacket(
                self.client, clean_start=False, session_expiry_interval=DAY, receive_max=self.receive_max
            )
            writer.write(encode(connect, 5))
            while data := await reader.read(65_536):
                for packet in packets.packets(data):
                    if isinstance(packet, ConnAckPacket):
                        assert packet.reason_code == ConnAckReasonCode.SUCCESS, packet
                        assert packet.session_present or not self.known, f"the session of {self.client} was lost"
                        self.known = True
                        self.connections += 1
                        self._writer = writer
                        self.connected()
                    else:
                        self.heard(packet)
                if self.away.is_set():
                    return
        finally:
            self._writer = None
            writer.transport.abort()

    def send(self, packet: Packet) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode(packet, 5))

    def connected(self) -> None:
        raise NotImplementedError

    def heard(self, packet: Packet) -> None:
        raise NotImplementedError


class Publisher(PersistentClient):
    """Publishes 1, 2, 3, ...; a few at a time, all with the same quality."""

    def __init__(self, client: str, address: Address, chance: random.Random, qos: int) -> None:
        self.qos = QoS(qos)
        self.topic = f"load/{client}"
        self.last = 0
        self.acknowledged: set[int] = set()
        self.waiting: dict[int, tuple[int, bool]] = {}
        """Of each packet id: the number, and whether it is to be released only."""

        self.going = True
        self._last_id = 0
        super().__init__(client, address, chance)

    @property
    def is_idle(self) -> bool:
        return not self.going and not self.waiting

    def connected(self) -> None:
        for packet_id, (number, received) in self.waiting.items():
            if received:
                self.send(PubRelPacket(packet_id))
            else:
                self._publish(packet_id, number, duplicate=True)
        self._go_on()

    def _go_on(self) -> None:
        while self.going and len(self.waiting) < 30:
            self._last_id = self._last_id % FEW_PACKET_IDS + 1
            while self._last_id in self.waiting:
                self._last_id = self._last_id % FEW_PACKET_IDS + 1
            self.last += 1
            self.waiting[self._last_id] = self.last, False
            self._publish(self._last_id, self.last)

    def _publish(self, packet_id: int, number: int, *, duplicate: bool = False) -> None:
        self.send(PublishPacket(self.topic, b"%d" % number, qos=self.qos, packet_id=packet_id, duplicate=duplicate))

    def heard(self, packet: Packet) -> None:
        match packet:
            case PubAckPacket():
                assert int(packet.reason_code) < 0x80, packet
                self.acknowledged.add(self.waiting.pop(packet.packet_id)[0])
            case PubRecPacket():
                assert int(packet.reason_code) < 0x80, packet
                number, _ = self.waiting.pop(packet.packet_id)
                self.waiting[packet.packet_id] = number, True
                self.send(PubRelPacket(packet.packet_id))
            case PubCompPacket():
                self.acknowledged.add(self.waiting.pop(packet.packet_id)[0])
            case _:
                raise AssertionError(packet)
        self._go_on()


class Subscriber(PersistentClient):
    """Counts what it gets, of each publisher; confirms at once, or holds back a while."""

    def __init__(
        self, client: str, address: Address, chance: random.Random, *, lazy: float = 0.0, receive_max: int = 65_535
    ) -> None:
        self.receive_max = receive_max
        self.lazy = lazy
        self.got: dict[str, list[int]] = {}
        self.subscribed = False
        self.most_in_flight = 0
        self._received: set[int] = set()
        self._unconfirmed: set[int] = set()
        super().__init__(client, address, chance)

    def connected(self) -> None:
        self._unconfirmed.clear()
        if not self.subscribed:
            self.send(SubscribePacket(1, [TopicFilter("load/#", max_qos=QoS.EXACTLY_ONCE)]))

    def heard(self, packet: Packet) -> None:
        match packet:
            case SubAckPacket():
                self.subscribed = True
            case PublishPacket():
                self._published(packet)
            case PubRelPacket():
                self._received.discard(packet.packet_id)
                self._answer(PubCompPacket(packet.packet_id))
            case _:
                raise AssertionError(packet)

    def _published(self, packet: PublishPacket) -> None:
        packet_id = packet.packet_id or 0
        self._unconfirmed.add(packet_id)
        self.most_in_flight = max(self.most_in_flight, len(self._unconfirmed))
        if packet.qos == QoS.AT_LEAST_ONCE:
            self._count(packet)
            self._answer(PubAckPacket(packet_id))
        else:
            if packet_id not in self._received:
                self._received.add(packet_id)
                self._count(packet)
            self._answer(PubRecPacket(packet_id))

    def _count(self, packet: PublishPacket) -> None:
        self.got.setdefault(packet.topic, []).append(int(packet.payload))

    def _answer(self, packet: PubAckPacket | PubRecPacket | PubCompPacket) -> None:
        def say() -> None:
            if not isinstance(packet, PubRecPacket):
                self._unconfirmed.discard(packet.packet_id)
            if self._writer is writer:
                self.send(packet)

        writer = self._writer
        if self.chance.random() < self.lazy:
            asyncio.get_running_loop().call_later(self.chance.uniform(0.0, 0.05), say)
        else:
            say()

    def has_all_of(self, publisher: Publisher) -> bool:
        return len(set(self.got.get(publisher.topic, ()))) >= publisher.last

    def account(self, publisher: Publisher) -> str:
        """What is wrong with what came of that publisher; nothing if all is as promised."""
        got = self.got.get(publisher.topic, [])
        counts = Counter(got)
        missing = sorted(publisher.acknowledged - counts.keys())
        doubled = sorted(number for number, count in counts.items() if count > 1) if publisher.qos == 2 else []
        firsts = list(dict.fromkeys(got))
        problems = [
            f"lost {missing[:10]} of {len(publisher.acknowledged)}" if missing else "",
            f"doubled {doubled[:10]}" if doubled else "",
            "out of order" if firsts != sorted(firsts) else "",
        ]
        said = ", ".join(problem for problem in problems if problem)
        return said and f"{self.client}, of {publisher.client} (quality {int(publisher.qos)}): {said}"
