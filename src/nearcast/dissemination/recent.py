"""What came lately: each receiving end remembers by itself what it has seen, so that it sees it once."""

from __future__ import annotations

from typing import Final

from nearcast.model.time import MICROSECONDS, Instant

REMEMBERED: Final = 60 * MICROSECONDS
"""For so long at least, and twice as long at most, an event is recognised: bounded by time, not by number, so that
the memory of ten thousand clients is that of a minute."""


class Recent:
    """The ids of events that came within the last minute or two."""

    __slots__ = ("_turn", "_turns")

    def __init__(self) -> None:
        # One memory, not one for what is recent and one for what is older: each look into it is a look into cold memory.
        self._turns: dict[str, Instant] = {}
        """By event, the turn before which it came."""

        self._turn: Instant = 0

    def __contains__(self, event: object) -> bool:
        """Whether it is remembered; without news nothing is forgotten."""
        return event in self._turns

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, event: str, now: Instant) -> bool:
        """Remember the event; false if it is known already."""
        if now >= self._turn:
            self._forget(now)
        turns = self._turns
        before = len(turns)
        turns.setdefault(event, self._turn)
        return len(turns) > before

    def _forget(self, now: Instant) -> None:
        """It is another turn: what came before the last one is forgotten; after a long silence, all is."""
        last, self._turn = self._turn, now + REMEMBERED
        kept = now < last + REMEMBERED
        self._turns = {event: turn for event, turn in self._turns.items() if turn == last} if kept else {}
