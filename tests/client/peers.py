"""Peers that are no good brokers: they let a client in and then do as they please."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import mqtt5

from nearcast.mqtt.stream import PacketReader

Answer = Callable[[mqtt5.Packet], list[mqtt5.Packet]]


@dataclass
class Peer:
    """What it has heard, and how to reach it."""

    answer: Answer
    port: int = 0
    heard: list[mqtt5.Packet] = field(default_factory=list)
    connections: int = 0
    arrival: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    async def until(self, enough: Callable[[Peer], bool]) -> None:
        async with self.arrival:
            await self.arrival.wait_for(lambda: enough(self))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        packets = PacketReader()
        try:
            while data := await reader.read(65_536):
                for packet in packets.packets(data):
                    self.heard.append(packet)
                    for answer in self.answer(packet):
                        writer.write(answer.write())
                        if isinstance(answer, mqtt5.DisconnectPacket):
                            return
                async with self.arrival:
                    self.arrival.notify_all()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def peer(answer: Answer) -> AsyncIterator[Peer]:
    it = Peer(answer)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    async with server:
        yield it


def welcoming(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
    """Lets everybody in, and says nothing more."""
    return [mqtt5.ConnAckPacket()] if isinstance(packet, mqtt5.ConnectPacket) else []


def refusing(reason: mqtt5.ConnAckReasonCode, why: str | None = None) -> Answer:
    return lambda _: [mqtt5.ConnAckPacket(reason_code=reason, reason_str=why)]
