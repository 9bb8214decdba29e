"""STEAM's ``distance decreases`` for the present: where clients stood when the event before this one was published.

Only clients that hold a subscription with this term are followed, from the time on at which they subscribed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nearcast.matching.events import EventBatch
from nearcast.model.event import RESERVED_PROPERTIES, Event
from nearcast.model.geometry import Point, distance
from nearcast.model.time import Instant

PRUNE_AT: Final = 256


@dataclass(frozen=True, slots=True)
class Passed:
    """An event that was published: its number in the order of all, what it said, and the one before it."""

    number: int
    id: str | None
    properties: dict[str, object]
    before: Passed | None

    def as_event(self, following: Event, published: Instant) -> Event:
        """As the event that was published before ``following``, by the same publisher on the same topic."""
        attributes = {name: value for name, value in self.properties.items() if name not in RESERVED_PROPERTIES}
        place = self.properties.get("place")
        return Event(
            id=f"before {following.id}",
            topic=following.topic,
            published=published,
            publisher=following.publisher,
            attributes=attributes,
            place=place if isinstance(place, Point) else None,
        )


class ApproachLog:
    def __init__(self) -> None:
        self._published = 0
        self._items: dict[int, tuple[int, int]] = {}
        """Of a subscription: its client, and the number of the first event that it saw."""
        self._watching: Counter[int] = Counter()
        self._tracks: dict[int, list[tuple[int, Point | None]]] = {}
        self._last: dict[tuple[str, str], Passed] = {}
        self._batch: list[Passed | None] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    def watch(self, item: int, client: int, position: Point | None) -> None:
        self._items[item] = client, self._published
        self._watching[client] += 1
        self._tracks.setdefault(client, [(self._published, position)])

    def watches(self, item: int) -> bool:
        return item in self._items

    def unwatch(self, item: int) -> None:
        client, _ = self._items.pop(item, (None, 0))
        if client is not None:
            self._watching[client] -= 1
            if not self._watching[client]:
                del self._watching[client], self._tracks[client]
        if not self._items:
            self._last.clear()

    def moved(self, client: int, position: Point | None) -> None:
        track = self._tracks.get(client)
        if track is None:
            return
        if track[-1][0] == self._published:
            track.pop()
        track.append((self._published, position))
        if len(track) >= PRUNE_AT + 4 * len(self._last):
            track[:] = self._pruned(track)

    def _pruned(self, track: list[tuple[int, Point | None]]) -> list[tuple[int, Point | None]]:
        """What may still be asked for: the positions at the events that have no follower yet, and the present one."""
        recent = [*self._last.values(), *(passed.before for passed in self._last.values() if passed.before)]
        needed = {bisect_right(track, passed.number, key=_number) - 1 for passed in recent} | {len(track) - 1}
        return [track[step] for step in sorted(needed) if step >= 0]

    def published(self, batch: EventBatch) -> None:
        """Take note of a batch before its open cases are judged."""
        self._batch = []
        publishers = batch.publishers or ()
        for i in range(len(batch)):
            publisher = publishers[i] if publishers else None
            before: Passed | None = None
            if publisher is not None:
                key = publisher, batch.topics[batch.topic[i]]
                before = self._last.get(key)
                event_id = None if batch.events is None else batch.events[i].id
                shallow = None if before is None else Passed(before.number, before.id, before.properties, None)
                self._last[key] = Passed(self._published, event_id, batch.properties(i), shallow)
            self._batch.append(before)
            self._published += 1

    def before(self, publisher: str, topic: str, event_id: str) -> Passed | None:
        """The event before the one of this id, which may have been published already."""
        last = self._last.get((publisher, topic))
        return last.before if last is not None and last.id == event_id else last

    def approaching(
        self, event: int, properties: dict[str, object], item: int, here: Point | None, name: str | None
    ) -> bool | None:
        """Whether event number ``event`` of the batch, or the point it names, is nearer than the one before."""
        before = self._batch[event]
        client, since = self._items[item]
        if before is None or before.number < since:
            return None
        there, was_there = properties.get(name or "place"), before.properties.get(name or "place")
        was_here = self.position_at(client, before)
        if not (isinstance(there, Point) and isinstance(was_there, Point)) or here is None or was_here is None:
            return None
        return distance(here, there) < distance(was_here, was_there)

    def position_at(self, client: int, passed: Passed) -> Point | None:
        track = self._tracks[client]
        return track[bisect_right(track, passed.number, key=_number) - 1][1]

    def clients(self) -> Collection[int]:
        """Those that are followed."""
        return self._tracks.keys()

    def forget(self, client: int) -> None:
        self._tracks.pop(client, None)

    def saw(self, item: int, passed: Passed) -> bool:
        return item in self._items and self._items[item][1] <= passed.number


def _number(step: tuple[int, Point | None]) -> int:
    return step[0]
