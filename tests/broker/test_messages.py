"""Messages as MQTT 5 has them: retained, expiring, aliased, shared, identified, limited."""

from pathlib import Path

import pytest
from mqtt5 import (
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PublishPacket,
    QoS,
    RetainHandling,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
)
from tests.broker.talker import Talker, broker, talking

from nearcast.broker.server import Server


def test_user_properties_and_the_rest_are_passed_on_unaltered(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader, talking(server, "writer") as writer:
            await reader.subscribe("a", 1)
            properties = [("b", "2"), ("a", "1"), ("b", "3"), ("published", "never")]
            await writer.tell(
                "a",
                "grüße".encode(),
                properties,
                content_type="text/plain",
                response_topic="answers",
                correlation_data=b"\0\1",
                payload_format_indicator=1,
            )
            event = await reader.heard()
            assert event.user_properties == properties
            assert (event.content_type, event.response_topic) == ("text/plain", "answers")
            assert (event.correlation_data, event.payload_format_indicator) == (b"\0\1", 1)
            assert event.payload.decode() == "grüße"

    broker(tmp_path, scenario)


def test_the_last_retained_message_is_given_to_whoever_subscribes_later(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "reader") as reader:
            for topic, payload in (("a/1", b"old"), ("a/1", b"new"), ("a/2", b"x"), ("a/2", b""), ("b", b"y")):
                await writer.tell(topic, payload, retain=True)
            await reader.subscribe("a/#")
            event = await reader.heard()
            assert (event.topic, event.payload, event.retain) == ("a/1", b"new", True)
            await reader.nothing()
            await reader.subscribe("a/#", retain_handling=RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)
            await reader.nothing()
            await reader.subscribe("+", retain_handling=RetainHandling.SEND_NEVER)
            await reader.nothing()
            await reader.subscribe("a/#")
            assert (await reader.heard()).payload == b"new"

    broker(tmp_path, scenario)


def test_retain_as_published(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "as it is") as yes, talking(server, "no") as no:
            await yes.subscribe("a", retain_as_published=True)
            await no.subscribe("a", retain_as_published=False)
            await writer.tell("a", b"1", retain=True)
            assert (await yes.heard()).retain
            assert not (await no.heard()).retain

    broker(tmp_path, scenario)


def test_an_expired_message_is_not_delivered_and_a_fresh_one_says_how_long_it_lives(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        lasting = {"clean_start": False, "session_expiry_interval": 1000}
        async with talking(server, "reader", 5, **lasting) as reader:
            await reader.subscribe("a", 1)
        async with talking(server, "writer") as writer:
            await writer.tell("a", b"short", message_expiry_interval=1)
            await writer.tell("a", b"long", message_expiry_interval=100)
            for out in server.broker.sessions.all["reader"].queue:
                assert out.message.expires is not None
                out.message.expires -= 2_000_000  # two seconds pass
        async with talking(server, "reader", 5, **lasting) as reader:
            event = await reader.heard()
            assert event.payload == b"long"
            assert event.message_expiry_interval in {97, 98}

    broker(tmp_path, scenario)


def test_topic_aliases(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader, talking(server, "writer") as writer:
            await reader.subscribe("a/+")
            writer.publish("a/1", b"1", topic_alias=1)
            writer.publish("a/2", b"2", topic_alias=2)
            writer.publish("", b"3", topic_alias=1)
            writer.publish("a/3", b"4", topic_alias=1)
            writer.publish("", b"5", topic_alias=1)
            heard = [await reader.heard() for _ in range(5)]
            assert [(event.topic, event.payload) for event in heard] == [
                ("a/1", b"1"),
                ("a/2", b"2"),
                ("a/1", b"3"),
                ("a/3", b"4"),
                ("a/3", b"5"),
            ]
            assert {event.topic_alias for event in heard} == {None}
            writer.publish("", b"6", topic_alias=9)
            assert (await writer.next(DisconnectPacket)).reason_code == DisconnectReasonCode.PROTOCOL_ERROR
        async with talking(server, "greedy") as greedy:
            greedy.publish("a", b"", topic_alias=60_000)
            assert (await greedy.next(DisconnectPacket)).reason_code == DisconnectReasonCode.TOPIC_ALIAS_INVALID

    broker(tmp_path, scenario)


def test_overlapping_subscriptions_bring_one_copy_with_all_identifiers(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader, talking(server, "writer") as writer:
            await reader.subscribe("a/#", 0, identifier=1)
            await reader.subscribe("a/b", 1, identifier=2)
            await reader.subscribe("c", 1, identifier=3)
            await writer.tell("a/b", b"1")
            event = await reader.heard()
            assert sorted(event.subscription_ids) == [1, 2]
            assert event.qos == QoS.AT_LEAST_ONCE
            reader.send(PubAckPacket(event.packet_id or 0))
            await reader.nothing()

    broker(tmp_path, scenario)


def test_the_own_message_comes_back_unless_no_local_is_set(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client, talking(server, "other") as other:
            await client.subscribe("a", no_local=True)
            await other.subscribe("a")
            client.publish("a", b"1")
            assert (await other.heard()).payload == b"1"
            await client.nothing()
            await client.subscribe("+")
            client.publish("a", b"2")
            assert (await client.heard()).payload == b"2"
            await client.subscribe("a", no_local=True)
            other.publish("a", b"3")
            assert (await client.heard()).payload == b"3"

    broker(tmp_path, scenario)


def test_members_of_a_group_share_messages(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with (
            talking(server, "one") as one,
            talking(server, "two") as two,
            talking(server, "alone") as alone,
            talking(server, "writer") as writer,
        ):
            for member in (one, two):
                await member.subscribe("$share/workers/jobs/#")
            await alone.subscribe("jobs/#")
            for number in range(6):
                writer.publish("jobs/a", b"%d" % number)
            everything = [(await alone.heard()).payload for _ in range(6)]
            assert everything == [b"%d" % number for number in range(6)]
            shares = [[(await member.heard()).payload for _ in range(3)] for member in (one, two)]
            assert sorted(shares[0] + shares[1]) == everything
            two.close()
            for number in range(3):
                await writer.tell("jobs/a", b"again %d" % number)
            assert (await one.heard()).payload.startswith(b"again")

    broker(tmp_path, scenario)


@pytest.mark.parametrize("pattern", ["$share//a", "$share/g", "$near/area=x/a", "$near/colour=red/a"])
def test_filters_that_cannot_be_are_refused_one_by_one(tmp_path: Path, pattern: str) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            client.send(SubscribePacket(1, [TopicFilter(pattern), TopicFilter("fine")]))
            refused, granted = (await client.next(SubAckPacket)).reason_codes
            assert int(refused) >= 0x80
            assert granted == SubAckReasonCode.GRANTED_QOS_EXACTLY_ONCE

    broker(tmp_path, scenario)


@pytest.mark.parametrize("pattern", ["a/#/b", "a/b+", "#a"])
def test_a_filter_with_a_misplaced_wildcard_is_refused(tmp_path: Path, pattern: str) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            good = SubscribePacket(1, [TopicFilter("x")]).write()
            body = len(pattern).to_bytes(2) + pattern.encode() + b"\0"  # the codec would not write it
            client.send_bytes(bytes([good[0], 3 + len(body)]) + good[2:5] + body)
            assert (await client.next(SubAckPacket)).reason_codes == [SubAckReasonCode.TOPIC_FILTER_INVALID]

    broker(tmp_path, scenario)


def test_no_more_is_in_flight_than_the_receiver_allows(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader", receive_max=2) as reader, talking(server, "writer") as writer:
            await reader.subscribe("a", 1)
            for number in range(5):
                await writer.tell("a", b"%d" % number)
            first, second = await reader.heard(), await reader.heard()
            await reader.nothing()
            reader.send(PubAckPacket(second.packet_id or 0))
            assert (await reader.heard()).payload == b"2"
            await reader.nothing()
            reader.send(PubAckPacket(first.packet_id or 0))
            assert (await reader.heard()).payload == b"3"

    broker(tmp_path, scenario)


def test_a_message_that_is_too_large_for_its_receiver_is_left_out(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "small", max_packet_size=100) as small, talking(server, "writer") as writer:
            await small.subscribe("a", 1)
            await writer.tell("a", b"x" * 200)
            await writer.tell("a", b"fits")
            assert (await small.heard()).payload == b"fits"

    broker(tmp_path, scenario)


def test_a_packet_that_is_too_large_for_the_broker_ends_the_connection_before_it_came(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "large") as large:
            large.send_bytes(PublishPacket("a", b"x" * 3_000_000).write()[:100])
            assert (await large.next(DisconnectPacket)).reason_code == DisconnectReasonCode.PACKET_TOO_LARGE
            await large.closed()

    broker(tmp_path, scenario)


def test_publishing_more_at_once_than_allowed_ends_the_connection(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        talker = await Talker.open(server)
        answer = await talker.connect("hasty")
        count = answer.receive_max + 1
        talker.send(*(PublishPacket("a", b"", qos=QoS.EXACTLY_ONCE, packet_id=n + 1) for n in range(count)))
        seen: list[object] = []
        while not seen or not isinstance(seen[-1], DisconnectPacket):
            seen.append(await talker.next(object))
        assert seen[-1].reason_code == DisconnectReasonCode.RECEIVE_MAX_EXCEEDED

    broker(tmp_path, scenario)


def test_versions_understand_each_other(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "old", 4) as old, talking(server, "new") as new:
            await old.subscribe("to/old", 1)
            await new.subscribe("to/new", 1)
            await new.tell("to/old", b"1", [("x", "y")], message_expiry_interval=5)
            assert (await old.heard()).payload == b"1"
            await old.tell("to/new", b"2")
            assert (await new.heard()).payload == b"2"

    broker(tmp_path, scenario)
