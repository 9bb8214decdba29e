"""A city centre: people who walk, ride and drive from one place to the next, and what they have to say.

The motion is as simple as can be (straight to the next place, a little unsteady).  Positions are *reported* now and
then, to the matcher, which knows the present, and to a history, on which delivery is defined; nothing here is delivered
on the strength of where somebody truly is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.matching import Matcher
from nearcast.model.area import Circle
from nearcast.model.event import Event, Proximity
from nearcast.model.geometry import EARTH_RADIUS, Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, instant
from nearcast.model.values import Path

Floats = NDArray[np.float64]

CENTER: Final = Point(49.8728, 8.6512)
HALF_WIDTH: Final = 1_800.0
HALF_HEIGHT: Final = 1_100.0
METRES_PER_DEGREE: Final = math.pi * EARTH_RADIUS / 180
STEP: Final = 5
"""Seconds of the city's time between two looks at it."""
REPORT_EVERY: Final = 4
"""Steps between two position reports of one person."""
EVENTS_PER_STEP: Final = 30
BRIDGE: Final = 3

PLACES: Final = {  # metres east and north of the centre
    "the square": (0.0, 0.0),
    "the castle": (320.0, 180.0),
    "the station": (-1_350.0, 120.0),
    "the bridge": (-900.0, -760.0),
    "the park": (180.0, 780.0),
    "the university": (700.0, 560.0),
    "the market": (-150.0, -300.0),
    "the stadium": (1_350.0, -700.0),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to move: how common it is, how fast, and what those who do it subscribe to."""

    name: str
    transport: str
    share: float
    speed: float
    interests: tuple[Subscription, ...]


NOTICES: Final = Subscription("notice/#", id="notices")
TRAFFIC: Final = Subscription("traffic/#", where="severity >= 3", area=Circle(300), id="traffic")
OFFERS: Final = Subscription("offers/+", where="discount >= 20", area=Circle(250), id="offers")
MUSIC: Final = Subscription("city/#", where="genre = 'music' AND price < 30", area=Circle(800), id="music")
CHAT: Final = Subscription("chat/#", id="chat")

KINDS: Final = (
    Kind("walker", "/foot", 0.50, 1.4, (NOTICES, OFFERS, CHAT)),
    Kind("cyclist", "/vehicle/bicycle", 0.15, 4.5, (NOTICES, TRAFFIC, MUSIC)),
    Kind("car", "/vehicle/motorized/car", 0.28, 9.0, (NOTICES, TRAFFIC)),
    Kind("bus", "/vehicle/motorized/bus", 0.07, 7.0, (NOTICES, TRAFFIC, CHAT)),
)


def point_at(east: float, north: float) -> Point:
    """The point that lies so many metres from the centre."""
    lat, lon = degrees(np.array([east]), np.array([north]))
    return Point(float(lat[0]), float(lon[0]))


def degrees(east: Floats, north: Floats) -> tuple[Floats, Floats]:
    lat = CENTER.lat + north / METRES_PER_DEGREE
    return lat, CENTER.lon + east / (METRES_PER_DEGREE * math.cos(math.radians(CENTER.lat)))


class City:
    """Everybody, the matcher and the history that hear of them, and an ambulance."""

    def __init__(self, people: int, seed: int = 7) -> None:
        self.random = np.random.default_rng(seed)
        self.matcher = Matcher()
        self.history = History()
        self.now = instant("2026-11-15T09:00:00Z")
        self.steps = 0
        self._published = 0
        self._places = np.array(list(PLACES.values()))
        self.kind = self.random.choice(len(KINDS), people, p=[kind.share for kind in KINDS])
        self.ids = [f"{KINDS[kind].name}-{number}" for number, kind in enumerate(self.kind)]
        self.destination = self.random.integers(len(PLACES), size=people)
        start = self._places[self.random.integers(len(PLACES), size=people)]
        self.east = np.clip(start[:, 0] + self.random.normal(0, 260, people), -HALF_WIDTH, HALF_WIDTH)
        self.north = np.clip(start[:, 1] + self.random.normal(0, 200, people), -HALF_HEIGHT, HALF_HEIGHT)
        self._speed = np.array([kind.speed for kind in KINDS])[self.kind] * self.random.uniform(0.7, 1.2, people)
        self.numbers = self.matcher.add_clients(self.ids, *degrees(self.east, self.north))
        self.ambulance = (-1_500.0, -900.0)
        self._ambulance_to = 0
        self._report(np.arange(people))
        for person in range(people):
            self._register(person)
        self._subscribe()

    def _subscribe(self) -> None:
        for number, kind in enumerate(KINDS):
            those = np.flatnonzero(self.kind == number)
            for subscription in kind.interests:
                self.matcher.subscribe_many(self.numbers[those], subscription)
                for person in those.tolist():
                    self.history.subscribed(self.ids[person], self.now, subscription)

    def step(self) -> list[Event]:
        """Let a few seconds pass; the events that were published at their end, the ambulance's warning last."""
        self.steps += 1
        self.now += STEP * MICROSECONDS
        arrived = self._walk()
        self._drive_ambulance()
        self._report(np.arange(self.steps % REPORT_EVERY, len(self.ids), REPORT_EVERY))
        for person in arrived.tolist():
            self._register(person)
        return [*(self._say() for _ in range(EVENTS_PER_STEP - 1)), self._warning()]

    def publish(self, topic: str, **parts: Any) -> Event:
        """An event of this moment."""
        self._published += 1
        return Event(f"event-{self._published}", topic, self.now, **parts)

    def where(self, person: int) -> Point:
        return point_at(float(self.east[person]), float(self.north[person]))

    def is_motorized(self) -> NDArray[np.bool_]:
        return np.array([kind.transport.startswith("/vehicle/motorized") for kind in KINDS])[self.kind]

    def _walk(self) -> NDArray[np.int64]:
        """Move everybody; those who reached their destination choose another."""
        target = self._places[self.destination]
        east, north = target[:, 0] - self.east, target[:, 1] - self.north
        left = np.hypot(east, north)
        stride = self._speed * STEP
        share = np.minimum(stride, left) / np.maximum(left, 1.0)
        self.east += share * east + self.random.normal(0, 4, len(left))
        self.north += share * north + self.random.normal(0, 4, len(left))
        arrived = np.flatnonzero(left < stride + 60)
        self.destination[arrived] = self.random.integers(len(PLACES), size=len(arrived))
        return arrived

    def _drive_ambulance(self) -> None:
        target = self._places[self._ambulance_to]
        east, north = target[0] - self.ambulance[0], target[1] - self.ambulance[1]
        left, stride = math.hypot(east, north), 14.0 * STEP
        if left <= stride:
            self._ambulance_to = int(self.random.integers(len(PLACES)))
        else:
            self.ambulance = self.ambulance[0] + east / left * stride, self.ambulance[1] + north / left * stride

    def _report(self, people: NDArray[np.int64]) -> None:
        lat, lon = degrees(self.east[people], self.north[people])
        self.matcher.move_many(self.numbers[people], lat, lon)
        for person, a, b in zip(people.tolist(), lat.tolist(), lon.tolist(), strict=True):
            self.history.moved(self.ids[person], self.now, Point(a, b))

    def _register(self, person: int) -> None:
        east, north = self._places[self.destination[person]]
        trip = {"transport": _TRANSPORTS[self.kind[person]], "destination": point_at(east, north)}
        self.matcher.register_context(self.ids[person], "trip", trip)
        self.history.registered(self.ids[person], self.now, "trip", trip)

    def _warning(self) -> Event:
        here = point_at(*self.ambulance)
        return self.publish(
            "traffic/ambulance",
            attributes={"severity": 5},
            place=here,
            reach=SIREN.reach(here),
            to="under(transport, '/vehicle')",
        )

    def _say(self) -> Event:
        """Somebody says something, where they are."""
        person = int(self.random.integers(len(self.ids)))
        here, said = self.where(person), int(self.random.integers(4))
        common: dict[str, Any] = {"place": here, "publisher": self.ids[person]}
        if said == 0:
            return self.publish("traffic/jam", attributes={"severity": int(self.random.integers(1, 6))}, **common)
        if said == 1:
            return self.publish(
                "offers/coffee", attributes={"discount": int(self.random.integers(1, 11)) * 5}, **common
            )
        if said == 2:
            genre = "music" if self.random.random() < 0.5 else "theatre"
            price = int(self.random.integers(60))
            return self.publish("city/tonight", attributes={"genre": genre, "price": price}, **common)
        return self.publish("chat/nearby", reach=Circle(120, here), **common)


SIREN: Final = Proximity("traffic/ambulance", Circle(500))
"""It moves with the ambulance: every warning reaches as far as this from where it is given."""

_TRANSPORTS: Final = tuple(Path.parse(kind.transport) for kind in KINDS)
