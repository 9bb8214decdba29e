"""What filter schemes cut the ground into, as GeoJSON: cells, channels, and the regions of plans.

A shape is made once, and kept as the text that goes over the wire: where a cell lies never changes, and there may be thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from nearcast.dashboard.contract import GeoJson
from nearcast.dashboard.shapes import DIGITS, circle_shape
from nearcast.dashboard.turns import Turns
from nearcast.filtering.attraction import Zone
from nearcast.filtering.parameters import Attract, Grid, Multi
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Scheme, Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.geometry import Point
from nearcast.planning.regional import Region
from nearcast.transition.specification import MechanismSpec

MOST: Final = 5_000
"""Cells that are drawn of one scheme."""

MOST_EMPTY: Final = 400
"""Cells of a grid up to which those are drawn, too, that nobody is in."""

REMEMBERED: Final = 20_000
"""Shapes."""

EARTH: Final = 21_000_000.0
"""Metres from anywhere to the farthest place."""


def has_cells(spec: MechanismSpec) -> bool:
    return isinstance(scheme_of(spec), (Grid, Attract, Multi))


def collection(features: Iterable[Any]) -> GeoJson:
    return {"type": "FeatureCollection", "features": list(features)}


def always_drawn(spec: MechanismSpec, territory: Territory) -> Sequence[str]:
    """Cells and channels that are shown also while nobody is in them."""
    scheme = scheme_of(spec)
    if isinstance(scheme, Grid):
        if scheme.cells == "square" and (cells := scheme.tessellation(territory)).cells <= MOST_EMPTY:
            return cells.around(territory.box.center, EARTH, "box")
        return ()
    return [zone.name for zone in territory.zones]


async def features_of(
    spec: MechanismSpec, territory: Territory, counts: Iterable[tuple[str, int]], turns: Turns
) -> dict[str, msgspec.Raw]:
    """The cells or channels of these names, with how many are in them; not those that are none."""
    scheme, found = scheme_of(spec), dict[str, msgspec.Raw]()
    async for some in turns.over(counts):
        for name, count in some:
            shape = _shape(scheme, territory, name)
            if shape is not None:
                found[name] = _encoded(feature({"label": name, "count": count}, shape))
    return found


def region_feature(region: Region) -> msgspec.Raw:
    """Where people have a scheme of their own."""
    zone, scheme = region.zone, str(region.scheme)
    place = {"lat": zone.center.lat, "lon": zone.center.lon, "radius": zone.radius}
    words = {"label": f"{zone.name}: {scheme}", "count": 0, "region": zone.name, "scheme": scheme, "plan": region.plan}
    return _encoded(feature(words | place, _circle(zone)))


def cell_at(spec: MechanismSpec, territory: Territory, position: Point | None) -> str | None:
    """The cell that a place is in, where the scheme has cells."""
    scheme = scheme_of(spec)
    return (
        scheme.tessellation(territory).cell_of(position) if isinstance(scheme, Grid) and position is not None else None
    )


def feature(properties: GeoJson, geometry: msgspec.Raw) -> GeoJson:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _shape(scheme: Scheme, territory: Territory, name: str) -> msgspec.Raw | None:
    if isinstance(scheme, Grid):
        return _cell(scheme, territory.box, name)
    return _circle(territory.zones[name]) if name in territory.zones else None


@lru_cache(REMEMBERED)
def _cell(scheme: Grid, box: GeoBox, name: str) -> msgspec.Raw | None:
    cells = scheme.tessellation_of(box)
    if name not in cells:
        return None
    if scheme.cells == "hexagon":
        import h3

        corners = [[lon, lat] for lat, lon in h3.cell_to_boundary(name)]
    else:
        south, west, north, east = cells.bounds(name)
        corners = [[west, south], [east, south], [east, north], [west, north]]
    ring = [[round(lon, DIGITS), round(lat, DIGITS)] for lon, lat in (*corners, corners[0])]
    return _encoded({"type": "Polygon", "coordinates": [ring]})


@lru_cache(REMEMBERED)
def _circle(zone: Zone) -> msgspec.Raw:
    return _encoded(circle_shape(zone.center, zone.radius))


def _encoded(thing: GeoJson) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(thing))
