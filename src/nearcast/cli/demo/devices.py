"""Proximities in the city: an ambulance whose siren matters around it, wherever it drives, and taxis that it comes nearer to.

They are devices as STEAM has them, with the broker as their uplink (``nearcast.proximity``): the ambulance announces its siren once, a taxi
subscribes to it once, and driving changes who hears what.  Everybody else who drives hears it as an ordinary subscriber.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from nearcast.cli.demo.city import HASTE, Trip
from nearcast.cli.demo.places import BY_NAME, PLACES, Place, point_at
from nearcast.client.client import Client, connect
from nearcast.client.proximities import MqttUplink
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.proximity.event_type import EventType
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import UPLINK, ProximitySettings
from nearcast.runtime.live.runtime import LiveRuntime
from nearcast.runtime.live.sensor import FedPosition
from nearcast.transition.engine import HostEngine

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets  # slow to import

AMBULANCE: Final = "ambulance"
TAXIS: Final = 4
_RANKS: Final = tuple(BY_NAME[f"the {name}"] for name in ("market", "station", "theatre", "shops"))
"""Where taxis go, and where an ambulance begins."""

SIREN: Final = EventType.of("traffic/siren", {"speed": "float"}, priority=7, deadline=5.0)
PROXIMITY: Final = Circle(150.0)
_COMES_NEARER: Final = "distance_decreases()"
_ROUNDS: Final = 2
"""Steps from one siren to the next."""

_STEP: Final = 0.5
"""Seconds."""

_SPEEDS: Final = {AMBULANCE: 5.0, "taxi": 4.0}
"""Metres per second, in the city's time."""


@dataclass(frozen=True, slots=True)
class DeviceStatistics:
    raised: int
    heard: int
    """By taxis, while it came nearer."""

    passed: int
    """What taxis did not need to hear: it drove away from them."""


class _Device:
    """One that drives about."""

    def __init__(self, name: str, url: str, streets: Streets, runtime: LiveRuntime, random: Random) -> None:
        self.kind: Final = name.partition("-")[0]
        self.client: Final[Client] = connect(url, client_id=name, clean_start=True, session_expiry=0)
        self.uplink: Final = MqttUplink(self.client)
        self.service: Final = ProximityService(ProximitySettings(mechanism=UPLINK), self.uplink)
        self._streets: Final = streets
        self._random: Final = random
        self._trip: Final = Trip(*streets.beside(*self._chosen().metres, wheels=True))
        self._position: Final = FedPosition(runtime.clock)
        self._look()
        runtime.add(name, lambda: [HostEngine(), self.uplink, self.service], position=self._position.fix)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with self.client:
            here = point_at(self._trip.east, self._trip.north)
            await self.client.update(
                lat=here.lat, lon=here.lon, role=self.kind, transport=f"/vehicle/motorized/{self.kind}"
            )
            yield

    @property
    def where(self) -> tuple[float, float]:
        return self._trip.east, self._trip.north

    def drive(self, seconds: float) -> None:
        if self._trip.advance(_SPEEDS[self.kind] * HASTE * seconds):
            target = self._chosen().metres
            self._trip.go(self._streets.way((self._trip.east, self._trip.north), target, wheels=True))
        self._look()

    def _look(self) -> None:
        here = point_at(self._trip.east, self._trip.north)
        self._position.update(here.lat, here.lon, accuracy=1.0, speed=_SPEEDS[self.kind] * HASTE)

    def _chosen(self) -> Place:
        """An ambulance is needed everywhere, and every other time where most people are."""
        return self._random.choice(_RANKS if self.kind == "taxi" or self._random.random() < 0.5 else PLACES)


class Devices:
    """All of them; ``run`` is to be cancelled."""

    def __init__(self, url: str, streets: Streets, seed: int = 7) -> None:
        random = Random(seed)
        self._runtime: Final = LiveRuntime(seed=seed)
        names = (AMBULANCE, *(f"taxi-{number}" for number in range(1, TAXIS + 1)))
        self._devices: Final = {name: _Device(name, url, streets, self._runtime, random) for name in names}
        self._heard: Final[list[Event]] = []
        self._running = False

    def statistics(self) -> DeviceStatistics:
        if not self._running:
            return DeviceStatistics(0, 0, 0)
        taxis = [device.service.statistics() for device in self._taxis()]
        ambulance = self._devices[AMBULANCE].service.statistics()
        return DeviceStatistics(ambulance.raised, len(self._heard), sum(taxi.filtered for taxi in taxis))

    @property
    def ambulance(self) -> tuple[float, float] | None:
        """Where it is: metres east and north of the centre; None: not there."""
        return self._devices[AMBULANCE].where if self._running else None

    async def run(self) -> None:
        async with self._on_the_air():
            ambulance, rounds = self._devices[AMBULANCE].service, 0
            ambulance.announce(SIREN, PROXIMITY)
            for device in self._taxis():
                device.service.subscribe(SIREN.subject, self._heard.append, _COMES_NEARER)
            self._running = True
            while True:
                await asyncio.sleep(_STEP)
                for device in self._devices.values():
                    device.drive(_STEP)
                rounds += 1
                if rounds % _ROUNDS == 0:
                    ambulance.raise_event(SIREN.subject, {"speed": _SPEEDS[AMBULANCE]})

    @asynccontextmanager
    async def _on_the_air(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for device in self._devices.values():
                await stack.enter_async_context(device.connected())
            running = asyncio.create_task(self._runtime.run())
            await asyncio.sleep(0)  # they have joined
            try:
                yield
            finally:
                self._runtime.stop()
                await running
                for device in self._devices.values():
                    await device.uplink.done()

    def _taxis(self) -> Iterator[_Device]:
        return (device for device in self._devices.values() if device.kind == "taxi")
