"""Messages to whoever was, is or will be in a context, in the broker: pace, limits, restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mqtt5 import PubAckReasonCode
from tests.broker.temporal_rig import SPOT, Rig, running
from tests.clocks import START, HandClock

from nearcast.broker.temporal import context_history
from nearcast.errors import QuotaExceeded
from nearcast.model.geometry import Point
from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE, TemporalPredicate, expiry
from nearcast.model.time import MICROSECONDS

REACH = '{"circle": 100, "at": [8.6512, 49.8728]}'
FAR = Point(50.0, 9.0)
WILL_BE = "overlaps(time, 'now', '+1h')"
WAS = "overlaps(time, '-10m', 'now')"
STAYS = "contains(time, '+10m', '+20m')"
MINUTE = 60 * MICROSECONDS


def test_who_was_there_gets_it_although_he_is_gone(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            for client in ("ada", "bob", "cyd", "dot"):
                await rig.connect(client)
                await rig.subscribe(client, "a/#")
            for client, minutes in (("dot", 25), ("bob", 5), ("cyd", 4)):
                rig.move(client, SPOT if client != "cyd" else FAR)
                rig.advance(MINUTE)
                rig.move(client, FAR)
                rig.advance((minutes - 1) * MINUTE)
            await rig.publish("ada", id="lost umbrella", reach=REACH, when=WAS)
            await rig.settle()
            assert [client for client, wire in rig.wires.items() if wire.got] == ["bob"]
            assert rig.broker.temporal.statistics().addressing.pending == 0
            assert rig.broker.journal.load("moments") == {}

    asyncio.run(play())


def test_who_has_stood_there_for_long_without_a_word_was_there_too(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            await rig.subscribe("bob")
            rig.move("bob", SPOT)
            rig.advance(24 * 60 * MINUTE)
            await rig.publish("ada", id="e", reach=REACH, when=WAS)
            await rig.settle()
            assert bob.ids() == ["e"]

    asyncio.run(play())


def test_the_last_word_before_the_time_asked_for_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob came long before, and left within the ten minutes; between lie many reports of others."""
    monkeypatch.setattr(context_history, "FIRST_LOOK", 4)

    async def play() -> None:
        async with running(tmp_path) as rig:
            for client in ("ada", "bob", "cyd"):
                await rig.connect(client)
                await rig.subscribe(client, "a/#")
                rig.move(client, FAR)
            rig.advance(MINUTE)
            rig.move("bob", SPOT)
            rig.register("bob", "car", {"role": "driver"})
            for _ in range(100):
                rig.advance(MINUTE)
                rig.move("cyd", FAR)
            rig.move("bob", FAR)
            rig.register("bob", "car", None)
            rig.advance(MINUTE)
            await rig.publish("ada", id="e", reach=REACH, to="role = 'driver'", when=WAS)
            await rig.settle()
            assert rig.wires["bob"].ids() == ["e"]
            assert rig.wires["cyd"].got == []

    asyncio.run(play())


def test_who_comes_later_gets_it_once(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            await rig.subscribe("bob")
            rig.move("bob", FAR)
            await rig.publish("ada", id="e", reach=REACH, when=WILL_BE)
            await rig.settle()
            assert bob.got == []
            for _ in range(3):
                rig.advance(MINUTE)
                rig.move("bob", SPOT)
                rig.advance(MINUTE)
                rig.move("bob", FAR)
            await rig.settle()
            assert bob.ids() == ["e"]
            assert rig.broker.temporal.statistics().addressing.pending == 1
            rig.advance(60 * MINUTE)
            assert rig.broker.temporal.statistics().addressing.pending == 0

    asyncio.run(play())


def test_time_alone_decides_for_who_stays(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            for client in ("bob", "cyd"):
                await rig.connect(client)
                await rig.subscribe(client)
                rig.move(client, SPOT)
            await rig.publish("ada", id="e", reach=REACH, when=STAYS)
            await rig.settle()
            rig.advance(15 * MINUTE)
            rig.move("cyd", FAR)
            rig.advance(5 * MINUTE - 1)
            await rig.settle()
            assert rig.wires["bob"].got == []
            rig.advance(2)
            await rig.settle()
            assert rig.wires["bob"].ids() == ["e"]
            assert rig.wires["cyd"].got == []

    asyncio.run(play())


def test_the_subscription_must_be_held_when_it_becomes_true(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("ada")
            bob = await rig.connect("bob")
            rig.move("bob", FAR)
            await rig.publish("ada", id="e", reach=REACH, when=WILL_BE)
            await rig.settle()
            rig.advance(1_000)
            rig.move("bob", SPOT)
            rig.advance(1_000)
            await rig.subscribe("bob", since="-1h")
            await rig.settle()
            assert bob.got == []
            rig.move("bob", FAR)
            rig.advance(1_000)
            rig.move("bob", SPOT)
            await rig.settle()
            assert bob.ids() == ["e"]

    asyncio.run(play())


def test_a_report_tests_only_what_may_be_near(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            rig.broker.temporal.addressing.most_per_client = 1_000
            await rig.connect("ada")
            await rig.connect("bob")
            for number in range(200):
                at = f"[{8.0 + 0.1 * (number % 20)}, {49.0 + 0.1 * (number // 20)}]"
                rig.publish("ada", id=f"e{number}", reach=f'{{"circle": 500, "at": {at}}}', when=WILL_BE)
            await rig.settle()
            before = rig.broker.temporal.statistics().addressing
            assert (before.pending, before.everywhere) == (200, 0)
            for step in range(100):
                rig.move("bob", Point(49.0 + 0.001 * step, 8.0))
            assert rig.broker.temporal.statistics().addressing.tested - before.tested < 150

    asyncio.run(play())


def test_too_many_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path) as rig:
            moments = rig.broker.temporal.addressing
            moments.most_per_client, moments.most = 2, 3
            for client in ("ada", "bob", "cyd"):
                await rig.connect(client)
            for number in range(2):
                await rig.publish("ada", id=f"e{number}", when=WILL_BE)
            with pytest.raises(QuotaExceeded, match="2 events of this client"):
                rig.publish("ada", id="third", when=WILL_BE)
            await rig.publish("bob", id="b", when=WILL_BE)
            with pytest.raises(QuotaExceeded, match="3 events are waiting"):
                rig.publish("cyd", id="c", when=WILL_BE)
            await rig.say("ada", "$nearcast/unpublish", b"e0")
            assert (await rig.publish("ada", id="third", when=WILL_BE))[0] == PubAckReasonCode.SUCCESS

    asyncio.run(play())


def test_the_waiting_goes_on_after_a_kill_and_nobody_gets_it_twice(tmp_path: Path) -> None:
    async def play() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        await rig.connect("ada", expiry=10_000)
        for client in ("bob", "cyd", "dot"):
            await rig.connect(client, expiry=10_000, confirms=client != "dot")
            await rig.subscribe(client)
            rig.move(client, FAR)
        rig.move("dot", SPOT)
        await rig.publish("ada", id="e", reach=REACH, when=WILL_BE)
        rig.advance(1_000)
        rig.move("bob", SPOT)
        await rig.settle()
        assert rig.wires["bob"].ids() == rig.wires["dot"].ids() == ["e"]
        rig.broker._tick()
        other = await rig.killed(tmp_path / "two")
        try:
            for client in ("ada", "bob", "cyd", "dot"):
                await other.connect(client, expiry=10_000)
            await other.settle()
            rig.advance(1_000)
            for client in ("bob", "cyd"):
                other.move(client, FAR)
                other.clock.time += 1_000
                other.move(client, SPOT)
            await other.settle()
            assert other.wires["bob"].ids() == []
            assert other.wires["cyd"].ids() == ["e"]
            assert other.wires["dot"].ids() == ["e"], "it had not confirmed it"
        finally:
            await other.close()

    asyncio.run(play())


def test_a_start_before_the_kill_counts_after_it(tmp_path: Path) -> None:
    async def play() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        await rig.connect("ada", expiry=100_000)
        await rig.connect("bob", expiry=100_000)
        await rig.subscribe("bob")
        rig.move("bob", SPOT)
        await rig.publish("ada", id="e", reach=REACH, when=STAYS)
        await rig.settle()
        rig.advance(12 * MINUTE)
        rig.broker._tick()
        other = await rig.killed(tmp_path / "two")
        try:
            bob = await other.connect("bob", expiry=100_000)
            await other.settle()
            other.advance(9 * MINUTE)
            await other.settle()
            assert bob.ids() == ["e"]
        finally:
            await other.close()

    asyncio.run(play())


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_expiry_of_a_predicate_shifts_with_it(relation: str) -> None:
    z = MINUTE if relation in WITH_TOLERANCE else 0
    for a, b in ((START, START + MINUTE), (START, None), (None, START), (None, None), (START, START)):
        when = TemporalPredicate(relation, a, b, z)
        expected = when.expires_at()
        found = expiry(when)
        # Of what nothing satisfies, any time before all others will do.
        assert found == expected or (expected is not None and found is not None and max(expected, found) < 0)
