"""The broker is killed and comes back, or comes back without its memory: the application hardly notices."""

import asyncio
from pathlib import Path

import mqtt5
import pytest
from mqtt5 import PublishPacket
from tests.client.peers import Peer, peer
from tests.served import ServedBroker, served

import nearcast
from nearcast.client.link import Link

LONG = 120.0


@pytest.mark.slow
def test_a_broker_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Killed (-9) in the middle of publishing, and a restart: every event arrives once, subscriptions and contexts stay."""

    async def run() -> None:
        with served(tmp_path) as broker:
            connect = nearcast.connect
            async with (
                asyncio.timeout(LONG),
                connect(broker.url, timeout=LONG, schemes=False) as publisher,
                connect(broker.url, timeout=LONG) as reader,
                reader.subscribe("killed", within=1000, where="number >= 0") as events,
            ):
                await reader.update(lat=1, lon=1, role="/reader")

                async def publish(start: int) -> list[str]:
                    return [
                        await publisher.publish("killed", place=(1, 1), to="under(role, '/reader')", number=number)
                        for number in range(start, start + 60)
                    ]

                tasks = [asyncio.create_task(publish(start)) for start in (0, 1000, 2000)]
                first = [await events.next(LONG) for _ in range(30)]
                broker.kill()
                await asyncio.to_thread(broker.start)
                published = [event for task in tasks for event in await task]
                read = first + [await events.next(LONG) for _ in range(len(published) - len(first))]
                assert sorted(event.id for event in read) == sorted(published)
                assert events.statistics().waiting == 0
                for start in (0, 1000, 2000):
                    numbers = [number for event in read if isinstance(number := event.attributes["number"], int)]
                    mine = [number for number in numbers if start <= number < start + 1000]
                    assert mine == sorted(mine), "in the order of their publisher"
                for client in (publisher, reader):
                    assert client.statistics().link.connections == 2

    asyncio.run(run())


class Forgetful:
    """Answers everything, and remembers no session."""

    def __call__(self, packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        match packet:
            case mqtt5.ConnectPacket():
                return [mqtt5.ConnAckPacket(session_present=False)]
            case mqtt5.SubscribePacket():
                return [mqtt5.SubAckPacket(packet.packet_id, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE])]
            case mqtt5.UnsubscribePacket():
                return [mqtt5.UnsubAckPacket(packet.packet_id, [mqtt5.UnsubAckReasonCode.SUCCESS])]
            case PublishPacket(topic="break"):
                return [mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode.SERVER_BUSY)]
            case PublishPacket(packet_id=int(number)):
                return [mqtt5.PubAckPacket(number)]
        return []


def said(it: Peer) -> dict[str, bytes]:
    return {each.topic: each.payload for each in it.heard if isinstance(each, PublishPacket)}


def asked(it: Peer) -> dict[str, dict[str, str]]:
    return {
        each.topic_filters[0].pattern: dict(each.user_properties)
        for each in it.heard
        if isinstance(each, mqtt5.SubscribePacket)
    }


def test_a_broker_that_has_forgotten_everything_is_told_it_again() -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), peer(Forgetful()) as it, nearcast.connect(it.url, schemes=False) as me:
            await me.update(lat=1, lon=2, role="/x")
            await me.update(lat=3, lon=4)
            await me.register("work", crew=2)
            await me.register("gone", crew=3)
            await me.deregister("gone")
            await me.announce("ads/van", 100)
            await me.accept_addressed()
            live, story = me.subscribe("live", within=500), me.subscribe("story", since="-2h", batch=5)
            async with live, story:
                async with me.subscribe("ended"):
                    pass
                before, wanted = said(it), asked(it)
                it.heard.clear()
                await me.publish("break", qos=0)
                await it.until(lambda peer: "story" in asked(peer))
                after = said(it)
                assert after.pop("$nearcast/position") == before["$nearcast/position"]
                assert after.keys() == {
                    "break",
                    "$nearcast/context/default",
                    "$nearcast/context/work",
                    "$nearcast/accept",
                    "$nearcast/announce/ads/van",
                }
                assert after["$nearcast/context/work"] == before["$nearcast/context/work"]
                again = asked(it)
                assert again.keys() == {"live", "story"}
                assert again["live"] == wanted["live"], "from now on"
                assert wanted["story"]["nc-since"] == "-2h"
                since = nearcast.instant(again["story"]["nc-since"])
                assert isinstance(since, int), "the two hours before it was asked for first, not before now"

    asyncio.run(run())


def test_a_subscription_into_the_past_is_taken_up_from_the_newest_event() -> None:
    newest = "2026-01-02T03:04:05Z"

    class Storing(Forgetful):
        def __call__(self, packet: mqtt5.Packet) -> list[mqtt5.Packet]:
            answers = super().__call__(packet)
            if isinstance(packet, mqtt5.SubscribePacket) and packet.subscription_id is not None:
                properties = [("nc-id", "one"), ("nc-published", newest)]
                numbers = [packet.subscription_id]
                answers.append(PublishPacket("story", b"1", subscription_ids=numbers, user_properties=properties))
            return answers

    async def run() -> None:
        async with asyncio.timeout(LONG), peer(Storing()) as it, nearcast.connect(it.url, schemes=False) as me:
            events = me.subscribe("story", since="-2h", until="+1h")
            async with events:
                assert (await events.next(LONG)).id == "one"
                it.heard.clear()
                await me.publish("break", qos=0)
                await it.until(lambda peer: "story" in asked(peer))
                await me.publish("after", qos=1)
                properties = asked(it)["story"]
                since, until = (nearcast.instant(properties[name]) for name in ("nc-since", "nc-until"))
                assert 0 < nearcast.instant(newest) - since <= 1_000_000
                assert until > since, "the end of the frame is where it was"
                assert events.statistics().duplicates == 1, "what comes again is recognised"
                assert events.statistics().waiting == 0

    asyncio.run(run())


def test_a_session_with_a_name_is_resumed_by_another_process(broker: ServedBroker) -> None:
    """What came while nobody was there belongs to the subscription that is made again."""

    async def run() -> None:
        async with asyncio.timeout(LONG), nearcast.connect(broker.url) as other:
            async with nearcast.connect(broker.url, client_id="me", schemes=False) as me:
                await me.subscribe("mail").open()
            for number in range(3):
                await other.publish("mail", str(number))
            async with (
                nearcast.connect(broker.url, client_id="me", schemes=False) as me,
                me.subscribe("mail") as events,
            ):
                await other.publish("mail", b"3")
                assert [(await events.next(LONG)).payload for _ in range(4)] == [b"0", b"1", b"2", b"3"]

    asyncio.run(run())


def test_links_answer_for_their_state() -> None:
    async def run() -> None:
        async with peer(Forgetful()) as it:
            me = nearcast.connect(it.url, schemes=False)
            link: Link = me._link
            assert not link.statistics().connected
            async with me:
                assert link.statistics().connected
            assert link.is_over

    asyncio.run(run())
