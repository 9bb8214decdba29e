"""STEAM: a producer announces where its events matter; the reach moves with it, or stays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.temporal_rig import SPOT, Rig, running
from tests.clocks import HandClock

from nearcast.errors import InvalidArea, InvalidEvent, QuotaExceeded
from nearcast.model.geometry import Point

ANNOUNCE = "$nearcast/announce/a/b"
FAR = Point(50.0, 9.0)


def test_a_relative_reach_moves_with_its_producer(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            await rig.subscribe("bob")
            rig.move("bob", SPOT)
            await rig.say("ada", ANNOUNCE, b"100")
            with pytest.raises(InvalidEvent, match="position is not known"):
                rig.publish("ada", id="nowhere")
            for name, position in (("far", FAR), ("near", SPOT)):
                rig.move("ada", position)
                await rig.publish("ada", id=name)
            await rig.publish("ada", "other topic", id="elsewhere")
            rig.move("ada", FAR)
            await rig.publish("ada", id="own reach", reach='{"circle": 100, "at": [8.6512, 49.8728]}')
            await rig.settle()
            assert bob.got[-1].topic == "a/b"
            assert bob.ids()[:1] + bob.ids()[2:] == ["near", "own reach"]
            assert rig.broker.temporal.statistics().proximities.moving == 1
            await rig.say("ada", ANNOUNCE)
            await rig.publish("ada", id="for everybody")
            await rig.settle()
            assert bob.ids()[-1] == "for everybody"

    asyncio.run(play())


def test_a_stationary_one_stays_also_after_a_kill(tmp_path: Path) -> None:
    async def play() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        await rig.connect("ada", expiry=1_000)
        await rig.say("ada", ANNOUNCE, b'{"circle": 100, "at": [8.6512, 49.8728]}')
        await rig.say("ada", "$nearcast/announce/c", b"50")
        other = await rig.killed(tmp_path / "two")
        try:
            await other.connect("ada", expiry=1_000)
            statistics = other.broker.temporal.statistics().proximities
            assert (statistics.stationary, statistics.moving) == (1, 1)
            for client, position in (("bob", SPOT), ("cyd", FAR)):
                await other.connect(client)
                await other.subscribe(client)
                other.move(client, position)
            await other.publish("ada", id="e")
            await other.settle()
            assert len(other.wires["bob"].got) == 1
            assert other.wires["cyd"].got == []
        finally:
            await other.close()

    asyncio.run(play())


def test_it_ends_with_its_session(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada", expiry=1_000)
            await rig.say("ada", ANNOUNCE, b"100")
            await rig.written()
            assert len(rig.broker.journal.load("proximities")) == 1
            rig.broker.lifecycle.forget(rig.session("ada"))
            await rig.written()
            assert rig.broker.journal.load("proximities") == {}
            assert rig.broker.temporal.statistics().proximities.moving == 0

    asyncio.run(play())


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            for payload in (b"wide", b"\xff", b'{"circle": -5}'):
                with pytest.raises(InvalidArea):
                    rig.say("ada", ANNOUNCE, payload)
            rig.broker.temporal.proximities.most = 1
            await rig.say("ada", ANNOUNCE, b"100")
            await rig.say("ada", ANNOUNCE, b"200")
            with pytest.raises(QuotaExceeded, match="unannounce"):
                rig.say("ada", "$nearcast/announce/c", b"100")

    asyncio.run(play())
