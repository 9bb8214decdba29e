"""How wide the values of an attribute range: U of Eq. 4.3 and h of Eq. 4.5.

The document takes them as known.  They are given where somebody knows them; of every other attribute they are learned from
all that was seen so far, so that similarity needs no settings.  Only *which* contexts are merged depends on them, never
what an aggregate says, so routers need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping

from nearcast.model.values import Value
from nearcast.overlay.values.kinds import AttributeKind, Extent
from nearcast.overlay.values.registry import kind_of


class Domains:
    """By attribute.  ``Domains({"age": Range(0, 120), "position": Box(...), "transport": <as deep a path as there is>})``."""

    def __init__(self, given: Mapping[str, Value] | None = None) -> None:
        self._given: dict[tuple[str, str], tuple[Extent, ...]] = {}
        for name, value in (given or {}).items():
            kind = kind_of(value)
            self._given[kind.family, name] = kind.extents(value)
        self._seen: dict[tuple[str, str], tuple[Extent, ...]] = {}

    def see(self, attributes: Mapping[str, Value]) -> None:
        """Learn of values."""
        for name, value in attributes.items():
            kind = kind_of(value)
            key = kind.family, name
            if key in self._given:
                continue
            extents, known = kind.extents(value), self._seen.get(key)
            self._seen[key] = extents if known is None else tuple(map(_hull, known, extents))

    def widths(self, name: str, kind: AttributeKind) -> tuple[float, ...]:
        """On each axis; empty where nothing is known."""
        key = kind.family, name
        return tuple(high - low for low, high in self._given.get(key) or self._seen.get(key, ()))


def _hull(a: Extent, b: Extent) -> Extent:
    return min(a[0], b[0]), max(a[1], b[1])
