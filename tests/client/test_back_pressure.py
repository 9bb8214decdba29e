"""Whoever reads slowly is sent no more than fits, and loses nothing of quality 1."""

import asyncio

import pytest
from tests.served import ServedBroker

import nearcast

LONG = 60.0


def test_a_reader_that_stops_is_sent_no_more_than_its_receive_maximum_and_gets_all_later(broker: ServedBroker) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(LONG),
            nearcast.connect(broker.url) as publisher,
            nearcast.connect(broker.url, receive_maximum=20) as reader,
            reader.subscribe("slow") as slow,
        ):
            await asyncio.gather(*(publisher.publish("slow", str(number)) for number in range(300)))
            assert slow.statistics().waiting <= 20
            # Its own words still come through: they need no receive maximum.
            await reader.update(mood="busy")
            read: list[int] = []
            while len(read) < 300:
                read.append(int((await slow.next(LONG)).payload))
                assert slow.statistics().waiting <= 20
            assert sorted(read) == list(range(300))
            assert slow.statistics().dropped == 0

    asyncio.run(run())


def test_quality_0_is_dropped_and_counted_when_nobody_reads(broker: ServedBroker) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(LONG),
            nearcast.connect(broker.url) as me,
            me.subscribe("flood", limit=10) as flooded,
            me.subscribe("flood/end") as end,
        ):
            for number in range(50):
                await me.publish("flood", str(number), qos=0)
            await me.publish("flood/end", qos=0)
            await end.next(LONG)
            assert (flooded.statistics().waiting, flooded.statistics().dropped) == (10, 40)
            assert [int((await flooded.next(LONG)).payload) for _ in range(10)] == list(range(10))

    asyncio.run(run())


def test_an_event_for_two_subscriptions_is_acknowledged_when_both_have_taken_it(broker: ServedBroker) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(LONG),
            nearcast.connect(broker.url) as me,
            me.subscribe("both/#") as one,
            me.subscribe("both/+") as two,
        ):
            await me.publish("both/x", b"x")
            await one.next(LONG)
            assert me.statistics().link.protocol.unacknowledged == 1
            await two.next(LONG)
            assert me.statistics().link.protocol.unacknowledged == 0

    asyncio.run(run())


def test_leaving_a_subscription_lets_go_of_what_was_not_read(broker: ServedBroker) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), nearcast.connect(broker.url, receive_maximum=5) as me:
            async with me.subscribe("unread") as unread:
                for _ in range(8):
                    await me.publish("unread")
                while unread.statistics().waiting < 5:
                    await me.update(mood="patient")
            async with me.subscribe("read") as events:
                await me.publish("read", b"free again")
                assert (await events.next(LONG)).payload == b"free again"

    asyncio.run(run())


@pytest.mark.parametrize("qos", [0, 1])
def test_much_at_once_arrives_whole(broker: ServedBroker, qos: int) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(LONG),
            nearcast.connect(broker.url) as me,
            me.subscribe(f"much/{qos}", limit=10_000) as events,
        ):
            payload = bytes(2_000)
            await asyncio.gather(*(me.publish(f"much/{qos}", payload, qos=qos) for _ in range(500)), _read(events, 500))

    asyncio.run(run())


async def _read(events: nearcast.Events, count: int) -> None:
    for _ in range(count):
        await events.next(LONG)
