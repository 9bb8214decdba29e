"""What else happens in the city: a jam that concerns those who drive towards it, and newcomers who ask what happened before they came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

from nearcast.cli.demo.city import HASTE, Trip
from nearcast.cli.demo.crowd import Crowd
from nearcast.cli.demo.person import JAM, TOPIC
from nearcast.cli.demo.places import BRIDGE, MARKET, PLACES, point_at
from nearcast.cli.demo.witness import RADIUS, Witness
from nearcast.client.client import Client, connect
from nearcast.errors import TimedOut
from nearcast.model.values import Path
from nearcast.runtime.live.clock import LiveClock

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets  # slow to import

Tell = Callable[[str], None]

TRAFFIC_CONTROL: Final = "traffic-control"
_AT_THE_BRIDGE: Final = 40.0
"""Metres: destinations so near to it count as the bridge."""

_CALM: Final = 9.0
"""Seconds from one jam to the next."""

_SPREADING: Final = 2.0
"""Seconds after which somebody counts who has heard of it."""

_STAY: Final = 10.0
"""Seconds that a newcomer walks about."""

_WORTH_ASKING: Final = 20
"""Events before the first one comes."""

_WALKING: Final = 1.4 * HASTE


def addressed_to_the_bridge() -> str:
    """Whoever drives, and drives there: what they said of themselves is compared, not where they are."""
    east, north = BRIDGE.metres
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
    corners = (point_at(east + x * _AT_THE_BRIDGE, north + y * _AT_THE_BRIDGE) for x, y in signs)
    ring = ", ".join(f"{corner.lon:.6f} {corner.lat:.6f}" for corner in corners)
    return f"under(transport, '/vehicle/motorized') AND S_WITHIN(destination, POLYGON(({ring})))"


class Jams:
    """Traffic control says that there is a jam at the bridge, now and then; ``run`` is to be cancelled."""

    def __init__(self, url: str, crowd: Crowd, witness: Witness, day: int) -> None:
        self._url: Final = url
        self._crowd: Final = crowd
        self._witness: Final = witness
        self._day: Final = day
        self.said = 0
        self.heard = 0
        """How many there were, in all, who heard of one."""

        self.strangers = 0
        """Of these, who had not said that they drive there: nobody, or the broker is wrong."""

    async def run(self, tell: Tell) -> None:
        async with _joined(self._url, TRAFFIC_CONTROL) as control:
            place = BRIDGE.point
            await control.update(lat=place.lat, lon=place.lon, role="traffic control")
            while True:
                await asyncio.sleep(_CALM)
                self.said += 1
                jam = f"jam-{self._day}-{self.said}"
                before = self._driving_there()
                await control.publish(JAM, b"jam at the bridge", id=jam, to=addressed_to_the_bridge(), severity=4)
                driving = before | self._driving_there()  # what they say meanwhile may count or not
                await asyncio.sleep(_SPREADING)
                heard = self._witness.others.get(jam, set())
                self.heard += len(heard)
                self.strangers += len(heard - driving)
                tell(f"a jam at the bridge, said to those who drive there: {len(heard)} hear of it and turn back")

    def _driving_there(self) -> set[int]:
        """By what they have said of themselves."""
        return {person.number for person in self._crowd.everybody if person.context.get("destination") == BRIDGE.point}


class Newcomers:
    """One after the other comes to the market, and asks for the last two hours and for what is said from now on."""

    def __init__(self, url: str, streets: Streets, witness: Witness, day: int, seed: int = 7) -> None:
        self._url: Final = url
        self._witness: Final = witness
        self._streets: Final = streets
        self._day: Final = day
        self._random: Final = Random(seed)
        self.came = 0
        self.from_the_past = 0
        self.live = 0

    async def run(self, tell: Tell) -> None:
        """To be cancelled."""
        while True:
            await asyncio.sleep(_STAY / 4)
            if len(self._witness.flights) < _WORTH_ASKING:
                continue
            self.came += 1
            past, live = await self._visit(f"newcomer-{self._day}-{self.came}")
            self.from_the_past += past
            self.live += live
            tell(
                f"somebody new at the market asked for the last two hours: {past} events at once, then {live} live ones"
            )

    async def _visit(self, name: str) -> tuple[int, int]:
        """How many events there were before it came, and since."""
        trip = Trip(*self._streets.beside(*MARKET.metres, wheels=False))
        target = self._random.choice(PLACES).metres
        trip.go(self._streets.way((trip.east, trip.north), target, wheels=False))
        past = live = 0
        loop = asyncio.get_running_loop()
        async with _joined(self._url, name) as me:
            await _tell_place(me, trip, {"role": "newcomer", "transport": Path.parse("/foot")})
            came, leaves = LiveClock().now(), loop.time() + _STAY
            async with me.subscribe(TOPIC, within=RADIUS, since="-2h", batch=50) as heard:
                step = loop.time()
                while (left := leaves - loop.time()) > 0:
                    with suppress(TimedOut):
                        event = await heard.next(min(left, 1.0))
                        past, live = (past + 1, live) if event.published < came else (past, live + 1)
                    if (now := loop.time()) - step >= 1.0:
                        trip.advance(_WALKING * (now - step))
                        step = now
                        await _tell_place(me, trip)
        return past, live


def _joined(url: str, name: str) -> Client:
    return connect(url, client_id=name, clean_start=True, session_expiry=0)


async def _tell_place(client: Client, trip: Trip, context: Mapping[str, object] | None = None) -> None:
    here = point_at(trip.east, trip.north)
    await client.update(lat=here.lat, lon=here.lon, attributes=context)
