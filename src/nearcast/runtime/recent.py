"""What came lately: each receiving end remembers by itself what it has seen, so that it sees it once."""

from __future__ import annotations

from typing import Final

from nearcast.model.time import MICROSECONDS, Instant

REMEMBERED: Final = 60 * MICROSECONDS
"""For so long at least, and twice as long at most, an event is recognised: bounded by time, not by number, so that
the memory of ten thousand clients is that of a minute."""


class Recent(dict[str, Instant]):
    """The ids of events that came within the last minute or two: by event, the turn before which it came.

    To look whether one is in it forgets nothing.  A dictionary itself, so that inner loops can do by themselves what ``add`` does.
    """

    # One memory, not one for what is recent and one for what is older: each look into it is a look into cold memory.
    __slots__ = ("turn",)

    def __init__(self) -> None:
        self.turn: Instant = 0

    def add(self, event: str, now: Instant) -> bool:
        """Remember the event; false if it is known already."""
        if now >= self.turn:
            self.forget(now)
        before = len(self)
        self.setdefault(event, self.turn)
        return len(self) > before

    def forget(self, now: Instant) -> None:
        """It is another turn: what came before the last one is forgotten; after a long silence, all is."""
        last, self.turn = self.turn, now + REMEMBERED
        kept = [event for event, turn in self.items() if turn == last] if now < last + REMEMBERED else []
        self.clear()
        self.update(dict.fromkeys(kept, last))
