"""Who may become a gateway, and how far candidates are from each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nearcast.model.geometry import EARTH_RADIUS, Point
from nearcast.runtime.ports import Address

Distances: TypeAlias = npt.NDArray[np.float64]
"""Metres from each candidate to each."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A receiver of an event, as the broker knows it."""

    address: Address
    position: Point
    """Where it was last known to be."""

    speed: float | None = None
    """Metres per second; none: not known."""

    battery: float | None = None
    """What remains of it, between 0 and 1; none: not known."""


def distances(candidates: Sequence[Candidate]) -> Distances:
    # On a plane through the first of them: within a few kilometres that is exact to a metre, and positions are seconds old.
    x, y = _on_plane(candidates)
    return np.hypot(x[:, np.newaxis] - x, y[:, np.newaxis] - y)


def nearest(between: Distances, gateways: Sequence[int]) -> list[list[int]]:
    """For each gateway, in their order, those of the others that are nearer to it than to any other gateway."""
    members: list[list[int]] = [[] for _ in gateways]
    chosen = set(gateways)
    for candidate, place in enumerate(between[:, list(gateways)].argmin(axis=1).tolist()):
        if candidate not in chosen:
            members[place].append(candidate)
    return members


def groups(candidates: Sequence[Candidate], most: int) -> Iterator[list[Candidate]]:
    """Groups of at most so many who are near each other: what is compared with what grows with the square of a group."""
    if len(candidates) <= most:
        yield list(candidates)
        return
    x, y = _on_plane(candidates)
    along = x if np.ptp(x) >= np.ptp(y) else y
    order = np.argsort(along, kind="stable").tolist()
    half = len(order) // 2
    for part in (order[:half], order[half:]):
        yield from groups([candidates[index] for index in sorted(part)], most)


def _on_plane(candidates: Sequence[Candidate]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Metres to the east and to the north of the first."""
    origin = candidates[0].position
    lat = np.radians([candidate.position.lat for candidate in candidates]) - math.radians(origin.lat)
    lon = np.array([candidate.position.lon for candidate in candidates]) - origin.lon
    lon = np.radians((lon + 180.0) % 360.0 - 180.0)  # also across the date line
    return EARTH_RADIUS * math.cos(math.radians(origin.lat)) * lon, EARTH_RADIUS * lat
