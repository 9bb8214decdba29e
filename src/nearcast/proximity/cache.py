"""What a producer keeps for consumers that were cut off (STEAM 4.3: "depending on their persistence level")."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant

MOST_KEPT: Final = 1_024
"""Events of one subject, however long they should be kept."""

RESTING: Final = MICROSECONDS // 2
"""Several consumers ask for the same at the same time: one answer is for all of them."""


@dataclass(slots=True)
class _Kept:
    number: int
    event: Event
    until: Instant
    sent: Instant


class Cache:
    def __init__(self) -> None:
        self._kept: dict[str, deque[_Kept]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def keep(self, number: int, event: Event, persistence: float) -> None:
        if persistence:
            until = event.published + round(persistence * MICROSECONDS)
            if event.lifetime is not None:
                until = min(until, event.published + event.lifetime)
            kept = self._kept.setdefault(event.topic, deque(maxlen=MOST_KEPT))
            kept.append(_Kept(number, event, until, event.published))

    def again(self, subject: str, first: int, last: int, now: Instant) -> list[tuple[int, Event]]:
        """Those of these numbers that are still kept, and were not sent just now."""
        kept = self._kept.get(subject, deque())
        while kept and kept[0].until <= now:
            kept.popleft()
        found = [each for each in kept if first <= each.number <= last and now - each.sent >= RESTING]
        for each in found:
            each.sent = now
        return [(each.number, each.event) for each in found]

    def forget(self, subject: str) -> None:
        self._kept.pop(subject, None)
