"""Numbers and instants: a list of values, then the interval that holds them (4.4.2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nearcast.model.time import MICROSECONDS, instant
from nearcast.model.values import OneOf, Range, Value, same
from nearcast.overlay.values.kinds import AttributeKind, Extent, Limits, listed


def merged(a: Value, b: Value, limits: Limits) -> Value:
    if same(a, b):
        return a
    few = listed(a, b, limits)
    if few is not None:
        return few
    # Also integers with floats: as one of several, 3 and 3.0 would calculate differently.
    (low, high), (other_low, other_high) = bounds(a), bounds(b)
    return Range(min(low, other_low), max(high, other_high))


def bounds(value: Any) -> tuple[Any, Any]:
    """The lowest and the highest of the values that it stands for."""
    if isinstance(value, Range):
        return value.low, value.high
    return (min(value.values), max(value.values)) if isinstance(value, OneOf) else (value, value)


def extents(value: Value) -> tuple[Extent]:
    low, high = bounds(value)
    return ((_position(low), _position(high)),)


def _position(value: Any) -> float:
    """On the axis; instants in seconds."""
    return instant(value) / MICROSECONDS if isinstance(value, datetime) else float(value)


NUMBERS: Final = AttributeKind("number", merged, extents)
INSTANTS: Final = AttributeKind("instant", merged, extents)
