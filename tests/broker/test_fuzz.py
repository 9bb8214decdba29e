"""Garbage, in every way it can come: the attacked connection ends, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket, Packet, PingRespPacket, PubAckPacket
from tests.broker.attacks import Attack, attacks
from tests.broker.talker import Talker, settings_for
from tests.dissemination.transitions.cases import many
from tests.effort import campaign
from tests.waiting import PATIENCE, until
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from nearcast.broker.server import Server
from nearcast.errors import ProtocolError
from nearcast.mqtt.stream import PacketReader, encode

MOST_MEGABYTES = 150
"""Of growth of this process, with all that the tests themselves need."""


class Pair:
    """Two well-behaved clients: one publishes 1, 2, 3, ... with quality 1, the other counts."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.acknowledged = 0
        self.counted = 0
        self._going = True

    async def begin(self) -> None:
        self.reader = await Talker.open(self.server)
        await self.reader.connect("well-behaved reader")
        await self.reader.subscribe("pair/+", 1)
        self.writer = await Talker.open(self.server)
        await self.writer.connect("well-behaved writer")
        self._tasks = [asyncio.ensure_future(self._write()), asyncio.ensure_future(self._count())]

    async def _write(self) -> None:
        while self._going:
            answer = await self.writer.tell("pair/numbers", b"%d" % (self.acknowledged + 1))
            assert int(answer.reason_code) == 0, answer
            self.acknowledged += 1
            self.writer._last_id %= 60_000
            await asyncio.sleep(0.002)

    async def _count(self) -> None:
        while True:
            event = await self.reader.heard()
            self.counted += 1
            assert event.payload == b"%d" % self.counted
            self.reader.send(PubAckPacket(event.packet_id or 0))

    def check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def end(self) -> None:
        """Nothing was lost."""
        self._going = False
        await self._tasks[0]
        await until(lambda: self._tasks[1].done() or self.counted == self.acknowledged)
        self.check()
        self._tasks[1].cancel()
        self.reader.close()
        self.writer.close()


class Siege:
    """A broker on a loop of its own, the pair, and everything that goes wrong where nobody asks."""

    def __init__(self, folder: Path) -> None:
        self.loop = uvloop.new_event_loop()
        self.failures: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _loop, context: self.failures.append(context))
        self.server = Server(settings_for(folder, listen={"websocket_port": "any"}))
        self.loop.run_until_complete(self.server.start())
        self.pair = Pair(self.server)
        self.loop.run_until_complete(self.pair.begin())

    def attack(self, those: list[Attack]) -> None:
        self.loop.run_until_complete(self._attack(those))

    async def _attack(self, those: list[Attack]) -> None:
        before = self.pair.acknowledged
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(self._one(attack) for attack in those))
            await until(lambda: len(self.server.broker.services.open) == 2)
            await until(lambda: self.pair.acknowledged > before or self.pair._tasks[0].done())
        self.pair.check()
        assert not self.failures, self.failures

    async def _one(self, attack: Attack) -> None:
        host, port = self.server.addresses["websocket" if attack.websocket else "mqtt"]
        reader, writer = await asyncio.open_connection(host, port)
        line = WebSocketLine() if attack.websocket else PlainLine()
        heard: list[Packet] = []
        packets = PacketReader(version=attack.version)
        closed = False
        try:
            writer.write(line.hello())
            for chunk in (*attack.chunks(), b"\xc0\x00"):  # whoever is still talked to is answered
                if writer.is_closing():
                    break
                writer.write(line.wrapped(chunk))
                await asyncio.sleep(0)
            async with asyncio.timeout(0.3):
                while data := await reader.read(65_536):
                    heard.extend(packets.packets(line.unwrapped(data)))
                    if heard and isinstance(heard[-1], PingRespPacket):
                        break
                else:
                    closed = True
        except (TimeoutError, ConnectionError):
            pass  # it waits for the rest of a packet, or closed in the midst of ours
        except ProtocolError:
            pass  # a refusal in another version than the attacker's: mutation changes versions as well
        finally:
            writer.transport.abort()
        if closed and heard and attack.version == 5 and b"\xe0" not in attack.data:
            # It was told why; unless it said goodbye itself.
            assert isinstance(heard[-1], ConnAckPacket | DisconnectPacket), heard

    def end(self) -> None:
        self.loop.run_until_complete(self.pair.end())
        self.loop.run_until_complete(self.server.stop())
        self.loop.run_until_complete(asyncio.sleep(0.05))
        self.loop.close()


class PlainLine:
    def hello(self) -> bytes:
        return b""

    def wrapped(self, data: bytes) -> bytes:
        return data

    def unwrapped(self, data: bytes) -> bytes:
        return data


class WebSocketLine(PlainLine):
    def __init__(self) -> None:
        self._protocol = ClientProtocol(parse_uri("ws://127.0.0.1/mqtt"), subprotocols=["mqtt"])  # type: ignore[list-item]

    def hello(self) -> bytes:
        self._protocol.send_request(self._protocol.connect())
        return b"".join(self._protocol.data_to_send())

    def wrapped(self, data: bytes) -> bytes:
        # Without waiting for the other side's half of the handshake, as a hasty client does.
        return Frame(Opcode.BINARY, data).serialize(mask=True)

    def unwrapped(self, data: bytes) -> bytes:
        self._protocol.receive_data(data)
        events = self._protocol.events_received()
        return b"".join(bytes(event.data) for event in events if isinstance(event, Frame) and event.opcode in {0, 2})


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    siege = Siege(tmp_path_factory.mktemp("siege"))
    yield siege
    siege.end()


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.ERROR)
    yield
    assert not caplog.records, caplog.text


several = st.lists(attacks(), min_size=8, max_size=16)


@settings(many(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(several)
def test_garbage_harms_nobody(siege: Siege, quiet: None, those: list[Attack]) -> None:
    siege.attack(those)


@campaign
@settings(many(3_000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(several)
def test_much_garbage_harms_nobody(siege: Siege, quiet: None, those: list[Attack]) -> None:
    siege.attack(those)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_500_000


def test_packets_that_announce_more_than_is_allowed_are_refused_at_once(siege: Siege) -> None:
    """Nothing is kept of them."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hello = encode(ConnectPacket("attacker"), 5)
    for websocket in (False, True):
        for start in (b"", hello):
            attack = Attack(5, start + b"\x30\xff\xff\xff\x7f" + bytes(500_000), (7, 99), websocket)
            siege.attack([attack] * 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEGABYTES * 1024


def test_a_packet_that_never_comes_in_whole_is_given_up(siege: Siege) -> None:
    async def scenario() -> None:
        host, port = siege.server.addresses["mqtt"]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"\x10\x7f\x00\x04MQ")
        await until(lambda: len(siege.server.broker.services.open) == 3)
        late = siege.server.broker.clock.now() + 11_000_000
        for conversation in list(siege.server.broker.services.open)[2:]:
            conversation.look_after(late)
        with contextlib.suppress(ConnectionResetError):  # it had sent what nobody read
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()

    siege.loop.run_until_complete(scenario())


def test_numbered_messages_all_arrived(siege: Siege) -> None:
    """The pair goes on after all that."""

    async def scenario() -> None:
        wanted = siege.pair.acknowledged + 20
        await until(lambda: siege.pair.counted >= wanted)

    siege.loop.run_until_complete(scenario())
    siege.pair.check()
    assert not siege.failures
