"""Positions and contexts as payloads of ``$nearcast/position`` and ``$nearcast/context/<name>``."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidContext, InvalidInput, InvalidPosition, InvalidTime
from nearcast.model.fixes import Fix
from nearcast.model.geometry import Point, checked_degrees, checked_metres, computed_point
from nearcast.model.time import Instant, instant
from nearcast.model.value_text import tree_of_value, value_of_tree
from nearcast.model.values import Value, checked_value

_COMPACT: Final = 0x01
_PLACE: Final = struct.Struct(">xii")
_PLACE_AND_MOTION: Final = struct.Struct(">xiiHH")
_COMPACT_FIX: Final = 0x02
_FIX: Final = struct.Struct(">xiiQH")
_FIX_AND_MOTION: Final = struct.Struct(">xiiQHHH")
_MILLISECOND: Final = 1_000
_TENTHS: Final = 10
_NOT_SAID: Final = 0xFFFF
_DEGREE: Final = 10_000_000
_HUNDREDTHS: Final = 100
_LARGEST_UNSIGNED: Final = 0xFFFF
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_POSITION_FORMS: Final = (
    'a GeoJSON Point or Feature such as {"type": "Point", "coordinates": [lon, lat]}, the text "lat,lon", '
    "a compact form of 9, 13, 19 or 23 bytes, or nothing at all to have it forgotten"
)


@dataclass(frozen=True, slots=True)
class PositionReport:
    """Where a client is, and perhaps how it moves."""

    point: Point
    speed: float | None = None
    """Metres per second."""
    heading: float | None = None
    """Degrees clockwise from north, in [0, 360)."""
    time: Instant | None = None
    """When it was there, by its own clock."""
    accuracy: float | None = None
    """Metres around the point, within which it probably is."""

    @property
    def is_plain(self) -> bool:
        """It says where, and nothing of when and how exactly."""
        return self.time is None and self.accuracy is None

    @property
    def fix(self) -> Fix:
        return Fix(self.point, self.time, self.accuracy)


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
    if payload[0] == _COMPACT_FIX:
        return _compact_fix_in(payload)
    try:
        if payload.lstrip()[:1] == b"{":
            return _position_of_tree(msgspec.json.decode(payload))
        return PositionReport(point_in(payload.decode()))
    except (*_UNREADABLE, OverflowError):
        raise InvalidPosition(f"{payload[:40]!r} is no position; send {_POSITION_FORMS}") from None


def compact_position(report: PositionReport) -> bytes:
    """The binary form: 1e-7 degrees (about a centimetre), and speed and heading if both are known; with a time or an accuracy the longer one."""
    lat, lon = round(report.point.lat * _DEGREE), round(report.point.lon * _DEGREE)
    motion: tuple[int, ...] = ()
    if report.speed is not None and report.heading is not None:
        speed = min(round(report.speed * _HUNDREDTHS), _LARGEST_UNSIGNED)
        motion = speed, round(report.heading * _HUNDREDTHS) % (360 * _HUNDREDTHS)
    if report.is_plain:
        form = _PLACE_AND_MOTION if motion else _PLACE
        return b"\x01" + form.pack(lat, lon, *motion)[1:]
    # Milliseconds, rounded down; the accuracy is rounded up, so that it is never said to be better than it is.
    time = 0 if report.time is None else max(report.time // _MILLISECOND, 1)
    accuracy = _NOT_SAID if report.accuracy is None else min(math.ceil(report.accuracy * _TENTHS), _NOT_SAID - 1)
    form = _FIX_AND_MOTION if motion else _FIX
    return b"\x02" + form.pack(lat, lon, time, accuracy, *motion)[1:]


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


def _compact_fix_in(payload: bytes) -> PositionReport:
    if len(payload) == _FIX.size:
        lat, lon, time, accuracy, *motion = _FIX.unpack(payload)
    elif len(payload) == _FIX_AND_MOTION.size:
        lat, lon, time, accuracy, *motion = _FIX_AND_MOTION.unpack(payload)
    else:
        raise InvalidPosition(
            f"the compact form with a time has {_FIX.size} or {_FIX_AND_MOTION.size} bytes, not {len(payload)}: 0x02, int32 latitude and "
            "longitude in 1e-7 degrees, uint64 milliseconds since 1970 (0: not said), uint16 accuracy in dm (65535: not said), perhaps motion"
        )
    speed, heading = (each / _HUNDREDTHS for each in motion) if motion else (None, None)
    return _report(
        Point(lat / _DEGREE, lon / _DEGREE),
        speed,
        heading,
        time * _MILLISECOND if time else None,
        None if accuracy == _NOT_SAID else accuracy / _TENTHS,
    )


def _position_of_tree(tree: Any) -> PositionReport:
    if isinstance(tree, dict) and tree.get("type") == "Feature":
        properties = tree.get("properties")
        motion = properties if isinstance(properties, dict) else {}
        said = (motion.get(name) for name in ("speed", "heading", "time", "accuracy"))
        return _report(_point_of_geometry(tree.get("geometry")), *said)
    return PositionReport(_point_of_geometry(tree))


def _point_of_geometry(tree: Any) -> Point:
    match tree:
        case {"type": "Point", "coordinates": [lon, lat, *_]}:
            return Point(lat, lon)
        case _:
            raise InvalidPosition(f"{tree!r:.60} is no position; send {_POSITION_FORMS}")


def _report(
    point: Point, speed: object, heading: object, time: object = None, accuracy: object = None
) -> PositionReport:
    if speed is not None:
        speed = checked_metres(speed, "speed")
    if heading is not None:
        heading = checked_degrees(heading, "heading", 360.0)
        if not 0 <= heading < 360:
            raise InvalidPosition(f"heading is in [0, 360) degrees, clockwise from north, not {heading!r}")
    if accuracy is not None:
        accuracy = checked_metres(accuracy, "accuracy")
    return PositionReport(point, speed, heading, None if time is None else _time(time), accuracy)


def _time(said: object) -> Instant:
    try:
        if isinstance(said, str | int):
            return instant(said)
    except InvalidTime as error:
        raise InvalidPosition(f"time says when the client was there: {error}") from None
    raise InvalidPosition(f"time says when the client was there, such as 2026-11-15T09:30:00Z, not {said!r:.60}")
