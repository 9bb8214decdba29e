"""nearcast's own side of the match benchmark: a matcher that holds the city, and its events as batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nearcast.benchmark.peers.peer import Pairs
from nearcast.benchmark.workload import RADIUS
from nearcast.matching import EventBatch, Matcher, Matches, Texts
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nearcast.benchmark.workload import City, Events


class Ours:
    """Everything that the benchmark asks of nearcast."""

    def __init__(self, world: City) -> None:
        self.world = world
        self.matcher = Matcher()
        self.numbers: NDArray[np.int32] = self.matcher.add_clients(world.ids, world.lat, world.lon)
        # The benchmark names clients by their place in the city, the matcher by numbers of its own.
        self._client_of = np.full(int(self.numbers.max()) + 1, -1, np.int64)
        self._client_of[self.numbers] = np.arange(len(self.numbers))
        self._subscribe()

    def _subscribe(self) -> None:
        order = np.argsort(self.world.interest, kind="stable")
        bounds = np.searchsorted(self.world.interest[order], np.arange(len(self.world.interests) + 1))
        for interest, first, last in zip(self.world.interests, bounds[:-1], bounds[1:], strict=True):
            if first == last:
                continue
            predicate = None if interest.predicate is None else str(interest.predicate)
            subscription = Subscription(topic=interest.topic, where=predicate, area=Circle(RADIUS))
            self.matcher.subscribe_many(self.numbers[order[first:last]], subscription)

    def pairs(self, matches: Matches) -> Pairs:
        counts = np.diff(matches.offsets)
        return Pairs(np.repeat(np.arange(len(counts), dtype=np.int64), counts), self._client_of[matches.clients])


def batches(events: Events, size: int) -> list[EventBatch]:
    parts = (events.part(first, first + size) for first in range(0, len(events) - size + 1, size))
    return [
        EventBatch(
            published=part.published,
            lat=part.lat,
            lon=part.lon,
            topics=part.topics,
            topic=part.topic,
            attributes={
                name: Texts(*column) if isinstance(column, tuple) else column
                for name, column in part.attributes.items()
            },
        )
        for part in parts
    ]


def single_events(events: Events, count: int) -> list[Event]:
    columns = {
        name: [column[1][code] for code in column[0][:count]] if isinstance(column, tuple) else column[:count].tolist()
        for name, column in events.attributes.items()
    }
    return [
        Event(
            id=f"event-{index}",
            topic=events.topics[events.topic[index]],
            published=int(events.published[index]),
            attributes={name: column[index] for name, column in columns.items()},
            place=Point(float(events.lat[index]), float(events.lon[index])),
        )
        for index in range(count)
    ]
