"""The client and a real broker: what is published is what is read, to whom it concerns."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.served import ServedBroker

import nearcast
from nearcast import Box, Circle, Client, Event, Events, OneOf, Path, Point, Range
from nearcast.errors import (
    InvalidEvent,
    InvalidInput,
    InvalidPosition,
    InvalidPredicate,
    InvalidSubscription,
    InvalidTopic,
    InvalidValue,
    TimedOut,
    UnknownName,
)

HERE = Point(49.8728, 8.6512)
SOON = 20.0
"""Seconds in which an event has come; the machine may be busy."""

Body = Callable[[Client], Coroutine[Any, Any, None]]


def with_client(broker: ServedBroker, body: Body, **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(50), nearcast.connect(broker.url, **options) as me:
            await body(me)

    asyncio.run(run())


@asynccontextmanager
async def another(broker: ServedBroker, **options: Any) -> AsyncIterator[Client]:
    async with nearcast.connect(broker.url, **options) as client:
        yield client


async def nothing_more(me: Client, events: Events, topic: str) -> None:
    """Nothing came before what is published now: no need to wait for what does not come."""
    await me.publish(topic, b"the end", place=None)
    assert (await events.next(SOON)).payload == b"the end"


def test_an_event_comes_as_it_was_published(broker: ServedBroker) -> None:
    attributes = {
        "severity": 4,
        "share": 0.5,
        "open": True,
        "name": "4",
        "kind": Path.parse("/vehicle/car"),
        "seen": datetime(2026, 1, 2, tzinfo=UTC),
        "spot": Point(1.0, 2.0),
        "words": frozenset({"a", "b"}),
        "one": OneOf(["x", "y"]),
        "span": Range(1, 2),
    }

    async def body(me: Client) -> None:
        await me.update(lat=HERE.lat, lon=HERE.lon, transport="/vehicle/motorized/car")
        async with me.subscribe("round/trip") as events:
            published = await me.publish(
                "round/trip",
                b"\x00\xff",
                reach=Circle(800),
                to="under(transport, '/vehicle/motorized')",
                tags=["warning"],
                lifetime="5m",
                attributes=attributes,
            )
            event = await events.next(SOON)
        assert event.id == published
        assert (event.topic, event.payload, event.tags) == ("round/trip", b"\x00\xff", frozenset({"warning"}))
        assert event.attributes == attributes
        assert event.place == HERE
        assert event.reach == Circle(800, HERE)
        assert event.to == nearcast.parse_filter("under(transport, '/vehicle/motorized')")
        assert event.lifetime is not None
        assert event.lifetime == pytest.approx(300e6, abs=SOON * 1e6)

    with_client(broker, body)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_quality_of_service_arrives_once_and_in_order(broker: ServedBroker, qos: int) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe(f"quality/{qos}", qos=qos) as events:
            for number in range(20):
                await me.publish(f"quality/{qos}", str(number), qos=qos)
            assert [int((await events.next(SOON)).payload) for _ in range(20)] == list(range(20))
            assert events.statistics().waiting == 0

    with_client(broker, body)


def test_an_area_around_me_moves_with_me(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with another(broker) as other:
            await me.update(lat=HERE.lat, lon=HERE.lon)
            async with me.subscribe("moving", within=500) as events:
                await other.publish("moving", b"near", place=(49.8730, 8.6512))
                await other.publish("moving", b"far", place=(49.9728, 8.6512))
                assert (await events.next(SOON)).payload == b"near"
                await me.update(lat=49.9728, lon=8.6512)
                await other.publish("moving", b"left behind", place=(49.8730, 8.6512))
                await other.publish("moving", b"here now", place=(49.9728, 8.6512))
                assert (await events.next(SOON)).payload == b"here now"

    with_client(broker, body, schemes=False)


def test_own_events_happen_where_i_am_unless_told_otherwise(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("own/place") as events:
            await me.publish("own/place")
            await me.update(lat=HERE.lat, lon=HERE.lon)
            await me.publish("own/place")
            await me.publish("own/place", place=None)
            await me.publish("own/place", place=(1, 2))
            places = [(await events.next(SOON)).place for _ in range(4)]
        assert places == [None, HERE, None, Point(1, 2)]

    with_client(broker, body)


def test_the_last_two_hours_come_first_and_then_live_ones(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        for number in range(3):
            await me.publish("story", str(number), severity=number)
        async with me.subscribe("story", since="-2h", where="severity >= 1") as events:
            await me.publish("story", b"live", severity=9)
            assert [(await events.next(SOON)).payload for _ in range(3)] == [b"1", b"2", b"live"]

    with_client(broker, body)


def test_stored_events_come_in_batches_that_reading_asks_for(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        for number in range(10):
            await me.publish("batches", str(number))
        async with me.subscribe("batches", since="-1h", batch=3) as events:
            stored = [int((await events.next(SOON)).payload) for _ in range(10)]
            await me.publish("batches", b"10")
            assert [*stored, int((await events.next(SOON)).payload)] == list(range(11))

    with_client(broker, body)


@pytest.mark.parametrize("batch", [None, 2])
def test_a_time_frame_that_is_over_ends_by_itself(broker: ServedBroker, batch: int | None) -> None:
    async def body(me: Client) -> None:
        topic = f"over/{batch}"
        assert [event async for event in me.subscribe(topic, since="-1h", until="now", batch=batch)] == []
        for number in range(5):
            await me.publish(topic, str(number))
        stored = [event.payload async for event in me.subscribe(topic, since="-1h", until="now", batch=batch)]
        assert stored == [b"0", b"1", b"2", b"3", b"4"]
        assert me.statistics().subscriptions == 0

    with_client(broker, body)


def test_what_was_taken_back_is_gone(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        kept = await me.publish("regret", b"kept")
        regretted = await me.publish("regret", b"regretted")
        await me.unpublish(regretted)
        assert [event.id async for event in me.subscribe("regret", since="-1h", until="now")] == [kept]

    with_client(broker, body)


def test_an_event_published_twice_under_one_id_comes_once(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("twice") as events:
            for _ in range(2):
                await me.publish("twice", b"same", id="the-same")
            assert (await events.next(SOON)).id == "the-same"
            await nothing_more(me, events, "twice")

    with_client(broker, body)


def test_addressing_chooses_by_one_of_my_contexts(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with another(broker) as driver, driver.subscribe("to") as events, me.subscribe("to") as mine:
            await driver.register("work", transport="/vehicle/motorized/truck", crew=2)
            await me.register("leisure", transport="/on-foot")
            await me.publish("to", b"trucks", to="under(transport, '/vehicle') AND crew > 1")
            assert (await events.next(SOON)).payload == b"trucks"
            await driver.deregister("work")
            await me.publish("to", b"nobody", to="under(transport, '/vehicle')")
            await nothing_more(me, events, "to")
            assert (await mine.next(SOON)).payload == b"the end"

    with_client(broker, body)


def test_updates_of_the_context_change_what_is_named(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("merged") as events:
            await me.update(mood="fine", transport="/vehicle/car")
            await me.update(mood="tired")
            await me.publish("merged", b"both", to="mood = 'tired' AND under(transport, '/vehicle')")
            assert (await events.next(SOON)).payload == b"both"
            await me.update(mood=None)
            await me.publish("merged", b"gone", to="mood = 'tired'")
            await nothing_more(me, events, "merged")

    with_client(broker, body)


def test_a_text_in_attributes_is_taken_as_it_stands(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("paths") as events:
            await me.publish("paths", file="/etc/motd")
            await me.publish("paths", attributes={"file": "/etc/motd"})
            files = [(await events.next(SOON)).attributes["file"] for _ in range(2)]
        assert files == [Path.parse("/etc/motd"), "/etc/motd"]

    with_client(broker, body)


def test_addressed_events_come_without_a_subscription_when_asked_for(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with another(broker) as other, me.addressed() as events:
            await me.update(role="/staff/medic")
            await other.publish("any/topic/at/all", b"help", to="under(role, '/staff')")
            assert (await events.next(SOON)).payload == b"help"

    with_client(broker, body)


def test_an_announced_reach_moves_with_its_publisher(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with another(broker, schemes=False) as shop, me.subscribe("ads/+") as events:
            await me.update(lat=HERE.lat, lon=HERE.lon)
            await shop.update(lat=0, lon=0)
            await shop.announce("ads/van", Circle(100))
            await shop.announce("ads/shop", 100, at=HERE)
            await shop.publish("ads/van", b"too far")
            await shop.publish("ads/shop", b"stationary")
            assert (await events.next(SOON)).payload == b"stationary"
            await shop.update(lat=HERE.lat, lon=HERE.lon)
            await shop.publish("ads/van", b"came by")
            assert (await events.next(SOON)).reach == Circle(100, HERE)
            await shop.unannounce("ads/van")
            await shop.publish("ads/van", b"to all")
            assert (await events.next(SOON)).reach is None

    with_client(broker, body, schemes=False)


def test_two_subscriptions_of_one_filter_are_apart(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        all_of_them, bad = me.subscribe("apart/#"), me.subscribe("apart/#", where="severity > 3", name="bad")
        async with all_of_them, bad:
            await me.publish("apart/a", b"1", severity=1)
            await me.publish("apart/a", b"5", severity=5)
            assert [(await all_of_them.next(SOON)).payload for _ in range(2)] == [b"1", b"5"]
            assert (await bad.next(SOON)).payload == b"5"

    with_client(broker, body)


def test_leaving_the_loop_unsubscribes(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        reading = asyncio.Event()

        async def publish() -> None:
            await reading.wait()
            while me.statistics().subscriptions:
                await me.publish("loop", b"x")

        async def read() -> None:
            events = me.subscribe("loop")
            await events.open()
            reading.set()
            async for event in events:
                assert event.payload == b"x"
                break

        async with asyncio.TaskGroup() as group:
            group.create_task(publish())
            group.create_task(read())

    with_client(broker, body)


def test_reading_a_retained_message(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        await me.publish("retained", b"kept", retain=True)
        async with me.subscribe("retained") as events:
            assert (await events.next(SOON)).payload == b"kept"
        async with me.subscribe("retained", retained=False) as events:
            await nothing_more(me, events, "retained")
        await me.publish("retained", b"", retain=True)

    with_client(broker, body)


def test_own_events_do_not_come_if_they_are_not_wanted(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with another(broker) as other, me.subscribe("local", no_local=True) as events:
            await me.publish("local", b"mine")
            await other.publish("local", b"yours")
            assert (await events.next(SOON)).payload == b"yours"

    with_client(broker, body)


def test_a_time_without_events_is_an_error_that_says_so(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("silence") as events:
            with pytest.raises(TimedOut, match="no event"):
                await events.next(0.01)

    with_client(broker, body)


@pytest.mark.parametrize(
    ("error", "publication"),
    [
        (InvalidTopic, {"topic": "a/#"}),
        (InvalidEvent, {"topic": "a", "reach": Circle(100)}),
        (InvalidPredicate, {"topic": "a", "to": "severity >="}),
        (InvalidValue, {"topic": "a", "severity": object()}),
        (InvalidInput, {"topic": "a", "lifetime": "-5m"}),
        (InvalidInput, {"topic": "a", "qos": 3}),
        (InvalidPosition, {"topic": "a", "place": (91, 0)}),
        (InvalidEvent, {"topic": "a", "payload": b"x" * 40_000_000}),
    ],
)
def test_what_is_wrong_with_an_event_is_said_where_it_is_published(
    broker: ServedBroker, error: type[Exception], publication: dict[str, Any]
) -> None:
    async def body(me: Client) -> None:
        with pytest.raises(error):
            await me.publish(**publication)
        assert me.statistics().link.connections == 1, "and the connection goes on"

    with_client(broker, body)


@pytest.mark.parametrize(
    ("error", "subscription"),
    [
        (InvalidTopic, {"topic": "a/#/b"}),
        (InvalidPredicate, {"topic": "a", "where": "severity >="}),
        (InvalidInput, {"topic": "a", "within": -1}),
        (InvalidSubscription, {"topic": "a", "at": HERE}),
        (InvalidInput, {"topic": "a", "since": "yesterday"}),
        (InvalidInput, {"topic": "a", "since": "now", "until": "-1h"}),
        (InvalidInput, {"topic": "a", "batch": 0}),
    ],
)
def test_what_is_wrong_with_a_subscription_is_said_at_once(
    broker: ServedBroker, error: type[Exception], subscription: dict[str, Any]
) -> None:
    async def body(me: Client) -> None:
        with pytest.raises(error):
            me.subscribe(**subscription)

    with_client(broker, body)


def test_what_the_broker_refuses_says_why(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        with pytest.raises(InvalidInput, match="nothing-of-that-id"):
            await me.unpublish("nothing-of-that-id")
        with pytest.raises(UnknownName, match="no context 'x'"):
            await me.deregister("x")
        with pytest.raises(InvalidPosition, match="both"):
            await me.update(lat=1)

    with_client(broker, body)


def test_absolute_areas_need_no_position(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        box, circle = me.subscribe("fixed", within=Box(8, 49, 9, 50)), me.subscribe("fixed", within=100, at=HERE)
        async with box, circle:
            await me.publish("fixed", b"both", place=HERE)
            await me.publish("fixed", b"box", place=(49.1, 8.1))
            assert [(await box.next(SOON)).payload for _ in range(2)] == [b"both", b"box"]
            assert (await circle.next(SOON)).payload == b"both"
            assert circle.statistics().waiting == 0

    with_client(broker, body)


def test_events_can_be_read_by_several_readers_of_one_subscription(broker: ServedBroker) -> None:
    async def body(me: Client) -> None:
        async with me.subscribe("shared") as events:
            readers: list[asyncio.Task[Event]] = [asyncio.create_task(events.next(SOON)) for _ in range(4)]
            for number in range(4):
                await me.publish("shared", str(number))
            assert {(await reader).payload for reader in readers} == {b"0", b"1", b"2", b"3"}

    with_client(broker, body)
