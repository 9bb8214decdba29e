"""Which messages came lately.

As ``dissemination.recent`` does it, which overlays do not know; a way through the overlay takes seconds, not minutes.
"""

from __future__ import annotations

from typing import Final

from nearcast.model.time import MICROSECONDS, Instant

REMEMBERED: Final = 60 * MICROSECONDS
"""For so long at least, and twice as long at most."""


class Remembered:
    def __init__(self) -> None:
        self._newer: set[str] = set()
        self._older: set[str] = set()
        self._turn: Instant = 0

    def add(self, name: str, now: Instant) -> bool:
        """Remember it; false if it is known already."""
        if now >= self._turn:
            self._older = self._newer if now < self._turn + REMEMBERED else set()
            self._newer = set()
            self._turn = now + REMEMBERED
        if name in self._newer or name in self._older:
            return False
        self._newer.add(name)
        return True
