"""How fast something may go on.

A token bucket in the form of the generic cell rate algorithm (ITU-T I.371): instead of a number of tokens that would have to be
filled up, it keeps the instant at which it will be full again.  One number, no timer, and exact in closed form: after a rest,
``burst`` times the rate is free, and from then on the n-th unit is due n / rate after the first, less the burst.
"""

from __future__ import annotations

import math
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant


class Bucket:
    """``rate`` units per second, and after a rest as many at once as come in ``burst`` microseconds (at least one)."""

    __slots__ = ("_burst", "_full_at", "_interval")

    def __init__(self, rate: float, burst: int) -> None:
        self._interval: Final = MICROSECONDS / rate
        self._burst: Final = max(float(burst), self._interval)
        self._full_at = -math.inf

    def take(self, now: Instant, amount: float = 1.0) -> bool:
        """Take so many units if they are there; more than fit in are given once it is full, and owed afterwards."""
        full_at = now if self._full_at < now else self._full_at
        cost = amount * self._interval
        if full_at - now + min(cost, self._burst) > self._burst:
            return False
        self._full_at = full_at + cost
        return True

    def has(self, now: Instant, amount: float = 1.0) -> bool:
        """Whether ``take`` would give so many."""
        return not self.until(now, amount)

    def until(self, now: Instant, amount: float = 1.0) -> int:
        """Microseconds after which ``take`` gives so many, if nobody takes any before."""
        full_at = now if self._full_at < now else self._full_at
        excess = full_at - now + min(amount * self._interval, self._burst) - self._burst
        return math.ceil(excess) if excess > 0 else 0

    def spend(self, now: Instant, amount: float = 1.0) -> int:
        """Take so many units, there or not; for so many microseconds nothing more should be taken."""
        self._full_at = (now if self._full_at < now else self._full_at) + amount * self._interval
        excess = self._full_at - now - self._burst
        return math.ceil(excess) if excess > 0 else 0

    def is_full(self, now: Instant) -> bool:
        """Whether it is as if it had never been used."""
        return self._full_at <= now


def bucket(rate: float, burst: int) -> Bucket | None:
    """None for a rate of 0, which is unlimited."""
    return Bucket(rate, burst) if rate else None
