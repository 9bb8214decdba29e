"""The document's setups, with what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.model.area import Box
from nearcast.overlay.topology.models import Layout, area_around, hot_tree, squares, waxman
from nearcast.scenario.contextcast.attributes import AdaptiveModel, AggregationModel, Tastes
from nearcast.scenario.contextcast.ground import Ground
from nearcast.scenario.contextcast.walking import Areas

S1_ROUTERS: Final = 1_000
S1_LINKS: Final = 2_000
S1_ACROSS: Final = 20
S1_ACTIVE: Final = 0.6
GROUND: Final = Ground(10_000.0)
"""Of all setups; only S1 says how large its world is."""


def ground_of(across: int) -> Ground:
    """With service areas as large as the document's, so many in a row."""
    return Ground(GROUND.edge / S1_ACROSS * across)


def s1(seed: int, routers: int = S1_ROUTERS, across: int = S1_ACROSS) -> tuple[Layout, Areas]:
    """4.5.1: a Waxman topology, squares of service areas, of which 60 % have an access network.

    Which router serves which square is not said: here the nearest to its middle that serves none yet, in random order of the squares.
    """
    random = Random(f"s1 {seed}")
    layout = waxman(random, routers, 2 * routers)
    active = round(S1_ACTIVE * across * across)
    if active > routers:
        raise InvalidInput(f"{routers} routers cannot serve {active} areas, each its own; take more, or fewer areas")
    chosen = random.sample(range(across * across), active)
    middles = [((west + east) / 2, (south + north) / 2) for west, south, east, north in squares(across)]
    free = np.ones(routers, np.bool_)
    served: dict[int, int] = {}
    for square in chosen:
        away = np.hypot(*(layout.places - middles[square]).T)
        away[~free] = np.inf
        served[square] = nearest = int(away.argmin())
        free[nearest] = False
    return layout, Areas(across, GROUND.edge / S1_ACROSS, dict(sorted(served.items())))


def s2(seed: int, routers: int = 400) -> tuple[Layout, dict[int, Box], AggregationModel]:
    """4.5.2: a HOT tree with gamma = sqrt(n), 60 % of its routers with a service area around them."""
    random = Random(f"s2 {seed}")
    layout = hot_tree(random, routers, math.sqrt(routers))
    return layout, _served(random, layout, 0.04, 0.06), AggregationModel(random, GROUND)


def s3(
    seed: int, routers: int = 500, tastes: Sequence[Tastes] = ()
) -> tuple[Layout, dict[int, Box], AdaptiveModel, tuple[int, ...]]:
    """5.4.1: such a tree, service areas a little larger, and a tenth of the routers that send."""
    random = Random(f"s3 {seed}")
    layout = hot_tree(random, routers, math.sqrt(routers))
    areas = _served(random, layout, 0.05, 0.06)
    senders = tuple(sorted(random.sample(range(routers), max(1, routers // 10))))
    return layout, areas, AdaptiveModel(random, GROUND, tastes), senders


def _served(random: Random, layout: Layout, shortest: float, longest: float) -> dict[int, Box]:
    chosen = sorted(random.sample(range(layout.nodes), round(S1_ACTIVE * layout.nodes)))
    places: list[tuple[float, float]] = [(x, y) for x, y in layout.places.tolist()]
    return {node: GROUND.box(area_around(random, *places[node], shortest, longest)) for node in chosen}
