"""How busy the broker is: differences of what it counts anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.broker.core import Broker
from nearcast.dashboard.contract import Load
from nearcast.model.time import MICROSECONDS


@dataclass(frozen=True, slots=True)
class _Counts:
    at: float
    published: int
    delivered: int
    bytes_in: int
    bytes_out: int
    reports: int
    matched: int
    match_seconds: float


class LoadMeter:
    """Reads nothing that would have to be counted over all clients."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._before = self._counts()
        self.published = 0
        """Since the last reading."""

    def begin(self) -> None:
        """Somebody has come to look."""
        self._before = self._counts()

    def read(self, delays: Sequence[int], lag: float) -> Load:
        before, now = self._before, self._counts()
        matched = now.matched - before.matched
        self._before = now
        self.published = now.published - before.published
        seconds = max(now.at - before.at, 1e-3)
        ordered = sorted(delays)
        return Load(
            round(self.published / seconds, 1),
            round((now.delivered - before.delivered) / seconds, 1),
            round((now.bytes_in - before.bytes_in) / seconds),
            round((now.bytes_out - before.bytes_out) / seconds),
            _quantile(ordered, 0.5),
            _quantile(ordered, 0.99),
            round((now.match_seconds - before.match_seconds) / matched * MICROSECONDS, 2) if matched else None,
            round((now.reports - before.reports) / seconds, 1),
            round(lag * 1_000, 2),
        )

    def _counts(self) -> _Counts:
        broker = self._broker
        publishing, traffic, match_time = (
            broker.publishing.statistics(),
            broker.traffic,
            broker.router.match_time.statistics(),
        )
        return _Counts(
            broker.loop.time(),
            publishing.published,
            publishing.delivered,
            traffic.bytes_in,
            traffic.bytes_out,
            broker.presence.reports,
            match_time.count,
            match_time.total,
        )


def _quantile(ordered: Sequence[int], share: float) -> float | None:
    """Milliseconds: the smallest value that at least so many do not exceed."""
    if not ordered:
        return None
    place = min(len(ordered) - 1, int(share * len(ordered)))
    return round(ordered[place] / 1_000, 3)
