"""How long something takes, as a histogram with fixed bounds: what Prometheus asks for, at the price of a search among a few numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FAST: Final = (5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.25)
"""Seconds: for what takes microseconds."""

SLOW: Final = (5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: for what waits for a disk, a network or a turn."""


@dataclass(frozen=True, slots=True)
class DurationStatistics:
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """Of those up to each bound and above the one before; at last of those above all."""

    total: float
    """Seconds of all of them."""

    @property
    def count(self) -> int:
        return sum(self.counts)


class Durations:
    """One thread adds; any may look."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds: Final = tuple(bounds)
        self._counts: Final = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """``count`` things took so long each; a clock that went back counts as no time."""
        if seconds < 0.0:
            seconds = 0.0
        self._counts[bisect_left(self._bounds, seconds)] += count
        self._total += seconds * count

    def statistics(self) -> DurationStatistics:
        return DurationStatistics(self._bounds, tuple(self._counts), self._total)
