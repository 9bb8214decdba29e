"""Somebody in the city with a phone: one client of the broker, over MQTT, as any application has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from nearcast.cli.demo.city import City
from nearcast.cli.demo.places import point_at
from nearcast.cli.demo.witness import PATIENCE, RADIUS, Report, Witness
from nearcast.client.client import Client, connect
from nearcast.client.events import Events
from nearcast.model.values import Path, Value

TOPIC: Final = "city/talk"
INTEREST: Final = "city/#"
TRAFFIC: Final = "traffic/#"
"""What those who drive are interested in, wherever it happens: who says it says whom it concerns."""

JAM: Final = "traffic/jam"
FIX: Final = 1.0
"""Seconds between two looks at where somebody is."""

SILENCE: Final = 60.0
"""Mean seconds between two things that somebody says; a market makes people talk more."""

MARKET_SILENCE: Final = 12.0

_LINGERING: Final = 1.0
"""Seconds that somebody who leaves stays connected at least: what is on its way may still come."""


@dataclass(frozen=True, slots=True)
class PersonStatistics:
    """What one client has had and said."""

    delivered: int = 0
    unwanted: int = 0
    """Copies that the last check has dropped."""

    doubled: int = 0
    context_messages: int = 0
    """What it has told of where it is, and that it follows a transition."""

    def __add__(self, other: PersonStatistics) -> PersonStatistics:
        return PersonStatistics(
            self.delivered + other.delivered,
            self.unwanted + other.unwanted,
            self.doubled + other.doubled,
            self.context_messages + other.context_messages,
        )


@dataclass(slots=True, eq=False)
class Person:
    """Comes, moves, talks now and then, and goes."""

    number: int
    city: City
    witness: Witness
    url: str
    chance: Random
    day: int
    """Of several on the same broker: ids are not used twice."""

    moving: asyncio.Event
    """Cleared: everybody stands still and says nothing."""

    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    listening: bool = False
    still: asyncio.Event = field(default_factory=asyncio.Event)
    """It waits to be let move again, and the broker knows where it is; or it has gone."""

    context: dict[str, Value] = field(default_factory=dict)
    """As the broker was told last."""

    _client: Client | None = None
    _events: Events | None = None
    _said: int = 0
    _headed: str = ""

    def statistics(self) -> PersonStatistics:
        if self._client is None or self._events is None:
            return PersonStatistics()
        stream, schemes = self._events.statistics(), self._client.statistics().schemes
        told = 0 if schemes is None else schemes.messages_out
        return PersonStatistics(stream.delivered, stream.unwanted, stream.duplicates, told)

    async def live(self) -> PersonStatistics:
        """From coming to going."""
        name = self.city.name_of(self.number)
        self._client = connect(self.url, client_id=name, clean_start=True, session_expiry=0, keep_alive=60)
        async with self._client as client:
            await self._report(client)
            self._events = client.subscribe(INTEREST, within=RADIUS, no_local=True)
            async with self._events as events, self._traffic(client) as traffic:
                self.witness.listens(self.number)
                self.listening = True
                reading = asyncio.gather(self._read(events), self._drive(traffic))
                try:
                    await self._stay(client, reading)
                    await self._linger()
                finally:
                    self.listening = False
                    self.still.set()
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                statistics = self.statistics()
        self.witness.gone(self.number)
        self.witness.doubles(statistics.doubled)
        return statistics

    async def _stay(self, client: Client, reading: asyncio.Future[Any]) -> None:
        while True:
            await self._pause(FIX * self.chance.uniform(0.8, 1.2))
            if not self.leaving.is_set() and not self.moving.is_set():
                self.still.set()
                await self.moving.wait()
                self.still.clear()
            if reading.done():
                reading.result()  # raises what has ended it
            if self.leaving.is_set():
                return
            here = await self._report(client)
            silence = MARKET_SILENCE if self.city.market_day else SILENCE
            if self.chance.random() < FIX / silence:
                await self._talk(client, here)

    async def _report(self, client: Client) -> Report:
        """Say where it is; and where it goes, if that has changed."""
        east, north = self.city.where(self.number)
        report = self.witness.reports(self.number, east, north)
        point, headed = point_at(east, north), self.city.heading_for(self.number)
        context: dict[str, object] = {}
        if headed != self._headed:
            self._headed, self.context = headed, self._context()
            context = dict(self.context)
        await client.update(lat=point.lat, lon=point.lon, attributes=context)
        self.witness.confirm(report)
        return report

    def _context(self) -> dict[str, Value]:
        transport = Path.parse(self.city.transport_of(self.number))
        return {"transport": transport, "destination": self.city.destination_of(self.number)}

    async def _talk(self, client: Client, here: Report) -> None:
        """Where it is, as it has just said: the person may have got farther since."""
        self._said += 1
        flight = self.witness.publishes(
            f"talk-{self.day}-{self.number}-{self._said}", self.number, here.east, here.north
        )
        await client.publish(TOPIC, b"who is here?", id=flight.id, mood=self.chance.choice(("happy", "calm", "lost")))
        self.witness.published(flight)

    async def _read(self, events: Events) -> None:
        async for event in events:
            self.witness.gets(self.number, event.id)

    @asynccontextmanager
    async def _traffic(self, client: Client) -> AsyncIterator[Events | None]:
        """Of those who drive."""
        if not self.city.drives(self.number):
            yield None
            return
        async with client.subscribe(TRAFFIC, no_local=True) as traffic:
            yield traffic

    async def _drive(self, traffic: Events | None) -> None:
        if traffic is None:
            return
        async for event in traffic:
            self.witness.gets(self.number, event.id)
            if event.topic == JAM and self.moving.is_set():
                self.city.turn_back(self.number)

    async def _linger(self) -> None:
        self.witness.goes(self.number)
        await asyncio.sleep(_LINGERING)
        waited = 0.0
        while self.witness.owes(self.number) and waited < PATIENCE:
            waited += 0.1
            await asyncio.sleep(0.1)

    async def _pause(self, seconds: float) -> None:
        """Or until it is time to leave."""
        try:
            async with asyncio.timeout(seconds):
                await self.leaving.wait()
        except TimeoutError:
            return
