"""A broker in this process, and clients that say exactly what they are told to: for tests of every word of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    Packet,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
)
from tests.waiting import PATIENCE

from nearcast.broker.server import Server
from nearcast.broker.settings import BrokerSettings, ListenSettings
from nearcast.mqtt.stream import PacketReader, encode

P = TypeVar("P")
QUIET = 0.15
"""Seconds after which what did not come, and should not, is believed not to come; there is nothing to wait for instead."""


_OPEN: list[Talker] = []
"""Connections of the scenario that runs."""


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """One scenario on a loop of its own."""

    async def tidily() -> None:
        _OPEN.clear()  # whose loop is gone cannot be waited for
        try:
            await asyncio.wait_for(scenario, 2 * PATIENCE)
        finally:
            while _OPEN:
                await _OPEN.pop().gone()

    asyncio.run(tidily())


def settings_for(folder: Path, **changes: Any) -> BrokerSettings:
    """On free ports of this machine; sections are changed by name."""
    listen = ListenSettings(**({"port": "any", "http_port": "off"} | changes.pop("listen", {})))
    plain = BrokerSettings(data=folder, listen=listen)
    return msgspec.structs.replace(
        plain, **{name: msgspec.structs.replace(getattr(plain, name), **values) for name, values in changes.items()}
    )


@contextlib.asynccontextmanager
async def serving(folder: Path, **changes: Any) -> AsyncIterator[Server]:
    server = Server(settings_for(folder, **changes))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Reachable(Protocol):
    """A server of this process, or one of a process of its own."""

    @property
    def addresses(self) -> dict[str, tuple[str, int]]: ...


class Talker:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int) -> None:
        self._reader, self._writer, self.version = reader, writer, version
        self._packets = PacketReader(version=version)
        self._waiting: list[Packet] = []
        self._last_id = 0
        _OPEN.append(self)

    @classmethod
    async def open(cls, server: Reachable, version: int = 5) -> Talker:
        host, port = server.addresses["mqtt"]
        return cls(*await asyncio.open_connection(host, port), version)

    def send(self, *packets: Packet) -> None:
        self.send_bytes(b"".join(encode(packet, self.version) for packet in packets))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def next(self, kind: type[P], patience: float = PATIENCE) -> P:
        """The next packet, which must be of that kind."""
        while not self._waiting:
            data = await asyncio.wait_for(self._reader.read(65_536), patience)
            if not data:
                raise ConnectionResetError("the broker closed the connection")
            self._waiting.extend(self._packets.packets(data))
        packet = self._waiting.pop(0)
        assert isinstance(packet, kind), packet
        return packet

    async def nothing(self) -> None:
        """Nothing comes."""
        with contextlib.suppress(TimeoutError):
            packet = await self.next(object, QUIET)
            raise AssertionError(f"nothing was to come, but {packet!r} did")

    async def closed(self) -> None:
        """The broker closes the connection, whatever it says before."""
        with contextlib.suppress(ConnectionResetError):
            while True:
                await self.next(object)

    async def connect(self, client: str = "", **parts: Any) -> ConnAckPacket:
        parts.setdefault("clean_start", True)
        self.send(ConnectPacket(client, **parts))
        return await self.next(ConnAckPacket)

    async def subscribe(
        self,
        pattern: str,
        qos: int = 0,
        properties: list[tuple[str, str]] | None = None,
        *,
        identifier: int | None = None,
        **options: Any,
    ) -> SubAckPacket:
        self._last_id += 1
        wanted = TopicFilter(pattern, max_qos=QoS(qos), **options)
        self.send(SubscribePacket(self._last_id, [wanted], subscription_id=identifier, user_properties=properties))
        answer = await self.next(SubAckPacket)
        assert answer.packet_id == self._last_id
        return answer

    def publish(
        self, topic: str, payload: bytes = b"", properties: list[tuple[str, str]] | None = None, **parts: Any
    ) -> None:
        self.send(PublishPacket(topic, payload, user_properties=properties, **parts))

    async def tell(
        self, topic: str, payload: bytes = b"", properties: list[tuple[str, str]] | None = None, **parts: Any
    ) -> PubAckPacket:
        """Publish with quality 1 and wait until the broker has it."""
        self._last_id += 1
        self.publish(topic, payload, properties, qos=QoS.AT_LEAST_ONCE, packet_id=self._last_id, **parts)
        answer = await self.next(PubAckPacket)
        assert answer.packet_id == self._last_id
        return answer

    async def heard(self) -> PublishPacket:
        return await self.next(PublishPacket)

    def close(self) -> None:
        """Politely or not: the other side sees the end of the connection."""
        self._writer.close()

    async def gone(self) -> None:
        """Closed, with its socket: over TLS the other side has a say in it, and a loop that ends before leaves the socket to whoever runs next."""
        self.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass  # it was gone already


async def all_said(reader: asyncio.StreamReader) -> bytes:
    """By the other side, until it hangs up."""
    said = b""
    try:
        while data := await asyncio.wait_for(reader.read(65_536), PATIENCE):
            said += data
    except ConnectionResetError:
        pass  # it had sent more than anybody has read
    return said


@contextlib.asynccontextmanager
async def talking(server: Reachable, client: str = "", version: int = 5, **parts: Any) -> AsyncIterator[Talker]:
    """A client that is connected, until it vanishes."""
    talker = await Talker.open(server, version)
    await talker.connect(client, **parts)
    try:
        yield talker
    finally:
        talker.close()


Scenario = Callable[[Server], Coroutine[Any, Any, None]]


def broker(folder: Path, scenario: Scenario, **changes: Any) -> None:
    """Run a scenario with a broker of its own."""

    async def with_broker() -> None:
        async with serving(folder, **changes) as server:
            await scenario(server)

    run(with_broker())
