"""Events for subscribers of whom the broker does not know enough yet to filter for them (BYPASS.KOM 4.2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from nearcast.filtering.context import ClientContext
from nearcast.model.acceptance import accepted
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant

Strategy = Literal["ignore", "deliver", "wait"]
"""Skip the subscription (the prototype's default: events may be lost); filter without context, and let the client's last check
do the rest; or keep the event until the context comes."""

LARGEST_BUFFER: Final = 10_000


def unplaced_receivers(event: Event, unplaced: Iterable[tuple[str, ClientContext]]) -> list[str]:
    """Of clients whose place is not known, those that might want the event."""
    return [
        client
        for client, context in unplaced
        if any(accepted(held, event, client) for held in context.subscriptions.values() if held.area is not None)
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """An event that waits."""

    event: Event
    channel: str | None
    until: Instant


class WaitingEvents:
    """What waits for the context of each client; bounded in time and number, the oldest are given up first."""

    def __init__(self, seconds: float, largest: int = LARGEST_BUFFER) -> None:
        self.given_up = 0
        self._microseconds: Final = round(seconds * MICROSECONDS)
        self._largest: Final = largest
        self._numbers: Final = count()
        # All wait equally long: the order in which they came is that in which they are given up.
        self._waiting: Final[dict[int, tuple[str, Kept]]] = {}
        self._of: Final[dict[str, list[int]]] = {}
        """By client, oldest first."""

    def __len__(self) -> int:
        return len(self._waiting)

    def keep(self, client: str, event: Event, channel: str | None, now: Instant) -> None:
        number = next(self._numbers)
        self._waiting[number] = client, Kept(event, channel, now + self._microseconds)
        self._of.setdefault(client, []).append(number)
        if len(self._waiting) > self._largest:
            self._give_up()

    def take(self, client: str, now: Instant) -> list[Kept]:
        """What is still waiting for that client; it is kept no longer."""
        self.expire(now)
        return [self._waiting.pop(number)[1] for number in self._of.pop(client, ())]

    def expire(self, now: Instant) -> None:
        while self._waiting and next(iter(self._waiting.values()))[1].until < now:
            self._give_up()

    def _give_up(self) -> None:
        number = next(iter(self._waiting))
        client, _ = self._waiting.pop(number)
        self.given_up += 1
        numbers = self._of[client]
        numbers.remove(number)  # the first of them
        if not numbers:
            del self._of[client]
