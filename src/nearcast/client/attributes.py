"""Attributes as applications write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from mqtt5 import QoS

from nearcast.errors import InvalidInput, InvalidPosition, InvalidTime, InvalidValue
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, duration, instant
from nearcast.model.time import to_text as instant_text
from nearcast.model.values import Path, Value, checked_value

Place = Point | tuple[float, float]
"""A point, or latitude and longitude."""


def attributes_of(named: Mapping[str, object], exact: Mapping[str, object] | None) -> dict[str, Value]:
    """Those written as keywords, where a text such as ``/vehicle/car`` is a path, and those of a mapping, which are taken as they stand."""
    attributes = {name: checked_value(name, _path_or(value)) for name, value in named.items()}
    for name, value in (exact or {}).items():
        if name in attributes:
            raise InvalidValue(f"the attribute {name!r} is given twice: as a keyword and in `attributes`")
        attributes[name] = checked_value(name, value)
    return attributes


def _path_or(value: object) -> object:
    if isinstance(value, str) and value.startswith("/"):
        try:
            return Path.parse(value)
        except InvalidValue:
            return value  # such as //host/share
    return value


def point_of(place: Place, what: str = "place") -> Point:
    if isinstance(place, Point):
        return place
    try:
        lat, lon = place
    except (TypeError, ValueError):
        raise InvalidPosition(f"`{what}` is a Point or a pair (lat, lon), not {place!r:.60}") from None
    return Point(lat, lon)


def lifetime_of(lifetime: str | float | timedelta | None) -> int | None:
    """Microseconds of ``"5m"``, of seconds, or of a timedelta."""
    if lifetime is None:
        return None
    if isinstance(lifetime, str):
        length = duration(lifetime)
    elif isinstance(lifetime, timedelta):
        length = lifetime // timedelta(microseconds=1)
    else:
        length = round(lifetime * MICROSECONDS)
    if length <= 0:
        raise InvalidTime(f"the lifetime {lifetime!r} is over before it begins; write '5m', for example")
    return length


def moment_text(moment: str | datetime | timedelta | None) -> str | None:
    """A bound of a time frame as the broker reads it; relative ones stay relative: to the broker's clock."""
    match moment:
        case None | str():
            return moment
        case timedelta():
            return f"{moment // timedelta(milliseconds=1)}ms"
        case datetime():
            return instant_text(instant(moment))
        case _:
            raise InvalidTime(
                f"a bound of a time frame is a text such as '-2h', a datetime or a timedelta, not {moment!r:.60}"
            )


def quality_of(qos: int) -> QoS:
    if isinstance(qos, bool) or qos not in (0, 1, 2):
        raise InvalidInput(
            f"quality of service is 0 (at most once), 1 (at least once) or 2 (exactly once), not {qos!r}"
        )
    return QoS(qos)
