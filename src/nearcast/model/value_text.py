"""Attribute values as text and as JSON: what a user property, a context and the record tables can carry.

A JSON number, ``true`` and ``false`` are that, a JSON string in quotes is that text, one of the objects below is what
it says, and anything else is the text as it stands: whatever other programs put into their properties can be read.

==============================  =================================================
``{"path": "/vehicle/car"}``     a place in a hierarchy
``{"point": [lon, lat]}``        a point
``{"instant": "2026-..."}``      RFC 3339
``{"tags": ["a", "b"]}``         a set of tags
``{"one_of": [...]}``            one of several values
``{"range": [low, high]}``       somewhere between two
``{"below": "/vehicle"}``        somewhere at or below a place in a hierarchy
``{"area": ...}``                an absolute area
``{"typed": ["version", ...]}``  a value of a plug-in type, as the type writes it; dataclasses by themselves
==============================  =================================================

Contexts and the record tables are JSON already; there GeoJSON geometries and lists of tags are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidInput, InvalidValue
from nearcast.model.area import Area
from nearcast.model.area_text import area_of_tree, area_tree
from nearcast.model.geometry import Point
from nearcast.model.time import instant, to_datetime, to_text
from nearcast.model.topic import LONGEST
from nearcast.model.values import OneOf, Path, Range, Subtree, Value, attribute_type, checked_value, type_of

_MAY_BE_JSON: Final = frozenset('-0123456789tf"{')
_decode: Final = msgspec.json.decode

# What a plug-in raises when a stranger's value is not what it expects; msgspec's errors are among them.
_MISFITS: Final = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError, RecursionError)


def value_in(text: str) -> Value:
    """What the text of a user property stands for."""
    return _read(text)[1]


def tree_in(text: str) -> Any:
    """The same as a JSON value, of which ``value_of_tree`` makes what ``value_in`` makes of the text."""
    return _read(text)[0]


def _read(text: str) -> tuple[Any, Value]:
    """As a JSON value, and as the value that it stands for."""
    if not text or text[0] not in _MAY_BE_JSON or text[-1].isspace():
        return text, text
    try:
        tree = _decode(text)
        return tree, value_of_tree(tree) if isinstance(tree, dict) else checked_value("value", tree)
    except (msgspec.DecodeError, InvalidInput, RecursionError, OverflowError, UnicodeEncodeError):
        return text, text


def value_text(name: str, value: Value) -> str:
    """The value of that attribute as ``value_in`` reads it, or ``InvalidValue``."""
    if isinstance(value, str):
        needs_quotes = "\0" in value or value_in(value) != value
        text = msgspec.json.encode(value).decode() if needs_quotes else value
    else:
        text = msgspec.json.encode(_tree(name, value)).decode()
    if len(text) * 3 > LONGEST and len(text.encode()) > LONGEST:
        raise InvalidValue(f"attribute {name!r} is too long to be sent: MQTT allows {LONGEST} bytes; use the payload")
    return text


def value_of_tree(tree: Any) -> Value:
    """The value of a JSON value, or ``InvalidInput``."""
    match tree:
        case bool() | int() | float() | str():
            return checked_value("value", tree)
        case list():
            return checked_value("value", frozenset(_texts(tree)))
        case {"type": "Point", "coordinates": [lon, lat, *_]}:
            return Point(lat, lon)
        case {"type": "Polygon" | "MultiPolygon"}:
            return area_of_tree(tree)
        case dict() if len(tree) == 1:
            (kind, held), *_ = tree.items()
            if kind in _KINDS:
                return _KINDS[kind](held)
    raise InvalidValue(
        f"{tree!r:.60} is no value; a value is a number, a text, true, false, or one of {', '.join(_KINDS)}"
    )


def tree_of_value(name: str, value: Value) -> Any:
    """The value of that attribute as JSON, for the payload of a context."""
    return value if isinstance(value, str) else _tree(name, value)


def attributes_in(text: str | None) -> dict[str, Value]:
    """The attributes of an event or a context in a record table, in either form that ``attributes_tree`` knows; null: none."""
    return {} if text is None else {name: value_of_tree(tree) for name, tree in attributes_tree(text).items()}


def attributes_tree(text: str | bytes) -> dict[str, Any]:
    """The JSON object of the attributes, each a JSON value.

    The journal, and lakes that earlier versions wrote, hold contexts as GeoJSON Features without a place.  No object of
    attributes looks like one, whatever their names: none of its values is null.
    """
    try:
        tree = _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidValue(f"{text!r:.60} is no JSON object of attributes: {error}") from None
    match tree:
        case {"type": "Feature", "geometry": None, "properties": dict() as attributes}:
            return attributes
        case dict():
            return tree
    raise InvalidValue(f'{text!r:.60} is no JSON object of attributes, such as {{"speed": 3}}')


def _tree(name: str, value: Value) -> Any:
    match value:
        case bool() | int() | float() | str():
            return value
        case Path():
            return {"path": str(value)}
        case Point():
            return {"point": [value.lon, value.lat]}
        case datetime():
            return {"instant": to_text(instant(value))}
        case frozenset():
            return {"tags": sorted(value)}
        case OneOf():
            return {"one_of": [_tree(name, one) for one in value.values]}
        case Range():
            return {"range": [_tree(name, value.low), _tree(name, value.high)]}
        case Subtree():
            return {"below": str(value.root)}
        case Area():
            return {"area": area_tree(value)}
        case _:
            return {"typed": _typed(name, value)}


def _typed(name: str, value: Value) -> list[Any]:
    kind = type_of(value)
    if kind.write is None and not is_dataclass(kind.python_type):
        raise InvalidValue(
            f"attribute {name!r} is {value!r:.60}, which has no form in which it could be sent; "
            f"make {kind.python_type.__name__} a dataclass, or give the type write and read"
        )
    try:
        return [kind.name, msgspec.to_builtins(kind.write(value) if kind.write else value, str_keys=True)]
    except _MISFITS as error:
        raise InvalidValue(f"attribute {name!r} cannot be sent: {value!r:.60}: {error}") from error


def _of_type(tree: Any) -> Value:
    type_name, held = _pair(tree)
    kind = attribute_type(_text(type_name))
    if kind.write is None and not is_dataclass(kind.python_type):
        raise InvalidValue(f"values of the type {kind.name!r} are not written so")
    try:
        value = kind.read(held) if kind.read else msgspec.convert(held, kind.python_type)
    except _MISFITS as error:
        raise InvalidValue(f"{held!r:.60} is no {kind.name}: {error}") from error
    if not isinstance(value, kind.python_type):
        raise InvalidValue(f"{held!r:.60} is no {kind.name}")
    return checked_value("value", value)


def _texts(tree: Any) -> list[str]:
    if not isinstance(tree, list) or not all(isinstance(text, str) for text in tree):
        raise InvalidValue(f"tags are a list of texts, not {tree!r:.60}")
    return tree


def _several(tree: Any) -> list[Value]:
    if not isinstance(tree, list):
        raise InvalidValue(f"several values are a list, not {tree!r:.60}")
    return [value_of_tree(one) for one in tree]


def _pair(tree: Any) -> list[Any]:
    if not isinstance(tree, list) or len(tree) != 2:
        raise InvalidValue(f"two values are expected, not {tree!r:.60}")
    return tree


def _point(tree: Any) -> Point:
    lon, lat = _pair(tree)
    return Point(lat, lon)


def _text(tree: Any) -> str:
    if not isinstance(tree, str):
        raise InvalidValue(f"a text is expected, not {tree!r:.60}")
    return tree


def _range(tree: Any) -> Range:
    low, high = (value_of_tree(bound) for bound in _pair(tree))
    return Range(low, high)  # type: ignore[arg-type]  # it refuses what is neither number nor instant


_KINDS: Final[Mapping[str, Callable[[Any], Value]]] = {
    "path": lambda tree: Path.parse(_text(tree)),
    "point": _point,
    "instant": lambda tree: to_datetime(instant(_text(tree))),
    "tags": lambda tree: checked_value("value", frozenset(_texts(tree))),
    "one_of": lambda tree: OneOf(_several(tree)),
    "range": _range,
    "below": lambda tree: Subtree(Path.parse(_text(tree))),
    "area": lambda tree: checked_value("value", area_of_tree(tree)),
    "typed": _of_type,
}
