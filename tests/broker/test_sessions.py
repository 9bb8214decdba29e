"""Sessions: kept while the client is away, taken over, ended; wills; what a restart leaves."""

from pathlib import Path
from typing import Any

import pytest
from mqtt5 import (
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
    Will,
)
from tests.broker.talker import Talker, broker, run, serving, talking
from tests.waiting import until

from nearcast.broker.server import Server

DAY: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 86_400}


def test_a_session_collects_what_comes_while_its_client_is_away(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader", **DAY) as reader:
            await reader.subscribe("news/#", 1)
        async with talking(server, "writer") as writer:
            writer.publish("news/a", b"quality 0 is for those who are there")
            for number in range(3):
                await writer.tell("news/a", b"%d" % number)
        again = await Talker.open(server)
        assert (await again.connect("reader", **DAY)).session_present
        assert [(await again.heard()).payload for _ in range(3)] == [b"0", b"1", b"2"]

    broker(tmp_path, scenario)


def test_a_clean_start_forgets(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader", **DAY) as reader:
            await reader.subscribe("news/#", 1)
        again = await Talker.open(server)
        assert not (await again.connect("reader", clean_start=True, session_expiry_interval=60)).session_present
        async with talking(server, "writer") as writer:
            await writer.tell("news/a", b"1")
        await again.nothing()

    broker(tmp_path, scenario)


def test_a_session_without_expiry_ends_with_its_connection(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader", clean_start=False):
            pass
        again = await Talker.open(server)
        assert not (await again.connect("reader", clean_start=False)).session_present

    broker(tmp_path, scenario)


def test_a_version_3_client_that_is_not_clean_keeps_its_session(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "old", 4, clean_start=False) as old:
            await old.subscribe("a", 1)
        async with talking(server, "writer") as writer:
            await writer.tell("a", b"1")
        again = await Talker.open(server, 4)
        assert (await again.connect("old", clean_start=False)).session_present
        assert (await again.heard()).payload == b"1"

    broker(tmp_path, scenario)


def test_the_second_connection_of_a_client_takes_the_session_over(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "twice", **DAY) as first:
            await first.subscribe("a")
            async with talking(server, "twice", **DAY) as second:
                goodbye = await first.next(DisconnectPacket)
                assert goodbye.reason_code == DisconnectReasonCode.SESSION_TAKEN_OVER
                await first.closed()
                second.publish("a", b"still subscribed")
                assert (await second.heard()).payload == b"still subscribed"

    broker(tmp_path, scenario)


def test_an_empty_client_id_gets_one(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        talker = await Talker.open(server)
        answer = await talker.connect("", keep_alive=0)
        assert answer.assigned_client_id
        assert answer.server_keep_alive == 600  # the longest that the settings allow

    broker(tmp_path, scenario)


def test_unacknowledged_messages_come_again_under_the_same_id(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 2)
                await writer.tell("a", b"1")
                first = await reader.heard()
                assert not first.duplicate
            async with talking(server, "reader", **DAY) as reader:
                again = await reader.heard()
                assert (again.packet_id, again.payload, again.duplicate) == (first.packet_id, b"1", True)
                reader.send(PubAckPacket(again.packet_id or 0))
                await writer.tell("a", b"2")
                assert (await reader.heard()).payload == b"2"
            async with talking(server, "reader", **DAY) as reader:
                assert (await reader.heard()).payload == b"2"
                await reader.nothing()

    broker(tmp_path, scenario)


def test_exactly_once_in_both_directions(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer", **DAY) as writer, talking(server, "reader", **DAY) as reader:
            await reader.subscribe("a", 2)
            message = PublishPacket("a", b"1", qos=QoS.EXACTLY_ONCE, packet_id=7)
            writer.send(message)
            assert (await writer.next(PubRecPacket)).packet_id == 7
            writer.send(PublishPacket("a", b"1", qos=QoS.EXACTLY_ONCE, packet_id=7, duplicate=True))
            assert (await writer.next(PubRecPacket)).packet_id == 7
            writer.send(PubRelPacket(7))
            assert (await writer.next(PubCompPacket)).packet_id == 7
            event = await reader.heard()
            assert event.qos == QoS.EXACTLY_ONCE
            reader.send(PubRecPacket(event.packet_id or 0))
            assert (await reader.next(PubRelPacket)).packet_id == event.packet_id
            reader.send(PubCompPacket(event.packet_id or 0))
            await reader.nothing()
            writer.send(message)  # the id is free again: this is another message
            await writer.next(PubRecPacket)
            assert (await reader.heard()).payload == b"1"

    broker(tmp_path, scenario)


def test_what_was_received_is_only_released_after_a_reconnect(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 2)
                writer.send(PublishPacket("a", b"1", qos=QoS.EXACTLY_ONCE, packet_id=1))
                event = await reader.heard()
                reader.send(PubRecPacket(event.packet_id or 0))
                await reader.next(PubRelPacket)
            async with talking(server, "reader", **DAY) as reader:
                assert (await reader.next(PubRelPacket)).packet_id == event.packet_id
                reader.send(PubCompPacket(event.packet_id or 0))
            async with talking(server, "reader", **DAY) as reader:
                await reader.nothing()

    broker(tmp_path, scenario)


def test_a_restart_keeps_sessions_subscriptions_messages_and_contexts(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as server:  # noqa: SIM117 - first the clients leave
            async with talking(server, "reader", **DAY) as reader, talking(server, "writer") as writer:
                await reader.subscribe("near/#", 1, [("nc-area", "150"), ("nc-where", "n < 10")])
                await reader.subscribe("all", 2)
                await reader.tell("$nearcast/position", b"49.8728,8.6512")
                await reader.tell("$nearcast/context/me", b'{"kind": "car"}')
                await writer.tell("all", b"retained", retain=True)
                await writer.tell("all", b"waiting")
                # Not acknowledged: both are owed.
                assert (await reader.heard()).payload == b"retained"
                assert (await reader.heard()).payload == b"waiting"
        async with serving(tmp_path) as server, talking(server, "writer") as writer:
            again = await Talker.open(server)
            assert (await again.connect("reader", **DAY)).session_present
            assert [(await again.heard()).payload for _ in range(2)] == [b"retained", b"waiting"]
            await writer.tell("near/a", b"1", [("nc-place", "49.8729,8.6512"), ("n", "3")])
            await writer.tell("near/a", b"2", [("nc-place", "49.8729,8.6512"), ("n", "30")])
            await writer.tell("near/a", b"3", [("nc-place", "49.8829,8.6512"), ("n", "3")])
            await writer.tell("near/a", b"4", [("nc-to", "kind = 'car'"), ("n", "3")])
            assert [(await again.heard()).payload for _ in range(2)] == [b"1", b"4"]
            await writer.subscribe("all")
            assert (await writer.heard()).payload == b"retained"

    run(story())


def test_an_expired_session_is_forgotten(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader", clean_start=False, session_expiry_interval=1) as reader:
            await reader.subscribe("a", 1)
        session = server.broker.sessions.all["reader"]
        await until(lambda: session.ended is not None)
        assert session.ended is not None
        session.ended -= 2_000_000  # two seconds pass
        server.broker.lifecycle.expire()
        again = await Talker.open(server)
        assert not (await again.connect("reader", **DAY)).session_present

    broker(tmp_path, scenario)


@pytest.mark.parametrize("politely", [True, False])
def test_a_will_is_published_unless_the_client_says_goodbye(tmp_path: Path, politely: bool) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "heir") as heir:
            await heir.subscribe("wills/#", 1)
            will = Will("wills/me", payload=b"gone", qos=QoS.AT_LEAST_ONCE)
            async with talking(server, "me", will=will) as me:
                if politely:
                    me.send(DisconnectPacket())
            if politely:
                await heir.nothing()
            else:
                assert (await heir.heard()).payload == b"gone"

    broker(tmp_path, scenario)


def test_a_delayed_will_is_cancelled_by_coming_back_in_time(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "heir") as heir:
            await heir.subscribe("wills/#")
            will = Will("wills/me", payload=b"gone", will_delay_interval=30)
            async with talking(server, "me", will=will, **DAY):
                pass
            async with talking(server, "me", will=will, **DAY):
                pass
            await heir.nothing()
            due = server.broker.sessions.wills["me"]
            await until(lambda: due.will_due is not None)
            assert due.will_due is not None
            due.will_due -= 31_000_000
            server.broker.wills.due()
            assert (await heir.heard()).payload == b"gone"

    broker(tmp_path, scenario)


def test_who_is_silent_for_too_long_is_disconnected(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "silent", keep_alive=10) as silent:
            (conversation,) = server.broker.services.open
            now = server.broker.clock.now()
            conversation.look_after(now + 14_000_000)
            await silent.nothing()
            conversation.look_after(now + 16_000_000)
            goodbye = await silent.next(DisconnectPacket)
            assert goodbye.reason_code == DisconnectReasonCode.KEEP_ALIVE_TIMEOUT

    broker(tmp_path, scenario)


def test_unsubscribing(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader:
            await reader.subscribe("a")
            reader.send(UnsubscribePacket(9, ["a", "b"]))
            answer = await reader.next(UnsubAckPacket)
            assert answer.reason_codes == [UnsubAckReasonCode.SUCCESS, UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED]
            reader.publish("a", b"1")
            await reader.nothing()

    broker(tmp_path, scenario)


def test_a_second_connect_is_an_error(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "eager") as eager:
            eager.send(ConnectPacket("eager"))
            goodbye = await eager.next(DisconnectPacket)
            assert goodbye.reason_code == DisconnectReasonCode.PROTOCOL_ERROR

    broker(tmp_path, scenario)


def test_another_version_is_refused_in_words_that_it_understands(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        talker = await Talker.open(server)
        talker.send_bytes(bytes([0x10, 13, 0, 4]) + b"MQTT" + bytes([6, 2, 0, 60, 0, 0, 0]))
        answer = await talker.next(object)
        assert getattr(answer, "reason_code", None) == ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION
        await talker.closed()

    broker(tmp_path, scenario)


def test_who_does_not_connect_in_time_is_closed(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        talker = await Talker.open(server)
        await until(lambda: bool(server.broker.services.open))
        (conversation,) = server.broker.services.open
        conversation.look_after(server.broker.clock.now() + 11_000_000)
        await talker.closed()

    broker(tmp_path, scenario)
