"""Texts, truth values, tags and whatever has no order: a list of values, until they are too many (Eq. 4.4)."""

from __future__ import annotations

from functools import cache

from nearcast.model.values import Value, same
from nearcast.overlay.values.kinds import AttributeKind, Limits, choices, listed


def merged(a: Value, b: Value, limits: Limits) -> Value | None:
    return a if same(a, b) else listed(a, b, limits)


def similarity(a: Value, b: Value, _widths: tuple[float, ...] = ()) -> float:
    """Eq. 4.4: the mean of span and content, on numbers of elements."""
    some, others = choices(a), choices(b)
    if some is None or others is None:
        return 1.0 if same(a, b) else 0.0
    common = len(some & others)
    together = len(some) + len(others) - common
    return ((len(some) + len(others)) / (2 * together) + common / together) / 2


@cache
def nominal(type_name: str) -> AttributeKind:
    """The kind of a type of which nothing is known but when two values are equal."""
    return AttributeKind(type_name, merged, similarity=similarity)
