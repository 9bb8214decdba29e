"""A whole broker whose clients speak MQTT over transports that are lists: what comes in one turn of its loop is the test's choice."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mqtt5 import ConnAckPacket, ConnectPacket, Packet, PubAckPacket, PublishPacket, QoS
from tests.clocks import HandClock
from tests.waiting import PATIENCE, until

from nearcast.broker.connections.connection import Connection
from nearcast.broker.core import Broker
from nearcast.broker.federation.settings import FederationSettings
from nearcast.broker.settings import BrokerSettings
from nearcast.errors import JournalFailed
from nearcast.journal import EventEntry, ReportEntry
from nearcast.mqtt import names
from nearcast.mqtt.stream import PacketReader


class ListTransport(asyncio.Transport):
    """Takes whatever is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written: list[bytes] = []
        self._closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def abort(self) -> None:
        self._closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Client:
    """What it says is heard at once; what it gets, it has after the turn."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.transport = ListTransport()
        self._reader = PacketReader(version=5)
        self.packets: list[Packet] = []
        connection.connection_made(self.transport)

    def say(self, *packets: Packet) -> None:
        """All of them in one chunk."""
        self.connection.data_received(b"".join(packet.write() for packet in packets))

    def got(self) -> list[Packet]:
        """All that has come so far; publishes of quality 1 are acknowledged."""
        written, self.transport.written = self.transport.written, []
        for data in written:
            for packet in self._reader.packets(data):
                self.packets.append(packet)
                if isinstance(packet, PublishPacket) and packet.qos == QoS.AT_LEAST_ONCE:
                    assert packet.packet_id is not None
                    self.say(PubAckPacket(packet.packet_id))
        return self.packets

    def payloads(self) -> list[bytes]:
        return [packet.payload for packet in self.got() if isinstance(packet, PublishPacket)]


class InMemory:
    def __init__(self, folder: Path, federation: FederationSettings | None = None) -> None:
        self.clock = HandClock()
        settings = BrokerSettings(data=folder, federation=federation or FederationSettings())
        self.broker = Broker(settings, asyncio.get_running_loop(), self.clock)
        self.broker.load()
        self.clients: dict[str, Client] = {}

    async def connect(self, name: str, **parts: Any) -> Client:
        client = self.clients[name] = Client(self.broker.connection())
        client.say(ConnectPacket(name, **{"clean_start": True, "keep_alive": 60} | parts))
        await until(lambda: bool(client.got()))
        assert isinstance(client.packets.pop(0), ConnAckPacket)
        return client

    async def turn(self) -> None:
        """The end of a turn of the loop, and what was written in it."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def quiet(self) -> None:
        """All that was said has been decided, on disk as well, and has come."""
        for _ in range(3):
            await self.turn()
            decided: asyncio.Future[JournalFailed | None] = asyncio.get_running_loop().create_future()
            self.broker.journal.write(then=decided.set_result)
            await asyncio.wait_for(decided, PATIENCE)
            await self.turn()
            for client in self.clients.values():
                client.got()

    def recorded(self) -> list[EventEntry | ReportEntry]:
        """Events and reports in the journal, in their order."""
        return [
            record
            for chunk in self.broker.journal.read(0, kinds=(EventEntry, ReportEntry))
            for _, record in chunk
            if isinstance(record, EventEntry | ReportEntry)
        ]


@asynccontextmanager
async def in_memory() -> AsyncIterator[InMemory]:
    folder = Path(tempfile.mkdtemp())
    rig = InMemory(folder)
    try:
        yield rig
    finally:
        rig.broker.close()
        shutil.rmtree(folder)


def untimely(packet: PublishPacket) -> tuple[Any, ...]:
    """All of it that does not depend on when, and as which one, it was published."""
    told = [(name, value) for name, value in packet.user_properties if name not in {names.ID, names.PUBLISHED}]
    return packet.topic, packet.payload, int(packet.qos), packet.retain, tuple(packet.subscription_ids), tuple(told)
