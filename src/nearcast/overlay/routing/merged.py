"""Composites in which similar partial contexts are merged: chapters 4 and 5 of the document together, which it does not do."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from nearcast.overlay.aggregation.aggregates import Aggregates, Aggregation
from nearcast.overlay.aggregation.aggregates import Change as AggregateChange
from nearcast.overlay.routing.composites import Change, Condense, Condensed, Partial, key_of
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.domains import Domains


class Merged(Condensed):
    def __init__(self, aggregates: Aggregates) -> None:
        self._aggregates: Final = aggregates
        self._members: Final[dict[Any, tuple[str, int]]] = {}
        """By what they say: the name of those that say the same, and how many they are."""

        self._numbers: Final[dict[str, int]] = {}
        self._named = self._next = 0

    def add(self, partial: Partial) -> list[Change]:
        key = key_of(partial)
        name, times = self._members.get(key, ("", 0))
        if not times:
            self._named += 1
            name = str(self._named)
        self._members[key] = name, times + 1
        return [] if times else self._numbered(self._aggregates.put(name, Coarse(*partial)))

    def remove(self, partial: Partial) -> list[Change]:
        key = key_of(partial)
        name, times = self._members.pop(key)
        if times > 1:
            self._members[key] = name, times - 1
            return []
        return self._numbered(self._aggregates.remove(name))

    def all(self) -> list[tuple[int, Partial]]:
        told = ((change.handle, change.context) for change in self._aggregates.contexts())
        return [
            (self._numbers[handle], (context.attributes, context.optional))
            for handle, context in told
            if context is not None
        ]

    def _numbered(self, changes: Iterable[AggregateChange]) -> list[Change]:
        rows: list[Change] = []
        for handle, context in ((change.handle, change.context) for change in changes):
            if handle not in self._numbers:
                self._numbers[handle] = self._next
                self._next += 1
            if context is None:
                rows.append((self._numbers.pop(handle), None))
            else:
                rows.append((self._numbers[handle], (context.attributes, context.optional)))
        return rows


def merging(aggregation: Aggregation | None = None, domains: Domains | None = None) -> Condense:
    """For ``Adaptive``: what a router tells in its composites is aggregated like that."""
    how, known = aggregation or Aggregation(), domains or Domains()
    # Nothing is dissolved here, so nothing is drawn.
    return lambda _names: Merged(Aggregates("", how, known, Random(0)))
