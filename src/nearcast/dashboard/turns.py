"""Work on the broker's loop, some of it at a time.

What there is to look at may be many thousands, and the loop belongs to the broker: after so much time, whatever else waits has its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from time import perf_counter
from typing import Final, TypeVar

E = TypeVar("E")

A_TURN: Final = 0.002
"""Seconds after which it is somebody else's turn."""

AT_ONCE: Final = 16
"""That are looked at before the clock is."""


class Turns:
    """One for each piece of work."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._begun = perf_counter()

    @property
    def spent(self) -> float:
        """Seconds of the loop so far."""
        return self._spent + perf_counter() - self._begun

    async def over(self, everything: Iterable[E], at_once: int | None = None) -> AsyncIterator[list[E]]:
        """All of it, some at a time; it must not change meanwhile."""
        rest, at_once = iter(everything), at_once or AT_ONCE
        while some := list(islice(rest, at_once)):
            yield some
            if perf_counter() - self._begun >= A_TURN:
                self._spent = self.spent
                await asyncio.sleep(0)
                self._begun = perf_counter()
