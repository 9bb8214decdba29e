"""How crowded the hot spots of a city are: the one figure that the weights of the built-in cities are set by.

BYPASS 6.1.2 says of its maps that "up to 40 clients within proximity are interested in a given publication, corresponding to
approximately 13 % of the total client population", near the attraction points that were given more weight.  Coordinates and
weights are only in its figures, so that sentence is all there is to calibrate on.  What else the text states (35 % of the
clients in channels, recall near channels) is left to verify.

The walk here is the plainest form of the mobility model (BYPASS 6.1.1, Table 3), independent of the simulator's own: a
calibration that used that one would follow its errors.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidInput
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.simulation.streets.graph import AttractionPoint, StreetGraph
from nearcast.runtime.simulation.streets.pieces import XY

CLIENTS: Final = 297
AREA_OF_INTEREST: Final = 125.0
"""Metres (BYPASS 6.1.2, Table 4)."""
_SPEED: Final = (1.0, 2.0)
_PAUSE: Final = (1.0, 60.0)
_WARM_UP: Final = 600.0
_SECONDS: Final = 1800.0
_STEP: Final = 10.0

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many others are interested in what a client publishes where it stands, for clients within a hot spot."""

    clients: int
    samples: int
    mean: float
    percentile_95: float
    """What the dissertation's "up to" is taken for: one publication in twenty from a hot spot interests more clients."""
    share_in_hot_spots: float
    """Of all clients at all times."""


def crowd_near_hot_spots(graph: StreetGraph, *, seed: int = 1, clients: int = CLIENTS) -> Crowd:
    """Let clients walk for half an hour, after ten minutes that do not count, and look at them every ten seconds.

    A *sample* is a client at an instant at which it is within the radius of a hot spot, that is, of an attraction point of
    more than the smallest weight.  What is counted is how many other clients are then within 125 m of it.
    """
    least = min((point.weight for point in graph.points), default=0.0)
    hot = [point for point in graph.points if point.weight > least]
    if not hot:
        raise InvalidInput(f"{graph.name} has no hot spot: no attraction point weighs more than the others")
    instants = np.arange(_WARM_UP, _WARM_UP + _SECONDS, _STEP)
    streams = RandomStreams(seed)
    tracks = [_track(graph, streams.stream("calibration", str(client)), instants) for client in range(clients)]
    counts: list[npt.NDArray[np.int64]] = []
    for places in np.stack(tracks, axis=1):
        inside = np.zeros(clients, dtype=np.bool_)
        for point in hot:
            inside |= np.hypot(*(places - (point.x, point.y)).T) <= point.radius
        apart = np.hypot(*(places[inside, None] - places).T)
        counts.append((apart <= AREA_OF_INTEREST).sum(axis=0) - 1)
    samples = np.concatenate(counts)
    return Crowd(
        clients=clients,
        samples=len(samples),
        mean=float(samples.mean()),
        percentile_95=float(np.percentile(samples, 95)),
        share_in_hot_spots=len(samples) / (clients * len(instants)),
    )


def _track(graph: StreetGraph, random: Random, instants: Floats) -> Floats:
    """Where one client is at the instants, as rows of x and y."""
    times, xs, ys = zip(*_way(graph, random, float(instants[-1])), strict=True)
    return np.column_stack((np.interp(instants, times, xs), np.interp(instants, times, ys)))


def _way(graph: StreetGraph, random: Random, until: float) -> Iterator[tuple[float, float, float]]:
    """Instants and places between which the client moves straight and evenly."""
    cumulated = np.cumsum([point.weight for point in graph.points]).tolist()

    def target() -> XY:
        chosen: AttractionPoint = graph.points[bisect_left(cumulated, random.random() * cumulated[-1])]
        return random.gauss(chosen.x, chosen.radius / 3), random.gauss(chosen.y, chosen.radius / 3)

    time, here = 0.0, target()
    while time <= until:
        yield time, *here
        time += random.uniform(*_PAUSE)
        yield time, *here
        speed = random.uniform(*_SPEED)
        for a, b in pairwise(graph.route(here, target())):
            time += math.dist(a, b) / speed
            here = b
            yield time, *here
