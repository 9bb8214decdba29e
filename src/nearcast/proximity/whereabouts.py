"""Where this device is and was, and whether something comes nearer: what filters may ask (STEAM 3.4.2)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from nearcast.model.geometry import Point, distance, offset
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Fix

MOST_PLACES: Final = 600
OLDEST: Final = 10 * MICROSECONDS
"""A place of a producer that is older says nothing of where it is heading."""


class OwnTrack:
    """Where this device was: of an event that comes late, only then is it known whether it was due."""

    def __init__(self) -> None:
        self._times: list[Instant] = []
        self._places: list[Point] = []

    def note(self, now: Instant, place: Point) -> None:
        if self._times and self._times[-1] == now:
            self._places[-1] = place
            return
        self._times.append(now)
        self._places.append(place)
        if len(self._times) > MOST_PLACES:
            del self._times[: MOST_PLACES // 2], self._places[: MOST_PLACES // 2]

    def at(self, time: Instant) -> Point | None:
        """On the straight way between what was known before and after; outside of that, what is known is all there is."""
        later = bisect_right(self._times, time)
        if not self._times or later == len(self._times):
            return self._places[-1] if self._places else None
        if later == 0:
            return self._places[0]
        (start, end), (a, b) = self._times[later - 1 : later + 1], self._places[later - 1 : later + 1]
        share = (time - start) / (end - start)
        if a == b or abs(a.lon - b.lon) > 180.0:  # on both sides of the antimeridian
            return a
        return Point(a.lat + share * (b.lat - a.lat), a.lon + share * (b.lon - a.lon))


@dataclass(frozen=True, slots=True)
class _Heard:
    """Something was heard of: when, where it was, and where this device was."""

    time: Instant
    there: Point
    here: Point


class Bearings:
    """``distance decreases``: the producer comes nearer, or this device to it.

    Judged by how both move *now*: this device by its fix, the producer by its last two places, of which beacons tell too.  Compared
    with the previous event instead (as ``model.delivery`` must, which knows of no courses), an event half a period behind a light
    would still seem nearer, and STEAM's counts would be too high by an eighth (5.2, Table 1).  Where nobody seems to move, because
    a sensor tells no course, the last time counts.
    """

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str, str | None], _Heard] = {}

    def note(self, what: tuple[str, str, str | None], now: Instant, there: Point, here: Point) -> None:
        before = self._heard.get(what)
        if before is None or before.time < now:
            self._heard[what] = _Heard(now, there, here)

    def forget(self, before: Instant) -> None:
        for what in [what for what, heard in self._heard.items() if heard.time < before]:
            del self._heard[what]

    def approaching(self, what: tuple[str, str, str | None], now: Instant, there: Point, fix: Fix) -> bool | None:
        """``None``: nobody can tell yet."""
        before = self._heard.get(what)
        if before is not None and now - before.time > OLDEST:
            before = None
        east, north = _velocity(before, now, there)
        if fix.heading is not None:
            heading = math.radians(fix.heading)
            east, north = east - fix.speed * math.sin(heading), north - fix.speed * math.cos(heading)
        if east or north:
            right, ahead = offset(fix.position, there)
            return east * right + north * ahead < 0.0
        if before is None:
            return None
        return distance(fix.position, there) < distance(before.here, before.there)


def _velocity(before: _Heard | None, now: Instant, there: Point) -> tuple[float, float]:
    """Metres per second to the east and to the north, of somebody who is there now."""
    if before is None or before.time >= now or before.there == there:
        return 0.0, 0.0
    east, north = offset(before.there, there)
    seconds = (now - before.time) / MICROSECONDS
    return east / seconds, north / seconds
