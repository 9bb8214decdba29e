"""The blocks of a city centre: polygons that cover the plane and share their corners, with streets along their sides.

Two plans.  *Organic*, for cities that grew around a market place, as Darmstadt: radial streets and rings, and between them
quarters that were divided again and again, finely in the middle and coarsely outside.  *Grid*, for cities that were drawn,
as Mannheim with its squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple

import shapely
from shapely.ops import split

from nearcast.runtime.simulation.streets.pieces import XY, Line

Block = tuple[XY, ...]
"""Its corners, to the millimetre, the first one not repeated.  Where streets of other blocks end at it, there is a corner."""
Side = tuple[XY, XY]

_RINGS: Final = (42.0, 130.0, 300.0, 560.0)
"""Metres from the market place; more follow, as far apart as the last two, until the city is full."""
_RADIAL_STREETS: Final = 7
_ASIDE: Final = 0.08
"""How far the market place may be from the middle of the map, as a share of its side."""
_NARROWEST: Final = 34.0
"""Metres: no block is divided so that its parts are less deep."""


class Blocks(NamedTuple):
    """The blocks, the sides that are main streets, and the middle of the city."""

    blocks: list[Block]
    main: frozenset[Side]
    middle: XY


def side_of(a: XY, b: XY) -> Side:
    """The same for both blocks that share it."""
    return (a, b) if a < b else (b, a)


def sides(block: Block) -> Iterator[Side]:
    return (side_of(a, b) for a, b in pairwise((*block, block[0])))


def grid_blocks(random: Random, side: float) -> Blocks:
    """Rows and columns of almost equal blocks, turned a little against the sky's directions, as Mannheim's are."""
    half = side * 0.75
    columns, rows = _lines(random, half, 66.0, 96.0), _lines(random, half, 54.0, 80.0)
    turn = math.radians(random.uniform(6.0, 14.0))
    cosine, sine = math.cos(turn), math.sin(turn)
    corner: dict[tuple[int, int], XY] = {}
    for i, x in enumerate(columns):
        for j, y in enumerate(rows):
            east, north = x + random.uniform(-1.5, 1.5), y + random.uniform(-1.5, 1.5)
            corner[i, j] = _millimetres(east * cosine - north * sine, east * sine + north * cosine)
    # The two axes that cross in the middle.
    axes = [
        [corner[len(columns) // 2, j] for j in range(len(rows))],
        [corner[i, len(rows) // 2] for i in range(len(columns))],
    ]
    return Blocks(
        [
            (corner[i, j], corner[i + 1, j], corner[i + 1, j + 1], corner[i, j + 1])
            for i in range(len(columns) - 1)
            for j in range(len(rows) - 1)
        ],
        frozenset(side_of(a, b) for axis in axes for a, b in pairwise(axis)),
        corner[len(columns) // 2, len(rows) // 2],
    )


def organic_blocks(random: Random, side: float) -> Blocks:
    """Main streets first, then the quarters between them are divided."""
    # Hardly any map has the market place exactly in its middle.
    middle = random.uniform(-_ASIDE, _ASIDE) * side, random.uniform(-_ASIDE, _ASIDE) * side
    main = list(_main_streets(random, side, middle))
    on_map = shapely.box(-side / 2, -side / 2, side / 2, side / 2)
    quarters = [quarter for quarter in _faces(main) if quarter.intersects(on_map)]
    divided = [line for quarter in quarters for line in _divisions(random, quarter, middle)]
    faces = [face for face in _faces([*main, *divided]) if face.intersects(on_map)]
    blocks = [tuple(_millimetres(x, y) for x, y in shapely.get_coordinates(face)[:-1]) for face in faces]
    all_sides = sorted({one for block in blocks for one in sides(block)})
    streets = shapely.union_all([shapely.LineString(line) for line in main])
    middles = shapely.points([((ax + bx) / 2, (ay + by) / 2) for (ax, ay), (bx, by) in all_sides])
    on_main = shapely.distance(middles, streets) < 0.1
    return Blocks(blocks, frozenset(one for one, is_main in zip(all_sides, on_main, strict=True) if is_main), middle)


def _main_streets(random: Random, side: float, middle: XY) -> Iterator[Line]:
    """Rings around the market place, and streets that lead away from it; outside the third ring there are twice as many."""
    rings = list(_RINGS)
    while rings[-1] < side:
        rings.append(2 * rings[-1] - rings[-2])
    polar = [(0.0, math.tau * (k + random.uniform(-0.22, 0.22)) / _RADIAL_STREETS) for k in range(_RADIAL_STREETS)]
    for index, radius in enumerate(rings):
        # A ring is no circle, and its middle is not the market place.
        wobble, towards = 0.13 * min(radius, 400.0), random.uniform(0.0, math.tau)
        ring = [
            (
                radius + wobble * (math.cos(angle - towards) + random.uniform(-0.8, 0.8)),
                angle + random.uniform(-0.09, 0.09),
            )
            for _, angle in polar
        ]
        if index:
            yield from (
                (_place(middle, *inner), _place(middle, *outer)) for inner, outer in zip(polar, ring, strict=True)
            )
        polar = []
        for a, b in pairwise((*ring, (ring[0][0], ring[0][1] + math.tau))):
            arc = [(a[0] + (b[0] - a[0]) * k / 4, a[1] + (b[1] - a[1]) * k / 4) for k in range(5)]
            yield [_place(middle, *at) for at in arc]
            polar += [arc[0], arc[2]] if index == 2 else [arc[0]]


def _divisions(random: Random, quarter: Any, middle: XY) -> Iterator[Line]:
    """Divide a quarter across its longer direction, and its parts again, until they are as small as blocks there are."""
    outline = shapely.get_coordinates(shapely.minimum_rotated_rectangle(quarter)).tolist()
    (ax, ay), (bx, by), (cx, cy) = outline[:3]
    if math.dist((ax, ay), (bx, by)) < math.dist((bx, by), (cx, cy)):
        (ax, ay), (bx, by), (cx, cy) = outline[1:4]
    length, depth = math.dist((ax, ay), (bx, by)), math.dist((bx, by), (cx, cy))
    outside = min(1.0, quarter.centroid.distance(shapely.Point(middle)) / 600.0)
    largest = (1800.0 + 5200.0 * outside) * random.uniform(0.7, 1.6)
    if quarter.area < largest or length < 2 * _NARROWEST:
        return
    share, turn = random.uniform(0.38, 0.62), random.uniform(-0.16, 0.16)
    x, y = (ax + cx) / 2 + (bx - ax) * (share - 0.5), (ay + cy) / 2 + (by - ay) * (share - 0.5)
    angle = math.atan2(cy - by, cx - bx) + turn
    east, north = math.cos(angle) * 2 * depth, math.sin(angle) * 2 * depth
    knife = shapely.LineString([(x - east, y - north), (x + east, y + north)])
    for cut in _in_order(shapely.get_parts(shapely.intersection(knife, quarter))):
        yield shapely.get_coordinates(cut).tolist()
    for part in _in_order(shapely.get_parts(split(quarter, knife))):
        yield from _divisions(random, part, middle)


def _faces(lines: Iterable[Line]) -> list[Any]:
    """The polygons between lines, with a corner wherever a line meets another."""
    noded = shapely.union_all([shapely.LineString(line) for line in lines], grid_size=0.01)
    return _in_order(shapely.get_parts(shapely.polygonize([noded])))


def _in_order(geometries: Sequence[Any]) -> list[Any]:
    """By place: shapely promises no order."""
    return sorted(geometries, key=lambda geometry: (geometry.centroid.x, geometry.centroid.y))


def _lines(random: Random, half: float, least: float, most: float) -> list[float]:
    """Positions of parallel streets from -half to half."""
    lines = [-half]
    while lines[-1] < half:
        lines.append(lines[-1] + random.uniform(least, most))
    return lines


def _place(middle: XY, radius: float, angle: float) -> XY:
    """Somewhat wider than high: no city is a target."""
    return _millimetres(middle[0] + 1.1 * radius * math.cos(angle), middle[1] + 0.93 * radius * math.sin(angle))


def _millimetres(x: float, y: float) -> XY:
    return round(float(x), 3), round(float(y), 3)
