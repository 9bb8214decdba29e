"""What an attacker found in presence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mqtt5 import PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.in_memory import in_memory
from tests.broker.talker import broker, talking
from tests.broker.test_observation import BEYOND, INSIDE, LASTING, OBSERVABLE, OUTSIDE, POSITION, move, told, watched
from tests.broker.test_observation_equals_oracle import Rig
from tests.clocks import HandClock

from nearcast.broker.observation import stays, watches
from nearcast.broker.publishing.message import Message
from nearcast.broker.server import Server
from nearcast.broker.sessions.session import Session
from nearcast.model.passage import Passage
from nearcast.model.presence import Way, Whereabouts, meeting
from nearcast.model.time import MICROSECONDS, to_text


def test_there_is_one_timer_for_stays_however_many_there_were(tmp_path: Path) -> None:
    """Each visit that was due before the others left one more behind, which armed itself again for ever."""

    async def scenario(server: Server) -> None:
        kept = server.broker.observation._stays
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()

        def later(seconds: float, function: Callable[[], None]) -> asyncio.TimerHandle:
            timers.append(loop.call_later(seconds, function))
            return timers[-1]

        kept.later = later
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="1h", name="long"))
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="1ms", name="short"))
            await bob.tell(OBSERVABLE, b"true")
            for _ in range(10):
                await move(bob, INSIDE)
                assert (await told(ada))["fence"] == "short"
                await move(bob, OUTSIDE)
        assert len(timers) >= 10
        assert sum(not timer.cancelled() and timer.when() > loop.time() for timer in timers) <= 1

    broker(tmp_path, scenario)


def test_visits_that_are_over_are_not_expected_until_a_stay_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever went in and out of an area that somebody watches for years filled the memory."""
    monkeypatch.setattr(stays, "FEW", 8)

    async def scenario(server: Server) -> None:
        kept = server.broker.observation._stays
        kept._most = 8
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "eve") as eve:
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="10000d"))
            for walker in (bob, eve):
                await walker.tell(OBSERVABLE, b"true")
            await move(eve, INSIDE)
            await move(bob, *[OUTSIDE, INSIDE, BEYOND] * 10)
        assert len(kept._due) <= 9

    broker(tmp_path, scenario)


def test_who_is_permitted_during_a_visit_is_told_of_nothing_before_that(tmp_path: Path) -> None:
    """A stay counted from where it had begun, and said since when: before the observer was named."""

    async def scenario() -> None:
        clock = HandClock()
        rig = Rig(tmp_path, clock)
        try:
            for name in ("bob", "ann", "eve"):
                await rig.connect(name)
            for name in ("ann", "eve"):
                asked = [TopicFilter("$nearcast/presence/stay/+", max_qos=QoS.AT_MOST_ONCE)]
                rig.clients[name].say(SubscribePacket(1, asked, user_properties=watched(stay="30s")))

            async def bob(topic: str, payload: bytes) -> None:
                rig.clients["bob"].say(PublishPacket(topic, payload))
                await rig.quiet()

            async def stays(seconds: int) -> dict[str, list[str]]:
                clock.time += seconds * MICROSECONDS
                rig.broker.observation.tick()
                await rig.quiet()
                return {
                    name: [
                        json.loads(each.payload)["since"]
                        for each in rig.clients[name].got()
                        if isinstance(each, PublishPacket)
                    ]
                    for name in ("ann", "eve")
                }

            came = to_text(clock.now())
            await bob(OBSERVABLE, b'{"clients": ["ann"]}')
            await bob(POSITION, INSIDE)
            assert await stays(20) == {"ann": [], "eve": []}
            permitted = to_text(clock.now())
            await bob(OBSERVABLE, b'{"clients": ["ann", "eve"]}')
            assert await stays(20) == {"ann": [came], "eve": []}
            assert await stays(10) == {"ann": [came], "eve": [permitted]}
            await bob(OBSERVABLE, b'{"clients": ["eve"]}')
            assert await stays(40) == {"ann": [came], "eve": [permitted]}
            again = to_text(clock.now())
            await bob(OBSERVABLE, b"true")
            assert await stays(40) == {"ann": [came, again], "eve": [permitted]}
        finally:
            rig.broker.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("moving", ["c0", "eve"])
def test_who_asks_for_far_around_does_not_have_others_looked_at_who_ask_for_nearby(
    monkeypatch: pytest.MonkeyPatch, moving: str
) -> None:
    """The farthest of all was the distance for everybody: one subscription of 19,000 km made each report 35 times as dear."""
    looked: list[float] = []

    def counting(metres: float, other: Whereabouts, way: Way, own: tuple[Way, ...]) -> tuple[Passage, ...]:
        looked.append(metres)
        return meeting(metres, other, way, own)

    monkeypatch.setattr(watches, "meeting", counting)

    async def scenario() -> None:
        async with in_memory() as rig:
            names = [f"c{number}" for number in range(40)]
            for number, name in enumerate([*names, "eve"]):
                client = await rig.connect(name)
                metres = "99999" if name == "eve" else "10"
                asked = [TopicFilter("$nearcast/presence/near/+", max_qos=QoS.AT_MOST_ONCE)]
                client.say(
                    PublishPacket(OBSERVABLE, b"true"),
                    PublishPacket(POSITION, b"49.87,%f" % (8 + number * 0.001)),
                    SubscribePacket(1, asked, user_properties=[("nc-area", metres)]),
                )
            await rig.quiet()
            looked.clear()
            where = 8 + (40 if moving == "eve" else 0) * 0.001
            rig.clients[moving].say(PublishPacket(POSITION, b"49.87,%f" % (where + 0.0001)))
            await rig.quiet()
            assert looked.count(10.0) <= 2
            assert looked.count(99999.0) == (40 if moving == "eve" else 1)

    asyncio.run(scenario())


def test_nobody_watches_farther_around_a_client_than_makes_sense(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada:
            for metres, code in (("100000", 0), ("100001", 0x83)):
                answer = await ada.subscribe("$nearcast/presence/near/+", properties=watched(metres))
                assert int(answer.reason_codes[0]) == code
            assert "100,000 m at most" in (answer.reason_str or "")

    broker(tmp_path, scenario)


def test_who_changes_its_permission_again_and_again_has_queues_looked_through_only_if_it_is_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change looked through everything that waited for every observer: some hundred a second were too many."""
    looked = list[str]()
    withdraw = Session.withdraw

    def counting(session: Session, unwanted: Callable[[Message], bool]) -> None:
        looked.append(session.client)
        withdraw(session, unwanted)

    monkeypatch.setattr(Session, "withdraw", counting)

    async def scenario(server: Server) -> None:
        for name in ("ada", "eve"):
            async with talking(server, name, **LASTING) as observer:
                await observer.subscribe("$nearcast/presence/+/+", 1, watched())
        async with talking(server, "bob") as bob:
            for _ in range(20):
                await bob.tell(OBSERVABLE, b"true")
                await bob.tell(OBSERVABLE, b"false")
            assert looked == []
            await bob.tell(OBSERVABLE, b'{"clients": ["ada"]}')
            await move(bob, OUTSIDE, INSIDE)
            for _ in range(20):
                await bob.tell(OBSERVABLE, b"false")
                await bob.tell(OBSERVABLE, b"true")
            assert looked == ["ada"]
            assert server.broker.observation.statistics().waiting == 0

    broker(tmp_path, scenario)


def test_two_whose_ways_cross_between_two_reports_have_met() -> None:
    """Each was compared with where the other one stood at its last report: there neither came by."""

    async def scenario() -> None:
        async with in_memory() as rig:
            ada, bob = [await rig.connect(name) for name in ("ada", "bob")]
            asked = [TopicFilter("$nearcast/presence/near/+", max_qos=QoS.AT_MOST_ONCE)]
            ada.say(SubscribePacket(1, asked, user_properties=[("nc-area", "50")]))
            bob.say(PublishPacket(OBSERVABLE, b"true"))
            for hers, his in ((b"49.87,8.6486", b"49.8691,8.65"), (b"49.87,8.6514", b"49.8709,8.65")):
                rig.clock.time += 60 * MICROSECONDS
                ada.say(PublishPacket(POSITION, hers))
                bob.say(PublishPacket(POSITION, his))
                await rig.quiet()
            notices = [json.loads(payload) for payload in ada.payloads()]
            assert [(notice["who"], notice["what"]) for notice in notices] == [
                ("bob", what) for what in ("enter", "leave", "cross")
            ]
            middle = [(notice["lat"], notice["lon"]) for notice in notices]
            assert all(abs(lat - 49.87) < 0.0005 and lon == 8.65 for lat, lon in middle)

    asyncio.run(scenario())
