"""Finding the receivers of the city's events, counting, and comparing with the definition."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import perf_counter

from nearcast.cli.demo.city import City
from nearcast.model.delivery import receivers
from nearcast.model.event import Event


@dataclass
class Tally:
    """What has happened so far."""

    events: int = 0
    deliveries: int = 0
    matching_seconds: float = 0.0
    checked: int = 0
    equal: int = 0
    latest: deque[tuple[Event, int]] = field(default_factory=lambda: deque(maxlen=64))
    """The last events with the number of their receivers."""
    told: list[str] = field(default_factory=list)
    """Receivers of the ambulance's last warning."""

    def advance(self, city: City, checks: int = 1) -> None:
        """One step of the city; ``checks`` of its events, chosen by chance, are compared with the definition."""
        events = city.step()
        start = perf_counter()
        matches = city.matcher.match_batch(events)
        self.matching_seconds += perf_counter() - start
        self.events += len(events)
        self.deliveries += len(matches.clients)
        self.told = matches[len(events) - 1]
        self.latest.extend((event, len(matches[i])) for i, event in enumerate(events))
        for i in city.random.choice(len(events), checks, replace=False).tolist():
            self.checked += 1
            self.equal += set(matches[i]) == receivers(city.history, events[i], city.now)

    @property
    def microseconds_per_event(self) -> float:
        return 1e6 * self.matching_seconds / self.events if self.events else 0.0
