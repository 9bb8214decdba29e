"""Where this client was, as it said itself."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from nearcast.model.geometry import Point
from nearcast.model.time import Instant

REMEMBERED: Final = 1024
"""Positions; older events are not judged by position any more."""

_DEGREE: Final = 10_000_000


@dataclass(slots=True, eq=False)
class Track:
    """A step function of time."""

    _at: deque[Instant] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _points: deque[Point | None] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def newest(self) -> Point | None:
        return self._points[-1] if self._points else None

    def add(self, at: Instant, point: Point | None) -> None:
        self._at.append(max(at, self._at[-1]) if self._at else at)
        self._points.append(point)

    def knows(self, at: Instant) -> bool:
        """Whether it reaches back so far."""
        return bool(self._at) and self._at[0] <= at

    def position(self, at: Instant) -> Point | None:
        """Where the client was at that time."""
        place = bisect_right(self._at, at)
        return self._points[place - 1] if place else None


def on_the_wire(point: Point) -> Point:
    """The point as the compact form carries it, to about a centimetre: client and broker then know the same one."""
    return Point(round(point.lat * _DEGREE) / _DEGREE, round(point.lon * _DEGREE) / _DEGREE)
