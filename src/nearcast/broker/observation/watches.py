"""Who watches what: the subscriptions of observers, found by the ways of those who move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
import numpy as np

from nearcast.broker.observation.notices import properties_of
from nearcast.broker.observation.standing import Standing
from nearcast.broker.sessions.session import Held, Session
from nearcast.matching.fences import FenceIndex
from nearcast.model.geometry import Point
from nearcast.model.passage import Passage, Visit
from nearcast.model.presence import APPEARS, DISAPPEARS, Stay, Way, meeting
from nearcast.mqtt.observations import Observation

Key = tuple[str, str]
"""The observer, and the id of its subscription."""

Step = tuple[Session, Way]


@dataclass(slots=True, eq=False)
class Watch:
    """One subscription of an observer."""

    session: Session
    held: Held
    wanted: Observation
    fence: str
    """The name that it gave, as JSON."""

    properties: bytes
    """Of packets that tell of it."""

    anchor: str | None
    """The client around which it watches."""

    is_plain: bool
    """It asks nothing of those whom it is told of, and lies around nobody."""

    stays: dict[str, Stay] = field(default_factory=dict)
    """Visits that are going on, if it asks for stays."""

    @classmethod
    def of(cls, session: Session, held: Held) -> Watch:
        assert held.observation is not None
        wanted = held.observation
        anchor = (wanted.around or session.client) if wanted.area.is_relative else None
        plain = anchor is None and held.subscription.where is None
        name = msgspec.json.encode(held.name).decode()
        return cls(session, held, wanted, name, properties_of(held.identifiers), anchor, plain)

    @property
    def key(self) -> Key:
        return self.session.client, self.held.subscription.id


Passed = tuple[int, Watch, tuple[Visit, ...]]
"""The number of a step, who watches the fence that was passed, and the visits."""


class Met(NamedTuple):
    """Somebody passed the surroundings of somebody else."""

    step: int
    watch: Watch
    who: str
    """Who is observed: the one who moves, or the one who stands."""

    passages: tuple[Passage, ...]
    standing: Point
    """Where the other one of the two is."""


class _Ring:
    """Clients around whom somebody watches at about the same distance: each ring is searched by itself, so that who asks for far around makes it
    no slower to find those who are asked for nearby.
    """

    def __init__(self, number: int) -> None:
        self.metres: Final = 2.0**number
        self.standing: Final = Standing()
        self.watches: Final[dict[str, dict[Key, Watch]]] = {}
        """By whom they are around."""

    @staticmethod
    def number(metres: float) -> int:
        """The smallest that reaches so far."""
        return max(0, math.ceil(math.log2(metres))) if metres > 1.0 else 0


class Watches:
    def __init__(self) -> None:
        self._watches: Final[dict[Key, Watch]] = {}
        self._fences: Final[FenceIndex[Key]] = FenceIndex()
        self._staying: Final[dict[Key, Watch]] = {}
        self._observers: Final[dict[str, int]] = {}
        self._around: Final[dict[str, dict[Key, Watch]]] = {}
        """By whom they are around."""

        self._rings: Final[dict[int, _Ring]] = {}
        self._others: Final = Standing()

    def __len__(self) -> int:
        return len(self._watches)

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._watches.values())

    @property
    def fences(self) -> int:
        return len(self._fences)

    @property
    def is_around(self) -> bool:
        """Whether somebody watches the surroundings of a client."""
        return bool(self._around)

    @property
    def staying(self) -> Iterator[Watch]:
        """Those who ask for stays."""
        return iter(list(self._staying.values()))

    def get(self, key: Key) -> Watch | None:
        return self._watches.get(key)

    def watches_anything(self, client: str) -> bool:
        return client in self._observers

    def is_anchor(self, client: str) -> bool:
        return client in self._around

    def add(self, watch: Watch) -> None:
        self._watches[watch.key] = watch
        self._observers[watch.session.client] = self._observers.get(watch.session.client, 0) + 1
        if watch.anchor is None:
            self._fences.put(watch.key, watch.wanted.area)
            if watch.wanted.stay is not None:
                self._staying[watch.key] = watch
        else:
            self._around.setdefault(watch.anchor, {})[watch.key] = watch
            number = _Ring.number(watch.wanted.metres)
            ring = self._rings.get(number)
            if ring is None:
                ring = self._rings[number] = _Ring(number)
            ring.watches.setdefault(watch.anchor, {})[watch.key] = watch

    def remove(self, key: Key) -> Watch | None:
        watch = self._watches.pop(key, None)
        if watch is None:
            return None
        self._observers[watch.session.client] -= 1
        if not self._observers[watch.session.client]:
            del self._observers[watch.session.client]
        self._staying.pop(key, None)
        if watch.anchor is None:
            self._fences.remove(key)
            return watch
        number = _Ring.number(watch.wanted.metres)
        ring = self._rings[number]
        for around in (self._around, ring.watches):
            del around[watch.anchor][key]
            if not around[watch.anchor]:
                del around[watch.anchor]
        if watch.anchor not in ring.watches:
            ring.standing.remove(watch.anchor)
        if not ring.watches:
            del self._rings[number]
        return watch

    # Fences

    def passed(self, steps: Sequence[Step]) -> Iterator[Passed]:
        """All fences that these ways pass, or in which they begin or end in nothing."""
        if not len(self._fences):
            return
        watches = self._watches
        moving: list[int] = []
        for number, (_, way) in enumerate(steps):
            if way.before is None or way.after is None:
                point, visits = (way.after, APPEARS) if way.before is None else (way.before, DISAPPEARS)
                if point is not None:
                    for key in self._fences.covering(point):
                        yield number, watches[key], visits
            elif way.before != way.after:
                moving.append(number)
        if not moving:
            return
        ends = np.array(
            [
                (way.before.lat, way.before.lon, way.after.lat, way.after.lon)
                for way in (steps[number][1] for number in moving)
                if way.before is not None and way.after is not None
            ]
        )
        lat, lon, end_lat, end_lon = (np.ascontiguousarray(column) for column in ends.T)
        for way_number, key, visits in self._fences.rows(lat, lon, end_lat, end_lon):
            yield moving[way_number], watches[key], visits

    # Around clients

    def stands(self, client: str, way: Way, *, observable: bool) -> None:
        """Where it is after a way, for whoever moves next."""
        rings = ((ring.standing, client in ring.watches) for ring in self._rings.values())
        for among, belongs in (*rings, (self._others, observable)):
            if belongs and way.after is not None:
                among.put(client, way.after)
            else:
                among.remove(client)

    def met(self, number: int, client: str, way: Way, *, observable: bool) -> Iterator[Met]:
        """Whom a client passes at a distance that somebody asks for; then it stands where it is."""
        if observable:
            for ring in self._rings.values():
                for anchor in ring.standing.along(way, ring.metres):
                    if anchor != client:
                        standing = ring.standing.point(anchor)
                        yield from self._meetings(number, way, ring.watches[anchor], standing, client)
        own = self._around.get(client)
        if own:
            farthest = max(watch.wanted.metres for watch in own.values())
            for other in self._others.along(way, farthest):
                if other != client:
                    yield from self._meetings(number, way, own, self._others.point(other), other)
        self.stands(client, way, observable=observable)

    @staticmethod
    def _meetings(number: int, way: Way, watches: dict[Key, Watch], standing: Point, who: str) -> Iterator[Met]:
        for watch in watches.values():
            passages = meeting(watch.wanted.metres, standing, way)
            if passages:
                yield Met(number, watch, who, passages, standing)
