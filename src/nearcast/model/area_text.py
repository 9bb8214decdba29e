"""Areas as text: ``500`` for a circle around me, otherwise JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidArea, InvalidInput
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle, area_from_geojson
from nearcast.model.geometry import Point

_FORMS: Final = (
    'a number of metres around me (500), {"circle": 500}, {"rectangle": [width, height]}, {"outline": [[east, north], ...]}, '
    'each perhaps with "at": [lon, lat], {"box": [west, south, east, north]}, or a GeoJSON Polygon or MultiPolygon'
)
_CACHED: Final = 1024
# Longer texts are polygons, each written once; remembered, they would fill the memory.
_LONGEST_CACHED: Final = 256


def area_text(area: Area) -> str:
    """The area as ``area_in`` reads it."""
    return msgspec.json.encode(area_tree(area)).decode()


def area_in(text: str) -> Area:
    """The area of a text, or ``InvalidArea``."""
    return _remembered(text) if len(text) <= _LONGEST_CACHED else _read(text)


def area_tree(area: Area) -> Any:
    """The area as a JSON value."""
    match area:
        case Circle(radius, None):
            return _number(radius)
        case Circle(radius, center):
            return {"circle": _number(radius), **_at(center)}
        case Rectangle(width, height, center):
            return {"rectangle": [_number(width), _number(height)], **_at(center)}
        case Outline(ring, center):
            return {"outline": ring, **_at(center)}
        case Box(west, south, east, north):
            return {"box": [west, south, east, north]}
        case Polygon(coordinates) if len(coordinates) == 1:
            return {"type": "Polygon", "coordinates": coordinates[0]}
        case Polygon(coordinates):
            return {"type": "MultiPolygon", "coordinates": coordinates}
        case _:
            raise InvalidArea(f"a {type(area).__name__} has no form in which it could be sent; use {_FORMS}")


def area_of_tree(tree: Any) -> Area:
    """The area of a JSON value, or ``InvalidArea``."""
    try:
        if isinstance(tree, Mapping):
            return _of_object(tree)
        if isinstance(tree, (int, float)) and not isinstance(tree, bool):
            return Circle(tree)
    except InvalidInput as error:
        raise InvalidArea(f"this is no area: {error}") from None
    except OverflowError:
        raise InvalidArea("this is no area: a number in it is larger than the earth") from None
    raise InvalidArea(f"this is no area: {tree!r:.60}; write {_FORMS}")


@lru_cache(maxsize=_CACHED)
def _remembered(text: str) -> Area:
    return _read(text)


def _read(text: str) -> Area:
    try:
        tree = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise InvalidArea(f"{text!r:.60} is no area; write {_FORMS}") from None
    return area_of_tree(tree)


def _of_object(tree: Mapping[str, Any]) -> Area:
    if "type" in tree:
        return area_from_geojson(tree)
    shapes = [name for name in _SHAPES if name in tree]
    unknown = [name for name in tree if name not in _SHAPES and name != "at"]
    if len(shapes) != 1 or unknown:
        raise InvalidArea(f"{list(tree)!r:.80} is not one of the forms; write {_FORMS}")
    shape = shapes[0]
    if shape == "box" and "at" in tree:
        raise InvalidArea('a box lies where it lies; leave "at" out')
    return _SHAPES[shape](tree[shape], _center(tree))


def _numbers(value: Any, count: int, what: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise InvalidArea(f"{what}, not {value!r:.60}")
    return value


def _rectangle(value: Any, center: Point | None) -> Area:
    width, height = _numbers(value, 2, "a rectangle is [width, height] in metres")
    return Rectangle(width, height, center)


def _outline(value: Any, center: Point | None) -> Area:
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise InvalidArea("an outline is a ring [[east, north], ...] in metres, the last pair equal to the first")
    return Outline(tuple((east, north) for east, north in value), center)


_SHAPES: Final[dict[str, Callable[[Any, Point | None], Area]]] = {
    "circle": Circle,
    "rectangle": _rectangle,
    "outline": _outline,
    "box": lambda value, _: Box(*_numbers(value, 4, "a box is [west, south, east, north] in degrees")),
}


def _center(tree: Mapping[str, Any]) -> Point | None:
    if "at" not in tree:
        return None
    lon, lat = _numbers(tree["at"], 2, '"at" is [lon, lat] in degrees')
    return Point(lat, lon)


def _at(center: Point | None) -> dict[str, list[float]]:
    return {} if center is None else {"at": [center.lon, center.lat]}


def _number(metres: float) -> float:
    return int(metres) if metres.is_integer() and metres < 2**53 else metres
