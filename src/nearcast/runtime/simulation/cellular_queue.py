"""Queues before channels of constant bandwidth, first come, first served, without any events.

The state of a queue is one instant, until which its channel is busy; the backlog follows from it.  Nanoseconds: a byte of a fast
channel takes less than a microsecond.
"""

from __future__ import annotations

from typing import Final

FULL: Final = -1


def departure(busy_until: int, now: int, size: int, pace: float, limit: float) -> int:
    """When a transmission will be over that joins the queue now; ``FULL`` if there is no room for it.

    ``pace`` is the time that a byte takes, ``limit`` that of all bytes that may wait or be in transmission.  Plain enough for
    kernels too.
    """
    stay = int(size * pace)
    if busy_until > now:
        stay += busy_until - now
    return FULL if stay > limit else now + stay


def pace_of(bandwidth: float | None) -> float:
    """Nanoseconds per byte."""
    return 8e9 / bandwidth if bandwidth else 0.0


class TransmitQueue:
    """One such queue."""

    __slots__ = ("_limit", "_pace", "busy_until")

    def __init__(self, bandwidth: float | None, limit: int) -> None:
        self._pace: Final = pace_of(bandwidth)
        self._limit: Final = limit * self._pace
        self.busy_until = 0

    def duration(self, size: int) -> int:
        """How long the transmission takes."""
        return int(size * self._pace)

    def admit(self, now: int, size: int) -> int:
        """When the transmission will be over; ``FULL`` if the queue is."""
        over = departure(self.busy_until, now, size, self._pace, self._limit)
        if over != FULL:
            self.busy_until = over
        return over
