"""What waits to be sent: the most urgent first, and nothing that would come too late.

A link sends in the order in which it is given messages.  So no more is given to it than it takes at once: as soon as it says that
something waits there, the rest waits here, where a message of higher priority can overtake it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from nearcast.model.time import Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Clock, Sending, Timers

PAUSE: Final = 0.002
"""Seconds until a link that was busy is tried again: about as long as a frame is on air."""

MOST_WAITING: Final = 1_000


@dataclass(frozen=True, slots=True)
class OutboxStatistics:
    sent: int
    waiting: int
    late: int
    dropped: int


class Outbox:
    def __init__(self, clock: Clock, timers: Timers, broadcast: Callable[[Message], Sending]) -> None:
        self._clock: Final = clock
        self._timers: Final = timers
        self._broadcast: Final = broadcast
        self._waiting: list[tuple[int, int, Instant | None, Message]] = []
        self._numbered = self._sent = self._late = self._dropped = 0
        self._pausing = False

    def send(self, message: Message, priority: int = 0, until: Instant | None = None) -> None:
        """``until``: after that it need not be sent any more."""
        if len(self._waiting) >= MOST_WAITING:
            self._dropped += 1
            return
        self._numbered += 1
        heappush(self._waiting, (-priority, self._numbered, until, message))
        if not self._pausing:
            self._flush()

    def statistics(self) -> OutboxStatistics:
        return OutboxStatistics(self._sent, len(self._waiting), self._late, self._dropped)

    def _flush(self) -> None:
        self._pausing = False
        while self._waiting and not self._pausing:
            _, _, until, message = heappop(self._waiting)
            if until is not None and self._clock.now() > until:
                self._late += 1
                continue
            outcome = self._broadcast(message)
            if outcome is Sending.DROPPED:
                self._dropped += 1
            else:
                self._sent += 1
            if outcome is Sending.QUEUED:
                self._pausing = True
                self._timers.after(PAUSE, self._flush)
