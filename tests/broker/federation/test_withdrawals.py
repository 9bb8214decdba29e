"""An event that was taken back appears nowhere any more, at whatever broker it is, was on its way to, or comes to later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from mqtt5 import PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.federation.brokers import federation
from tests.broker.federation.lone_broker import LoneBroker, lone_broker
from tests.broker.federation.people import person, story
from tests.waiting import until

import nearcast
from nearcast.broker.federation.wire import EVENT, UNPUBLISH, Notice, Notices, Parcel, UnpublishBody, encode
from nearcast.errors import Denied
from nearcast.journal.entries import key_of
from nearcast.mqtt import names

THERE = "there@127.0.0.1:9"


@story
async def test_a_publisher_takes_its_event_back_from_wherever_it_is_now(tmp_path: Path) -> None:
    with federation(tmp_path, 3) as (first, second, third):
        async with person(second.url, "reader", "news"):
            pass  # its session stays
        async with nearcast.connect(first.url, client_id="sender") as sender:
            await until(lambda: "news" in first.status()["topics"].get("b1", ()), pause=0.05)
            kept = await sender.publish("news", "kept")
            regretted = await sender.publish("news", "regretted")
            await until(lambda: first.status()["custody"]["parcels"] == 0, pause=0.05)
            await sender.go_to(third.url)  # where the event never was
            await sender.unpublish(regretted)
            await until(lambda: not any(each.status()["custody"]["parcels"] for each in (first, second, third)))
            async with nearcast.connect(second.url, client_id="somebody else") as other:
                with pytest.raises(Denied, match="somebody else"):
                    await other.unpublish(kept)
            async with person(second.url, "reader", "news") as reader:
                await reader.until_got("kept")
                await sender.publish("news", "the end")
                await reader.until_got("kept", "the end")
                assert set(reader.got) == {"kept", "the end"}


def event_of(sender: str, payload: bytes) -> PublishPacket:
    return PublishPacket(
        "news", payload, qos=QoS.AT_LEAST_ONCE, packet_id=1, user_properties=[(names.ID, f"{sender}'s event")]
    )


def hear_of(rig: LoneBroker) -> None:
    rig.federation.receive(THERE, Notices((Notice("t/there", 1, "there", msgspec.msgpack.encode(("news",))),)))


@story
async def test_what_waits_for_a_dead_broker_is_replaced_by_the_news_that_it_was_taken_back(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        hear_of(rig)
        sender = await rig.connect("sender")
        sender.say(event_of("sender", b"regretted"))
        await rig.quiet()
        custody, key = rig.federation.custody, key_of("sender", "sender's event")
        assert list(custody.stranded()) == [key]
        sender.say(PublishPacket("$nearcast/unpublish", b"sender's event", qos=QoS.AT_LEAST_ONCE, packet_id=2))
        await until(lambda: list(custody.stranded()) == [f"{key} gone"])
    async with lone_broker(tmp_path) as rig:
        assert [rig.federation.custody.get(each).kind for each in rig.federation.custody.stranded()] == [UNPUBLISH]  # type: ignore[union-attr]


@story
async def test_an_event_that_comes_after_the_news_that_it_was_taken_back_is_not_carried_out(tmp_path: Path) -> None:
    bodies: dict[str, bytes] = {}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with lone_broker(tmp_path / "one") as rig:
        hear_of(rig)
        for name in ("one", "two"):
            sender = await rig.connect(name)
            sender.say(event_of(name, f"of {name}".encode()))
        await rig.quiet()
        for key in rig.federation.custody.stranded():
            kept = rig.federation.custody.get(key)
            assert kept is not None
            bodies[key] = kept.body
    assert len(bodies) == 2
    gone = key_of("one", "one's event")
    async with lone_broker(tmp_path / "two") as rig:
        reader = await rig.connect("reader", session_expiry_interval=100)
        reader.say(SubscribePacket(1, [TopicFilter("news", max_qos=QoS.AT_LEAST_ONCE)]))
        await rig.quiet()
        body = encode(UnpublishBody(gone, "one's event"))
        rig.federation.receive(THERE, Parcel(f"{gone} gone", ("here",), UNPUBLISH, body, 1))
        await until(lambda: len(rig.said) == 1)
        for number, (key, event) in enumerate(bodies.items(), start=2):
            rig.federation.receive(THERE, Parcel(key, ("here",), EVENT, event, number))
        await until(lambda: len(rig.said) == 3)
        await rig.quiet()
        assert reader.payloads() == [b"of two"]
