"""Clients that take nothing: their memory is bounded, they are cut off in the end, and nobody else notices."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from mqtt5 import PubAckPacket, PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.talker import Talker, broker, run, serving, talking
from tests.waiting import PATIENCE, until

from nearcast.broker.connections.connection import Connection
from nearcast.broker.connections.conversation import Conversation
from nearcast.broker.server import Server
from nearcast.mqtt.stream import encode

MEGABYTE = 1_000_000
SMALL_SHARE = {"session": {"output_bytes": 300_000}}
LARGE = bytes(50_000)


class Sleeper(Talker):
    def close(self) -> None:
        """At once: what it wanted to say is not taken either."""
        self._writer.transport.abort()


async def sleeper(server: Server, client: str, pattern: str, qos: int, **parts: Any) -> Sleeper:
    """Subscribes, and reads nothing from then on; the operating system keeps little for it."""
    raw = socket.create_connection(server.addresses["mqtt"])
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    reader, writer = await asyncio.open_connection(sock=raw, limit=1_024)
    talker = Sleeper(reader, writer, 5)
    await talker.connect(client, **parts)
    await talker.subscribe(pattern, qos)
    return talker


def conversation_of(server: Server, client: str) -> Conversation:
    (found,) = (each for each in server.broker.services.open if each.session and each.session.client == client)
    return found


def buffered(server: Server, client: str) -> int:
    """Bytes that the broker holds for a client."""
    connection = conversation_of(server, client)._connection
    return connection.transport.get_write_buffer_size() + sum(map(len, connection._out))


def test_messages_of_quality_0_are_dropped_within_the_bound_and_others_get_everything(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        asleep = await sleeper(server, "asleep", "news", 0)
        session = server.broker.sessions.all["asleep"]
        async with talking(server, "awake") as awake, talking(server, "writer") as writer:
            await awake.subscribe("news", 0)
            count, most = 0, 0
            async with asyncio.timeout(30.0):
                while session.dropped < 50:
                    writer.publish("news", b"%06d" % count + LARGE)
                    assert (await awake.heard()).payload[:6] == b"%06d" % count
                    count += 1
                    most = max(most, buffered(server, "asleep"))
            assert most < 300_000 + 3 * len(LARGE) + 256 * 1024
            assert awake_dropped(server) == 0
        asleep.close()

    broker(tmp_path, scenario, **SMALL_SHARE)


def awake_dropped(server: Server) -> int:
    return server.broker.sessions.all["awake"].dropped


async def congest(connection: Connection, writer: Talker) -> None:
    """Publish what its client does not take until it takes no more."""
    while not connection.congested:
        writer.publish("news", LARGE)
        await asyncio.sleep(0)


def test_whoever_takes_nothing_for_too_long_is_cut_off(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        asleep = await sleeper(server, "asleep", "news", 0)
        async with talking(server, "writer") as writer:
            conversation = conversation_of(server, "asleep")
            connection = conversation._connection
            await congest(connection, writer)
            since = connection.congested_since
            conversation.look_after(since + 29_000_000)
            assert conversation in server.broker.services.open
            conversation.look_after(since + 31_000_000)
            await until(lambda: conversation not in server.broker.services.open)
            await writer.subscribe("still/here")
        asleep.close()

    broker(tmp_path, scenario)


def test_messages_of_quality_1_wait_within_bounds_of_number_and_size(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        lasting = {"clean_start": False, "session_expiry_interval": 1_000}
        for client, pattern in (("many", "small"), ("much", "large")):
            async with talking(server, client, **lasting) as reader:
                await reader.subscribe(pattern, 1)
        async with talking(server, "writer") as writer:
            for number in range(30):
                await writer.tell("small", b"%d" % number)
                await writer.tell("large", b"%d" % number + bytes(100_000))
        async with talking(server, "many", **lasting) as reader:
            assert [(await reader.heard()).payload for _ in range(20)] == [b"%d" % number for number in range(10, 30)]
        async with talking(server, "much", **lasting) as reader:
            # The newest, as far as a megabyte goes.
            assert [(await reader.heard()).payload.rstrip(b"\0") for _ in range(9)] == [
                b"%d" % n for n in range(21, 30)
            ]
            await reader.nothing()

    broker(tmp_path, scenario, session={"queue_messages": 20, "queue_bytes": MEGABYTE})


def test_no_more_is_on_its_way_again_after_a_reconnect_than_the_client_takes_this_time(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        lasting = {"clean_start": False, "session_expiry_interval": 1_000}
        async with talking(server, "writer") as writer:
            async with talking(server, "reader", **lasting) as reader:
                await reader.subscribe("a", 2)
                for number in range(10):
                    await writer.tell("a", b"%d" % number)
                for _ in range(10):
                    await reader.heard()
            async with talking(server, "reader", **lasting, receive_max=3) as reader:
                waiting: list[PublishPacket] = []
                for number in range(10):
                    while len(waiting) < min(3, 10 - number):
                        waiting.append(await reader.heard())
                    assert waiting[0].payload == b"%d" % number
                    if number == 0:
                        await reader.nothing()
                    reader.send(PubAckPacket(waiting.pop(0).packet_id or 0))
                await reader.nothing()

    broker(tmp_path, scenario)


def test_who_asks_and_asks_and_takes_no_answer_is_cut_off_before_memory_fills(tmp_path: Path) -> None:
    refused = encode(SubscribePacket(1, [TopicFilter("$near/colour=red/a")]), 5)  # the answer says why, at length

    async def scenario(server: Server) -> None:
        asleep = await sleeper(server, "asleep", "news", 0)
        conversation = conversation_of(server, "asleep")
        connection = conversation._connection
        most = 0
        async with asyncio.timeout(30.0):
            while conversation in server.broker.services.open:
                asleep.send_bytes(refused * 1_000)
                most = max(most, connection.transport.get_write_buffer_size())
                await asyncio.sleep(0)
        assert most < 3 * MEGABYTE
        asleep.close()

    broker(tmp_path, scenario, session={"output_bytes": 300_000}, limits={"packet": 100_000})


def test_who_takes_not_even_the_goodbye_is_forgotten(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        asleep = await sleeper(server, "asleep", "news", 0)
        async with talking(server, "writer") as writer:
            conversation = conversation_of(server, "asleep")
            connection = conversation._connection
            await congest(connection, writer)
            asleep.send_bytes(b"\x00\x00")  # no packet of MQTT
            await until(lambda: connection.closing)
            assert conversation in server.broker.services.open
            conversation.look_after(server.broker.clock.now() + 11_000_000)
            await until(lambda: conversation not in server.broker.services.open)
        asleep.close()

    broker(tmp_path, scenario)


def test_a_publisher_that_floods_does_not_starve_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as server, talking(server, "flooder") as flooder:  # noqa: SIM117 - it leaves last
            async with talking(server, "reader") as reader, talking(server, "writer") as writer:
                await reader.subscribe("quiet", 1)
                flood = encode(PublishPacket("flood", bytes(100)), 5) * 20_000
                flooder.send_bytes(flood)
                for number in range(20):
                    answer = await asyncio.wait_for(writer.tell("quiet", b"%d" % number), PATIENCE)
                    assert int(answer.reason_code) == 0
                    event = await reader.heard()
                    assert (event.payload, event.qos) == (b"%d" % number, QoS.AT_LEAST_ONCE)
                    reader.send(PubAckPacket(event.packet_id or 0))

    run(story())
