"""When a client has no coverage: outages of a schedule, and those drawn at random."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from random import Random
from typing import Final

from nearcast.runtime.simulation.cellular_profile import CellularProfile, Intermittence

Window = tuple[int, int]
"""From and until, in nanoseconds."""

_NANOSECONDS: Final = 1_000_000_000


class Coverage:
    """The coverage of one client, without events: random outages are drawn as far as somebody asks."""

    def __init__(
        self, scheduled: Iterable[Window], start: int, intermittence: Intermittence | None, random: Random
    ) -> None:
        self._scheduled: Final = _merged(scheduled)
        self._drawn: Final[list[Window]] = []
        self._drawn_until = start
        self._intermittence: Final = intermittence
        self._random: Final = random

    def lacks(self, start: int, end: int) -> bool:
        """Whether there is none at some time from ``start`` up to ``end`` (at ``start``, if that is the same instant)."""
        end = max(end, start + 1)
        if self._intermittence is not None:
            self._draw(self._intermittence, end)
        return _meets(self._scheduled, start, end) or _meets(self._drawn, start, end)

    def _draw(self, intermittence: Intermittence, until: int) -> None:
        while self._drawn_until < until:
            start = self._drawn_until + _exponential(self._random, intermittence.connected)
            self._drawn_until = start + _exponential(self._random, intermittence.disconnected)
            self._drawn.append((start, self._drawn_until))


def coverage_of(client: str, profile: CellularProfile, start: int, random: Random) -> Coverage | None:
    """None where coverage never ends, which costs nothing.  ``start``: of the run, in nanoseconds."""
    scheduled = [
        (start + round(outage.start * _NANOSECONDS), start + round(outage.end * _NANOSECONDS))
        for outage in profile.outages
        if outage.concerns(client)
    ]
    if not scheduled and profile.intermittence is None:
        return None
    return Coverage(scheduled, start, profile.intermittence, random)


def _exponential(random: Random, mean: float) -> int:
    return 1 + int(random.expovariate(1 / mean) * _NANOSECONDS)


def _merged(windows: Iterable[Window]) -> list[Window]:
    merged: list[Window] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _meets(windows: list[Window], start: int, end: int) -> bool:
    # They do not overlap: of those that begin before `end`, the last also ends last.
    index = bisect_left(windows, (end,)) - 1
    return index >= 0 and windows[index][1] > start
