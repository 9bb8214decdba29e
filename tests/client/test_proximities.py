"""Proximities through a real broker: the same API as over the air, and from one to the other in the middle of a stream."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.live.virtual import neighbourhood, started
from tests.served import ServedBroker, served
from tests.waiting import until

import nearcast
from nearcast.client.client import Client
from nearcast.client.proximities import ANYWHERE, MqttUplink
from nearcast.errors import InvalidInput
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.event_type import EventType
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import AIR, UPLINK, ProximitySettings
from nearcast.runtime.host import Component
from nearcast.runtime.live import FedPosition, LiveRuntime
from nearcast.transition.engine import HostEngine

HERE = Point(53.3545, -6.2846)
NORTH = {"ada": 0.0, "bob": 0.0005, "eve": 0.0008, "ian": 0.0050}
"""Degrees; a thousandth is 111 m."""

NEWS = EventType.of("news", {"number": "integer"}, persistence=120.0)


class Devices:
    """Each with a radio and a client of the broker; names are made different from those of other tests."""

    def __init__(
        self, runtime: LiveRuntime, prefix: str, url: str, settings: ProximitySettings, patience: float
    ) -> None:
        self.runtime = runtime
        self.prefix = prefix
        self.clients: dict[str, Client] = {}
        self.uplinks: dict[str, MqttUplink] = {}
        self.services: dict[str, ProximityService] = {}
        self.positions: dict[str, FedPosition] = {}
        self.got: dict[str, list[Event]] = {name: [] for name in NORTH}
        self.raised: list[Event] = []
        network = neighbourhood()
        for name, north in NORTH.items():
            self.positions[name] = FedPosition(runtime.clock)
            self.positions[name].update(HERE.lat + north, HERE.lon, accuracy=1.0)
            client = self.clients[name] = nearcast.connect(url, client_id=prefix + name, timeout=patience)
            self.uplinks[name] = MqttUplink(client)
            self.services[name] = ProximityService(settings, self.uplinks[name])
            parts: list[Component] = [HostEngine(), self.uplinks[name], self.services[name]]
            runtime.add(prefix + name, lambda parts=parts: parts, [network], position=self.positions[name].fix)  # type: ignore[misc]

    def __getitem__(self, name: str) -> ProximityService:
        return self.services[name]

    def listen(self, name: str, **more: Any) -> None:
        self[name].subscribe(self.prefix + "news", self.got[name].append, **more)

    def raise_event(self) -> Event:
        event = self["ada"].raise_event(self.prefix + "news", {"number": len(self.raised)})
        self.raised.append(event)
        return event

    def numbers(self, name: str) -> list[Any]:
        return [event.attributes["number"] for event in self.got[name]]

    async def idle(self) -> None:
        """All that was ordered has been done."""
        await until(lambda: all(not uplink.statistics().waiting for uplink in self.uplinks.values()))
        await asyncio.sleep(0.05)  # the one that is being done


@asynccontextmanager
async def devices(url: str, prefix: str, settings: ProximitySettings, patience: float = 30.0) -> AsyncIterator[Devices]:
    async with AsyncExitStack() as stack:
        runtime = LiveRuntime(seed=1)
        town = Devices(runtime, prefix, url, settings, patience)
        for client in town.clients.values():
            await stack.enter_async_context(client)
        running = await started(runtime)
        for name in ("bob", "eve", "ian"):
            town.listen(name)
        news = EventType(prefix + "news", NEWS.content, NEWS.attributes)
        town["ada"].announce(news, Circle(100))
        await asyncio.sleep(0)
        await town.idle()
        try:
            yield town
        finally:
            runtime.stop()
            await running
            for uplink in town.uplinks.values():
                await uplink.done()


def told(story: Callable[[], Coroutine[Any, Any, None]], patience: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(story(), patience))


def test_the_broker_brings_events_to_those_in_the_proximity_and_to_nobody_else(broker: ServedBroker) -> None:
    async def story() -> None:
        async with devices(broker.url, "near-", ProximitySettings(mechanism=UPLINK)) as town:
            async with nearcast.connect(broker.url) as passer_by, passer_by.subscribe("near-news") as events:
                await passer_by.update(lat=HERE.lat, lon=HERE.lon)
                raised = [town.raise_event() for _ in range(5)]
                await until(lambda: len(town.got["eve"]) == len(town.got["bob"]) == 5)
                assert town.got["bob"] == raised, "as they were raised, whatever the broker has made of them"
                assert town.got["ian"] == []
                plain = await events.next(30.0)
                assert plain.id == raised[0].id, "any client can hear them"
            # Into the proximity, and out of it.
            town.positions["ian"].update(HERE.lat, HERE.lon, accuracy=1.0)
            town.positions["bob"].update(HERE.lat + 0.005, HERE.lon, accuracy=1.0)
            places = {"ian": HERE.lat, "bob": HERE.lat + 0.005}

            def known(name: str) -> bool:
                position = town.clients[name].position
                return position is not None and abs(position.lat - places[name]) < 1e-9

            await until(lambda: known("ian") and known("bob"))
            await town.idle()
            town.raise_event()
            await until(lambda: town.numbers("ian") == [5] and town.numbers("eve") == [0, 1, 2, 3, 4, 5])
            assert town.numbers("bob") == [0, 1, 2, 3, 4]
            assert town.uplinks["ada"].statistics().failed == 0

    told(story)


def test_a_consumers_own_proximity_brings_what_is_raised_inside_it(broker: ServedBroker) -> None:
    async def story() -> None:
        async with devices(broker.url, "own-", ProximitySettings(mechanism=UPLINK)) as town:
            town.listen("ian", area=Circle(700))
            await town.idle()
            town.raise_event()
            await until(lambda: town.numbers("ian") == [0] and town.numbers("bob") == [0])
            assert town["bob"].statistics().duplicates == 0, "who has no proximity of its own is told once"

    told(story)


def test_from_the_air_to_the_broker_and_back_nothing_is_lost_or_doubled(broker: ServedBroker) -> None:
    async def story() -> None:
        settings = ProximitySettings(mechanism=AIR, beacon_period=0.1, overlap=2.0)
        async with devices(broker.url, "switch-", settings) as town:
            await until(lambda: all(town[name].statistics().air is not None for name in NORTH))
            await asyncio.sleep(0.5)  # some beacons
            ending = asyncio.Event()

            async def talk() -> None:
                while not ending.is_set():
                    town.raise_event()
                    await asyncio.sleep(0.02)

            talking = asyncio.create_task(talk())
            for mechanism in (UPLINK, AIR, UPLINK):
                for name in NORTH:
                    assert town[name].use(mechanism)
                    await asyncio.sleep(0.01)
                await until(lambda: all(len(town[name].statistics().mechanisms) == 1 for name in NORTH), pause=0.05)
            ending.set()
            await talking
            everything = Counter(event.id for event in town.raised)
            await until(lambda: all(len(town.got[name]) >= len(everything) for name in ("bob", "eve")))
            for name in ("bob", "eve"):
                assert Counter(event.id for event in town.got[name]) == everything
            assert town.got["ian"] == []
            assert town["bob"].statistics().duplicates > 0, "both ways were in use for a while"
            assert town.uplinks["bob"].statistics().received > 0

    told(story)


@pytest.mark.slow
def test_what_was_missed_while_the_broker_was_away_comes_when_it_is_back(tmp_path: Path) -> None:
    async def story() -> None:
        with served(tmp_path) as own:
            async with devices(own.url, "", ProximitySettings(mechanism=UPLINK), patience=2.0) as town:
                town.raise_event()
                await until(lambda: town.numbers("bob") == town.numbers("eve") == [0])
                await asyncio.to_thread(own.kill)
                for _ in range(20):
                    town.raise_event()
                await asyncio.to_thread(own.start)
                town.raise_event()
                await until(lambda: len(town.got["bob"]) >= 22 and len(town.got["eve"]) >= 22, pause=0.05)
                assert town.numbers("bob") == town.numbers("eve") == list(range(22)), "each once, in their order"
                assert town.got["ian"] == []

    told(story, 300.0)


def test_what_others_say_on_such_a_topic_is_counted_and_never_delivered(broker: ServedBroker) -> None:
    async def story() -> None:
        async with devices(broker.url, "foreign-", ProximitySettings(mechanism=UPLINK)) as town:
            genuine = town.raise_event()
            await until(lambda: town.got["bob"] == [genuine])
            async with (
                nearcast.connect(broker.url) as liar,
                town.clients["ian"].subscribe(ANYWHERE + "foreign-news") as overheard,
            ):
                town.raise_event()
                await until(lambda: len(town.got["bob"]) == 2)
                copied = await overheard.next(30.0)
                await liar.publish("foreign-news", b"nonsense")
                await liar.publish("foreign-news", copied.payload)
                statistics = town.uplinks["bob"].statistics
                await until(lambda: statistics().foreign == 1 and town["bob"].statistics().duplicates == 1)
            assert len(town.got["bob"]) == 2

    told(story)


def test_the_uplink_of_a_device_that_failed_comes_to_its_end_and_listens_no_more(broker: ServedBroker) -> None:
    async def story() -> None:
        async with devices(broker.url, "failed-", ProximitySettings(mechanism=UPLINK)) as town:
            town.raise_event()
            await until(lambda: town.numbers("bob") == town.numbers("eve") == [0])
            town.runtime.hosts["failed-bob"].fail()
            town.raise_event()
            await until(lambda: town.numbers("eve") == [0, 1])
            uplink = town.uplinks["bob"]
            await asyncio.wait_for(uplink.done(), 30.0)
            heard = uplink.statistics().received
            assert town.clients["bob"].statistics().subscriptions == 0
            town.raise_event()
            await until(lambda: town.numbers("eve") == [0, 1, 2])
            assert town.numbers("bob") == [0], "nothing came to a device that is gone"
            assert uplink.statistics().received == heard
            await uplink.done()  # once more, as who ends everything does

    told(story)


def test_a_client_of_another_name_is_refused() -> None:
    async def story() -> None:
        runtime = LiveRuntime(seed=1)
        uplink = MqttUplink(nearcast.connect("mqtt://127.0.0.1:1", client_id="somebody"))
        runtime.add("ada", lambda: [HostEngine(), uplink, ProximityService(None, uplink)], [neighbourhood()])
        with pytest.raises(InvalidInput, match=r"has the id 'somebody'; .*client_id='ada'"):
            await runtime.run()

    told(story)
