"""A subscription may begin in the past: what is stored comes first, in its order, then what comes; no gap, nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from mqtt5 import PubAckReasonCode
from tests.broker.temporal_rig import SPOT, Rig, Wire, running, told
from tests.clocks import HandClock
from tests.waiting import until

from nearcast.broker.temporal import held_back
from nearcast.errors import InvalidProperty
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.mqtt import names
from nearcast.mqtt.positions import point_text

T = TypeVar("T")
FAR = Point(50.0, 9.0)


def in_broker(folder: Path, play: Callable[[Rig], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with running(folder) as rig:
            return await play(rig)

    return asyncio.run(whole())


async def published(rig: Rig, count: int, first: int = 0) -> list[str]:
    """So many events of `ada`, a millisecond apart."""
    if "ada" not in rig.wires:
        await rig.connect("ada")
    ids = [f"e{number}" for number in range(first, first + count)]
    for each in ids:
        rig.advance(1_000)
        rig.publish("ada", id=each)
    return ids


def test_stored_events_come_in_order_and_then_live_ones(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 300)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-1h")
        ids += await published(rig, 50, 300)
        await rig.settle()
        assert bob.ids() == ids
        assert {int(packet.qos) for packet in bob.got} == {1}
        assert not any(packet.retain for packet in bob.got)
        assert rig.broker.temporal.statistics().replays.under_way == 0

    in_broker(tmp_path, play)


def test_the_seam_holds_while_writes_are_under_way(tmp_path: Path) -> None:
    """Some events are routed, but not on disk, when the client subscribes; others come while it is read."""

    async def play(rig: Rig) -> None:
        ids = await published(rig, 5)
        await rig.written()
        for client in ("bob", "cyd", "dot"):
            await rig.connect(client)
        for client, number in (("bob", 10), ("cyd", 20), ("dot", 30)):
            ids += await published(rig, 7, number)
            rig.subscribe(client, since="-1h")
            ids += await published(rig, 3, number + 7)
            for turn in range(40):
                await asyncio.sleep(0)
                if not turn % 5:
                    ids += await published(rig, 1, 1_000 * number + turn)
        await rig.settle()
        for client in ("bob", "cyd", "dot"):
            assert rig.wires[client].ids() == ids

    in_broker(tmp_path, play)


def test_only_the_time_asked_for_is_given(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        await published(rig, 3)
        rig.advance(60 * MICROSECONDS)
        ids = await published(rig, 3, 3)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-30s", until="+10s")
        rig.advance(11 * MICROSECONDS)
        await published(rig, 1, 6)
        await rig.settle()
        assert bob.ids() == ids

    in_broker(tmp_path, play)


def test_the_area_lies_where_the_client_subscribed(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        await rig.connect("ada")
        bob = await rig.connect("bob")
        rig.move("bob", FAR)
        rig.publish("ada", id="there", place="50.0,9.0")
        rig.publish("ada", id="here", place=point_text(SPOT))
        rig.publish("ada", id="nowhere")
        rig.advance(1_000)
        rig.move("bob", SPOT)
        await rig.subscribe("bob", area="500", since="..")
        rig.move("bob", FAR)
        await rig.settle()
        assert bob.ids() == ["here", "nowhere"]

    in_broker(tmp_path, play)


def test_what_was_bound_by_reach_or_addressing_reaches_whom_it_concerned_then(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        for client in ("ada", "bob", "cyd"):
            await rig.connect(client)
        rig.move("bob", SPOT)
        rig.register("bob", "car", {"role": "driver"})
        reach = '{"circle": 100, "at": [8.6512, 49.8728]}'
        rig.advance(1_000)
        rig.publish("ada", id="reach", reach=reach)
        rig.publish("ada", id="to", to="role = 'driver'")
        rig.publish("ada", id="both", reach=reach, to="role = 'driver'")
        rig.publish("ada", id="free")
        rig.advance(1_000)
        rig.move("bob", FAR)
        rig.register("bob", "car", None)
        rig.move("cyd", SPOT)
        rig.register("cyd", "car", {"role": "driver"})
        rig.publish("ada", id="later", reach=reach, to="role = 'driver'")
        rig.advance(1_000)
        await rig.connect("dot")
        for client in ("bob", "cyd", "dot"):
            rig.subscribe(client, since="-1h")
        await rig.settle()
        assert rig.wires["bob"].ids() == ["reach", "to", "both", "free"]
        assert rig.wires["cyd"].ids() == ["free", "later"]
        assert rig.wires["dot"].ids() == ["free"]

    in_broker(tmp_path, play)


def test_expired_and_unpublished_events_are_not_given(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        await rig.connect("ada")
        rig.publish("ada", id="short", expiry=10)
        rig.publish("ada", id="long", expiry=1_000)
        rig.publish("ada", id="gone")
        rig.publish("ada", id="stays")
        rig.advance(20 * MICROSECONDS)
        assert (await rig.say("ada", "$nearcast/unpublish", b"gone"))[0] == PubAckReasonCode.SUCCESS
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-1h")
        await rig.settle()
        assert bob.ids() == ["long", "stays"]
        assert bob.got[0].message_expiry_interval == 980

    in_broker(tmp_path, play)


def test_own_events_are_left_out_if_asked_for(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        await published(rig, 3)
        await rig.subscribe("ada", since="-1h", no_local=True)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-1h", no_local=True)
        await rig.settle()
        assert rig.wires["ada"].ids() == []
        assert len(bob.got) == 3

    in_broker(tmp_path, play)


# Batches


def test_batches_say_how_many_there_are_and_wait(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 25)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", "a/#", since="-1h", batch="10")
        live = await published(rig, 3, 100)
        await rig.settle()
        assert bob.ids() == ids[:10]
        assert rig.broker.temporal.statistics().replays.waiting == 1
        assert [told(packet, names.PAST) for packet in bob.got] == [None] * 9 + ["10 of 25"]
        assert (await rig.say("bob", names.ReservedTopic.MORE.about("a/#")))[0] == PubAckReasonCode.SUCCESS
        await rig.settle()
        assert bob.ids() == ids[:20]
        assert told(bob.got[-1], names.PAST) == "20 of 25"
        await rig.say("bob", names.ReservedTopic.MORE.about("a/#"))
        await rig.settle()
        assert bob.ids() == [*ids, *live]
        assert told(bob.got[24], names.PAST) == "25 of 25"

    in_broker(tmp_path, play)


def test_enough_skips_to_what_came_meanwhile(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 25)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", "a/#", since="-1h", batch="10", name="old ones")
        live = await published(rig, 3, 100)
        await rig.settle()
        await rig.say("bob", names.ReservedTopic.ENOUGH.about("a/#"), b"old ones")
        live += await published(rig, 3, 200)
        await rig.settle()
        assert bob.ids() == [*ids[:10], *live]

    in_broker(tmp_path, play)


def test_a_last_batch_that_is_full_does_not_wait(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 10)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-1h", batch="10")
        ids += await published(rig, 1, 10)
        await rig.settle()
        assert bob.ids() == ids
        assert told(bob.got[9], names.PAST) == "10 of 10"

    in_broker(tmp_path, play)


def test_more_without_a_subscription_into_the_past_is_refused(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        await rig.connect("bob")
        with pytest.raises(InvalidProperty, match="nc-since"):
            rig.say("bob", "$nearcast/more/a")

    in_broker(tmp_path, play)


# Pace and memory


def test_a_client_that_confirms_nothing_is_not_given_more_than_its_window(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 1_000)
        bob = await rig.connect("bob", confirms=False)
        await rig.subscribe("bob", since="-1h")
        await until(lambda: len(bob.got) >= 128, pause=0.0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(bob.got) + len(rig.session("bob").queue) == 128
        bob.confirms = True
        for packet in list(bob.got):
            bob.confirm(packet)
        await rig.settle()
        assert bob.ids() == ids

    in_broker(tmp_path, play)


def test_a_congested_connection_is_waited_for(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 200)
        bob = await rig.connect("bob")
        bob.congested = True
        await rig.subscribe("bob", qos=0, since="-1h")
        for _ in range(100):
            await asyncio.sleep(0)
        await rig.written()
        assert bob.got == []
        bob.congested = False
        rig.session("bob").go_on()
        await rig.settle()
        assert bob.ids() == ids
        assert {int(packet.qos) for packet in bob.got} == {0}

    in_broker(tmp_path, play)


def test_live_events_beyond_the_limit_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_back, "MOST_KEPT", 5)

    async def play(rig: Rig) -> None:
        ids = await published(rig, 20)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", "a/#", since="-1h", batch="10")
        await rig.settle()
        live = await published(rig, 1_200, 100)
        await rig.settle()
        kept = [each.message for each in rig.broker.temporal.replays._replays["bob"].all["a/#"].held_back.waiting]
        assert len(kept) == 1_200
        assert sum(message is not None for message in kept) == 5
        await rig.say("bob", names.ReservedTopic.MORE.about("a/#"))
        await rig.settle()
        assert bob.ids() == [*ids, *live]

    in_broker(tmp_path, play)


# Several subscriptions


def test_other_subscriptions_get_what_comes_at_once(tmp_path: Path) -> None:
    """One copy per client: it is not held back for the one that is catching up."""

    async def play(rig: Rig) -> None:
        ids = await published(rig, 4)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", "a/#", number=1)
        await rig.subscribe("bob", "#", number=2, since="-1h", batch="2")
        await rig.settle()
        rig.publish("ada", "a/b", id="both")
        rig.publish("ada", "c", id="second alone")
        await rig.settle()
        assert bob.ids() == [*ids[:2], "both"]
        assert sorted(bob.got[-1].subscription_ids) == [1, 2]
        await rig.say("bob", names.ReservedTopic.MORE.about("#"))
        await rig.settle()
        assert bob.ids() == [*ids[:2], "both", *ids[2:], "second alone"]
        assert bob.got[-1].subscription_ids == [2]

    in_broker(tmp_path, play)


def by_number(wire: Wire, number: int) -> list[str | None]:
    return [told(packet, names.ID) for packet in wire.got if number in packet.subscription_ids]


def test_each_subscription_into_the_past_replays_for_itself(tmp_path: Path) -> None:
    """What comes meanwhile is one copy for both, as soon as either is in the present: which one is first, nobody says."""

    async def play(rig: Rig) -> None:
        ids = await published(rig, 4)
        bob = await rig.connect("bob")
        rig.subscribe("bob", number=1, since="-1h")
        rig.subscribe("bob", number=2, since="-1h", name="again")
        (live,) = await published(rig, 1, 100)
        await rig.settle()
        got = [by_number(bob, number) for number in (1, 2)]
        assert [[each for each in those if each != live] for those in got] == [ids, ids]
        assert [*ids, live] in got
        (packet,) = [each for each in bob.got if told(each, names.ID) == live]
        assert sorted(packet.subscription_ids) == [1, 2]

    in_broker(tmp_path, play)


async def two_that_wait(rig: Rig) -> tuple[Wire, list[str], list[str]]:
    """Two subscriptions for the same, each with half of a past of four; what is stored, and what came while both waited."""
    ids = await published(rig, 4)
    bob = await rig.connect("bob")
    await rig.subscribe("bob", number=1, since="-1h", batch="2")
    await rig.subscribe("bob", number=2, since="-1h", batch="2", name="again")
    await rig.settle()
    live = await published(rig, 2, 100)
    await rig.settle()
    assert [by_number(bob, number) for number in (1, 2)] == [ids[:2], ids[:2]]
    return bob, ids, live


@pytest.mark.parametrize("most_kept", [1_000, 1])
def test_a_subscription_in_the_present_waits_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_kept: int
) -> None:
    monkeypatch.setattr(held_back, "MOST_KEPT", most_kept)

    async def play(rig: Rig, first: int) -> None:
        bob, ids, live = await two_that_wait(rig)
        texts = {1: b"", 2: b"again"}
        await rig.say("bob", names.ReservedTopic.MORE.about("#"), texts[first])
        await rig.settle()
        live += await published(rig, 1, 200)
        await rig.settle()
        assert by_number(bob, first) == [*ids, *live], "in their order"
        await rig.say("bob", names.ReservedTopic.MORE.about("#"), texts[3 - first])
        await rig.settle()
        assert by_number(bob, 3 - first) == [*ids[:2], *live, *ids[2:]], "none of them twice"

    for first in (1, 2):
        in_broker(tmp_path / str(first), lambda rig, first=first: play(rig, first))  # type: ignore[misc]


def test_what_both_wait_for_goes_on_waiting_for_the_one_that_is_left(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        bob, ids, live = await two_that_wait(rig)
        await rig.unsubscribe("bob", "#", "again")
        await rig.settle()
        assert by_number(bob, 1) == ids[:2]
        await rig.say("bob", names.ReservedTopic.MORE.about("#"))
        await rig.settle()
        assert by_number(bob, 1) == [*ids, *live]

    in_broker(tmp_path, play)


def test_what_both_wait_for_can_be_unpublished(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        bob, ids, live = await two_that_wait(rig)
        assert (await rig.say("ada", "$nearcast/unpublish", live[0].encode()))[0] == PubAckReasonCode.SUCCESS
        for text in (b"again", b""):
            await rig.say("bob", names.ReservedTopic.MORE.about("#"), text)
            await rig.settle()
        assert by_number(bob, 2) == [*ids, live[1]]
        assert by_number(bob, 1) == [*ids[:2], live[1], *ids[2:]]
        assert rig.broker.temporal.statistics().replays.held_back == 0

    in_broker(tmp_path, play)


def test_unsubscribing_ends_it(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 20)
        bob = await rig.connect("bob")
        await rig.subscribe("bob", since="-1h", batch="10")
        await rig.settle()
        await rig.unsubscribe("bob", "#")
        await published(rig, 1, 100)
        await rig.settle()
        assert bob.ids() == ids[:10]
        assert rig.session("bob").catching_up is None

    in_broker(tmp_path, play)


# Restart


def test_a_replay_goes_on_after_its_client_was_away(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        ids = await published(rig, 400)
        bob = await rig.connect("bob", expiry=1_000, confirms=False)
        await rig.subscribe("bob", since="-1h")
        await until(lambda: len(bob.got) >= 128, pause=0.0)
        rig.disconnect("bob")
        ids += await published(rig, 10, 1_000)
        again = await rig.connect("bob", expiry=1_000)
        await rig.settle()
        assert list(dict.fromkeys([*bob.ids(), *again.ids()])) == ids
        assert len(again.got) == len(ids), "what was not confirmed comes again, nothing else"

    in_broker(tmp_path, play)


def test_a_replay_survives_a_kill(tmp_path: Path) -> None:
    async def whole() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        ids = await published(rig, 400)
        bob = await rig.connect("bob", expiry=1_000, confirms=False)
        await rig.subscribe("bob", since="-1h")
        await until(lambda: len(bob.got) >= 128, pause=0.0)
        for packet in bob.got[:100]:
            bob.confirm(packet)
        live = await published(rig, 5, 1_000)
        await rig.written()
        rig.broker._tick()
        other = await rig.killed(tmp_path / "two")
        try:
            again = await other.connect("bob", expiry=1_000)
            await other.settle()
            assert again.ids() == [*ids[100:], *live]
            assert other.broker.journal.load("replays") == {}
        finally:
            await other.close()

    asyncio.run(whole())


def test_a_batch_that_waits_survives_a_kill(tmp_path: Path) -> None:
    async def whole() -> None:
        rig = Rig(tmp_path / "one", HandClock())
        ids = await published(rig, 25)
        await rig.connect("bob", expiry=1_000)
        await rig.subscribe("bob", since="-1h", batch="10")
        await rig.settle()
        rig.broker._tick()
        other = await rig.killed(tmp_path / "two")
        try:
            again = await other.connect("bob", expiry=1_000)
            await other.settle()
            assert again.ids() == []
            await other.say("bob", names.ReservedTopic.MORE.about("#"))
            await other.settle()
            assert again.ids() == ids[10:20]
            assert told(again.got[-1], names.PAST) == "20 of 25"
        finally:
            await other.close()

    asyncio.run(whole())
