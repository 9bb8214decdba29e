"""The script of the location course: people who walk, report where they are, and publish there.

Everybody walks from waypoint to waypoint in a box (1 to 2 m/s, as scenarios have it by default) and reports the
position every 5 s; between two reports everybody publishes one event where they are.  The box is as large as it
takes for 30 people to be within reach of an event, as in the city of ``bench match``.  Positions are rounded to what
the compact position of the wire contract holds, so that every system knows exactly the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.agreement import BAND
from nearcast.benchmark.plane import Floats, great_circle, to_degrees, to_plane
from nearcast.benchmark.workload import RADIUS, WITHIN_REACH

SECONDS_BETWEEN_REPORTS: Final = 5.0
SLOWEST, FASTEST = 1.0, 2.0
_DECIMALS: Final = 7


@dataclass(frozen=True, slots=True)
class Judgement:
    """Deliveries compared with the truth; useful ones are those within the radius, counted once."""

    useful: int
    differing: int


@dataclass(frozen=True, eq=False)
class Script:
    """``lat[step, client]``; event ``step * clients + client`` happens where that client is in that step."""

    lat: Floats
    lon: Floats

    @property
    def steps(self) -> int:
        return len(self.lat)

    @property
    def clients(self) -> int:
        return int(self.lat.shape[1])

    @cached_property
    def plane(self) -> tuple[Floats, Floats]:
        """Metres east and north, for those who cut the world into squares."""
        return to_plane(self.lat, self.lon)

    @cached_property
    def metres(self) -> Floats:
        """``[step, publisher, receiver]``: how far apart they are."""
        lat, lon = self.lat, self.lon
        return great_circle(lat[:, :, None], lon[:, :, None], lat[:, None, :], lon[:, None, :])

    def judge(self, events: NDArray[np.int64], receivers: NDArray[np.int64], steps: range) -> Judgement:
        """Compare what receivers kept of their deliveries with the truth of these steps.

        Within a border band of 0.1 % of the radius both answers count as right (``agreement``).
        """
        everybody = self.clients
        first = steps.start * everybody
        inside = (events >= first) & (events < steps.stop * everybody)
        given = (events[inside] - first) * everybody + receivers[inside]
        metres = self.metres[steps.start : steps.stop].ravel()
        distinct = np.unique(given)
        superfluous = int((metres[distinct] > RADIUS * (1 + BAND)).sum())
        lacking = int((metres <= RADIUS * (1 - BAND)).sum() - (metres[distinct] <= RADIUS * (1 - BAND)).sum())
        strange = len(events) - len(distinct)  # of another time, or doubled
        return Judgement(len(distinct) - superfluous, superfluous + lacking + strange)

    def near(self, events: NDArray[np.int64], receivers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The filter that a receiver applies who gets more than it wants: is the event within the radius?"""
        step, publisher = np.divmod(events, self.clients)
        near: NDArray[np.bool_] = self.metres[step, publisher, receivers] <= RADIUS
        return near


def side(clients: int) -> float:
    """Metres of the box in which 30 of them are within reach of a place, if they are spread evenly."""
    return math.sqrt(clients * math.pi * RADIUS**2 / WITHIN_REACH)


def script(clients: int, steps: int, seed: int = 1) -> Script:
    random = np.random.default_rng(seed)
    length = side(clients)
    places = np.empty((steps, clients, 2))
    here = random.uniform(-length / 2, length / 2, (clients, 2))
    goal = random.uniform(-length / 2, length / 2, (clients, 2))
    stride = random.uniform(SLOWEST, FASTEST, clients) * SECONDS_BETWEEN_REPORTS
    for step in range(steps):
        places[step] = here
        way = goal - here
        metres = np.hypot(way[:, 0], way[:, 1])
        arrives = metres <= stride
        here = np.where(arrives[:, None], goal, here + way * (stride / np.maximum(metres, 1e-9))[:, None])
        goal[arrives] = random.uniform(-length / 2, length / 2, (int(arrives.sum()), 2))
        stride[arrives] = random.uniform(SLOWEST, FASTEST, int(arrives.sum())) * SECONDS_BETWEEN_REPORTS
    lat, lon = to_degrees(places[:, :, 0].ravel(), places[:, :, 1].ravel())
    return Script(np.round(lat, _DECIMALS).reshape(steps, clients), np.round(lon, _DECIMALS).reshape(steps, clients))
