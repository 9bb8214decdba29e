"""Positions and contexts as payloads of ``$nearcast/position`` and ``$nearcast/context/<name>``."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidContext, InvalidInput, InvalidPosition
from nearcast.model.geometry import Point, checked_degrees, checked_metres, computed_point
from nearcast.model.value_text import tree_of_value, value_of_tree
from nearcast.model.values import Value, checked_value

_COMPACT: Final = 0x01
_PLACE: Final = struct.Struct(">xii")
_PLACE_AND_MOTION: Final = struct.Struct(">xiiHH")
_DEGREE: Final = 10_000_000
_HUNDREDTHS: Final = 100
_LARGEST_UNSIGNED: Final = 0xFFFF
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_POSITION_FORMS: Final = (
    'a GeoJSON Point or Feature such as {"type": "Point", "coordinates": [lon, lat]}, the text "lat,lon", '
    "the compact form of 9 or 13 bytes, or nothing at all to have it forgotten"
)


@dataclass(frozen=True, slots=True)
class PositionReport:
    """Where a client is, and perhaps how it moves."""

    point: Point
    speed: float | None = None
    """Metres per second."""
    heading: float | None = None
    """Degrees clockwise from north, in [0, 360)."""


@dataclass(frozen=True, slots=True)
class ContextReport:
    """The attributes of one context, and perhaps where its client is."""

    attributes: Mapping[str, Value]
    position: Point | None = None


def point_text(point: Point) -> str:
    """``lat,lon`` in degrees, with all digits that matter."""
    return f"{point.lat!r},{point.lon!r}"


def point_in(text: str) -> Point:
    """The point of ``lat,lon``, or ``InvalidPosition``."""
    lat, comma, lon = text.partition(",")
    try:
        if comma and "_" not in text:
            return _point(float(lat), float(lon))
    except InvalidPosition:
        raise
    except ValueError:
        pass
    raise InvalidPosition(f'{text!r:.60} is no position; write "lat,lon" in degrees, such as 49.8728,8.6512')


def position_in(payload: bytes) -> PositionReport | None:
    """The position of a payload of any form; ``None``: it is to be forgotten."""
    if not payload:
        return None
    if payload[0] == _COMPACT:
        return _compact_in(payload)
    try:
        if payload.lstrip()[:1] == b"{":
            return _position_of_tree(msgspec.json.decode(payload))
        return PositionReport(point_in(payload.decode()))
    except (*_UNREADABLE, OverflowError):
        raise InvalidPosition(f"{payload[:40]!r} is no position; send {_POSITION_FORMS}") from None


def compact_position(report: PositionReport) -> bytes:
    """The binary form: 1e-7 degrees (about a centimetre), and speed and heading if both are known."""
    lat, lon = round(report.point.lat * _DEGREE), round(report.point.lon * _DEGREE)
    if report.speed is None or report.heading is None:
        return b"\x01" + _PLACE.pack(lat, lon)[1:]
    speed = min(round(report.speed * _HUNDREDTHS), _LARGEST_UNSIGNED)
    heading = round(report.heading * _HUNDREDTHS) % (360 * _HUNDREDTHS)
    return b"\x01" + _PLACE_AND_MOTION.pack(lat, lon, speed, heading)[1:]


def context_in(payload: bytes) -> ContextReport | None:
    """The context of a payload; ``None``: it is to be deregistered."""
    if not payload:
        return None
    try:
        tree = msgspec.json.decode(payload)
    except _UNREADABLE as error:
        raise InvalidContext(f"the payload {payload[:40]!r} is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise InvalidContext(
            "a context is a JSON object of attributes, or a GeoJSON Feature, or nothing to deregister it"
        )
    position = None
    if tree.get("type") == "Feature":
        position = None if tree.get("geometry") is None else _point_of_geometry(tree["geometry"])
        tree = tree.get("properties") or {}
        if not isinstance(tree, dict):
            raise InvalidContext("the properties of the Feature are an object of attributes")
    return ContextReport({name: _attribute(name, value) for name, value in tree.items()}, position)


def context_payload(report: ContextReport) -> bytes:
    """The context as ``context_in`` reads it: always as a GeoJSON Feature, whatever its attributes are called."""
    at = report.position
    geometry = None if at is None else {"type": "Point", "coordinates": [at.lon, at.lat]}
    attributes = {name: tree_of_value(name, value) for name, value in report.attributes.items()}
    return msgspec.json.encode({"type": "Feature", "geometry": geometry, "properties": attributes})


def _attribute(name: str, tree: Any) -> Value:
    try:
        return checked_value(name, value_of_tree(tree))
    except InvalidInput as error:
        raise InvalidContext(f"attribute {name!r} of the context: {error}") from None


def _point(lat: float, lon: float) -> Point:
    """As ``Point`` makes it, in half the time: every report and every event comes by here."""
    return computed_point(lat, lon) if -90.0 <= lat <= 90.0 and -180.0 <= lon < 180.0 else Point(lat, lon)


def _compact_in(payload: bytes) -> PositionReport:
    if len(payload) == _PLACE.size:
        lat, lon = _PLACE.unpack(payload)
        return PositionReport(_point(lat / _DEGREE, lon / _DEGREE))
    if len(payload) == _PLACE_AND_MOTION.size:
        lat, lon, speed, heading = _PLACE_AND_MOTION.unpack(payload)
        return _report(Point(lat / _DEGREE, lon / _DEGREE), speed / _HUNDREDTHS, heading / _HUNDREDTHS)
    raise InvalidPosition(
        f"the compact form has {_PLACE.size} or {_PLACE_AND_MOTION.size} bytes, not {len(payload)}: "
        "0x01, int32 latitude and longitude in 1e-7 degrees, perhaps uint16 speed in cm/s and uint16 heading in 0.01 degrees"
    )


def _position_of_tree(tree: Any) -> PositionReport:
    if isinstance(tree, dict) and tree.get("type") == "Feature":
        properties = tree.get("properties")
        motion = properties if isinstance(properties, dict) else {}
        return _report(_point_of_geometry(tree.get("geometry")), motion.get("speed"), motion.get("heading"))
    return PositionReport(_point_of_geometry(tree))


def _point_of_geometry(tree: Any) -> Point:
    match tree:
        case {"type": "Point", "coordinates": [lon, lat, *_]}:
            return Point(lat, lon)
        case _:
            raise InvalidPosition(f"{tree!r:.60} is no position; send {_POSITION_FORMS}")


def _report(point: Point, speed: object, heading: object) -> PositionReport:
    if speed is not None:
        speed = checked_metres(speed, "speed")
    if heading is not None:
        heading = checked_degrees(heading, "heading", 360.0)
        if not 0 <= heading < 360:
            raise InvalidPosition(f"heading is in [0, 360) degrees, clockwise from north, not {heading!r}")
    return PositionReport(point, speed, heading)
