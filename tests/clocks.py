"""A clock for code that is on no event loop; with one, tests/runtime/live/virtual.py has the clock of a virtual loop."""

from __future__ import annotations

from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Clock

START: Final = 1_790_000_000 * MICROSECONDS


class HandClock(Clock):
    """Stands still unless it is set."""

    def __init__(self, time: Instant = START) -> None:
        self.time = time

    def now(self) -> Instant:
        return self.time
