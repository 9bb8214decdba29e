"""Applications that publish at a steady rate, and want to hear of what happens around them (BYPASS.KOM 6.1.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Final

from nearcast.dissemination.publisher import EventService, LocationRequest, Tally
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.runtime.simulation.plane import Bounds, Plane
from nearcast.runtime.simulation.streets.graph import AttractionPoint
from nearcast.scenario.loads import Publications
from nearcast.scenario.operations import payload

Place = Callable[[Random], Point]
"""Draws where an event happens."""

Published = Callable[[Event, str], None]
"""Told of every event before it is sent, with the kind of its workload: for the records."""


class EventIds:
    """Ids such as ``client-3/17``, unique in a run: a client that returns goes on counting."""

    def __init__(self) -> None:
        self._given: Final[Counter[str]] = Counter()
        self._reserved: Final[set[str]] = set()

    def reserve(self, name: str) -> bool:
        """Keep an id for who brings it along, as a log of an earlier run does; false if somebody did already."""
        if name in self._reserved:
            return False
        self._reserved.add(name)
        return True

    def next(self, client: str) -> str:
        while True:
            self._given[client] += 1
            name = f"{client}/{self._given[client]}"
            if name not in self._reserved:
                return name


def event_service(host: Host) -> EventService:
    """The mechanism on that host, whichever it is."""
    return host.component(EventService)  # type: ignore[type-abstract]  # it is asked for, not made


def at_points(points: Sequence[AttractionPoint], plane: Plane) -> Place:
    """Attraction points, by weight: people who go there often also write there often.

    Events happen at the point itself ("published to the locations of attraction points"), not around it as visitors stop.
    """
    places = [plane.to_point(point.x, point.y) for point in points]
    limits = list(accumulate(point.weight for point in points))

    def place(random: Random) -> Point:
        # The sum of the weights times a number just below 1 may round to the sum itself.
        return places[min(bisect_right(limits, random.random() * limits[-1]), len(places) - 1)]

    return place


def anywhere(bounds: Bounds, plane: Plane) -> Place:
    """Uniform in the world."""

    def place(random: Random) -> Point:
        x, y = random.random(), random.random()
        return plane.to_point(bounds.west + bounds.width * x, bounds.south + bounds.height * y)

    return place


@dataclass(frozen=True, slots=True)
class ApplicationStatistics:
    published: int
    received: int
    without_position: int
    """Events that did not happen, because the client did not know where it was."""


class Application(Component):
    """One client's part in a workload."""

    def __init__(
        self,
        load: Publications,
        name: str,
        *,
        run_start: Instant,
        publishes: bool,
        place: Place | None,
        request: LocationRequest,
        ids: EventIds,
        published: Published,
    ) -> None:
        """``place`` draws where events happen; none: where the client is."""
        self._load: Final = load
        self._name: Final = name
        self._start: Final = run_start + round(load.start * MICROSECONDS)
        self._end: Final = None if load.end is None else run_start + round(load.end * MICROSECONDS)
        self._publishes: Final = publishes
        self._place: Final = place
        self._request: Final = request
        self._ids: Final = ids
        self._tell: Final = published
        self._tally: Final = Tally()
        self._count = self._without_position = 0
        self._host: Host
        self._random: Random
        self._service: EventService
        self._period: Cancellable

    def start(self, host: Host) -> None:
        self._host = host
        self._random = host.random(self._name)
        self._service = event_service(host)
        area = Circle(self._load.radius)
        wanted = Subscription(self._load.topic, area=area, id=self._name, no_local=True)
        self._service.subscribe(wanted, self._tally, self._request)
        if self._publishes:
            self._begin(max(0, self._start - host.now()) / MICROSECONDS)

    def statistics(self) -> ApplicationStatistics:
        return ApplicationStatistics(self._count, self._tally.count, self._without_position)

    def _begin(self, wait: float) -> None:
        if self._load.timing == "poisson":
            self._host.timers.after(wait + self._random.expovariate(self._load.rate), self._publish_and_wait)
        else:
            period = 1.0 / self._load.rate
            # A random phase: if all published at once, the air would be full for a moment and empty for the rest.
            first = wait + self._random.random() * period
            self._period = self._host.timers.every(period, self._publish_or_end, first=first)

    def _publish_or_end(self) -> None:
        if self._is_over():
            self._period.cancel()
        else:
            self._publish()

    def _publish_and_wait(self) -> None:
        if not self._is_over():
            self._publish()
            self._host.timers.after(self._random.expovariate(self._load.rate), self._publish_and_wait)

    def _is_over(self) -> bool:
        return self._end is not None and self._host.now() >= self._end

    def _publish(self) -> None:
        place = self._place(self._random) if self._place else self._here()
        if place is None:
            self._without_position += 1
            return
        host, load = self._host, self._load
        event = Event(
            self._ids.next(host.name),
            load.topic,
            host.now(),
            payload=payload(load.payload),
            publisher=host.name,
            place=place,
        )
        self._count += 1
        self._tell(event, load.word)
        self._service.publish(event, local=self._place is None)

    def _here(self) -> Point | None:
        return self._host.position()
