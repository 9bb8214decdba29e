"""Areas: where a message matters, and where somebody is interested.

An area is either *absolute* (it lies somewhere on the earth) or *relative* (it lies around whoever holds it and
becomes absolute by ``anchored(at)``).  Borders belong to the area.

=============  ==========================================================  ===================
``Circle``      great-circle metres around a centre                         absolute, relative
``Rectangle``   metres east-west and north-south around a centre            absolute, relative
``Outline``     a ring of (east, north) metres around a centre              absolute, relative
``Box``         degrees west, south, east, north; may cross the antimeridian  absolute
``Polygon``     GeoJSON polygon or multipolygon, planar in lon/lat (RFC 7946)  absolute
=============  ==========================================================  ===================

``Rectangle`` and ``Outline`` are drawn in the azimuthal equidistant plane around their centre
(``geometry.offset``).  RFC 7946 edges are straight in lon/lat; a polygon that crosses the antimeridian is cut
there into a multipolygon (RFC 7946, 3.1.9).

shapely is imported where a polygon is drawn: with numpy, which it brings along, it takes longer to load than all the rest
of a client, and most areas are circles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from nearcast.errors import InvalidArea
from nearcast.model.geometry import (
    HALF_CIRCUMFERENCE,
    Point,
    checked_degrees,
    checked_metres,
    distance,
    distance_degrees,
    offset,
)

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

# Bounding circles may be a little too large but never too small; this covers the rounding in their radius.
_SLACK: Final = 1.0 + 1e-9


class Area(ABC):
    """What all areas share.  ``center`` is ``None`` for an area that is relative to its holder."""

    center: Point | None

    @property
    def is_relative(self) -> bool:
        """Whether it lies around its holder, and moves with it."""
        return self.center is None

    def fixed_center(self) -> Point:
        """The centre of an absolute area; a relative one has none, and raises ``InvalidArea``."""
        if self.center is None:
            raise InvalidArea("the area is relative: anchor it at a position first")
        return self.center

    @abstractmethod
    def anchored(self, at: Point) -> Area:
        """The same area, fixed around ``at``; an absolute area stays where it is."""

    @abstractmethod
    def covers(self, point: Point) -> bool:
        """Whether ``point`` lies inside or on the border."""

    def covers_from(self, holder: Point, point: Point) -> bool:
        """Whether ``point`` lies in the area as it is for a holder at that position."""
        return self.anchored(holder).covers(point)

    @abstractmethod
    def bounding_radius(self) -> float:
        """Radius of a circle around the centre that surely encloses the area."""


@dataclass(frozen=True, slots=True)
class Circle(Area):
    """All points within ``radius`` metres of the centre."""

    radius: float
    center: Point | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checked_metres(self.radius, "radius"))
        _check_center(self.center)

    def anchored(self, at: Point) -> Circle:
        return replace(self, center=at) if self.center is None else self

    def covers(self, point: Point) -> bool:
        return distance(self.fixed_center(), point) <= self.radius

    def covers_from(self, holder: Point, point: Point) -> bool:  # the usual case, without making a circle for it
        anchor = self.center or holder
        return distance_degrees(anchor.lat, anchor.lon, point.lat, point.lon) <= self.radius

    def bounding_radius(self) -> float:
        return self.radius


@dataclass(frozen=True, slots=True)
class Rectangle(Area):
    """``width`` metres from west to east and ``height`` metres from south to north, centred."""

    width: float
    height: float
    center: Point | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", checked_metres(self.width, "width"))
        object.__setattr__(self, "height", checked_metres(self.height, "height"))
        _check_center(self.center)

    def anchored(self, at: Point) -> Rectangle:
        return replace(self, center=at) if self.center is None else self

    def covers(self, point: Point) -> bool:
        east, north = offset(self.fixed_center(), point)
        return abs(east) <= self.width / 2 and abs(north) <= self.height / 2

    def bounding_radius(self) -> float:
        return math.hypot(self.width, self.height) / 2 * _SLACK


@dataclass(frozen=True)
class Outline(Area):
    """A polygon given as a closed ring of (east, north) metres from its centre."""

    ring: tuple[tuple[float, float], ...]
    center: Point | None = None

    def __post_init__(self) -> None:
        try:
            ring = tuple((float(east), float(north)) for east, north in self.ring)
        except (TypeError, ValueError):
            raise InvalidArea("an outline is a ring of (east, north) metres") from None
        if not all(math.isfinite(value) for pair in ring for value in pair):
            raise InvalidArea("every offset of an outline must be a finite number of metres")
        object.__setattr__(self, "ring", _closed(ring, "outline"))
        _check_center(self.center)
        _ = self.shape  # refuses what crosses itself

    def anchored(self, at: Point) -> Outline:
        return replace(self, center=at) if self.center is None else self

    @cached_property
    def shape(self) -> BaseGeometry:
        return _polygon(self.ring)

    def covers(self, point: Point) -> bool:
        return _covers(self.shape, *offset(self.fixed_center(), point))

    def bounding_radius(self) -> float:
        return max(math.hypot(east, north) for east, north in self.ring) * _SLACK


@dataclass(frozen=True)
class Box(Area):
    """Degrees; ``west > east`` crosses the antimeridian."""

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        for name, limit in (("west", 180.0), ("south", 90.0), ("east", 180.0), ("north", 90.0)):
            object.__setattr__(self, name, checked_degrees(getattr(self, name), name, limit))
        if self.south > self.north:
            raise InvalidArea(
                f"the northern border of the box ({self.north}) lies south of its southern one ({self.south})"
            )

    def anchored(self, at: Point) -> Box:  # noqa: ARG002 - absolute: it stays where it is
        return self

    @property
    def _width(self) -> float:
        return self.east - self.west + (360.0 if self.west > self.east else 0.0)

    @cached_property
    def center(self) -> Point:  # type: ignore[override]
        middle = self.west + self._width / 2
        return Point((self.south + self.north) / 2, middle - 360.0 if middle > 180.0 else middle)

    def covers(self, point: Point) -> bool:
        if not self.south <= point.lat <= self.north:
            return False
        # Longitude -180 also stands for 180, which may be the border of the box.
        return any(self._covers_lon(lon) for lon in ((-180.0, 180.0) if point.lon == -180.0 else (point.lon,)))

    def _covers_lon(self, lon: float) -> bool:
        if self.west <= self.east:
            return self.west <= lon <= self.east
        return lon >= self.west or lon <= self.east

    def bounding_radius(self) -> float:
        return _degrees_bound(self.center, self.south, self.north, self._width / 2)

    @cached_property
    def shape(self) -> BaseGeometry:
        import shapely

        if self.west <= self.east:
            return shapely.box(self.west, self.south, self.east, self.north)
        halves = ((self.west, 180.0), (-180.0, self.east))
        wide = [half for half in halves if half[0] < half[1]] or [(180.0, 180.0)]
        # A box without height is a line, which a union of boxes would leave out.
        return shapely.union_all([shapely.box(west, self.south, east, self.north).convex_hull for west, east in wide])


@dataclass(frozen=True)
class Polygon(Area):
    """One or several polygons with holes, in GeoJSON's order: rings of (lon, lat), planar edges."""

    coordinates: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]

    def __post_init__(self) -> None:
        polygons = tuple(
            tuple(_closed(tuple(_lon_lat(position) for position in ring), "ring") for ring in polygon)
            for polygon in self.coordinates
        )
        if not polygons or not all(polygons):
            raise InvalidArea("a polygon needs at least one ring of positions")
        object.__setattr__(self, "coordinates", polygons)
        _ = self.shape  # refuses what crosses itself

    def anchored(self, at: Point) -> Polygon:  # noqa: ARG002 - absolute: it stays where it is
        return self

    @cached_property
    def shape(self) -> BaseGeometry:
        import shapely

        parts = [_polygon(*rings) for rings in self.coordinates]
        return parts[0] if len(parts) == 1 else _checked_shape(shapely.MultiPolygon(parts))

    @cached_property
    def center(self) -> Point:  # type: ignore[override]
        west, south, east, north = self.shape.bounds
        return Point((south + north) / 2, (west + east) / 2)

    def covers(self, point: Point) -> bool:
        return _covers(self.shape, point.lon, point.lat) or (
            point.lon == -180.0 and _covers(self.shape, 180.0, point.lat)
        )

    def bounding_radius(self) -> float:
        west, south, east, north = self.shape.bounds
        return _degrees_bound(self.center, south, north, (east - west) / 2)


def area_from_geojson(geometry: Mapping[str, Any]) -> Polygon:
    """Read a GeoJSON Polygon or MultiPolygon."""
    if not isinstance(geometry, Mapping):
        raise InvalidArea(f"GeoJSON is a mapping with type and coordinates, not {geometry!r}")
    kind = geometry.get("type")
    coordinates = geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise InvalidArea(f"GeoJSON of type {kind!r} is no area; use Polygon or MultiPolygon")
    if not isinstance(coordinates, (list, tuple)):
        raise InvalidArea(f"the {kind} has no list of coordinates")
    try:
        return Polygon(cast("Any", (coordinates,) if kind == "Polygon" else tuple(coordinates)))
    except (TypeError, KeyError):
        raise InvalidArea(f"the coordinates of a {kind} must be nested lists of [lon, lat]") from None


def area_to_geojson(area: Area) -> dict[str, Any]:
    """GeoJSON of an absolute area that has straight edges in lon/lat."""
    if isinstance(area, (Polygon, Box)):
        return cast("dict[str, Any]", area.shape.__geo_interface__)
    raise InvalidArea(f"a {type(area).__name__} has no exact GeoJSON form")


def _check_center(center: object) -> None:
    if center is not None and not isinstance(center, Point):
        raise InvalidArea(f"the centre of an area is a Point, not {center!r}")


def _lon_lat(position: Sequence[float]) -> tuple[float, float]:
    if len(position) < 2:
        raise InvalidArea(f"a position needs longitude and latitude, not {list(position)!r}")
    return checked_degrees(position[0], "longitude", 180.0), checked_degrees(position[1], "latitude", 90.0)


def _closed(ring: tuple[tuple[float, float], ...], name: str) -> tuple[tuple[float, float], ...]:
    if len(ring) < 4:
        raise InvalidArea(f"a {name} needs at least four positions, the last equal to the first; it has {len(ring)}")
    if ring[0] != ring[-1]:
        raise InvalidArea(
            f"the {name} is not closed: it starts at {ring[0]} and ends at {ring[-1]}; repeat the first position at the end"
        )
    return ring


def _polygon(ring: Sequence[tuple[float, float]], *holes: Sequence[tuple[float, float]]) -> BaseGeometry:
    import shapely

    return _checked_shape(shapely.Polygon(ring, holes))


def _covers(shape: BaseGeometry, x: float, y: float) -> bool:
    import shapely

    return bool(shapely.covers(shape, shapely.points(x, y)))


def _checked_shape(shape: BaseGeometry) -> BaseGeometry:
    import shapely

    if not shape.is_valid:
        raise InvalidArea(f"the polygon is not simple: {shapely.is_valid_reason(shape)}")
    if shape.area == 0:
        raise InvalidArea("the polygon encloses nothing")
    shapely.prepare(shape)
    return shape


def _degrees_bound(center: Point, south: float, north: float, half_width: float) -> float:
    """Largest distance from ``center`` to a point of a lon/lat box around it.

    At a fixed latitude distance grows with the difference in longitude, so the farthest point lies on the side
    meridian; along that meridian the haversine is ``1/2 - (A cos(lat) + B sin(lat))``, whose only inner maximum
    is where the bracket is smallest.
    """
    k = math.sin(math.radians(half_width) / 2) ** 2
    middle = math.radians(center.lat)
    a, b = (0.5 - k) * math.cos(middle), 0.5 * math.sin(middle)
    worst = math.degrees(math.atan2(-b, -a))
    latitudes = [south, north] + [lat for lat in (worst,) if south <= lat <= north]
    # Not by that formula: for a small box it is a difference of two nearly equal numbers.
    farthest = max(distance_degrees(center.lat, 0.0, lat, half_width) for lat in latitudes)
    # Near the antipode the distance itself is uncertain by decimetres.
    return HALF_CIRCUMFERENCE if farthest > 0.9 * HALF_CIRCUMFERENCE else farthest * _SLACK + 1e-6
