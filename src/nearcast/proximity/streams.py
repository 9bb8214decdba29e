"""The numbered events of one producer and subject, as a consumer gets them: each once, in order if that is promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.model.event import Event
from nearcast.model.time import Instant
from nearcast.runtime.ports import Cancellable, Timers

REMEMBERED: Final = 4_096
"""Numbers of one stream by which copies are recognised; half of them are forgotten when there are more."""

MOST_ASKED: Final = 256
"""Of more than that, only the newest are asked for again."""


class Numbers:
    """Which events came, and which should have come."""

    __slots__ = ("_floor", "_seen", "heard", "since")

    def __init__(self) -> None:
        self.since: int | None = None
        """The last number before this consumer came into the proximity: what is later is due to it."""

        self.heard: Instant = 0
        """When anything was last heard of the stream."""

        self._seen: set[int] = set()
        self._floor = -1

    def take(self, number: int) -> bool:
        """False for one that came before, or is so old that nobody knows."""
        if number <= self._floor or number in self._seen:
            return False
        self._seen.add(number)
        if len(self._seen) > REMEMBERED:
            kept = sorted(self._seen)[REMEMBERED // 2 :]
            self._floor = kept[0] - 1
            self._seen = set(kept)
        return True

    def missing(self, latest: int) -> list[tuple[int, int]]:
        """Ranges of numbers up to the latest that were due and did not come."""
        if self.since is None:
            return []
        ranges: list[tuple[int, int]] = []
        for number in range(max(self.since, self._floor, latest - MOST_ASKED) + 1, latest + 1):
            if number in self._seen:
                continue
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1] = ranges[-1][0], number
            else:
                ranges.append((number, number))
        return ranges


class InOrder:
    """Lets events through in the order of their numbers; one that is missing is waited for, but not for ever."""

    def __init__(self, timers: Timers, patience: float, deliver: Callable[[Event], None]) -> None:
        self._timers: Final = timers
        self._patience: Final = patience
        self._deliver: Final = deliver
        self._last: int | None = None
        self._waiting: dict[int, Event | None] = {}
        self._timer: Cancellable | None = None

    def add(self, number: int, event: Event | None, since: int | None) -> bool:
        """``None``: that one need not be waited for.  False: a later one was delivered already, so this one cannot be.

        Up to ``since``, nothing is due that could be waited for; where that is not known, the first event waits, too.
        """
        if self._last is not None and number < self._last:
            return False
        self._waiting[number] = event
        known = [each for each in (self._last, since) if each is not None]
        self._let_through(max(known) + 1 if known else None)
        return True

    def _let_through(self, expected: int | None) -> None:
        while expected is not None and self._waiting and (number := min(self._waiting)) <= expected:
            event = self._waiting.pop(number)
            self._last, expected = number, number + 1
            if event is not None:
                self._deliver(event)
        if self._waiting and self._timer is None:
            self._timer = self._timers.after(self._patience, self._give_up)
        elif not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def _give_up(self) -> None:
        """What is missing will not come."""
        self._timer = None
        if self._waiting:
            self._let_through(min(self._waiting))
