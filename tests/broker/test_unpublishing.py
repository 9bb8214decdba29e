"""What is unpublished is not delivered any more: not from queues, not as a retained message, not from the past, not in the future."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mqtt5 import PubAckReasonCode
from tests.broker.temporal_rig import SPOT, Rig, running
from tests.clocks import HandClock

from nearcast.broker.temporal import unpublishing
from nearcast.mqtt import names

UNPUBLISH = names.ReservedTopic.UNPUBLISH.topic


def test_queued_copies_are_withdrawn_and_sent_ones_stand(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            await rig.connect("cyd", expiry=1_000)
            for client in ("bob", "cyd"):
                await rig.subscribe(client)
            rig.disconnect("cyd")
            for name in ("kept", "gone"):
                await rig.publish("ada", id=name)
            assert (await rig.say("ada", UNPUBLISH, b"gone"))[0] == PubAckReasonCode.SUCCESS
            cyd = await rig.connect("cyd", expiry=1_000)
            await rig.settle()
            assert bob.ids() == ["kept", "gone"]
            assert cyd.ids() == ["kept"]
            assert not rig.session("cyd").pending

    asyncio.run(play())


def test_the_retained_message_goes_with_it(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            await rig.publish("ada", "a", id="old", retain=True)
            await rig.publish("ada", "b", id="other", retain=True)
            await rig.say("ada", UNPUBLISH, b"old")
            bob = await rig.connect("bob")
            await rig.subscribe("bob")
            await rig.settle()
            assert [packet.topic for packet in bob.got] == ["b"]
            assert set(rig.broker.journal.load("retained")) == {"b"}

    asyncio.run(play())


def test_an_event_that_waits_for_its_time_is_forgotten(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            await rig.subscribe("bob")
            reach = '{"circle": 100, "at": [8.6512, 49.8728]}'
            await rig.publish("ada", id="e", reach=reach, when="overlaps(time, 'now', '+1h')")
            await rig.settle()
            await rig.say("ada", UNPUBLISH, b"e")
            rig.move("bob", SPOT)
            await rig.settle()
            assert bob.got == []
            assert rig.broker.journal.load("moments") == {}

    asyncio.run(play())


def test_what_is_held_back_for_a_replay_is_withdrawn(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            for name in ("a", "b", "c"):
                await rig.publish("ada", id=name)
            await rig.subscribe("bob", since="-1h", batch="1")
            for name in ("live", "taken back"):
                await rig.publish("ada", id=name)
            await rig.settle()
            for name in ("c", "taken back"):
                await rig.say("ada", UNPUBLISH, name.encode())
            await rig.say("bob", names.ReservedTopic.MORE.about("#"))
            await rig.settle()
            assert bob.ids() == ["a", "b", "live"]

    asyncio.run(play())


def test_only_the_publisher_may(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            for client in ("ada", "bob"):
                await rig.connect(client)
            await rig.publish("ada", id="e")
            code, why = await rig.say("bob", UNPUBLISH, b"e")
            assert code == PubAckReasonCode.NOT_AUTHORIZED
            assert why is not None
            assert "somebody else" in why
            code, why = await rig.say("bob", UNPUBLISH, b"unheard of")
            assert code == PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
            assert why is not None
            assert "there is no event" in why
            assert rig.broker.temporal.unpublishing.offsets == set()
            assert rig.broker.temporal.statistics().unpublishing.refused == 2

    asyncio.run(play())


def test_two_publishers_may_use_one_id(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            for client in ("ada", "bob", "cyd"):
                await rig.connect(client)
            await rig.publish("ada", id="e", payload=b"of ada")
            await rig.publish("bob", id="e", payload=b"of bob")
            assert (await rig.say("ada", UNPUBLISH, b"e"))[0] == PubAckReasonCode.SUCCESS
            await rig.subscribe("cyd", since="-1h")
            await rig.settle()
            assert [packet.payload for packet in rig.wires["cyd"].got] == [b"of bob"]

    asyncio.run(play())


def test_others_may_if_they_are_allowed_to(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            for client in ("ada", "bob"):
                await rig.connect(client)
            await rig.publish("ada", id="e")
            told: list[Exception | None] = []
            rig.broker.temporal.unpublishing.unpublish(rig.session("bob"), "e", told.append, others=True)
            await rig.settle()
            assert told == [None]

    asyncio.run(play())


def test_an_old_event_is_found_behind_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpublishing, "FIRST_LOOK", 10)

    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            await rig.publish("ada", id="old")
            for number in range(200):
                rig.publish("ada", id=f"e{number}")
            assert (await rig.say("ada", UNPUBLISH, b"old"))[0] == PubAckReasonCode.SUCCESS

    asyncio.run(play())


def test_it_stays_unpublished_after_a_kill(tmp_path: Path) -> None:
    async def play() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        await rig.connect("ada")
        await rig.connect("bob", expiry=1_000)
        await rig.subscribe("bob")
        rig.disconnect("bob")
        for name in ("kept", "gone"):
            await rig.publish("ada", id=name)
        await rig.say("ada", UNPUBLISH, b"gone")
        other = await rig.killed(tmp_path / "two")
        try:
            bob = await other.connect("bob", expiry=1_000)
            cyd = await other.connect("cyd")
            await other.subscribe("cyd", since="-1h")
            await other.settle()
            assert bob.ids() == cyd.ids() == ["kept"]
        finally:
            await other.close()

    asyncio.run(play())
