"""Recall, estimated while the system runs: from where a client was before and after an event it can be told where it was meanwhile.

The broker cannot know at once whom it misses, but soon after: a report says where the client is now, the one before where it was.
In between it is taken to have walked straight and steadily.  Between reports that are more than ``longest`` apart it may have been
anywhere, and nothing is learned; unless it would have reported if it had moved: then it has set out only lately.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.model.acceptance import wanted
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address

REMEMBERED: Final = 120 * MICROSECONDS
"""Events are kept for so long: those who stand say only when they set out again where they were."""


@dataclass(frozen=True, slots=True)
class RecallCounts:
    """Pairs of event and client."""

    due: int
    """That should have met."""

    found: tuple[int, ...]
    """Of those, how many each candidate brought together."""


@dataclass(frozen=True, slots=True)
class _Published:
    event: Event
    told: tuple[frozenset[Address], ...]


class RecallEstimator:
    """Of several candidates at once: ``told`` says for each of them who would have got an event."""

    def __init__(self, candidates: int, longest: float = 15.0) -> None:
        self._candidates: Final = candidates
        self._longest: Final = round(longest * MICROSECONDS)
        self._events: Final[deque[_Published]] = deque()
        self._last: Final[dict[Address, tuple[Instant, Point]]] = {}
        self._due = 0
        self._found = [0] * candidates

    def published(self, event: Event, told: Sequence[Iterable[Address]]) -> None:
        if event.place is not None:
            self._events.append(_Published(event, tuple(map(frozenset, told))))

    def reported(
        self,
        client: Address,
        time: Instant,
        position: Point,
        subscriptions: Mapping[str, Subscription],
        *,
        stays: bool = False,
    ) -> None:
        """``stays``: whoever says nothing has not moved much."""
        last = self._last.get(client)
        self._last[client] = (time, position)
        if last is None or time <= last[0] or (time - last[0] > self._longest and not stays):
            return
        since, start = last
        set_out = max(since, time - self._longest)
        for published in self._events:
            event = published.event
            if not since < event.published <= time or event.publisher == client:
                continue
            there = _between((set_out, start), (time, position), event.published)
            if any(wanted(subscription, event, client, there) for subscription in subscriptions.values()):
                self._due += 1
                for number, told in enumerate(published.told):
                    self._found[number] += client in told

    def forget(self, client: Address) -> None:
        self._last.pop(client, None)

    def restart(self) -> None:
        """Clients follow another rule from now on: what they said, or did not say, before means something else."""
        self._last.clear()

    def expire(self, now: Instant) -> None:
        """Events so old that nobody will say any more where they were then."""
        while self._events and self._events[0].event.published < now - REMEMBERED:
            self._events.popleft()

    def take(self) -> RecallCounts:
        """What was counted since the last time."""
        counts = RecallCounts(self._due, tuple(self._found))
        self._due, self._found = 0, [0] * self._candidates
        return counts


def _between(one: tuple[Instant, Point], other: tuple[Instant, Point], time: Instant) -> Point:
    (since, start), (until, end) = one, other
    part = max(0.0, (time - since) / (until - since))
    return Point(start.lat + part * (end.lat - start.lat), start.lon + part * (end.lon - start.lon))
