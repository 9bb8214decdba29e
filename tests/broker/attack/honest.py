"""Honest clients of a broker that is attacked."""

from __future__ import annotations

import asyncio

from mqtt5 import ConnAckPacket, ConnectPacket, Packet, PubAckPacket, PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.waiting import PATIENCE

from nearcast.mqtt.stream import PacketReader

WINDOW = 64


class Honest:
    """One who publishes with quality 1 and keeps some unanswered, and one who hears all of it; they stay connected."""

    async def open(self, port: int) -> None:
        self.reader, self.writer = await self._connected(port, "honest-publisher")
        self.ear, mouth = await self._connected(port, "honest-listener")
        mouth.write(SubscribePacket(1, [TopicFilter("honest/x", max_qos=QoS.AT_MOST_ONCE)]).write())
        self.mouth, self.answers, self.hears = mouth, PacketReader(version=5), PacketReader(version=5)
        await self._packets(self.ear, self.hears)

    @staticmethod
    async def _connected(port: int, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ConnectPacket(name, username="honest", password=b"honest", clean_start=True).write())
        (answer,) = PacketReader(version=5).packets(await asyncio.wait_for(reader.read(1_000), PATIENCE))
        assert isinstance(answer, ConnAckPacket)
        assert int(answer.reason_code) == 0
        return reader, writer

    @staticmethod
    async def _packets(reader: asyncio.StreamReader, packets: PacketReader) -> list[Packet]:
        data = await asyncio.wait_for(reader.read(262_144), PATIENCE)
        assert data, "the broker has closed an honest connection"
        return list(packets.packets(data))

    async def exchange(self, messages: int) -> None:
        """So many are acknowledged, and heard."""

        async def publish() -> None:
            sent = done = 0
            while done < messages:
                while sent < messages and sent - done < WINDOW:
                    sent += 1
                    packet_id = sent % 60_000 + 1
                    packet = PublishPacket("honest/x", b"x" * 64, qos=QoS.AT_LEAST_ONCE, packet_id=packet_id)
                    self.writer.write(packet.write())
                for each in await self._packets(self.reader, self.answers):
                    assert isinstance(each, PubAckPacket)
                    assert int(each.reason_code) == 0
                    done += 1

        async def hear() -> None:
            heard = 0
            while heard < messages:
                for each in await self._packets(self.ear, self.hears):
                    assert isinstance(each, PublishPacket)
                    assert each.payload == b"x" * 64, "somebody else has spoken"
                    heard += 1

        await asyncio.gather(publish(), hear())

    async def close(self) -> None:
        for writer in (self.writer, self.mouth):
            writer.close()
            await writer.wait_closed()
