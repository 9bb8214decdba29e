"""Made-up city centres, to walk in where no map is at hand (in place of BYPASS's Darmstadt and Mannheim).

A city is a function of its kind, its seed, its side and its number of attraction points, and of nothing else.  Its few hot
spots are squares in the middle; the other attraction points are parks.  Hot spots have a larger radius and are chosen
more often, by as much as the dissertation's text allows to say (see ``calibration``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final, Literal

import shapely

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Bounds
from nearcast.runtime.simulation.streets.blocks import Block, Blocks, Side, grid_blocks, organic_blocks, sides
from nearcast.runtime.simulation.streets.graph import AttractionPoint, StreetGraph
from nearcast.runtime.simulation.streets.pieces import XY, Line, clipped

CityKind = Literal["organic", "grid"]
SIDE: Final = 1300.0
"""Metres (BYPASS 6.1.1)."""
SMALLEST_SIDE: Final = 500.0
LARGEST_SIDE: Final = 10_000.0
HOT_RADIUS: Final = 50.0
"""Metres, twice the default: the dissertation's larger radii are only in its figures."""


@dataclass(frozen=True, slots=True)
class CityPlan:
    """What distinguishes the two kinds; lengths in metres."""

    origin: Point
    points: int  # attraction points, hot spots among them
    hot_spots: int
    hot_weight: float  # of a hot spot; a park weighs 1
    missing: float  # share of the blocks' sides without a street: blocks of differing size
    dead_ends: float  # share of the sides that end half way
    bend: float  # how far the middle of a street is off the straight line
    alleys: float  # share of the large blocks that have a way through


PLANS: Final[Mapping[CityKind, CityPlan]] = MappingProxyType(
    {
        "organic": CityPlan(
            origin=Point(49.8728, 8.6512),
            points=22,
            hot_spots=5,
            hot_weight=2.0,
            missing=0.06,
            dead_ends=0.04,
            bend=1.5,
            alleys=0.25,
        ),
        "grid": CityPlan(
            origin=Point(49.4875, 8.4660),
            points=26,
            hot_spots=6,
            hot_weight=5.0,
            missing=0.03,
            dead_ends=0.01,
            bend=0.0,
            alleys=0.1,
        ),
    }
)


def city(kind: CityKind = "organic", *, seed: int = 1, side: float = SIDE, points: int | None = None) -> StreetGraph:
    """A city centre around the origin of the plane; ``points`` attraction points, hot spots among them."""
    if kind not in PLANS:
        raise InvalidInput(f"there is no city of kind {kind!r}; the kinds are {', '.join(PLANS)}")
    plan = PLANS[kind]
    if not SMALLEST_SIDE <= side <= LARGEST_SIDE:
        raise InvalidInput(f"a city's side is {SMALLEST_SIDE:g} to {LARGEST_SIDE:g} m, not {side}")
    wanted = plan.points if points is None else points
    if wanted < plan.hot_spots:
        raise InvalidInput(f"{wanted} attraction points are too few: {plan.hot_spots} of them are hot spots")
    random = Random(seed)
    blocks = organic_blocks(random, side) if kind == "organic" else grid_blocks(random, side)
    open_blocks = _open_blocks(random, blocks, side, plan.hot_spots, wanted)
    lines = list(_streets(random, blocks, open_blocks, plan))
    lines += (way for block in open_blocks for way in _walkways(block))
    bounds = Bounds.around(side, side)
    return StreetGraph(
        clipped(lines, bounds),
        name=f"{kind} city {seed}",
        origin=plan.origin,
        bounds=bounds,
        points=[_point(index, block, plan) for index, block in enumerate(open_blocks)],
    )


def _streets(random: Random, city: Blocks, open_blocks: Sequence[Block], plan: CityPlan) -> Iterator[Line]:
    """A street along most sides of the blocks, and ways through some of the large ones with houses."""
    middles: dict[Side, XY] = {}
    for a, b in sorted({side for block in city.blocks for side in sides(block)}):
        fate = random.random() if (a, b) not in city.main else 1.0
        middle = middles[a, b] = _middle(random, a, b, plan.bend)
        if fate < plan.dead_ends:
            yield random.choice([(a, middle), (middle, b)])
        elif fate >= plan.dead_ends + plan.missing:
            yield (a, middle, b)
    large = sorted(map(_area, city.blocks))[len(city.blocks) // 2]
    for block in city.blocks:
        if random.random() < plan.alleys and _area(block) >= large and block not in open_blocks:
            ends = [middles[side] for side in sides(block)]
            start = random.randrange(len(ends))
            yield ends[start], ends[(start + len(ends) // 2) % len(ends)]


def _open_blocks(random: Random, city: Blocks, side: float, hot_spots: int, wanted: int) -> list[Block]:
    """Blocks without houses: first the squares, near the middle, then the parks, anywhere; none near another."""
    inside = side / 2 - HOT_RADIUS
    candidates = {block: centre for block in city.blocks if max(map(abs, centre := _centre(block))) <= inside}
    central = sorted(candidates, key=lambda block: (math.dist(candidates[block], city.middle), block))
    anywhere = random.sample(list(candidates), len(candidates))
    chosen: dict[Block, XY] = {}
    for apart, order, until in ((0.2 * side, central, hot_spots), (0.1 * side, anywhere, wanted)):
        distance = apart
        while len(chosen) < until:
            if distance < 1.0:
                raise InvalidInput(
                    f"{wanted} attraction points do not fit into {len(candidates)} blocks: ask for fewer, or a larger side"
                )
            for block in order:
                if len(chosen) < until and all(
                    math.dist(candidates[block], other) >= distance for other in chosen.values()
                ):
                    chosen[block] = candidates[block]
            distance *= 0.8
    return list(chosen)


def _walkways(block: Block) -> list[Line]:
    """Ways from the middle of an open block to its corners, to at most six of them."""
    return [(_centre(block), corner) for corner in block[:: math.ceil(len(block) / 6)]]


def _point(index: int, block: Block, plan: CityPlan) -> AttractionPoint:
    x, y = _centre(block)
    if index < plan.hot_spots:
        return AttractionPoint(f"square-{index + 1}", x, y, HOT_RADIUS, plan.hot_weight)
    return AttractionPoint(f"park-{index + 1 - plan.hot_spots}", x, y)


def _middle(random: Random, a: XY, b: XY, bend: float) -> XY:
    """Half way from a to b, moved across by up to ``bend``: streets that grew are not straight."""
    length = math.dist(a, b)
    across = random.uniform(-bend, bend) / length
    return (
        round((a[0] + b[0]) / 2 - (b[1] - a[1]) * across, 3),
        round((a[1] + b[1]) / 2 + (b[0] - a[0]) * across, 3),
    )


def _centre(block: Block) -> XY:
    centre = shapely.Polygon(block).centroid
    return round(centre.x, 3), round(centre.y, 3)


def _area(block: Block) -> float:
    return float(shapely.Polygon(block).area)
