"""Brokers that are missing: what is for their clients waits, whoever else is started anew meanwhile; until they are forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from mqtt5 import PublishPacket, QoS
from tests.broker.federation.brokers import federation
from tests.broker.federation.lone_broker import LoneBroker, lone_broker
from tests.broker.federation.people import person, story
from tests.waiting import until
from typer.testing import CliRunner

import nearcast
from nearcast.broker.federation.acquaintances import Acquaintances
from nearcast.broker.federation.wire import Notice, Notices
from nearcast.cli.app import app
from nearcast.errors import InvalidInput
from nearcast.journal import Journal

THERE = "there@127.0.0.1:9"


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    return f"{done.output}{done.exception or ''}"


@story
async def test_what_is_published_by_a_broker_that_was_started_anew_waits_for_one_that_is_dead(tmp_path: Path) -> None:
    with federation(tmp_path, 2) as (first, second):
        async with person(second.url, "stayer", "ordinary", stays=True) as stayer:
            assert "is in reach; stop it first" in command("federation", "forget", "b1", "--url", first.http)
            await asyncio.to_thread(second.kill)
            await asyncio.to_thread(first.kill)
            await asyncio.to_thread(first.start)
            async with nearcast.connect(first.url, client_id="sender") as sender:
                await sender.publish("news", "addressed", to="stays = true")
                await sender.publish("ordinary", "subscribed to")
                await asyncio.to_thread(second.start)
                await stayer.until_got("addressed", "subscribed to")
                await asyncio.to_thread(second.kill)
                await until(lambda: not first.reaches(), pause=0.1)
                await sender.publish("ordinary", "in vain")
                assert first.status()["custody"]["stranded"] == {"b1": 1}
                said = command("federation", "forget", "b1", "--url", first.http)
                assert said == "b1 is forgotten; 1 parcels that waited for it here are given up\n"
                await sender.publish("ordinary", "for nobody")
                await sender.publish("news", "for nobody", to="stays = true")
                assert first.status()["custody"]["parcels"] == 0
                assert first.status()["brokers"] == {}
                await asyncio.to_thread(second.start)  # it is welcome all the same
                await until(lambda: first.reaches() == 1, pause=0.1)
                await until(lambda: "ordinary" in first.status()["topics"].get("b1", ()), pause=0.1)
                await sender.publish("ordinary", "back")
                await stayer.until_got("addressed", "subscribed to", "back")
                assert set(stayer.got) == {"addressed", "subscribed to", "back"}


async def published(rig: LoneBroker, name: str) -> None:
    sender = await rig.connect(name)
    sender.say(PublishPacket("news", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=1))
    await rig.quiet()


def hear_of(rig: LoneBroker, *topics: str) -> None:
    rig.federation.receive(THERE, Notices((Notice("t/there", 1, "there", msgspec.msgpack.encode(topics)),)))


@story
async def test_nothing_is_kept_for_a_broker_that_was_forgotten_also_not_after_a_restart(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        hear_of(rig, "news")
        await published(rig, "one")
        assert rig.federation.custody.statistics().stranded == {"there": 1}
        with pytest.raises(InvalidInput, match="no other broker named 'elsewhere'"):
            rig.federation.forget("elsewhere")
        assert rig.federation.forget("there") == 1
        await published(rig, "two")
        assert rig.federation.custody.statistics().parcels == 0
        with pytest.raises(InvalidInput, match="no other broker"):
            rig.federation.forget("there")
    async with lone_broker(tmp_path) as rig:
        assert rig.federation.custody.statistics().parcels == 0


@story
async def test_that_a_broker_was_forgotten_elsewhere_is_heard_and_it_may_contradict(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        hear_of(rig, "news")
        await published(rig, "one")
        rig.federation.receive(THERE, Notices((Notice("t/there", 2, "another", b""),)))
        assert rig.federation.custody.statistics().parcels == 0
        said = rig.federation.board.get("t/here")
        assert said is not None
        rig.federation.receive(THERE, Notices((Notice("t/here", said.version + 1, "another", b""),)))
        again = rig.federation.board.get("t/here")
        assert again is not None
        assert again.value
        assert again.version == said.version + 2


@story
async def test_a_broker_that_is_missing_for_longer_than_anything_is_kept_is_not_kept_for(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        journal: Journal = rig.broker.journal
        known = Acquaintances("here", journal, {}, now=0, longest=100)
        known.reached({"there": THERE}, 10)
        assert not known.given_up("there", 10_000)
        known.reached({}, 20)
        assert not known.given_up("there", 119)
        assert known.given_up("there", 120)
        await rig.quiet()
        later = Acquaintances("here", journal, journal.load("federation"), now=50, longest=100)
        assert later.contacts == (THERE,)
        assert later.given_up("there", 120)  # a restart does not begin it anew
        assert not later.given_up("there", 119)
