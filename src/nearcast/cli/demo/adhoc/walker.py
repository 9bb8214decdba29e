"""One process: somebody who walks to and fro, talks to those around over UDP, and does what it reads, line by line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

import msgspec

from nearcast.cli.demo.told import answer, run_told
from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.adhoc.registry import MECHANISMS
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.publisher import LocationRequest
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.live import LiveRuntime, MovingPosition
from nearcast.runtime.live.ranged import RangedNetwork
from nearcast.runtime.ports import Cancellable, Fix
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.engine import HostEngine
from nearcast.transition.text import mechanism_in

HOME: Final = Point(49.8728, 8.6512)
TOPIC: Final = "street/talk"
VICINITY: Final = 125.0
"""Metres around somebody in which he wants to hear what happens (BYPASS.KOM 6.1.2)."""

WALKING: Final = 1.4
"""Metres per second."""

STROLL: Final = 6.0
"""Metres that somebody walks away from his place in the street at most."""

PAUSE: Final = 0.5
"""Seconds between two things that somebody says, on average."""

SAMPLE: Final = 0.1
"""Seconds between two notes of where somebody is, for who compares."""

PAYLOAD: Final = 128


class WalkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told when it is started."""

    name: str
    east: float
    """Metres along the street."""

    mechanism: str
    radius: float
    address: str
    group: str
    group_port: int
    seed: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A line that it reads."""

    do: str
    """``talk``, ``initiate``, ``hush``, ``count`` or ``end``."""

    mechanism: str = ""


class Said(msgspec.Struct, frozen=True, array_like=True):
    id: str
    time: Instant
    lat: float
    lon: float


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A line that it writes: when it is there, and whenever it is asked."""

    name: str
    published: int = 0
    heard: int = 0
    """Events in the frames that reached it, copies included."""

    delivered: int = 0
    forwarded: int = 0
    suppressed: int = 0
    """Copies of what it had already."""

    doubled: int = 0
    """Events that its application was told of twice."""

    mechanism: str = ""
    said: tuple[Said, ...] = ()
    got: tuple[str, ...] = ()
    track: tuple[tuple[Instant, float, float], ...] = ()


class Talker(Component):
    """The application."""

    def __init__(self, settings: WalkerSettings) -> None:
        self._settings: Final = settings
        self._said: Final[list[Said]] = []
        self._got: Final[list[str]] = []
        self._track: Final[list[tuple[Instant, float, float]]] = []
        self._next: Cancellable | None = None
        self._host: Host
        self._events: CarriedEvents
        self._chance: Random

    def start(self, host: Host) -> None:
        self._host = host
        self._chance = host.random("talk")
        self._events = host.component(CarriedEvents)
        around = Subscription(TOPIC, area=Circle(VICINITY), id="around", no_local=True)
        self._events.subscribe(around, lambda event: self._got.append(event.id), LocationRequest(SAMPLE))
        assert host.sensor is not None
        host.sensor.request(SAMPLE, self._note)

    def talk(self) -> None:
        self._next = self._host.timers.after(self._chance.uniform(0.0, 2 * PAUSE), self._say)

    def hush(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def account(self, *, full: bool) -> Account:
        adhoc = self._host.component(AdHoc).statistics()
        inbox = self._events.inbox.statistics()
        return Account(
            name=self._settings.name,
            published=adhoc.published,
            heard=inbox.delivered + inbox.unwanted + adhoc.copies,
            delivered=len(self._got),
            forwarded=adhoc.forwarded,
            suppressed=adhoc.copies,
            doubled=len(self._got) - len(set(self._got)),
            mechanism=adhoc.mechanism,
            said=tuple(self._said) if full else (),
            got=tuple(self._got) if full else (),
            track=tuple(self._track) if full else (),
        )

    def _say(self) -> None:
        fix = self._host.sensor.fix() if self._host.sensor else None
        assert fix is not None
        self._note(fix)
        name, here = f"{self._settings.name}-{len(self._said) + 1}", fix.position
        event = Event(name, TOPIC, fix.time, publisher=self._settings.name, place=here, payload=bytes(PAYLOAD))
        self._said.append(Said(name, fix.time, here.lat, here.lon))
        self._events.publish(event, local=True)
        self.talk()

    def _note(self, fix: Fix) -> None:
        self._track.append((fix.time, fix.position.lat, fix.position.lon))


def stroll(east: float) -> MobilityModel:
    """To and fro around a place in the street."""

    def legs(random: Random, start: Instant) -> Iterator[Leg]:
        here = (east, 0.0)
        while True:
            there = (east + random.uniform(-STROLL, STROLL), random.uniform(-STROLL, STROLL))
            leg = Leg.between(start, here, there, WALKING)
            yield leg
            start, here = leg.until, leg.end

    return legs


async def walk(settings: WalkerSettings) -> None:
    """Until there are no more orders."""
    runtime = LiveRuntime(seed=settings.seed)
    position = MovingPosition(
        runtime.clock, stroll(settings.east), runtime.random.stream("stroll", settings.name), Plane(HOME).to_point
    )
    network = RangedNetwork(
        address=settings.address,
        group=settings.group,
        group_port=settings.group_port,
        radius=settings.radius,
        position=position.fix,
    )
    first = mechanism_in(settings.mechanism, MECHANISMS)

    def build() -> Sequence[Component]:
        adhoc = AdHoc(AdHocSettings(first))
        return [HostEngine(), CarriedEvents([adhoc]), adhoc, Talker(settings)]

    place = runtime.add(settings.name, build, [network], position=position.fix)
    orders = asyncio.create_task(_obey(runtime, lambda: place.host))
    try:
        await runtime.run()
    finally:
        orders.cancel()


async def _obey(runtime: LiveRuntime, host_now: Callable[[], Host | None]) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    host = host_now()
    if host is None:  # it could not join; the runtime says why
        return
    try:
        await _take_orders(reader, host.component(Talker), host.component(AdHoc))
    except BrokenPipeError:
        pass  # nobody reads the answers any more
    finally:
        runtime.stop()


async def _take_orders(reader: asyncio.StreamReader, talker: Talker, adhoc: AdHoc) -> None:
    answer(talker.account(full=False))
    # The end of orders is an order as well: whoever gave them has gone.
    while line := await reader.readline():
        order = msgspec.json.decode(line, type=Order)
        match order.do:
            case "talk":
                talker.talk()
            case "hush":
                talker.hush()
            case "initiate":
                adhoc.initiate(mechanism_in(order.mechanism, MECHANISMS))
            case "count":
                answer(talker.account(full=False))
            case _:
                break
    answer(talker.account(full=True))


if __name__ == "__main__":
    sys.exit(run_told(walk, WalkerSettings))
