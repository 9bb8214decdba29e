"""A crowd and a real broker's archive, kept alike by a bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests.crowdstore import toys
from tests.runtime.live.virtual import neighbourhood, started
from tests.served import ServedBroker
from tests.waiting import until

import nearcast
from nearcast.client.crowds import SINCE, TOPIC, MqttArchive
from nearcast.crowdstore.bridge import Bridge, identifier_of
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import Outcome
from nearcast.errors import InvalidInput
from nearcast.runtime.host import Component
from nearcast.runtime.live import LiveRuntime
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

MECHANISMS = [toys.LOCAL, toys.KEPT]


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.known(monkeypatch)


class Venue:
    """People, and hosts with a bridge."""

    def __init__(self, url: str, name: str, mechanism: MechanismSpec, bridges: int) -> None:
        self.runtime = LiveRuntime(seed=1)
        self.stores: dict[str, CrowdStore] = {}
        self.bridges: dict[str, Bridge] = {}
        self.archives: list[MqttArchive] = []
        self.clients = [nearcast.connect(url, client_id=f"{name}-bridge{number}") for number in range(bridges)]
        self.told: list[Metadata] = []
        network = neighbourhood()
        for host in ("ada", "bob", *(f"bridge{number}" for number in range(bridges))):
            store = self.stores[host] = CrowdStore(mechanism, memory=Memory(), notices=True)
            parts: list[Component] = [HostEngine(), store]
            if host.startswith("bridge"):
                archive = MqttArchive(self.clients[len(self.archives)], name, period=0.2)
                self.archives.append(archive)
                self.bridges[host] = Bridge(archive, "goal", settling=0.5)
                parts += [archive, self.bridges[host]]
            self.runtime.add(host, lambda parts=parts: parts, [network])  # type: ignore[misc]

    async def download(self, host: str, metadata: Metadata) -> bytes | None:
        outcomes: list[Outcome] = []
        self.stores[host].download(metadata, outcomes.append)
        await until(lambda: bool(outcomes))
        return outcomes[0].content


@asynccontextmanager
async def venue(
    broker: ServedBroker, name: str, mechanism: MechanismSpec, bridges: int = 1
) -> AsyncIterator[tuple[Venue, nearcast.Client]]:
    async with AsyncExitStack() as stack:
        place = Venue(broker.url, name, mechanism, bridges)
        for client in place.clients:
            await stack.enter_async_context(client)
        other = await stack.enter_async_context(nearcast.connect(broker.url))
        running = await started(place.runtime)
        place.stores["bob"].subscribe("goal", place.told.append)
        try:
            yield place, other
        finally:
            place.runtime.stop()
            await running
            for archive in place.archives:
                await archive.done()


async def archived(client: nearcast.Client, name: str) -> dict[str, bytes]:
    events = client.subscribe(TOPIC + name, since=SINCE, until="now", retained=False)
    return {event.id: event.payload async for event in events}


async def becomes(client: nearcast.Client, name: str, wanted: dict[str, bytes]) -> None:
    async with asyncio.timeout(60):
        while await archived(client, name) != wanted:
            pass


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_the_crowd_publishes_and_withdraws_is_so_in_the_archive(
    broker: ServedBroker, mechanism: MechanismSpec
) -> None:
    name = f"up-{mechanism.name.split()[1].lower()}"

    async def story() -> None:
        async with venue(broker, name, mechanism, bridges=2) as (place, client):
            ada = place.stores["ada"]
            one, two = ada.publish("one", b"1", ["goal"]), ada.publish("two", b"2", ["goal", "save"])
            ada.publish("three", b"3", ["save"])
            await becomes(client, name, {identifier_of(one.key): b"1", identifier_of(two.key): b"2"})
            ada.unpublish("one")
            await becomes(client, name, {identifier_of(two.key): b"2"})
            await until(lambda: all(archive.statistics().looks > 10 for archive in place.archives))
            assert [bridge.statistics().down for bridge in place.bridges.values()] == [0, 0], (
                "what is from here stays there"
            )
            assert {metadata.key for metadata in place.told} == {one.key, two.key}
            assert len(place.told) == 2

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_the_broker_has_is_an_object_of_the_crowd_until_it_is_taken_back(
    broker: ServedBroker, mechanism: MechanismSpec
) -> None:
    name = f"down-{mechanism.name.split()[1].lower()}"

    async def story() -> None:
        async with venue(broker, name, mechanism, bridges=2) as (place, client):
            event = await client.publish(TOPIC + name, b"from afar", tags=["goal"])
            await until(lambda: bool(place.told))
            assert await place.download("bob", place.told[0]) == b"from afar"
            looks = [archive.statistics().looks for archive in place.archives]
            await until(
                lambda: all(a.statistics().looks > before + 5 for a, before in zip(place.archives, looks, strict=True))
            )
            assert sum(bridge.statistics().down for bridge in place.bridges.values()) == 1, "of two bridges, one has it"
            assert await archived(client, name) == {event: b"from afar"}, "it does not go up again"
            await client.unpublish(event)
            await until(lambda: not any(bridge.statistics().down for bridge in place.bridges.values()))
            again: list[Metadata] = []
            place.stores["ada"].subscribe("goal", again.append)
            place.stores["bob"].publish("last", b"", ["goal"])
            await until(lambda: bool(again))
            assert [metadata.key.name for metadata in again] == ["last"]

    asyncio.run(asyncio.wait_for(story(), 120))


def test_a_venue_is_a_part_of_a_topic() -> None:
    client = nearcast.connect("mqtt://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="venue"):
        MqttArchive(client, "a/#")
