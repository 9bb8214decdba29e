"""A crowd of real clients that walk and talk while the broker changes its filter scheme: is anything lost or doubled?

Everybody keeps a diary of where it said to be.  An event is *lost* for somebody who, from a while before it was published until a while
after, was nowhere but well within its radius, and did not get it.  What lies near the border is not judged: reports are on their way.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import nearcast
from nearcast.client.client import Client
from nearcast.model.geometry import Point, distance

CENTER: Final = Point(49.8728, 8.6512)
METRES: Final = 111_195.0
RADIUS: Final = 150.0
GUARD: Final = 45.0
"""Metres: by so much a scheme may know a position wrongly (reports are due after 10 m) and the event's place may have been left."""
BEFORE, AFTER = 3.0, 8.0
"""Seconds around an event during which a receiver must have been well inside."""
STEP: Final = 1.5
"""Seconds between two updates."""


def place(x: float, y: float) -> Point:
    return Point(CENTER.lat + y / METRES, CENTER.lon + x / METRES / math.cos(math.radians(CENTER.lat)))


@dataclass(slots=True, eq=False)
class Walk:
    """Of all of them, and when it ends: of the monotonic clock; who watches them may put it off, or say that it is time."""

    end: float = math.inf

    def end_in(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds


@dataclass(slots=True, eq=False)
class Walker:
    number: int
    me: Client
    random: random.Random
    size: float
    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0
    times: list[float] = field(default_factory=list)
    places: list[Point] = field(default_factory=list)
    got: Counter[str] = field(default_factory=Counter)
    published: list[tuple[str, float, float, Point]] = field(default_factory=list)

    async def move(self) -> None:
        speed = 1.4
        self.heading += self.random.uniform(-0.6, 0.6)
        if not (abs(self.x) < self.size / 2 and abs(self.y) < self.size / 2):
            self.heading = math.atan2(-self.x, -self.y)
        self.x += math.sin(self.heading) * speed * STEP
        self.y += math.cos(self.heading) * speed * STEP
        here = place(self.x, self.y)
        self.times.append(time.monotonic())
        self.places.append(here)
        await self.me.update(lat=here.lat, lon=here.lon, speed=speed, heading=math.degrees(self.heading) % 360.0, qos=0)

    async def live(self, walk: Walk, talks_every: float) -> None:
        next_word = time.monotonic() + self.random.uniform(BEFORE, BEFORE + talks_every)
        while (now := time.monotonic()) < walk.end:
            await self.move()
            if now >= next_word and now < walk.end - AFTER:
                here = self.places[-1]
                said = time.monotonic()
                event = await self.me.publish("crowd/talk", b"%d" % self.number)
                self.published.append((event, said, time.monotonic(), here))
                next_word = now + talks_every
            await asyncio.sleep(max(0.0, STEP - (time.monotonic() - now)))

    async def listen(self, events: nearcast.client.events.Events) -> None:
        async for event in events:
            self.got[event.id] += 1

    def surely_inside(self, where: Point, since: float, until: float) -> bool:
        first = max(bisect_left(self.times, since) - 1, 0)
        last = bisect_left(self.times, until)
        if not self.times or self.times[first] > since or last >= len(self.times):
            return False
        return all(distance(each, where) < RADIUS - GUARD for each in self.places[first : last + 1])


@dataclass(frozen=True, slots=True)
class Verdict:
    events: int
    expected: int
    lost: int
    doubled: int
    delivered: int


def judge(walkers: list[Walker]) -> Verdict:
    expected = lost = 0
    for walker in walkers:
        for event, said, acknowledged, where in walker.published:
            for other in walkers:
                if other.surely_inside(where, said - BEFORE, acknowledged + AFTER):
                    expected += 1
                    lost += not other.got[event]
    doubled = sum(count - 1 for walker in walkers for count in walker.got.values())
    return Verdict(
        sum(len(walker.published) for walker in walkers),
        expected,
        lost,
        doubled,
        sum(walker.got.total() for walker in walkers),
    )


async def crowd(
    url: str, people: int, size: float, seconds: float, talks_every: float, seed: int, walk: Walk | None = None
) -> list[Walker]:
    """Let that many people live for so long, or until that walk ends, on a square of that many metres."""
    chance = random.Random(seed)
    walkers: list[Walker] = []
    async with asyncio.timeout(seconds + 240):
        clients = [nearcast.connect(url) for _ in range(people)]
        for start in range(0, people, 50):
            await asyncio.gather(*(client.__aenter__() for client in clients[start : start + 50]))
        for number, client in enumerate(clients):
            walker = Walker(number, client, random.Random(seed * 1_000_003 + number), size)
            walker.x, walker.y = chance.uniform(-size / 2, size / 2), chance.uniform(-size / 2, size / 2)
            walker.heading = chance.uniform(0, 2 * math.pi)
            walkers.append(walker)
            await walker.move()
        streams = [walker.me.subscribe("crowd/#", within=RADIUS) for walker in walkers]
        for start in range(0, people, 50):
            await asyncio.gather(*(stream.__aenter__() for stream in streams[start : start + 50]))
        listening = [
            asyncio.create_task(walker.listen(stream)) for walker, stream in zip(walkers, streams, strict=True)
        ]
        if walk is None:
            walk = Walk()
            walk.end_in(seconds)
        await asyncio.gather(*(walker.live(walk, talks_every) for walker in walkers))
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        await asyncio.gather(*(client.close() for client in clients))
    return walkers
