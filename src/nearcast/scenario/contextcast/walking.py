"""People who walk through service areas, register where they are, and send messages to places (4.5.1).

Nothing is sampled: when somebody leaves an area, or has gone too far from where it was reported last, follows from the
straight line that it walks on.  Who enters an area registers, who leaves it deregisters, however exactly it reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import numpy as np

from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.history import POSITION
from nearcast.model.predicate import Spatial
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.handles import Handle
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.mobility.random_walk import RandomWalk
from nearcast.runtime.simulation.plane import Bounds
from nearcast.scenario.contextcast.audit import Audit
from nearcast.scenario.contextcast.ground import METRES_PER_DEGREE
from nearcast.scenario.contextcast.network import RouterNetwork
from nearcast.scenario.contextcast.recording import Told

TOPIC: Final = "to whom it concerns"
_OVER: Final = 1e-3
"""Metres by which a distance is exceeded when it is looked at: the earth is a little round."""


@dataclass(frozen=True, slots=True)
class Areas:
    """Squares that cover the ground, some of them with a router that serves the people in it."""

    across: int
    """So many in a row, so many rows."""

    edge: float
    """Metres."""

    routers: dict[int, int]
    """By number of the square, row by row from the south-west."""

    def at(self, x: float, y: float) -> int:
        last = self.across - 1
        return min(max(int(y / self.edge), 0), last) * self.across + min(max(int(x / self.edge), 0), last)

    def bounds(self, square: int) -> Bounds:
        row, column = divmod(square, self.across)
        return Bounds(column * self.edge, row * self.edge, (column + 1) * self.edge, (row + 1) * self.edge)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkingSettings:
    people: int
    reported: float | None = None
    """Metres from the last report after which there is another (DBn); none: only the area is reported (SAA)."""

    anew: bool = False
    """Whether distance is measured from where somebody registered, who then has just said where it is.

    The document's figures fit only if it is not: then a report each 500 m hardly ever comes about in areas of that size.
    """

    period: float = 18.0
    """Seconds between two messages of one person."""

    targets: tuple[float, float] = (0.5, 1.5)
    """The edge of what a message is for, in edges of a service area."""

    audited: float = 0.0
    """The share of messages that are audited."""


class Walker:
    """One of the people."""

    __slots__ = ("handle", "leg", "legs", "name", "number", "reported", "since", "square")

    def __init__(self, number: int, legs: Iterator[Leg]) -> None:
        self.number: Final = number
        self.name: Final = f"p{number}"
        self.legs: Final = legs
        self.leg: Leg = next(legs)
        self.square = -1
        self.handle: Handle | None = None
        """While it is registered."""

        self.since: Instant = 0
        """When it was."""

        self.reported = (0.0, 0.0)


class Walking:
    def __init__(self, network: RouterNetwork, areas: Areas, settings: WalkingSettings) -> None:
        self.network: Final = network
        self.reports = 0
        """Registrations, reports and deregistrations."""

        self.sent = 0
        self.audit: Final = Audit(network)
        self._told: Final = Told(network)
        self._areas: Final = areas
        self._settings: Final = settings
        self._simulation: Final = network.simulation
        self._boxes: Final = {square: network.ground.rectangle(*areas.bounds(square)) for square in areas.routers}
        streams = network.simulation.random
        self._random: Final[Random] = streams.stream("messages")
        self._legs: Final[Any] = np.zeros((settings.people, 5))
        """By person: when the leg began, where, and how fast."""

        edge = areas.across * areas.edge
        walk = RandomWalk(Bounds(0.0, 0.0, edge, edge))
        start = network.simulation.time
        self.walkers: Final = [
            Walker(number, walk(streams.stream("walker", str(number)), start)) for number in range(settings.people)
        ]
        for walker in self.walkers:
            self._note(walker)
            leg, before = walker.leg, self._random.random() * (settings.reported or 0.0)
            # As if everybody had walked here: not all reports come at the same time later.
            ahead = math.atan2(leg.vy, leg.vx)
            walker.reported = leg.x - before * math.cos(ahead), leg.y - before * math.sin(ahead)
            self._look(walker)
            first = start + round(self._random.random() * settings.period * MICROSECONDS)
            self._simulation.at(first, self._send, walker)

    # Walking

    def _look(self, walker: Walker) -> None:
        """It may have left a leg, an area, or the neighbourhood of where it was reported."""
        now = self._simulation.time
        leg = walker.leg
        while leg.until <= now:
            leg = walker.leg = next(walker.legs)
            self._note(walker)
        seconds = (now - leg.start) / MICROSECONDS
        x, y = leg.x + leg.vx * seconds, leg.y + leg.vy * seconds
        areas = self._areas
        square = areas.at(x, y)
        if square != walker.square:
            self._leave(walker)
            walker.square = square
            self._enter(walker, x, y, now)
        due = min(leg.until, now + _microseconds(_until_out(areas.bounds(square), x, y, leg.vx, leg.vy)))
        reported = self._settings.reported
        if reported is not None and walker.handle is not None:
            far = reported + _OVER
            if self._far(walker, x, y):
                self.reports += 1
                walker.reported = x, y
                self.network.update(walker.handle, {POSITION: self.network.ground.point(x, y)})
            wait = _until_far(x - walker.reported[0], y - walker.reported[1], leg.vx, leg.vy, far)
            due = min(due, now + _microseconds(wait))
        self._simulation.at(due, self._look, walker)

    def _far(self, walker: Walker, x: float, y: float) -> bool:
        at_x, at_y = walker.reported
        reported = self._settings.reported
        return reported is not None and math.hypot(x - at_x, y - at_y) >= reported + _OVER

    def _enter(self, walker: Walker, x: float, y: float, now: Instant) -> None:
        router = self._areas.routers.get(walker.square)
        if router is not None:
            self.reports += 1
            coarse = self._settings.reported is None
            place = self._boxes[walker.square] if coarse else self.network.ground.point(x, y)
            walker.handle, walker.since = self.network.register(router, {POSITION: place}), now
            self._told.came(walker.name, walker.handle)
            if self._settings.anew or self._far(walker, x, y):
                walker.reported = x, y

    def _leave(self, walker: Walker) -> None:
        if walker.handle is not None:
            self.reports += 1
            self.network.remove(walker.handle)
            walker.handle = None
            self._told.went(walker.name)

    def _note(self, walker: Walker) -> None:
        leg = walker.leg
        self._legs[walker.number] = leg.start, leg.x, leg.y, leg.vx, leg.vy

    # Messages

    def _send(self, walker: Walker) -> None:
        settings, now, random = self._settings, self._simulation.time, self._random
        self._simulation.at(now + round(settings.period * MICROSECONDS), self._send, walker)
        router = self._areas.routers.get(walker.square)
        # Drawn in any case: who is where does not change what others send.
        low, high = settings.targets
        edge = random.uniform(low, high) * self._areas.edge
        room = self._areas.across * self._areas.edge - edge
        west, south = random.uniform(0, room), random.uniform(0, room)
        audited = random.random() < settings.audited
        if router is None:
            return
        self.sent += 1
        target = self.network.ground.rectangle(west, south, west + edge, south + edge)
        event = Event(f"m{self.sent}", TOPIC, now, to=Spatial("s_within", POSITION, target))
        if audited:
            self._expect(event, target)
        if self._told.watched:
            self._write_down(event)
        self.network.publish(router, event)

    def _write_down(self, event: Event) -> None:
        """A message, and where everybody is whom it could be for."""
        now = self._simulation.time
        for walker in self.walkers:
            if walker.handle is not None:
                at = self.network.ground.point(*walker.leg.at(now))
                self._told.position(walker.name, at.lat, at.lon)
        self._told.published(event)

    def _expect(self, event: Event, target: Box) -> None:
        """Those who are there, are registered, and stay so: who has just come or gone may be unknown yet on the way."""
        now = self._simulation.time
        seconds = (now - self._legs[:, 0]) / MICROSECONDS
        x, y = self._legs[:, 1] + self._legs[:, 3] * seconds, self._legs[:, 2] + self._legs[:, 4] * seconds
        lon, lat = x / METRES_PER_DEGREE, y / METRES_PER_DEGREE
        inside = (lon >= target.west) & (lon <= target.east) & (lat >= target.south) & (lat <= target.north)
        there = [self.walkers[number] for number in np.flatnonzero(inside).tolist()]
        known = [(walker, walker.handle) for walker in there if walker.handle is not None]
        self.audit.expect(
            event.id,
            [handle for walker, handle in known if walker.since <= now - self.audit.settling],
            lambda handle: any(walker.handle == handle for walker, _ in known),
        )


def _microseconds(seconds: float) -> int:
    """The next whole one, so that time goes on."""
    return int(min(seconds, 1e9) * MICROSECONDS) + 1


def _until_out(bounds: Bounds, x: float, y: float, vx: float, vy: float) -> float:
    ways = (
        ((bounds.east if vx > 0 else bounds.west) - x) / vx if vx else math.inf,
        ((bounds.north if vy > 0 else bounds.south) - y) / vy if vy else math.inf,
    )
    return max(min(ways), 0.0)


def _until_far(x: float, y: float, vx: float, vy: float, far: float) -> float:
    """Until somebody that far from the origin, walking like that, is ``far`` away from it."""
    speed, along = vx * vx + vy * vy, x * vx + y * vy
    return max(0.0, (-along + math.sqrt(max(0.0, along * along + speed * (far * far - x * x - y * y)))) / speed)
