"""Clients that take part in filter schemes: the broker knows less of them, and they still get what happens around them."""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from tests.client.conftest import PASSWORD, USER
from tests.served import ServedBroker

import nearcast
from nearcast import Event, Events, Point
from nearcast.cli import main

LONG = 60.0
RADIUS = 500.0


def test_whoever_moves_gets_what_happens_around_it_and_nothing_else(broker: ServedBroker) -> None:
    asyncio.run(walk(broker, ["RADIAL"], chance=random.Random(5)))


def test_nothing_is_lost_or_doubled_while_schemes_change(broker: ServedBroker) -> None:
    asyncio.run(
        walk(broker, ["EGRID(factor=10)", "RADIAL", "EGRID(factor=20)", "STE", "RADIAL"], chance=random.Random(6))
    )


async def walk(broker: ServedBroker, schemes: list[str], *, chance: random.Random) -> None:
    """Clients move at random, and each of them gets exactly what happens within its radius."""
    async with asyncio.timeout(LONG), AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(nearcast.connect(broker.url)) for _ in range(4)]
        for client in clients:
            await client.update(lat=0.0, lon=0.0)
        inboxes = [await stack.enter_async_context(each.subscribe("town/#", within=RADIUS)) for each in clients]
        publisher = await stack.enter_async_context(nearcast.connect(broker.url, schemes=False))
        received = 0
        for number in range(10 * len(schemes)):
            if not number % 10:
                await asyncio.to_thread(transition, broker, schemes[number // 10])
            for client in clients:
                await client.update(lat=chance.uniform(0, 0.01), lon=chance.uniform(0, 0.01))
            place = Point(chance.uniform(0, 0.01), chance.uniform(0, 0.01))
            await publisher.publish("town/news", str(number), place=place)
            await publisher.publish("town/end", str(number), place=None)
            for client, inbox in zip(clients, inboxes, strict=True):
                assert client.position is not None
                near = nearcast.distance(client.position, place) <= RADIUS
                news = [event.payload for event in await until_the_end(inbox)]
                assert news == [str(number).encode()] * near
                received += near
        assert 0 < received < 10 * len(schemes) * len(clients)


def transition(broker: ServedBroker, scheme: str) -> None:
    url = broker.http.replace("//", f"//{USER}:{PASSWORD}@")
    assert main(["transition", scheme, "--url", url]) == 0


async def until_the_end(events: Events) -> list[Event]:
    """What came before an event without a place, which everybody gets."""
    seen = []
    while (event := await events.next(LONG)).topic != "town/end":
        seen.append(event)
    return seen


def test_whoever_wants_nothing_around_it_tells_where_it_is_itself(broker: ServedBroker) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), nearcast.connect(broker.url) as me, me.subscribe("reach") as events:
            await me.update(lat=1, lon=1)
            await me.publish("reach", b"here", reach=nearcast.Circle(100))
            await me.publish("reach", b"elsewhere", reach=nearcast.Circle(100, Point(5, 5)))
            await me.publish("reach", b"everywhere")
            assert [(await events.next(LONG)).payload for _ in range(2)] == [b"here", b"everywhere"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "scheme", ["EGRID(factor=2,private=true)", "GRID(factor=1)", "LPS(update=distance,distance=5000)", "RADIAL"]
)
def test_what_senders_say_of_places_holds_for_all_subscriptions_of_a_client_whose_cell_alone_is_known(
    broker: ServedBroker, scheme: str
) -> None:
    """Reach, and a context with a place, for a subscription without an area, and for what is addressed without one."""

    async def run(chance: random.Random) -> None:
        async with asyncio.timeout(LONG), AsyncExitStack() as stack:
            await asyncio.to_thread(transition, broker, scheme)
            me = await stack.enter_async_context(nearcast.connect(broker.url))
            await me.update(lat=0.0, lon=0.0, trade="baker")
            reached = await stack.enter_async_context(me.subscribe("reach"))
            around = await stack.enter_async_context(me.subscribe("around", within=RADIUS))
            addressed = await stack.enter_async_context(me.addressed())
            publisher = await stack.enter_async_context(nearcast.connect(broker.url, schemes=False))
            counts = [0, 0]
            for number in range(12):
                await me.update(lat=chance.uniform(0, 0.01), lon=chance.uniform(0, 0.01))
                there = Point(chance.uniform(0, 0.01), chance.uniform(0, 0.01))
                assert me.position is not None
                near = nearcast.distance(me.position, there) <= RADIUS
                to = f"trade = 'baker' AND S_DWITHIN(position, POINT({there.lon!r} {there.lat!r}), {RADIUS})"
                text = str(number)
                await publisher.publish("reach", text, reach=nearcast.Circle(RADIUS, there), place=None)
                await publisher.publish("around", text, reach=nearcast.Circle(RADIUS, there), place=None)
                await publisher.publish("other", text, to=to, place=None)
                await publisher.publish("other", text, to=to.replace("baker", "smith"), place=None)
                await publisher.publish("reach", "end", place=None)
                await publisher.publish("around", "end", place=None)
                await publisher.publish("other", "end", to="trade = 'baker'", place=None)
                for events in (reached, around, addressed):
                    seen = []
                    while (event := await events.next(LONG)).payload != b"end":
                        seen.append(event.payload)
                    assert seen == [text.encode()] * near
                counts[near] += 1
            assert min(counts) > 0

    asyncio.run(run(random.Random(7)))


def test_whoever_wants_nothing_around_it_any_more_tells_where_it_is_itself(broker: ServedBroker) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), nearcast.connect(broker.url) as me, me.subscribe("reach") as events:
            await asyncio.to_thread(transition, broker, "GRID(factor=1)")
            await me.update(lat=0.001, lon=0.001)
            async with me.subscribe("around", within=RADIUS):
                await me.update(lat=0.009, lon=0.009)
            here = nearcast.Circle(100, Point(0.009, 0.009))
            await me.publish("reach", b"there", reach=nearcast.Circle(100, Point(0.001, 0.001)))
            await me.publish("reach", b"here", reach=here)
            assert (await events.next(LONG)).payload == b"here"

    asyncio.run(run())


def test_what_is_retained_around_a_client_whose_cell_alone_is_known_is_judged_by_where_it_is(
    broker: ServedBroker,
) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), nearcast.connect(broker.url) as me:
            await asyncio.to_thread(transition, broker, "EGRID(factor=2,private=true)")
            for name, place in (("then", Point(0, 0)), ("now", Point(0.009, 0.009))):
                await me.publish(f"kept/{name}", b"!", place=place, retain=True)
            await me.update(lat=0.0, lon=0.0)
            async with me.subscribe("around", within=RADIUS):
                await me.update(lat=0.009, lon=0.009)
                async with me.subscribe("kept/#", within=RADIUS) as kept:
                    await me.publish("kept/end", b"!", place=None)
                    topics = {(await kept.next(LONG)).topic for _ in range(2)}
            for name in ("then", "now"):
                await me.publish(f"kept/{name}", b"", retain=True)
            assert topics == {"kept/now", "kept/end"}

    asyncio.run(run())
