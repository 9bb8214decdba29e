"""Messages that were sent over two transports at once, and come twice."""

from __future__ import annotations

from collections import deque
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.ports import Address

WITHIN: Final = 1 * MICROSECONDS
"""What comes later than that after the first one is no twin, but said again.  Longer than frames wait for the air."""


class Twins:
    """Of each message as often as one transport brought it, the other's copy is its twin, whichever comes first.

    So a message that somebody really says twice is heard twice.
    """

    def __init__(self) -> None:
        self._ahead: Final[dict[tuple[Address, bytes], deque[tuple[Instant, str]]]] = {}
        """When and by what came what has no twin yet; the one that has waited for the longest is the first."""

    def second(self, interface: str, sender: Address, message: Message, now: Instant) -> bool:
        """Whether another interface has brought this one already."""
        self._forget(now - WITHIN)
        name = sender, encoded(message)
        ahead = self._ahead.pop(name, deque())
        while ahead and ahead[0][0] < now - WITHIN:
            ahead.popleft()
        twin = next((first for first in ahead if first[1] != interface), None)
        if twin is not None:
            ahead.remove(twin)
        else:
            ahead.append((now, interface))
        if ahead:
            self._ahead[name] = ahead
        return twin is not None

    def clear(self) -> None:
        self._ahead.clear()

    def _forget(self, before: Instant) -> None:
        # In the order in which they last came: the first whose last one is young enough is followed by younger ones.
        while self._ahead and next(iter(self._ahead.values()))[-1][0] < before:
            del self._ahead[next(iter(self._ahead))]
