"""Publishes of quality 1 that come in one turn of the loop go to the disk together, and yet nothing is promised too early."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import (
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubAckReasonCode,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
)
from tests.broker.in_memory import Client, InMemory
from tests.broker.promises import DAY, MANY, answered, answers, numbers, publish, publishes, run, subscribe

from nearcast.broker.publishing import batching, qos1_batch
from nearcast.journal import EventEntry
from nearcast.mqtt.stream import encode


def test_a_turn_is_one_write_and_each_publisher_gets_its_acknowledgements_at_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: InMemory) -> None:
        one, other, reader = await rig.connect("one"), await rig.connect("other"), await rig.connect("reader")
        reader.say(subscribe())
        await rig.quiet()
        written: list[int] = []
        write = rig.broker.journal.write

        def count(records: Any = (), *rest: Any, **more: Any) -> int:
            written.append(len(records))
            return write(records, *rest, **more)

        monkeypatch.setattr(rig.broker.journal, "write", count)
        one.say(*publishes(0))
        other.say(*publishes(100, topic="b"))
        one.say(*publishes(50))
        await rig.turn()
        monkeypatch.undo()
        assert written == [3 * MANY]
        await rig.quiet()
        assert answers(one) == answered(0) + answered(50)
        assert answers(other) == answered(100)
        got = reader.payloads()
        assert got == numbers(0) + numbers(100) + numbers(50)

    run(scenario)


def test_what_the_journal_holds_is_what_one_by_one_would_have_written() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, lasting, fleeting = (
            await rig.connect("writer"),
            await rig.connect("lasting", **DAY),
            await rig.connect("fleeting"),
        )
        lasting.say(subscribe("a"))
        fleeting.say(subscribe("#", 0))
        await rig.quiet()
        told: dict[str, Any] = {
            "content_type": "text/plain",
            "response_topic": "r",
            "correlation_data": b"c",
            "message_expiry_interval": 9,
        }
        writer.say(publish(0, "a", **told), publish(1, "b"), publish(2, "a", 2, **told), publish(3, "a"))
        await rig.quiet()
        who = {name: session.identity for name, session in rig.broker.sessions.all.items()}
        first, second, exactly, third = (each for each in rig.recorded() if isinstance(each, EventEntry))
        assert sorted(first.receivers) == sorted((who["lasting"], who["fleeting"]))
        assert first.owed == third.owed == ((who["lasting"], 1, False, ()),)
        assert second.receivers == (who["fleeting"],)
        assert second.owed == ()
        # The third goes the way of all the others that are not like these.
        same = ("topic", "publisher", "receivers", "lifetime", "content_type", "response_topic", "correlation_data")
        assert [getattr(first, name) for name in same] == [getattr(exactly, name) for name in same]
        assert first.payload_format == exactly.payload_format

    run(scenario)


def test_qualities_that_come_in_one_turn_each_keep_their_order_and_their_answers() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader")
        reader.say(subscribe("#", 2))
        await rig.quiet()
        writer.say(*(publish(number, "a", number % 3) for number in range(MANY)))
        await rig.quiet()
        copies = [each for each in reader.got() if isinstance(each, PublishPacket)]
        for quality in range(3):
            came = [each.payload for each in copies if int(each.qos) == quality]
            assert came == [b"%d" % number for number in range(quality, MANY, 3)]
        assert answers(writer) == [(number + 1, 0) for number in range(1, MANY, 3)]
        received = [each.packet_id for each in writer.got() if isinstance(each, PubRecPacket)]
        assert received == [number + 1 for number in range(2, MANY, 3)]

    run(scenario)


def test_members_of_a_group_share_what_comes_in_one_turn() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, one, other = await rig.connect("writer"), await rig.connect("one"), await rig.connect("other")
        for member in (one, other):
            member.say(subscribe("$share/g/a"))
        await rig.quiet()
        writer.say(*publishes(0))
        await rig.quiet()
        assert sorted(one.payloads() + other.payloads(), key=int) == numbers(0)
        assert len(one.payloads()) == len(other.payloads()) == MANY // 2

    run(scenario)


def test_who_wants_none_of_its_own_gets_none_of_them() -> None:
    async def scenario(rig: InMemory) -> None:
        one, other = await rig.connect("one"), await rig.connect("other")
        one.say(subscribe("a", no_local=True))
        other.say(subscribe("a", no_local=True))
        await rig.quiet()
        one.say(*publishes(0))
        other.say(*publishes(100))
        await rig.quiet()
        assert one.payloads() == numbers(100)
        assert other.payloads() == numbers(0)

    run(scenario)


@pytest.mark.parametrize("politely", [True, False])
def test_a_publisher_that_goes_in_the_middle_of_the_turn_has_published_and_is_answered_no_more(politely: bool) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, other = await rig.connect("writer", **DAY), await rig.connect("other")
        reader = await rig.connect("reader")
        reader.say(subscribe())
        await rig.quiet()
        other.say(*publishes(100))
        writer.say(*publishes(0))
        if politely:
            writer.say(DisconnectPacket())
        else:
            writer.connection.connection_lost(None)
        again = await rig.connect("writer", **DAY)
        other.say(*publishes(200))
        await rig.quiet()
        assert reader.payloads() == numbers(100) + numbers(0) + numbers(200)
        assert answers(writer) == answers(again) == []
        assert answers(other) == answered(100) + answered(200)

    run(scenario)


def test_a_receiver_that_goes_in_the_middle_of_the_turn_is_owed_what_came_before() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader", **DAY)
        reader.say(subscribe())
        await rig.quiet()
        writer.say(*publishes(0))
        reader.connection.connection_lost(None)
        writer.say(*publishes(100))
        await rig.quiet()
        again = await rig.connect("reader", **DAY)
        await rig.quiet()
        assert reader.payloads() == []
        assert again.payloads() == numbers(0) + numbers(100)

    run(scenario)


def test_more_in_one_chunk_than_the_receive_maximum_ends_the_connection_and_keeps_what_was_allowed() -> None:
    async def scenario(rig: InMemory) -> None:
        allowed = rig.broker.settings.session.inflight
        writer, reader = await rig.connect("writer"), await rig.connect("reader")
        reader.say(subscribe("#", 0))
        await rig.quiet()
        writer.say(*publishes(0, allowed + 1))
        await rig.quiet()
        ended = next(each for each in writer.got() if isinstance(each, DisconnectPacket))
        assert ended.reason_code == DisconnectReasonCode.RECEIVE_MAX_EXCEEDED
        assert reader.payloads() == numbers(0, allowed)

    run(scenario)


def test_an_acknowledgement_makes_room_for_another_publish() -> None:
    async def scenario(rig: InMemory) -> None:
        allowed = rig.broker.settings.session.inflight
        writer = await rig.connect("writer")
        for _ in range(2):
            writer.say(*publishes(0, allowed))
            await rig.quiet()
        assert len(answers(writer)) == 2 * allowed

    run(scenario)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("wanted", [True, False])
def test_acknowledgements_are_the_bytes_that_the_protocol_wants(version: int, wanted: bool) -> None:
    async def scenario(rig: InMemory) -> None:
        writer = Client(rig.broker.connection())
        writer.connection.data_received(encode(ConnectPacket("writer", clean_start=True, keep_alive=60), version))
        await rig.quiet()
        if wanted:
            reader = await rig.connect("reader")
            reader.say(subscribe())
            await rig.quiet()
        writer.transport.written.clear()
        writer.connection.data_received(b"".join(encode(publish(number), version) for number in (1, 511)))
        await rig.quiet()
        code = PubAckReasonCode.SUCCESS if wanted else PubAckReasonCode.NO_MATCHING_SUBSCRIBERS
        expected = b"".join(encode(PubAckPacket(each, reason_code=code), version) for each in (2, 512))
        assert writer.transport.written == [expected]

    run(scenario)


def test_events_for_many_go_in_parts_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, readers = await rig.connect("writer"), [await rig.connect(f"r{number}", **DAY) for number in range(3)]
        for reader in readers:
            reader.say(subscribe())
        await rig.quiet()
        monkeypatch.setattr(qos1_batch, "MOST_COPIES", 12)
        writer.say(*publishes(0))
        await rig.quiet()
        assert rig.broker.batching.statistics().largest == 4
        assert answers(writer) == answered(0)
        assert [reader.payloads() for reader in readers] == [numbers(0)] * 3
        await rig.quiet()
        assert not any(rig.broker.sessions.all[f"r{number}"].pending for number in range(3))

    run(scenario)


def test_all_that_a_publish_brings_counts_for_how_many_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        writer = await rig.connect("writer")
        monkeypatch.setattr(batching, "MOST_BYTES", 1_000)
        for more in ({"content_type": "x" * 600}, {"correlation_data": b"x" * 600}, {"topic": "x" * 600}):
            writer.say(publish(0, **more))
            assert rig.broker.batching.statistics().waiting == 1
            writer.say(publish(1, **more))
            assert rig.broker.batching.statistics().waiting == 0
            await rig.quiet()

    run(scenario)


def test_copies_say_what_the_publish_said_and_nothing_that_was_for_the_broker_alone() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, plain, near, numbered = [await rig.connect(name) for name in ("writer", "plain", "near", "numbered")]
        plain.say(subscribe("a"))
        near.say(SubscribePacket(1, [TopicFilter("b", max_qos=QoS(1))], user_properties=[("nc-name", "n")]))
        numbered.say(SubscribePacket(1, [TopicFilter("c", max_qos=QoS(1))], subscription_id=7))
        await rig.quiet()
        told: dict[str, Any] = {"content_type": "text/plain", "response_topic": "r", "correlation_data": b"c"}
        writer.say(
            publish(0, "a", topic_alias=3, **told),
            publish(1, "", topic_alias=3),
            publish(2, "a", duplicate=True, **told),
            publish(3, "a", message_expiry_interval=60),
            publish(4, "a", payload_format_indicator=1, **told),
            publish(5, "b"),
            publish(6, "c"),
        )
        await rig.quiet()
        came = [each for each in plain.got() if isinstance(each, PublishPacket)]
        assert [(each.topic, each.payload) for each in came] == [("a", b"%d" % number) for number in range(5)]
        assert not any(each.duplicate or each.topic_alias for each in came)
        assert [each.content_type for each in came] == ["text/plain", None, "text/plain", None, "text/plain"]
        assert [each.correlation_data for each in came] == [b"c", None, b"c", None, b"c"]
        assert [each.message_expiry_interval for each in came] == [None, None, None, 60, None]
        assert [each.payload_format_indicator for each in came] == [0, 0, 0, 0, 1]
        told_more = next(each for each in near.got() if isinstance(each, PublishPacket))
        assert {name for name, _ in told_more.user_properties} == {"nc-id", "nc-published"}
        assert next(each for each in numbered.got() if isinstance(each, PublishPacket)).subscription_ids == [7]

    run(scenario)
