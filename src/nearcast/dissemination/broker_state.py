"""What a broker knows of its own situation, for whoever plans (BYPASS.KOM 5.2.4): rules, learners, operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.filtering.tessellation import GeoBox
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.state import Information, StateInformation

SUBSCRIBERS: Final = Information("subscribers", float)
DENSITY: Final = Information("subscribers per square kilometre", float)
EVENT_RATE: Final = Information("events per second", float)
ELSEWHERE_SHARE: Final = Information("share of events published to elsewhere", float)
"""Events to arbitrary locations cost a broker with channels one assignment each (BYPASS.KOM 4.2.4)."""

NOTIFICATION_RATE: Final = Information("notifications per second", float)
CONTEXT_RATE: Final = Information("context messages per second", float)
MATCH_RATE: Final = Information("match operations per second", float)
"""As they were really done: the broker's load."""

INFORMATION: Final = {
    known.name: known
    for known in (SUBSCRIBERS, DENSITY, EVENT_RATE, ELSEWHERE_SHARE, NOTIFICATION_RATE, CONTEXT_RATE, MATCH_RATE)
}


@dataclass(slots=True)
class Counts:
    """What has happened since the broker was started."""

    events: int = 0
    elsewhere: int = 0
    notifications: int = 0
    context: int = 0


class Averages:
    """Rates of what is only counted: exponentially smoothed, so that old times count less and less."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds: Final = seconds
        self._time: Instant | None = None
        self._before: tuple[float, ...] = ()
        self._rates: tuple[float, ...] = ()

    def rates(self, now: Instant, totals: tuple[float, ...]) -> tuple[float, ...]:
        """Of each total, per second."""
        if self._time is None:
            self._time, self._before, self._rates = now, totals, (0.0,) * len(totals)
        elapsed = (now - self._time) / MICROSECONDS
        if elapsed > 0:
            kept = math.exp(-elapsed / self._seconds)
            self._rates = tuple(
                rate * kept + (total - before) / elapsed * (1.0 - kept)
                for rate, total, before in zip(self._rates, totals, self._before, strict=True)
            )
            self._time, self._before = now, totals
        return self._rates


def square_kilometres(box: GeoBox) -> float:
    middle = box.center
    width = distance(Point(middle.lat, box.west), Point(middle.lat, box.east))
    height = distance(Point(box.south, middle.lon), Point(box.north, middle.lon))
    return width * height / 1e6


def provide(
    state: StateInformation,
    box: GeoBox,
    now: Callable[[], Instant],
    subscribers: Callable[[], int],
    totals: Callable[[], tuple[Counts, int]],
) -> None:
    """Answer questions from what is counted: ``totals`` says the counts and the match operations done."""
    area, averages = square_kilometres(box), Averages()

    def rates() -> tuple[float, ...]:
        counts, matches = totals()
        return averages.rates(
            now(), (counts.events, counts.elsewhere, counts.notifications, counts.context, float(matches))
        )

    def share() -> float:
        events, elsewhere, *_ = rates()
        return elsewhere / events if events > 0 else 0.0

    state.provide(SUBSCRIBERS, lambda: float(subscribers()))
    state.provide(DENSITY, lambda: subscribers() / area)
    state.provide(EVENT_RATE, lambda: rates()[0])
    state.provide(ELSEWHERE_SHARE, share)
    state.provide(NOTIFICATION_RATE, lambda: rates()[2])
    state.provide(CONTEXT_RATE, lambda: rates()[3])
    state.provide(MATCH_RATE, lambda: rates()[4])
