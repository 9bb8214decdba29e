"""The ground that is drawn, and the filter schemes that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from nearcast.broker.core import Broker
from nearcast.dashboard.contract import Bounds, NamedPlace, Parameter, SchemeKind, World
from nearcast.errors import InvalidMap
from nearcast.filtering.registry import SCHEMES
from nearcast.model.geometry import Point


class Ground(msgspec.Struct, frozen=True):
    """What a map says."""

    name: str = ""
    bounds: Bounds | None = None
    streets: list[list[float]] = []
    points: list[NamedPlace] = []
    attribution: str | None = None


def ground_in(path: Path | None) -> Ground:
    """Of a file of OpenStreetMap, or of a scenario (or the name of one that comes with nearcast); ``InvalidMap``, ``InvalidScenario``."""
    if path is None:
        return Ground()
    from nearcast.runtime.simulation.streets.openstreetmap import read_map
    from nearcast.scenario.ground import ground_of
    from nearcast.scenario.reading import examples, read

    if path.suffix == ".toml" or str(path) in examples():
        scenario = ground_of(read(path if path.is_file() else str(path)))
        plane, streets, bounds, points = scenario.plane, scenario.streets, scenario.bounds, scenario.points
    elif path.suffix in {".osm", ".pbf", ".xml"}:
        streets = read_map(path)
        plane, bounds, points = streets.plane, streets.bounds, streets.points
    else:
        raise InvalidMap(f"{path}: is no map; give a file of OpenStreetMap (.osm, .osm.pbf) or a scenario (.toml)")
    south_west, north_east = plane.to_point(bounds.west, bounds.south), plane.to_point(bounds.east, bounds.north)
    lines = []
    for edge in streets.edges if streets is not None else ():
        corners = [plane.to_point(x, y) for x, y in edge.geometry]
        lines.append([round(degrees, 6) for corner in corners for degrees in (corner.lat, corner.lon)])
    places = []
    for point in points:
        place = plane.to_point(point.x, point.y)
        places.append(NamedPlace(point.name, place.lat, place.lon, point.radius))
    return Ground(
        path.stem if streets is None else streets.name,
        Bounds(south_west.lat, south_west.lon, north_east.lat, north_east.lon),
        lines,
        places,
        (streets.attribution or None) if streets is not None else None,
    )


def world_of(broker: Broker, ground: Ground, roles: list[str]) -> World:
    """The map, with what the settings say of the ground, and all schemes."""
    points = [*ground.points]
    points += [NamedPlace(each.name, each.lat, each.lon, each.radius) for each in broker.settings.schemes.points]
    return World(
        ground.name,
        ground.bounds,
        ground.streets,
        points,
        ground.attribution,
        [kind_of(name) for name in SCHEMES],
        roles,
    )


def kind_of(name: str) -> SchemeKind:
    entry = SCHEMES[name]
    hints = get_type_hints(entry.parameters, include_extras=True)
    parameters = []
    for field in msgspec.structs.fields(entry.parameters):
        kind, meta = _unwrapped(hints[field.name])
        extra = (meta.extra or {}) if meta is not None else {}
        unit = {"length": "m", "duration": "s"}.get(str(extra.get("dimension")), "")
        words = [str(each) for each in get_args(kind)]
        parameters.append(
            Parameter(
                field.name,
                "choice" if words else kind.__name__,
                entry.preset.get(field.name, field.default),
                unit,
                (meta.description or "") if meta is not None else "",
                words,
            )
        )
    return SchemeKind(name, entry.about, parameters)


def _unwrapped(hint: Any) -> tuple[Any, msgspec.Meta | None]:
    """The type of an ``Annotated`` one, and what is said of it."""
    metas = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, msgspec.Meta)]
    return getattr(hint, "__origin__", hint) if metas else hint, metas[0] if metas else None


def middle_of(ground: Ground, broker: Broker) -> Point:
    """The origin of what is sent: near to the clients, so that small numbers say where they are."""
    if ground.bounds is not None:
        box = ground.bounds
        return Point((box.south + box.north) / 2, (box.west + box.east) / 2)
    import numpy as np

    lat, lon = broker.presence.matcher.positions
    known = ~np.isnan(lat)
    if not known.any():
        return Point(0.0, 0.0)
    return Point(float(np.median(lat[known])), float(np.median(lon[known])))
