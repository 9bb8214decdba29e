"""Random crowds of candidates, on a plane of metres."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from nearcast.dissemination.gateways.candidate import Candidate
from nearcast.dissemination.gateways.registry import SELECTIONS, selections
from nearcast.dissemination.gateways.selection import GatewaySelection
from nearcast.model.geometry import Point, distance
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.specification import MechanismSpec

PLANE = Plane(Point(49.8728, 8.6512))
NAMES = tuple(SELECTIONS)


def made(name: str, seed: int = 1, **parameters: bool | float) -> GatewaySelection:
    return selections(Random(seed))(MechanismSpec.of(name, **parameters))


def candidate(number: int, x: float, y: float, battery: float | None = None, speed: float | None = None) -> Candidate:
    return Candidate(f"c{number}", PLANE.to_point(x, y), speed, battery)


def crowd(random: Random, number: int, width: float = 400.0) -> list[Candidate]:
    return [candidate(each, random.uniform(0, width), random.uniform(0, width)) for each in range(number)]


@st.composite
def crowds(draw: st.DrawFn, *, most: int = 30) -> list[Candidate]:
    """Some stand in the same place, some far away."""
    places = draw(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=most))
    metres = draw(st.sampled_from([1.0, 10.0, 50.0]))
    batteries = draw(st.lists(st.none() | st.floats(0, 1), min_size=len(places), max_size=len(places)))
    return [
        candidate(number, x * metres, y * metres, battery)
        for number, ((x, y), battery) in enumerate(zip(places, batteries, strict=True))
    ]


def check_assignment(candidates: Sequence[Candidate], chosen: Mapping[str, Sequence[str]]) -> None:
    """Everybody is a gateway or is served by one, once."""
    everybody = [*chosen, *(member for members in chosen.values() for member in members)]
    assert sorted(everybody) == sorted(each.address for each in candidates)


def covered(candidates: Sequence[Candidate], gateways: Sequence[str], metres: float) -> float:
    """The share of candidates that are gateways, or in range of one."""
    places = [each.position for each in candidates if each.address in set(gateways)]
    return math.fsum(any(distance(each.position, place) <= metres for place in places) for each in candidates) / len(
        candidates
    )
