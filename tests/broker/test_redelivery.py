"""What a member of a group has not taken when its session ends goes to another member (MQTT 5, 4.8.2)."""

import asyncio
from pathlib import Path

import pytest
from tests.broker.talker import run
from tests.broker.temporal_rig import Rig, running
from tests.clocks import HandClock

GROUP = "$share/workers/jobs/#"


async def leave(rig: Rig, client: str) -> None:
    """Its session ends, whatever its expiry says."""
    rig.broker.lifecycle.forget(rig.session(client))
    await rig.settle()


def test_what_was_sent_with_quality_1_and_not_acknowledged_is_for_another_member(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            first, second = await rig.connect("first", confirms=False), await rig.connect("second")
            await rig.subscribe("first", GROUP)
            await rig.publish("writer", "jobs/1", id="a", payload=b"first of all")
            await rig.settle()
            assert first.ids() == ["a"]
            await rig.subscribe("second", GROUP)
            rig.disconnect("first")
            await rig.settle()
            assert [(packet.payload, int(packet.qos)) for packet in second.got] == [(b"first of all", 1)]
            assert rig.broker.statistics().redelivery.handed_on == 1

    run(scenario())


def test_what_was_on_its_way_with_quality_2_is_for_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            first, second = await rig.connect("first", confirms=False), await rig.connect("second")
            await rig.subscribe("first", GROUP, qos=2)
            await rig.publish("writer", "jobs/1", id="a", qos=2)
            await rig.settle()
            assert first.ids() == ["a"]
            await rig.subscribe("second", GROUP, qos=2)
            rig.disconnect("first")
            await rig.settle()
            assert second.got == []

    run(scenario())


@pytest.mark.parametrize("qos", [1, 2])
def test_what_waits_for_a_member_that_does_not_come_back_is_for_the_others_in_its_order(
    tmp_path: Path, qos: int
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            await rig.connect("first", expiry=100)
            await rig.subscribe("first", GROUP, qos=qos)
            await rig.subscribe("first", "jobs/own", qos=qos)
            rig.disconnect("first")
            for number in range(5):
                await rig.publish("writer", f"jobs/{number}", id=str(number), qos=qos)
            await rig.publish("writer", "jobs/brief", id="brief", qos=qos, expiry=10)
            await rig.publish("writer", "jobs/own", id="own", qos=qos)  # twice: for the group, and for itself
            second = await rig.connect("second")
            await rig.subscribe("second", GROUP, qos=qos)
            rig.clock.time += 99_000_000
            rig.broker.lifecycle.expire()
            await rig.settle()
            assert second.got == []
            rig.clock.time += 2_000_000
            rig.broker.lifecycle.expire()
            await rig.settle()
            assert [packet.topic for packet in second.got] == [*(f"jobs/{number}" for number in range(5)), "jobs/own"]
            assert {int(packet.qos) for packet in second.got} == {qos}

    run(scenario())


def test_a_broker_that_falls_loses_neither_what_waits_for_a_member_nor_what_was_handed_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        rig = Rig(tmp_path / "0", HandClock())
        await rig.connect("writer")
        for name in ("first", "second"):
            await rig.connect(name, expiry=1000)
        await rig.subscribe("first", GROUP, number=7)
        rig.disconnect("first")
        await rig.publish("writer", "jobs/1", id="a", payload=b"!")
        await rig.subscribe("second", GROUP)
        rig.disconnect("second")
        rig = await rig.killed(tmp_path / "1")
        await leave(rig, "first")
        rig = await rig.killed(tmp_path / "2")
        second = await rig.connect("second", expiry=1000)
        await rig.settle()
        assert [(packet.payload, packet.subscription_ids) for packet in second.got] == [(b"!", [])]
        rig.disconnect("second")
        rig = await rig.killed(tmp_path / "3")
        assert (await rig.connect("second", expiry=1000)).got == []
        await rig.close()

    run(scenario())


def test_who_is_chosen_and_leaves_before_that_is_on_disk_hands_it_on_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            await rig.connect("first", confirms=False)
            await rig.subscribe("first", GROUP)
            await rig.publish("writer", "jobs/1", id="a")
            second, third = await rig.connect("second"), await rig.connect("third")
            await asyncio.gather(rig.subscribe("second", GROUP), rig.subscribe("third", GROUP))
            rig.disconnect("first")
            rig.disconnect("second")
            await rig.settle()
            assert (second.ids(), third.ids()) == ([], ["a"])

    run(scenario())
