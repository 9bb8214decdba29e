"""Hexagonal cells of H3, exchangeable with the squares of ``tessellation``.

H3 draws its cells with straight lines in gnomonic projections of the earth, where straight lines are great circles.  So the
edges here are great-circle arcs between the corners that H3 states, and cells are measured as polygons of such arcs, in
vectors on the unit sphere: neither the antimeridian nor distortion needs a special case.  Which side of such an
edge a place belongs to, H3 decides within a tenth of a micrometre of it, also where cells lie across an edge of the icosahedron.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Final

import h3

from nearcast.errors import InvalidArea, InvalidPosition, InvalidScheme, UnknownName
from nearcast.filtering.tessellation import HIGHEST_LATITUDE, SLACK, SLACK_METRES, Cover, GeoBox, Tessellation
from nearcast.model.geometry import EARTH_RADIUS, Point

Vector = tuple[float, float, float]

COARSEST, FINEST = 4, 15
"""Edges of 26 km and of half a metre.  A larger cell may hold a pole, where no box in degrees can be drawn."""


@dataclass(frozen=True, slots=True)
class HexagonGrid(Tessellation):
    """The cells of H3 at one resolution, named by their index.

    They cover the whole earth, so that who strays out of the world still has a channel; the world only says how many cells
    the documents would count.
    """

    world: GeoBox
    resolution: int

    def __post_init__(self) -> None:
        valid = isinstance(self.resolution, int) and not isinstance(self.resolution, bool)
        if not valid or not COARSEST <= self.resolution <= FINEST:
            raise InvalidScheme(
                f"an H3 resolution is a whole number from {COARSEST} to {FINEST}, not {self.resolution!r}"
            )
        if self.world.east - self.world.west >= 180.0:
            raise InvalidArea("a world of hexagons spans less than 180 degrees of longitude: take a part of it")

    @property
    def cells(self) -> int:
        return _cells_in(self.world, self.resolution)

    def __contains__(self, cell: object) -> bool:
        # H3 reads an index as a hexadecimal number, however it is written; a channel has one name.
        return (
            isinstance(cell, str)
            and cell.isalnum()
            and cell.isascii()
            and cell == cell.lower()
            and not cell.startswith("0")
            and h3.is_valid_cell(cell)
            and h3.get_resolution(cell) == self.resolution
        )

    def cell_of(self, point: Point) -> str:
        cell: str = h3.latlng_to_cell(point.lat, point.lon, self.resolution)
        return cell

    def around(self, point: Point, radius: float, cover: Cover) -> tuple[str, ...]:
        home = self.cell_of(point)
        meets = _test(point, radius, cover)
        met = [home]
        # The cells that meet a connected area are connected, and two neighbours are at most one ring apart: beyond a
        # ring without any there are none.
        for ring in count(1):
            found = [cell for cell in h3.grid_ring(home, ring) if meets(_hexagon(cell))]
            if not found:
                break
            met += found
        return tuple(sorted(met))

    def center(self, cell: str) -> Point:
        self._check(cell)
        return Point(*h3.cell_to_latlng(cell))

    def bounds(self, cell: str) -> tuple[float, float, float, float]:
        """As everywhere; a cell on the antimeridian has ``west > east``."""
        self._check(cell)
        hexagon = _hexagon(cell)
        middle = h3.cell_to_latlng(cell)[1]
        west = min(_turn(middle, lon) for _, lon in h3.cell_to_boundary(cell)) + middle
        east = max(_turn(middle, lon) for _, lon in h3.cell_to_boundary(cell)) + middle
        return (
            math.degrees(hexagon.south),
            west + 360.0 if west < -180.0 else west,
            math.degrees(hexagon.north),
            east - 360.0 if east > 180.0 else east,
        )

    def _check(self, cell: str) -> None:
        if cell not in self:
            raise UnknownName(f"{cell!r} is no H3 cell of resolution {self.resolution}")


@dataclass(frozen=True, slots=True)
class _Edge:
    """The arc from ``a`` to ``b``."""

    a: Vector
    b: Vector
    normal: Vector
    """Of the plane of the arc."""
    onwards: Vector
    """Direction of the arc at its beginning."""
    backwards: Vector
    """Direction of the arc at its end, towards its beginning."""


@dataclass(frozen=True, slots=True)
class _Hexagon:
    """A cell as vectors; pentagons, and cells that H3 bends at an edge of its icosahedron, have other numbers of edges."""

    south: float
    north: float
    """Lowest and highest latitude, in radians."""
    center: Vector
    outer_chord: float
    """From the centre to the farthest corner, straight through the earth; in units of its radius."""
    edges: tuple[_Edge, ...]


@lru_cache(maxsize=16_384)
def _hexagon(cell: str) -> _Hexagon:
    corners = [_vector(lat, lon) for lat, lon in h3.cell_to_boundary(cell)]
    edges = tuple(_edge(a, b) for a, b in zip(corners, corners[1:] + corners[:1], strict=True))
    latitudes = [_latitudes_of_arc(edge.a, edge.b) for edge in edges]
    center = _vector(*h3.cell_to_latlng(cell))
    return _Hexagon(
        min(lowest for lowest, _ in latitudes),
        max(highest for _, highest in latitudes),
        center,
        max(math.dist(center, corner) for corner in corners),
        edges,
    )


def _edge(a: Vector, b: Vector) -> _Edge:
    normal = _unit(_normal(a, b))
    return _Edge(a, b, normal, _cross(normal, a), _cross(b, normal))


@lru_cache(maxsize=64)
def _cells_in(world: GeoBox, resolution: int) -> int:
    box = h3.LatLngPoly(
        [
            (world.south, world.west),
            (world.south, world.east),
            (world.north, world.east),
            (world.north, world.west),
        ]
    )
    return len(h3.h3shape_to_cells_experimental(box, resolution, "overlap"))


def _test(point: Point, radius: float, cover: Cover) -> Callable[[_Hexagon], bool]:
    """Whether a cell other than the point's own meets the circle, or its box."""
    if not 0.0 <= radius < math.inf:
        raise InvalidPosition(f"a radius must be a finite number of metres, not negative: {radius!r}")
    angle = (radius * SLACK + SLACK_METRES) / EARTH_RADIUS
    if cover == "box":
        reach = math.degrees(angle)
        if abs(point.lat) + reach < HIGHEST_LATITUDE + 2.0:
            return _BoxTest(point, reach).meets
        angle *= 3.0  # so near to a pole, this circle holds the box
    return _CircleTest(_vector(point.lat, point.lon), angle).meets


class _CircleTest:
    def __init__(self, at: Vector, angle: float) -> None:
        angle = min(angle, math.pi)
        self._at: Final = at
        self._chord: Final = 2.0 * math.sin(angle / 2.0)
        self._sine: Final = math.sin(angle) if angle < math.pi / 2.0 else 1.0

    def meets(self, hexagon: _Hexagon) -> bool:
        at, chord = self._at, self._chord
        apart = math.dist(at, hexagon.center)
        # Chords obey the triangle inequality: no corner is nearer than this, nor is any edge, which ends in corners.
        if apart - hexagon.outer_chord > chord:
            return False
        if apart <= chord:
            return True
        for edge in hexagon.edges:
            if math.dist(at, edge.a) <= chord:
                return True
            # The foot of the perpendicular lies on the edge if it is past neither of its ends.
            if abs(_dot(edge.normal, at)) <= self._sine and _dot(edge.onwards, at) >= 0.0 <= _dot(edge.backwards, at):
                return True
        return False


class _BoxTest:
    def __init__(self, point: Point, reach: float) -> None:
        self._south: Final = math.radians(point.lat - reach)
        self._north: Final = math.radians(point.lat + reach)
        half_width = math.asin(math.sin(math.radians(reach)) / math.cos(math.radians(point.lat)))
        lon = math.radians(point.lon)
        # Normals of the two meridians, both pointing into the box.
        self._west: Final = (-math.sin(lon - half_width), math.cos(lon - half_width), 0.0)
        self._east: Final = (math.sin(lon + half_width), -math.cos(lon + half_width), 0.0)

    def meets(self, hexagon: _Hexagon) -> bool:
        if hexagon.south > self._north or hexagon.north < self._south:
            return False
        past_west, past_east = _dot(hexagon.center, self._west), _dot(hexagon.center, self._east)
        if past_west < -hexagon.outer_chord or past_east < -hexagon.outer_chord:
            return False
        if past_west >= 0.0 <= past_east and self._south <= _latitude(hexagon.center) <= self._north:
            return True
        return self._meets_between_meridians(hexagon)

    def _meets_between_meridians(self, hexagon: _Hexagon) -> bool:
        """The part of a cell between two meridians is in one piece, so its latitudes are an interval."""
        lowest, highest = math.inf, -math.inf
        for edge in hexagon.edges:
            arc = _clipped(edge.a, edge.b, self._west)
            if arc:
                arc = _clipped(*arc, self._east)
            if arc:
                low, high = _latitudes_of_arc(*arc)
                lowest, highest = min(lowest, low), max(highest, high)
                if lowest <= self._north and highest >= self._south:
                    return True
        return False


def _clipped(a: Vector, b: Vector, inwards: Vector) -> tuple[Vector, Vector] | None:
    """The part of an arc on the inner side of a plane through the middle of the earth."""
    at_a, at_b = _dot(a, inwards), _dot(b, inwards)
    if at_a < 0.0 and at_b < 0.0:
        return None
    if at_a >= 0.0 and at_b >= 0.0:
        return a, b
    at_a, at_b, outside = abs(at_a), abs(at_b), at_a < 0.0
    crossing = _unit((at_b * a[0] + at_a * b[0], at_b * a[1] + at_a * b[1], at_b * a[2] + at_a * b[2]))
    return (crossing, b) if outside else (a, crossing)


def _latitudes_of_arc(a: Vector, b: Vector) -> tuple[float, float]:
    """Lowest and highest latitude, in radians; between its ends an arc may bulge towards the nearer pole."""
    ends = _latitude(a), _latitude(b)
    lowest, highest = min(ends), max(ends)
    normal = x, y, z = _normal(a, b)
    for pole in (1.0, -1.0):
        # The point of the great circle next to the pole, not scaled to the sphere: n x (pole x n).
        summit = (-x * z * pole, -y * z * pole, (x * x + y * y) * pole)
        if _dot(_cross(normal, a), summit) > 0.0 < _dot(_cross(b, normal), summit):
            latitude = _latitude(summit)
            lowest, highest = min(lowest, latitude), max(highest, latitude)
    return lowest, highest


def _vector(lat: float, lon: float) -> Vector:
    phi, turn = math.radians(lat), math.radians(lon)
    return math.cos(phi) * math.cos(turn), math.cos(phi) * math.sin(turn), math.sin(phi)


def _latitude(vector: Vector) -> float:
    return math.atan2(vector[2], math.hypot(vector[0], vector[1]))


def _turn(start: float, end: float) -> float:
    """Degrees from one meridian to another, the shorter way."""
    return (end - start + 180.0) % 360.0 - 180.0


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _normal(a: Vector, b: Vector) -> Vector:
    """Of the plane of an arc, not scaled; by the difference of its ends, or a short arc would lose half of its digits."""
    return _cross(a, (b[0] - a[0], b[1] - a[1], b[2] - a[2]))


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return vector[0] / length, vector[1] / length, vector[2] / length
