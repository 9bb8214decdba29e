"""A crowd and a real broker's archive, kept alike by a bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.client.conftest import SETTINGS
from tests.crowdstore import toys
from tests.runtime.live.virtual import neighbourhood, started
from tests.served import ServedBroker
from tests.waiting import until

import nearcast
from nearcast import Point
from nearcast.client.crowds import SINCE, TOPIC, MqttArchive
from nearcast.crowdstore.bridge import ARCHIVE, Bridge, identifier_of
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import Outcome
from nearcast.errors import InvalidInput
from nearcast.runtime.host import Component
from nearcast.runtime.live import LiveRuntime
from nearcast.runtime.ports import Fix
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

PLACE = Point(38.7501, -9.1899)
LOCAL = MechanismSpec.of("PL/SG", timeout=1.0, join_timeout=0.3, route_period=0.5, route_settling=0.1)
CELLS = MechanismSpec.of(
    "DCS",
    south=38.75,
    west=-9.19,
    north=38.7503,
    east=-9.1896,
    beacon=0.2,
    settle=0.2,
    listen=0.3,
    timeout=1.0,
    period=1.0,
)
MECHANISMS = [toys.LOCAL, toys.KEPT, LOCAL, CELLS]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda spec: spec.name)


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.known(monkeypatch)


class Venue:
    """People, and hosts with a bridge; who returns has what was theirs, unless nobody is ``remembering``."""

    def __init__(
        self, url: str, name: str, mechanism: MechanismSpec, bridges: int, *, remembering: bool = True
    ) -> None:
        self.runtime = LiveRuntime(seed=1)
        self.stores: dict[str, CrowdStore] = {}
        self.bridges: dict[str, Bridge] = {}
        self.archives: dict[str, MqttArchive] = {}
        self.ended: list[MqttArchive] = []
        self.clients = {
            f"bridge{number}": nearcast.connect(url, client_id=f"{name}-bridge{number}", timeout=10)
            for number in range(bridges)
        }
        self.told: list[Metadata] = []
        self._name, self._mechanism, self._network = name, mechanism, neighbourhood()
        for host in ("ada", "bob", *self.clients):
            memory = Memory() if remembering else None
            self.runtime.add(host, partial(self._build, host, memory), [self._network], position=self._standing)

    def _standing(self) -> Fix:
        return Fix(self.runtime.clock.now(), PLACE, 0.0, 0.0, None)

    def _build(self, host: str, memory: Memory | None) -> list[Component]:
        store = self.stores[host] = CrowdStore(self._mechanism, memory=memory, notices=True)
        if host not in self.clients:
            return [HostEngine(), store]
        if host in self.archives:
            self.ended.append(self.archives[host])
        archive = self.archives[host] = MqttArchive(self.clients[host], self._name, period=0.2)
        bridge = self.bridges[host] = Bridge(archive, "goal", settling=2.0)
        return [HostEngine(), store, archive, bridge]

    async def subscribes(self, host: str, told: list[Metadata]) -> None:
        """And whoever should know of it does: on a busy machine hosts that begin may ask in vain."""
        store = self.stores[host]
        while True:
            outcomes: list[Outcome] = []
            key = store.subscribe("goal", told.append, done=outcomes.append)
            await until(partial(bool, outcomes))
            if outcomes[0].ok:
                return
            store.unsubscribe(key)

    async def download(self, host: str, metadata: Metadata) -> bytes | None:
        outcomes: list[Outcome] = []
        self.stores[host].download(metadata, outcomes.append)
        await until(lambda: bool(outcomes))
        return outcomes[0].content


@asynccontextmanager
async def venue(
    broker: ServedBroker, name: str, mechanism: MechanismSpec, bridges: int = 1, *, remembering: bool = True
) -> AsyncIterator[tuple[Venue, nearcast.Client]]:
    async with AsyncExitStack() as stack:
        place = Venue(broker.url, name, mechanism, bridges, remembering=remembering)
        for client in place.clients.values():
            await stack.enter_async_context(client)
        other = await stack.enter_async_context(nearcast.connect(broker.url))
        running = await started(place.runtime)
        try:
            await place.subscribes("bob", place.told)
            yield place, other
        finally:
            place.runtime.stop()
            await running
            for archive in (*place.archives.values(), *place.ended):
                await archive.done()


async def looked(place: Venue, times: int) -> None:
    """Each bridge has compared that often since."""
    before = {name: archive.statistics().looks for name, archive in place.archives.items()}
    await until(
        lambda: all(archive.statistics().looks > before[name] + times for name, archive in place.archives.items())
    )


async def looked_whole(place: Venue, times: int) -> None:
    """The same, at all that is there: so it is found that something was taken back."""
    before = {name: archive.statistics().whole for name, archive in place.archives.items()}
    await until(
        lambda: all(archive.statistics().whole >= before[name] + times for name, archive in place.archives.items())
    )


async def archived(client: nearcast.Client, name: str) -> dict[str, bytes]:
    events = client.subscribe(TOPIC + name, since=SINCE, until="now", retained=False)
    return {event.id: event.payload async for event in events}


async def becomes(client: nearcast.Client, name: str, wanted: dict[str, bytes]) -> None:
    async with asyncio.timeout(60):
        while await archived(client, name) != wanted:
            pass


@every_mechanism
def test_what_the_crowd_publishes_and_withdraws_is_so_in_the_archive(
    broker: ServedBroker, mechanism: MechanismSpec
) -> None:
    name = f"up-{MECHANISMS.index(mechanism)}"

    async def story() -> None:
        async with venue(broker, name, mechanism, bridges=2) as (place, client):
            ada = place.stores["ada"]
            one, two = ada.publish("one", b"1", ["goal"]), ada.publish("two", b"2", ["goal", "save"])
            ada.publish("three", b"3", ["save"])
            await becomes(client, name, {identifier_of(one): b"1", identifier_of(two): b"2"})
            # Whoever has not heard of it by then never will.
            await until(lambda: {metadata.key for metadata in place.told} == {one.key, two.key})
            ada.unpublish("one")
            await becomes(client, name, {identifier_of(two): b"2"})
            await looked(place, 5)
            assert [bridge.statistics().down for bridge in place.bridges.values()] == [0, 0], (
                "what is from here stays there"
            )
            assert {metadata.key for metadata in place.told} == {one.key, two.key}
            assert len(place.told) == 2

    asyncio.run(asyncio.wait_for(story(), 120))


@every_mechanism
def test_what_the_broker_has_is_an_object_of_the_crowd_until_it_is_taken_back(
    broker: ServedBroker, mechanism: MechanismSpec
) -> None:
    name = f"down-{MECHANISMS.index(mechanism)}"

    async def story() -> None:
        async with venue(broker, name, mechanism, bridges=2) as (place, client):
            await looked_whole(place, 2)
            event = await client.publish(TOPIC + name, b"from afar", tags=["goal"])
            await until(lambda: all(bridge.statistics().down == 1 for bridge in place.bridges.values()))
            await until(lambda: bool(place.told))
            assert await place.download("bob", place.told[0]) == b"from afar"
            await looked(place, 5)
            assert [metadata.key for metadata in place.told] == [ObjectKey(ARCHIVE, event)], "by two bridges, told once"
            assert [archive.statistics().kept for archive in place.archives.values()] == [0, 0], (
                "it does not go up again"
            )
            await client.unpublish(event)
            await until(lambda: not any(bridge.statistics().down for bridge in place.bridges.values()))
            again: list[Metadata] = []
            place.stores["ada"].subscribe("goal", again.append)
            place.stores["bob"].publish("last", b"", ["goal"])
            await until(lambda: bool(again))
            assert [metadata.key.name for metadata in again] == ["last"]

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.mark.parametrize("mechanism", [LOCAL, CELLS], ids=lambda spec: spec.name)
@pytest.mark.parametrize("remembering", [True, False], ids=["remembering", "forgetful"])
def test_a_bridge_that_was_away_makes_up_for_it_and_doubles_nothing(
    broker: ServedBroker, mechanism: MechanismSpec, remembering: bool
) -> None:
    name = f"away-{MECHANISMS.index(mechanism)}-{remembering}"

    async def story() -> None:
        async with venue(broker, name, mechanism, remembering=remembering) as (place, client):
            ada, bridge = place.stores["ada"], place.runtime.hosts["bridge0"]
            one = ada.publish("one", b"1", ["goal"])
            event = await client.publish(TOPIC + name, b"from afar", tags=["goal"])
            gone = await client.publish(TOPIC + name, b"not for long", tags=["goal"])
            await becomes(client, name, {identifier_of(one): b"1", event: b"from afar", gone: b"not for long"})
            await until(lambda: len(place.told) == 3)
            bridge.fail()
            ada.unpublish("one")
            two = ada.publish("two", b"2", ["goal"])
            await client.unpublish(gone)
            bridge.join()
            await becomes(client, name, {identifier_of(two): b"2", event: b"from afar"})
            await until(lambda: place.bridges["bridge0"].statistics().down == 1)
            await looked(place, 5)
            heard = [metadata.key.name for metadata in place.told]
            assert sorted(heard) == sorted(["one", "two", event, gone]), "each once"
            again: list[Metadata] = []
            place.stores["ada"].subscribe("goal", again.append)
            wanted = {"two", event}
            await until(lambda: {metadata.key.name for metadata in again} >= wanted)
            await looked(place, 5)
            assert {metadata.key.name for metadata in again} == wanted, (
                "what was taken back meanwhile is gone in the crowd"
            )

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.mark.parametrize("mechanism", [LOCAL, CELLS], ids=lambda spec: spec.name)
def test_a_bridge_that_comes_late_takes_all_of_a_long_past_up_and_nothing_down(
    broker: ServedBroker, mechanism: MechanismSpec
) -> None:
    name = f"late-{MECHANISMS.index(mechanism)}"

    async def story() -> None:
        async with venue(broker, name, mechanism, remembering=False) as (place, client):
            bridge = place.runtime.hosts["bridge0"]
            bridge.fail()
            ada = place.stores["ada"]
            # More than the crowd tells of at once.
            objects = [ada.publish(f"goal {number}", b"%d" % number, ["goal"]) for number in range(50)]
            await until(lambda: len(place.told) == len(objects))
            bridge.join()
            wanted = {identifier_of(each): b"%d" % number for number, each in enumerate(objects)}
            await becomes(client, name, wanted)
            await looked(place, 20)
            assert place.bridges["bridge0"].statistics().down == 0
            assert len(place.told) == len(objects)

    asyncio.run(asyncio.wait_for(story(), 120))


def test_a_broker_that_was_away_is_told_what_it_missed_and_nothing_is_taken_for_withdrawn(tmp_path: Path) -> None:
    async def story() -> None:
        broker = ServedBroker(tmp_path, SETTINGS)
        broker.start()
        try:
            async with venue(broker, "restart", LOCAL) as (place, client):
                ada = place.stores["ada"]
                event = await client.publish(TOPIC + "restart", b"from afar", tags=["goal"])
                one, two = ada.publish("one", b"1", ["goal"]), ada.publish("two", b"2", ["goal"])
                await becomes(
                    client, "restart", {identifier_of(one): b"1", identifier_of(two): b"2", event: b"from afar"}
                )
                await until(lambda: len(place.told) == 3)
                await asyncio.to_thread(broker.kill)
                three = ada.publish("three", b"3", ["goal"])
                four = ada.publish("four", b"4", ["goal"])
                await until(lambda: place.bridges["bridge0"].statistics().up == 4)
                ada.unpublish("one")
                ada.unpublish("four")
                await until(lambda: place.bridges["bridge0"].statistics().forgotten == 2)
                await asyncio.to_thread(broker.start)
                await becomes(
                    client,
                    "restart",
                    {identifier_of(two): b"2", identifier_of(three): b"3", event: b"from afar"},
                )
                await until(lambda: place.archives["bridge0"].statistics().forgotten == 2)
                await looked_whole(place, 2)
                assert identifier_of(four) not in await archived(client, "restart"), (
                    "published, then withdrawn: in this order"
                )
                assert place.bridges["bridge0"].statistics().down == 1, "it was never thought to be gone"
                assert sorted(metadata.key.name for metadata in place.told) == sorted(
                    ["one", "two", "three", "four", event]
                )
        finally:
            broker.stop()

    asyncio.run(asyncio.wait_for(story(), 180))


def test_what_another_bridge_took_up_is_withdrawn_for_all_and_taken_back_when_that_one_returns(
    broker: ServedBroker,
) -> None:
    async def story() -> None:
        async with venue(broker, "uploader", LOCAL, bridges=2) as (place, client):
            ada = place.stores["ada"]
            await looked_whole(place, 1)
            one = ada.publish("one", b"1", ["goal"])
            await becomes(client, "uploader", {identifier_of(one): b"1"})
            await until(lambda: any(archive.statistics().kept for archive in place.archives.values()))
            # Only one of them, but for a race that it is not about.
            uploaders = [name for name, archive in place.archives.items() if archive.statistics().kept]
            for name in uploaders:
                place.runtime.hosts[name].fail()
            ada.unpublish("one")
            others = [archive for name, archive in place.archives.items() if name not in uploaders]
            await until(lambda: all(archive.statistics().foreign == 1 for archive in others))
            assert not others or await archived(client, "uploader") == {identifier_of(one): b"1"}, "nobody else may"
            place.runtime.hosts["ada"].fail()  # nor does she tell it again
            for name in uploaders:
                place.runtime.hosts[name].join()
            await becomes(client, "uploader", {})
            await until(lambda: not any(archive.statistics().foreign for archive in place.archives.values()))
            again: list[Metadata] = []
            place.stores["bob"].subscribe("goal", again.append)
            await looked(place, 20)
            assert again == [], "no bridge has brought it down"

    asyncio.run(asyncio.wait_for(story(), 120))


def test_a_venue_is_a_part_of_a_topic() -> None:
    client = nearcast.connect("mqtt://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="venue"):
        MqttArchive(client, "a/#")
