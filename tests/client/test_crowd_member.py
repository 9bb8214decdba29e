"""Members of a crowd over UDP, as a program with an event loop sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest
from tests.runtime.live.virtual import neighbourhood
from tests.waiting import until

from nearcast import Point
from nearcast.client.crowd_member import CrowdMember, in_crowd
from nearcast.crowdstore import Identity, MechanismSpec, Metadata, ReadingKey, Rule, Unreadable, in_cells
from nearcast.errors import ConnectionFailed, InvalidInput, SetupError, TimedOut, UnknownName
from nearcast.model.time import TimeFrame
from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import FedPosition, LiveRuntime, UdpNetwork

HERE, THERE = Point(38.7501, -9.1899), Point(38.7503, -9.1894)
LOCAL = MechanismSpec.of("PL/SG", timeout=0.5, retries=1, join_timeout=0.3, route_period=0.5, route_settling=0.1)
CELLS = in_cells(
    Point(38.75, -9.19), Point(38.7506, -9.1892), beacon=0.2, settle=0.2, listen=0.3, timeout=1.0, period=1.0
)
each_mechanism = pytest.mark.parametrize("mechanism", [LOCAL, CELLS], ids=lambda spec: spec.name)


def told(story: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


async def first(member: CrowdMember, formula: str) -> Metadata:
    async for metadata in member.subscribe(formula):
        return metadata
    raise AssertionError("it has ended")


@each_mechanism
def test_five_operations(mechanism: MechanismSpec) -> None:
    async def story() -> None:
        network = neighbourhood()
        async with in_crowd("ada", mechanism, network=network, place=HERE) as ada:
            film = bytes(range(256)) * 100
            photo = await ada.publish("first", film, ["goal", "portugal"], summary=b"small")
            await ada.publish("again", b"", ["goal", "replay"])
            async with in_crowd("bob", mechanism, network=network, place=THERE) as bob:
                assert await first(bob, "goal & !replay") == photo, "of the past"
                assert await bob.download(photo) == film
                live = bob.subscribe("save", TimeFrame(bob.now(), None))
                await ada.publish("save", b"", ["save"])
                assert (await anext(live)).key.name == "save"
                await live.end()
                assert [each async for each in live] == []
                assert live not in bob._open, "nothing of it is left"
                await ada.unpublish("first")
                later = bob.subscribe("goal")
                assert (await anext(later)).key.name == "again"
                assert bob.statistics().failed == 0
            assert [each async for each in later] == [], "who has left hears nothing more"

    told(story())


def test_what_fails_says_why() -> None:
    async def story() -> None:
        network = neighbourhood()
        async with in_crowd("bob", LOCAL, network=network) as bob:
            async with in_crowd("ada", LOCAL, network=network) as ada:
                kept, gone = await ada.publish("kept", b"1", ["goal"]), await ada.publish("gone", b"2", ["goal"])
                await ada.unpublish("gone")
                await first(bob, "goal")
                with pytest.raises(UnknownName, match="could not download ada/gone: not found"):
                    await bob.download(gone)
                with pytest.raises(InvalidInput, match="published here already"):
                    await ada.publish("kept", b"3", ["goal"])
            with pytest.raises(TimedOut, match="could not download ada/kept: timed out"):
                await bob.download(kept)
            waiting = asyncio.create_task(bob.download(kept))
            await asyncio.sleep(0)
        with pytest.raises(ConnectionFailed, match="stopped"):
            await waiting

    told(story())


class _Fails(Component):
    def start(self, host: Host) -> None:
        self._host = host

    def soon(self) -> None:
        self._host.timers.after(0, self._fail)

    def _fail(self) -> None:
        raise ZeroDivisionError("by a component")


def test_when_the_host_fails_whatever_was_asked_of_it_ends_and_says_why() -> None:
    async def story() -> None:
        network, fails = neighbourhood(), _Fails()
        async with in_crowd("ada", LOCAL, network=network) as ada:
            photo = await ada.publish("photo", b"", ["goal"])
        async with in_crowd("bob", LOCAL, network=network, further=[fails]) as bob:
            told = bob.subscribe("goal")
            waiting = [asyncio.create_task(bob.download(photo)), asyncio.create_task(anext(told))]
            await asyncio.sleep(0)
            fails.soon()
            for task in waiting:
                with pytest.raises(ConnectionFailed, match="this member has failed: ZeroDivisionError"):
                    await task
            with pytest.raises(ConnectionFailed, match="could not publish 'x': this member has failed"):
                await bob.publish("x", b"", ["goal"])
            with pytest.raises(ConnectionFailed, match="failed"):
                await anext(told)
            with pytest.raises(ConnectionFailed, match="could not subscribe"):
                bob.subscribe("goal")

    with pytest.raises(ZeroDivisionError, match="by a component"):
        told(story())


def test_who_has_left_says_so() -> None:
    async def story() -> None:
        async with in_crowd("ada", LOCAL, network=neighbourhood()) as ada:
            await ada.publish("photo", b"", ["goal"])
        with pytest.raises(ConnectionFailed, match="could not unpublish 'photo': this member has left the crowd"):
            await ada.unpublish("photo")

    told(story())


def test_only_readers_read() -> None:
    async def story() -> None:
        network, club = neighbourhood(), ReadingKey(b"c" * 32)
        ada, bob, eve = (Identity(bytes([number]) * 32) for number in range(3))
        async with (
            in_crowd(ada.name, LOCAL, network=network, identity=ada) as owner,
            in_crowd(bob.name, LOCAL, network=network, identity=bob, groups=[club]) as reader,
            in_crowd(eve.name, LOCAL, network=network, identity=eve) as other,
        ):
            photo = await owner.publish("photo", b"secret", ["goal"], readers=[club.public])
            assert await first(reader, "goal") == await first(other, "goal") == photo
            assert await reader.download(photo) == b"secret"
            with pytest.raises(Unreadable):
                await other.download(photo)

    told(story())


def test_by_the_rule_a_live_crowd_that_grows_goes_over_and_by_command_back() -> None:
    rule = Rule(
        small=LOCAL,
        large=CELLS,
        grown=1.5,
        shrunk=1.0,
        restless=1e9,
        calm=1e9,
        rounds=1,
        period=1.2,
        beat=0.2,
        settling=1.0,
    )

    async def story() -> None:
        network = neighbourhood()
        async with (
            in_crowd("bob", LOCAL, network=network, place=THERE, rule=rule, decides=False) as bob,
            in_crowd("eve", LOCAL, network=network, place=THERE, rule=rule, decides=False) as eve,
            in_crowd("tom", LOCAL, network=network, place=HERE, rule=rule, decides=False) as tom,
        ):
            others = (bob, eve, tom)
            await bob.publish("before", b"", ["goal"])
            async with in_crowd("ada", LOCAL, network=network, place=HERE, rule=rule) as ada:
                await until(lambda: {member.store.running.name for member in (ada, *others)} == {"DCS"})
                assert (await first(eve, "goal")).key.name == "before"
            # Nobody is left who decides.
            tom.initiate(LOCAL)
            await until(lambda: {member.store.running.name for member in others} == {"PL/SG"})
            assert (await first(tom, "goal")).key.name == "before"

    told(story())


def test_a_place_that_was_told_once_is_enough_to_be_a_member_of_a_cell() -> None:
    async def story() -> None:
        runtime = LiveRuntime()
        place = FedPosition(runtime.clock)
        place.update(HERE.lat, HERE.lon, accuracy=5.0)
        async with in_crowd("ada", CELLS, network=neighbourhood(), place=place.fix, runtime=runtime) as ada:
            await ada.publish("first", b"", ["goal"])

    told(story())


def test_who_cannot_join_says_why() -> None:
    async def story() -> None:
        async with in_crowd("ada", network=UdpNetwork(address="203.0.113.9")):
            raise AssertionError("it has joined")

    with pytest.raises(SetupError, match="no such address"):
        told(story())
