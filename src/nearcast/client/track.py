"""What this client was and where, as it said itself."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from nearcast.model.delivery import addressed_by, within_reach
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.model.predicate import properties_of
from nearcast.model.time import Instant
from nearcast.model.values import Value

T = TypeVar("T")
Contexts = Mapping[str, Mapping[str, Value]]

REMEMBERED: Final = 1024
"""Positions; older events are not judged by position any more."""

_DEGREE: Final = 10_000_000


@dataclass(slots=True, eq=False)
class Steps(Generic[T]):
    """A step function of time, as far as it is remembered."""

    _times: deque[Instant] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _values: deque[T | None] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def newest(self) -> T | None:
        return self._values[-1] if self._values else None

    def add(self, at: Instant, value: T | None) -> None:
        self._times.append(max(at, self._times[-1]) if self._times else at)
        self._values.append(value)

    def knows(self, at: Instant) -> bool:
        """Whether it reaches back so far."""
        return bool(self._times) and self._times[0] <= at

    def at(self, at: Instant) -> T | None:
        step = bisect_right(self._times, at)
        return self._values[step - 1] if step else None


class Track(Steps[Point]):
    """Positions."""

    __slots__ = ()

    def position(self, at: Instant) -> Point | None:
        """Where the client was at that time."""
        return self.at(at)


@dataclass(slots=True, eq=False)
class Own:
    """What a client knows of itself better than its broker, which may know only cells of a filter scheme."""

    track: Track = field(default_factory=Track)
    contexts: Steps[Contexts] = field(default_factory=Steps)
    """Empty as long as there may be others, that an earlier process has registered."""

    vague: bool = False
    """The broker may not have known, at times, where this client was: what senders say of places is to be judged here."""

    def begin(self, at: Instant, contexts: Contexts) -> None:
        """The broker has a new session for this client: it knows of these contexts alone, and of no position yet."""
        if self.track.newest is None:
            self.track.add(at, None)
        self.contexts.add(at, dict(contexts))

    def changed(self, at: Instant, contexts: Contexts) -> None:
        if self.contexts.newest is not None:
            self.contexts.add(at, dict(contexts))

    def concerned(self, event: Event, at: Instant) -> bool:
        """Whether the event was for who this client was then, where it was (``delivery.relevant``), as far as that is remembered."""
        if not self.track.knows(at):
            return True
        position = self.track.position(at)
        if not within_reach(event.reach, position):
            return False
        # What does not ask for a position, the broker has judged: contexts are known to it as they are here.
        if event.to is None or POSITION not in properties_of(event.to) or not self.contexts.knows(at):
            return True
        here: Context = {} if position is None else {POSITION: position}
        contexts = (self.contexts.at(at) or {}).values()
        return addressed_by(event, [{**here, **context} for context in contexts] or [here])


def on_the_wire(point: Point) -> Point:
    """The point as the compact form carries it, to about a centimetre: client and broker then know the same one."""
    return Point(round(point.lat * _DEGREE) / _DEGREE, round(point.lon * _DEGREE) / _DEGREE)
