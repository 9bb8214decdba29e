"""The "city": the workload on which every system of the match benchmark is measured.

Four clients in five gather around attraction points (Gaussian scatter), one in five is anywhere.  Events happen
where clients are, as in an augmented-reality game, so that hot spots also see more events.  The area grows with
the number of clients: density, and with it the work per event, stays the same from ten thousand to a million.

The number of clients within reach follows in closed form.  With ``m`` clients per attraction, share ``c``
clustered, scatter ``s`` and jitter ``j`` per axis, overall density ``d`` and radius ``r``:

    1  +  d pi r²  +  c² m (1 - exp(-r² / 2(2s² + j²)))  (the client at the place, everybody, its own crowd)

and ``d`` is chosen such that this is 30.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.interests import Interest, interests
from nearcast.benchmark.plane import Floats, to_degrees, to_plane

Integers = NDArray[np.int32]

RADIUS: Final = 150.0
WITHIN_REACH: Final = 30.0
CLUSTERED: Final = 0.8
SCATTER: Final = 200.0
JITTER: Final = 5.0
CLIENTS_PER_ATTRACTION: Final = 200
SUBJECTS: Final = (
    "traffic", "weather", "games", "offers", "concerts", "museums", "transit", "parking", "safety", "sports",
    "food", "markets", "parks", "schools", "health", "tourism", "nightlife", "bikes", "news", "friends",
)  # fmt: skip
KINDS: Final = ("accident", "jam", "works", "sale", "quest", "item", "meeting", "show", "rain", "delay", "queue", "tip")

Attribute = NDArray[np.int64] | Floats | NDArray[np.bool_] | tuple[Integers, tuple[str, ...]]
"""A column; texts are codes into a dictionary."""


@dataclass(frozen=True, eq=False)
class Events:
    """Events in columns, in the order of their publication (microseconds)."""

    published: NDArray[np.int64]
    lat: Floats
    lon: Floats
    topics: tuple[str, ...]
    topic: Integers
    attributes: dict[str, Attribute]

    def __len__(self) -> int:
        return len(self.lat)

    def part(self, start: int, stop: int) -> Events:
        columns = {name: _part(column, start, stop) for name, column in self.attributes.items()}
        rows = slice(start, stop)
        return Events(self.published[rows], self.lat[rows], self.lon[rows], self.topics, self.topic[rows], columns)


@dataclass(frozen=True, eq=False)
class City:
    """``interest[i]`` is the number of client ``i``'s subscription in ``interests``."""

    side: float
    ids: tuple[str, ...]
    lat: Floats
    lon: Floats
    interests: tuple[Interest, ...]
    interest: Integers
    events: Events

    def plane(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Clients' and events' metres east and north of the centre."""
        return *to_plane(self.lat, self.lon), *to_plane(self.events.lat, self.events.lon)


def city(clients: int, events: int, seed: int = 1) -> City:
    random = np.random.default_rng(seed)
    side = math.sqrt(clients / density())
    x, y = _crowd(random, clients, side)
    lat, lon = to_degrees(x, y)
    catalogue = interests(random, SUBJECTS, KINDS)
    return City(
        side=side,
        ids=tuple(f"client-{number:07d}" for number in range(clients)),
        lat=lat,
        lon=lon,
        interests=catalogue,
        interest=_choices(random, clients, catalogue),
        events=_events(random, events, x, y),
    )


def moved(world: City, seed: int = 2, metres: float = 10.0) -> tuple[Floats, Floats]:
    """Everybody's next position: a few steps further."""
    random = np.random.default_rng(seed)
    x, y = to_plane(world.lat, world.lon)
    return to_degrees(x + random.normal(0, metres, len(x)), y + random.normal(0, metres, len(y)))


def density() -> float:
    """Clients per square metre such that 30 of them are within reach of an event."""
    together = 1 - math.exp(-(RADIUS**2) / (2 * (2 * SCATTER**2 + JITTER**2)))
    crowd = CLUSTERED**2 * CLIENTS_PER_ATTRACTION * together
    return (WITHIN_REACH - 1 - crowd) / (math.pi * RADIUS**2)


def _crowd(random: np.random.Generator, clients: int, side: float) -> tuple[Floats, Floats]:
    attractions = random.uniform(-side / 2, side / 2, (max(1, round(clients / CLIENTS_PER_ATTRACTION)), 2))
    favourite = attractions[random.integers(0, len(attractions), clients)]
    places = favourite + random.normal(0, SCATTER, (clients, 2))
    anywhere = random.random(clients) >= CLUSTERED
    places[anywhere] = random.uniform(-side / 2, side / 2, (int(anywhere.sum()), 2))
    # The city ends somewhere; who would stand outside is mirrored back in.
    places = np.where(np.abs(places) > side / 2, np.sign(places) * side - places, places)
    return places[:, 0].copy(), places[:, 1].copy()


def _choices(random: np.random.Generator, clients: int, catalogue: tuple[Interest, ...]) -> Integers:
    """Four in five take everything (interest 0), half of the others a narrower topic, half a predicate."""
    narrow = np.flatnonzero([interest.topic != "city/#" for interest in catalogue])
    picky = np.flatnonzero([interest.predicate is not None for interest in catalogue])
    draw = random.random(clients)
    chosen = np.zeros(clients, np.int32)
    chosen[draw >= 0.8] = random.choice(narrow, int((draw >= 0.8).sum()))
    chosen[draw >= 0.9] = random.choice(picky, int((draw >= 0.9).sum()))
    return chosen


def _events(random: np.random.Generator, count: int, x: Floats, y: Floats) -> Events:
    there = random.integers(0, len(x), count)
    lat, lon = to_degrees(x[there] + random.normal(0, JITTER, count), y[there] + random.normal(0, JITTER, count))
    return Events(
        published=1_700_000_000_000_000 + np.arange(count, dtype=np.int64),
        lat=lat,
        lon=lon,
        topics=tuple(f"city/{subject}/report" for subject in SUBJECTS),
        topic=random.integers(0, len(SUBJECTS), count).astype(np.int32),
        attributes={
            "severity": random.integers(1, 6, count),
            "crowd": random.integers(0, 1000, count),
            "price": np.round(random.uniform(0, 100, count), 2),
            "kind": (random.integers(0, len(KINDS), count).astype(np.int32), KINDS),
            "verified": random.random(count) < 0.5,
        },
    )


def _part(column: Attribute, start: int, stop: int) -> Attribute:
    if isinstance(column, tuple):
        return column[0][start:stop], column[1]
    return column[start:stop]
