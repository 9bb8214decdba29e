"""Traces as OGC Moving Features JSON (OGC 19-045r3): trajectories, and moving points of MF-JSON Prism.

Coordinates are longitude, latitude and perhaps a height, which is ignored.  ``Linear`` interpolation is replayed as it is,
``Step`` as standing until the next fix, ``Discrete`` as a gap between all fixes; curves of higher order are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from nearcast.errors import InvalidTrace
from nearcast.runtime.simulation.mobility.traces.track import Floats, Traces, Track, checked_track, distinct, instants

WGS_84: Final = (
    "urn:ogc:def:crs:OGC:1.3:CRS84",
    "urn:ogc:def:crs:OGC::CRS84",
    "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
)
"""Longitude before latitude, in degrees; what holds if nothing is said."""

WHERE_TO_LOOK: Final = "give a Feature, a FeatureCollection or a MovingPoint of OGC Moving Features JSON"


class _Points(msgspec.Struct):
    """What a trajectory and a moving point have in common."""

    datetimes: list[str]
    coordinates: list[list[float]]
    interpolation: str = "Linear"


def read_moving_features(path: Path) -> Traces:
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InvalidTrace(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTrace(f"{path} is no JSON: {error}") from None
    tracks = [_track(where, feature) for where, feature in _features(path, document)]
    if not tracks:
        raise InvalidTrace(f"{path} has no features; {WHERE_TO_LOOK}")
    names = distinct([track.name or f"feature {number}" for number, track in enumerate(tracks, 1)])
    return Traces(tuple(replace(track, name=name) for track, name in zip(tracks, names, strict=True)))


def _features(path: Path, document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each feature, and where it is."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        _check_reference_system(str(path), document)
        for index, feature in enumerate(document["features"]):
            where = f"{path}, features[{index}]"
            if not isinstance(feature, dict) or feature.get("type") != "Feature":
                raise InvalidTrace(f"{where} is no Feature; {WHERE_TO_LOOK}")
            yield where, feature
    elif kind == "Feature":
        yield str(path), document
    elif kind in {"MovingPoint", "MovingGeometryCollection"}:
        yield str(path), {"temporalGeometry": document}
    else:
        raise InvalidTrace(f"{path}: type is {kind!r}; {WHERE_TO_LOOK}")


def _track(where: str, feature: dict[str, Any]) -> Track:
    _check_reference_system(where, feature)
    name = feature.get("id")
    moving = feature.get("temporalGeometry")
    if moving is None:
        parts = [(where, _trajectory(where, feature))]
    elif isinstance(moving, dict) and moving.get("type") == "MovingGeometryCollection":
        _check_reference_system(where, moving)
        prisms = moving.get("prisms")
        parts = [
            (f"{where}, prisms[{index}]", _moving_point(f"{where}, prisms[{index}]", prism))
            for index, prism in enumerate(prisms if isinstance(prisms, list) else [])
        ]
    else:
        parts = [(where, _moving_point(where, moving))]
    if not parts:
        raise InvalidTrace(f"{where} has no prisms; {WHERE_TO_LOOK}")
    return _joined("" if name is None else str(name), parts)


def _trajectory(where: str, feature: dict[str, Any]) -> _Points:
    geometry, properties = feature.get("geometry"), feature.get("properties")
    if not isinstance(geometry, dict) or geometry.get("type") != "LineString":
        raise InvalidTrace(f"{where} has neither a temporalGeometry nor a LineString; {WHERE_TO_LOOK}")
    if not isinstance(properties, dict) or "datetimes" not in properties:
        raise InvalidTrace(f"{where} has no times; a trajectory has them in its properties, as datetimes")
    return _points(where, {"coordinates": geometry.get("coordinates"), "datetimes": properties["datetimes"]})


def _moving_point(where: str, moving: Any) -> _Points:
    if not isinstance(moving, dict) or moving.get("type") != "MovingPoint":
        kind = moving.get("type") if isinstance(moving, dict) else moving
        raise InvalidTrace(f"{where}: {kind!r} cannot be replayed, only a MovingPoint")
    _check_reference_system(where, moving)
    return _points(where, moving)


def _points(where: str, parts: dict[str, Any]) -> _Points:
    try:
        points = msgspec.convert(parts, _Points)
    except msgspec.ValidationError as error:
        raise InvalidTrace(f"{where}: {error}; give RFC 3339 datetimes and [longitude, latitude] coordinates") from None
    if len(points.datetimes) != len(points.coordinates) or not points.datetimes:
        raise InvalidTrace(
            f"{where}: {len(points.datetimes)} datetimes for {len(points.coordinates)} coordinates; give one for each"
        )
    if points.interpolation not in {"Linear", "Step", "Discrete"}:
        raise InvalidTrace(f"{where}: interpolation {points.interpolation!r} cannot be replayed; sample it as Linear")
    return points


def _joined(name: str, parts: list[tuple[str, _Points]]) -> Track:
    """One track of all parts, with gaps between them."""
    texts: list[str] = []
    lonlats: list[Floats] = []
    gaps: list[bool] = []
    for where, points in parts:
        texts += points.datetimes
        lonlats.append(_coordinates(where, points.coordinates))
        gaps += [True] + [points.interpolation == "Discrete"] * (len(points.datetimes) - 1)
    steps = {points.interpolation == "Step" for _, points in parts}
    if len(steps) > 1:
        raise InvalidTrace(
            f"{parts[0][0]}: Step and other interpolations in one feature; use one of them for all prisms"
        )
    lonlat = np.concatenate(lonlats)

    def complain(number: int, what: str) -> InvalidTrace:
        return InvalidTrace(f"{_location(parts, number)}: {what}")

    track = checked_track(
        name,
        instants(texts, complain),
        lonlat[:, 1],
        lonlat[:, 0],
        np.array(gaps[1:], np.bool_),
        complain,
    )
    return replace(track, step=steps == {True})


def _location(parts: list[tuple[str, _Points]], number: int) -> str:
    """Where the fix of that number stands."""
    for where, points in parts:
        if number < len(points.datetimes):
            return f"{where}, fix [{number}]"
        number -= len(points.datetimes)
    raise IndexError(number)


def _coordinates(where: str, coordinates: list[list[float]]) -> Floats:
    for index, place in enumerate(coordinates):
        if len(place) < 2:
            raise InvalidTrace(f"{where}, coordinates[{index}]: {place} is no place; give longitude and latitude")
    return np.array([place[:2] for place in coordinates])


def _check_reference_system(where: str, element: dict[str, Any]) -> None:
    system = element.get("crs")
    properties = system.get("properties") if isinstance(system, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if system is not None and name not in WGS_84:
        raise InvalidTrace(f"{where}: coordinates are in {name or system!r}; transform them to {WGS_84[0]}")
