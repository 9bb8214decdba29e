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
from nearcast.matching.fences import FenceIndex, Passages
from nearcast.matching.grid import Floats, Int64s
from nearcast.model.passage import Passage, Visit
from nearcast.model.presence import APPEARS, DISAPPEARS, Kind, Stay, Way, Whereabouts, meeting
from nearcast.mqtt.observations import Observation

Key = tuple[str, str]
"""The observer, and the id of its subscription."""

Step = tuple[Session, Way]

FEW: Final = 4


@dataclass(slots=True, eq=False)
class Watch:
    """One subscription of an observer."""

    session: Session
    held: Held
    wanted: Observation
    fence: bytes
    """The name that it gave, as JSON."""

    properties: bytes
    """Of packets that tell of it."""

    anchor: str | None
    """The client around which it watches."""

    is_plain: bool
    """It is about everybody, whatever they are, and lies around nobody."""

    moments: tuple[bool, ...]
    """Of what happens, what it asks for (``happenings``)."""

    stays: dict[str, Stay] = field(default_factory=dict)
    """Visits that are going on, if it asks for stays."""

    @classmethod
    def of(cls, session: Session, held: Held) -> Watch:
        assert held.observation is not None
        wanted = held.observation
        anchor = (wanted.around or session.client) if wanted.area.is_relative else None
        plain = anchor is None and wanted.who is None and held.subscription.where is None
        moments = tuple(kind in wanted.kinds for kind in (Kind.ENTER, Kind.STAY, Kind.LEAVE, Kind.CROSS))
        name = msgspec.json.encode(held.name)
        return cls(session, held, wanted, name, properties_of(held.identifiers), anchor, plain, moments)

    @property
    def key(self) -> Key:
        return self.session.client, self.held.subscription.id


class Passed(NamedTuple):
    """Somebody passed a fence."""

    step: int
    watch: Watch
    visits: tuple[Visit, ...]


@dataclass(frozen=True, slots=True)
class Moving:
    """Those ways of some steps that lead from one place to another, in columns."""

    step: Int64s
    """The number of it."""

    lat: Floats
    lon: Floats
    end_lat: Floats
    end_lon: Floats
    left: Int64s
    came: Int64s

    @property
    def are_few(self) -> bool:
        """Then columns cost more than they save."""
        return len(self.step) < FEW

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Moving | None:
        rows = [
            (number, way.left, way.came, before.lat, before.lon, after.lat, after.lon)
            for number, (_, way) in enumerate(steps)
            if (before := way.before) is not None and (after := way.after) is not None and before != after
        ]
        if not rows:
            return None
        step, left, came, lat, lon, end_lat, end_lon = zip(*rows, strict=True)
        return cls(
            np.array(step, np.int64),
            np.array(lat),
            np.array(lon),
            np.array(end_lat),
            np.array(end_lon),
            np.array(left, np.int64),
            np.array(came, np.int64),
        )


class Met(NamedTuple):
    """Somebody passed the surroundings of somebody else."""

    step: int
    watch: Watch
    who: str
    """Who is observed: the one who moves, or the one who stands."""

    passages: tuple[Passage, ...]
    other: Whereabouts
    """Of the one of whom the way is not."""


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
        self._fences: Final[FenceIndex[Watch]] = FenceIndex()
        self._visited: Final[FenceIndex[Watch]] = FenceIndex()
        """Those of which somebody asks who stays: for them each visit is followed by itself."""

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
        return len(self._fences) + len(self._visited)

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
            self._fences_of(watch).put(watch, watch.wanted.area)
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
            self._fences_of(watch).remove(watch)
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

    def _fences_of(self, watch: Watch) -> FenceIndex[Watch]:
        return self._fences if watch.wanted.stay is None else self._visited

    def covering(self, steps: Sequence[Step]) -> Iterator[Passed]:
        """The fences in which these ways begin in nothing, or end in it."""
        for number, (_, way) in enumerate(steps):
            if way.before is not None and way.after is not None:
                continue
            point, visits = (way.after, APPEARS) if way.before is None else (way.before, DISAPPEARS)
            for fences in (self._fences, self._visited):
                if point is not None and len(fences):
                    for watch in fences.covering(point):
                        yield Passed(number, watch, visits)

    def passed(self, moving: Moving) -> Iterator[Passed]:
        """The fences that these ways pass, if of each is to be known who passed it: those of stays, and all of them if there are few ways."""
        for fences in (self._visited, self._fences) if moving.are_few else (self._visited,):
            if len(fences):
                for way, watch, visits in fences.passed(moving.lat, moving.lon, moving.end_lat, moving.end_lon):
                    yield Passed(int(moving.step[way]), watch, visits)

    def passages(self, moving: Moving) -> Passages[Watch] | None:
        """All others: there may be thousands."""
        if moving.are_few or not len(self._fences):
            return None
        return self._fences.passages(moving.lat, moving.lon, moving.end_lat, moving.end_lon)

    # Around clients

    def stands(self, client: str, way: Way, *, observable: bool) -> None:
        """Where it is after a way, for whoever moves next."""
        rings = ((ring.standing, client in ring.watches) for ring in self._rings.values())
        for among, belongs in (*rings, (self._others, observable)):
            if belongs and way.after is not None:
                among.put(client, way)
            else:
                among.remove(client)

    def met(self, number: int, client: str, way: Way, *, observable: bool) -> Iterator[Met]:
        """Whom a client passes at a distance that somebody asks for; then it stands where it is."""
        before: tuple[Way, ...] | None = None
        for watches, who, other in self._candidates(client, way, observable=observable):
            if before is None and other.ways:
                before = self._ways(client)
            for watch in watches.values():
                passages = meeting(watch.wanted.metres, other, way, before or ())
                if passages:
                    yield Met(number, watch, who, passages, other)
        self.stands(client, way, observable=observable)

    def _candidates(
        self, client: str, way: Way, *, observable: bool
    ) -> Iterator[tuple[dict[Key, Watch], str, Whereabouts]]:
        """Those whom it may pass: who watches, who is observed, and where the one of the two was who is not on that way."""
        if observable:
            for ring in self._rings.values():
                for anchor in ring.standing.along(way, ring.metres):
                    if anchor != client:
                        yield ring.watches[anchor], client, ring.standing.whereabouts(anchor, way.left)
        own = self._around.get(client)
        if own:
            farthest = max(watch.wanted.metres for watch in own.values())
            for who in self._others.along(way, farthest):
                if who != client:
                    yield own, who, self._others.whereabouts(who, way.left)

    def _ways(self, client: str) -> tuple[Way, ...]:
        """How it came where it is."""
        for among in (self._others, *(ring.standing for ring in self._rings.values())):
            if client in among:
                return among.whereabouts(client, 0).ways
        return ()
