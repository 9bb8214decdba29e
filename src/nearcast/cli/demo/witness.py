"""Who surely has to get an event, who surely not, and who has got it.

Everybody's reports are known here with the time at which each was given and the time at which the broker had it.  Between the
two it may count or not, and an event counts at some moment between its publication and its acknowledgement.  So an event is
due to whoever was near enough by *every* report that may have counted meanwhile, and must not come to whoever was too far away
by all of them; of the few between nothing is said.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

RADIUS: Final = 100.0
"""Metres around everybody in which events are of interest."""

BORDER: Final = 1.0
"""Metres: the plane of the map, and what the wire keeps of a position, are no more exact."""

PATIENCE: Final = 15.0
"""Seconds after which an event that is due counts as lost."""

_REMEMBERED: Final = 64


@dataclass(slots=True, eq=False)
class Report:
    """A position as somebody gave it."""

    east: float
    north: float
    said: float
    heard: float = math.inf
    """When the broker had confirmed it."""


@dataclass(slots=True, eq=False)
class Flight:
    """An event between its publication and its last receiver."""

    id: str
    publisher: int
    east: float
    north: float
    began: float
    ended: float = math.inf
    """When the broker had confirmed it."""

    possible: set[int] = field(default_factory=set)
    due: set[int] = field(default_factory=set)
    """Those it must still reach."""

    lost: set[int] = field(default_factory=set)
    """Those it should have reached."""

    arrived: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Whereabouts:
    reports: deque[Report] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    since: float = math.inf
    until: float = math.inf

    def counting(self, began: float, ended: float) -> Iterator[Report]:
        """The reports that may have counted meanwhile."""
        for report in reversed(self.reports):
            if report.said <= ended:
                yield report
            if report.heard <= began:
                return


@dataclass(frozen=True, slots=True)
class WitnessStatistics:
    published: int
    """Events that the broker has confirmed."""

    deliveries: int
    certain: int
    """Deliveries that were certainly due."""

    awaited: int
    """Of these, not yet there."""

    lost: int
    doubled: int
    strays: int
    """Deliveries to somebody who was certainly too far away."""


class Witness:
    """Sees everything that people say and get."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._people: Final[dict[int, _Whereabouts]] = {}
        self.flights: Final[dict[str, Flight]] = {}
        self.others: Final[dict[str, set[int]]] = {}
        """Receivers of what nobody here has published."""

        self._open: dict[str, Flight] = {}
        self._deliveries = self._certain = self._lost = self._doubled = self._strays = 0

    def statistics(self) -> WitnessStatistics:
        return WitnessStatistics(
            published=sum(flight.ended < math.inf for flight in self.flights.values()),
            deliveries=self._deliveries,
            certain=self._certain,
            awaited=sum(len(flight.due) for flight in self._open.values()),
            lost=self._lost,
            doubled=self._doubled,
            strays=self._strays,
        )

    # What people do

    def reports(self, person: int, east: float, north: float) -> Report:
        """Somebody is about to tell the broker; ``confirm`` the report when it has heard."""
        report = Report(east, north, self._clock())
        self._people.setdefault(person, _Whereabouts()).reports.append(report)
        return report

    def confirm(self, report: Report) -> None:
        report.heard = self._clock()

    def listens(self, person: int) -> None:
        """The broker has confirmed the subscription."""
        self._people[person].since = self._clock()

    def goes(self, person: int) -> None:
        """What the broker confirms from now on need not come any more."""
        self._people[person].until = self._clock()

    def gone(self, person: int) -> None:
        del self._people[person]

    def publishes(self, event: str, person: int, east: float, north: float) -> Flight:
        """Somebody is about to publish; ``published`` when the broker has confirmed it."""
        flight = self.flights[event] = Flight(event, person, east, north, self._clock())
        return flight

    def published(self, flight: Flight) -> None:
        flight.ended = self._clock()
        for person, whereabouts in self._people.items():
            if person != flight.publisher:
                self._judge(flight, person, whereabouts)
        self._certain += len(flight.due)
        self._strays += len(flight.arrived - flight.possible)
        flight.due -= flight.arrived
        if flight.due:
            self._open[flight.id] = flight

    def gets(self, person: int, event: str) -> None:
        """An event has come."""
        flight = self.flights.get(event)
        if flight is None:
            self.others.setdefault(event, set()).add(person)
            return
        self._deliveries += 1
        if person in flight.arrived:
            self._doubled += 1
            return
        flight.arrived.add(person)
        if flight.ended < math.inf and person not in flight.possible:
            self._strays += 1
        flight.due.discard(person)
        if not flight.due:
            self._open.pop(event, None)

    def doubles(self, copies: int) -> None:
        """So many copies came again, and the client kept them from its application."""
        self._doubled += copies

    # Judgement

    def truth(self) -> Iterator[tuple[str, set[int]]]:
        """Of each event that has been judged, who had to get it; of those between, nobody says but that it came."""
        for flight in self.flights.values():
            if flight.ended < math.inf and flight.id not in self._open:
                yield flight.id, flight.arrived & flight.possible | flight.lost

    def place_of(self, person: int) -> tuple[float, float]:
        """Where somebody is, as last told: metres east and north."""
        newest = self._people[person].reports[-1]
        return newest.east, newest.north

    def owes(self, person: int) -> bool:
        """Whether something is still due to somebody."""
        return any(person in flight.due for flight in self._open.values())

    def give_up(self, patience: float = PATIENCE) -> None:
        """Count as lost what has been due for longer than that."""
        latest = self._clock() - patience
        for flight in [flight for flight in self._open.values() if flight.ended <= latest]:
            self._lost += len(flight.due)
            flight.lost |= flight.due
            flight.due.clear()
            del self._open[flight.id]

    def _judge(self, flight: Flight, person: int, whereabouts: _Whereabouts) -> None:
        distances = [
            math.hypot(report.east - flight.east, report.north - flight.north)
            for report in whereabouts.counting(flight.began, flight.ended)
        ]
        if any(metres <= RADIUS + BORDER for metres in distances):
            flight.possible.add(person)
        listening = whereabouts.since <= flight.began and flight.ended <= whereabouts.until
        if listening and distances and all(metres <= RADIUS - BORDER for metres in distances):
            flight.due.add(person)
