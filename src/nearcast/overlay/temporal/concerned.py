"""Which of many messages a context may concern, without looking at all of them.

Each conjunct stands under one thing that whoever meets it must have: a value, or a place, or at least an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nearcast.matching.context_columns import Question, Questions
from nearcast.matching.reach_index import ReachIndex
from nearcast.model.area import Area
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.overlay.temporal.attribute_index import OTHER, bucket_of, equal_to

_ANY: Final = ""
"""The bucket of whoever has the attribute, whatever its value."""

_NOTHING: Final = ""
"""Stands for the attribute of conjuncts that need none."""

_BUCKETS: Final = 1 << 64
"""So many that hardly two values share one."""

_Bucket = tuple[str, str]


class Concerned:
    """Messages, by their ids."""

    def __init__(self) -> None:
        self._needing: Final[dict[str, dict[str, dict[str, None]]]] = {}
        """By attribute and bucket."""

        self._places: Final = ReachIndex()
        self._buckets: Final[dict[str, set[_Bucket]]] = {}
        self._placed: Final[dict[str, list[str]]] = {}

    def add(self, message: str, conjuncts: Questions) -> None:
        self._buckets[message], self._placed[message] = set(), []
        for number, conjunct in enumerate(conjuncts):
            buckets = _values(conjunct)
            area = None if buckets else _area(conjunct)
            if area is not None:
                place = f"{number} {message}"
                self._placed[message].append(place)
                self._places.add(place, area)
            for name, bucket in buckets or ([] if area is not None else [self._fewest(conjunct)]):
                self._buckets[message].add((name, bucket))
                self._needing.setdefault(name, {}).setdefault(bucket, {})[message] = None

    def remove(self, message: str) -> None:
        for place in self._placed.pop(message):
            self._places.remove(place)
        for name, bucket in self._buckets.pop(message):
            buckets = self._needing[name]
            del buckets[bucket][message]
            if not buckets[bucket]:
                del buckets[bucket]
            if not buckets:
                del self._needing[name]

    def by(self, context: Context) -> Iterator[str]:
        """All that it may meet, each once, in a defined order; ``context`` may be a coarse one."""
        found: dict[str, None] = dict(self._needing.get(_NOTHING, {}).get(_ANY, {}))
        for name in sorted(context):
            buckets = self._needing.get(name)
            if buckets is None:
                continue
            bucket = bucket_of(context[name], _BUCKETS)
            # Of what is not simply one value, any may be meant.
            some = buckets.values() if bucket == OTHER else (buckets.get(_ANY, {}), buckets.get(bucket, {}))
            for each in some:
                found.update(each)
        if POSITION in context:
            position = context[POSITION]
            places = self._places.near(position) if isinstance(position, Point) else self._places.all()
            found.update(dict.fromkeys(place.partition(" ")[2] for place in places))
        return iter(found)

    def _fewest(self, conjunct: tuple[Question, ...]) -> _Bucket:
        """The attribute of which the fewest messages have need so far."""
        names = sorted({name for question in conjunct if not question.if_missing for name in question.names})
        return min(names, key=lambda name: len(self._needing.get(name, {}).get(_ANY, {})), default=_NOTHING), _ANY


def _values(conjunct: Iterable[Question]) -> list[_Bucket]:
    """Of one attribute, the buckets of the values of which one is asked for; none: nothing asks for values."""
    for question in conjunct:
        values = equal_to(question)
        if values and len(question.names) == 1:
            buckets = sorted({bucket_of(value, _BUCKETS) for value in values})
            if OTHER not in buckets:
                return [(question.names[0], bucket) for bucket in buckets]
    return []


def _area(conjunct: Iterable[Question]) -> Area | None:
    """Where whoever meets it must be."""
    for question in conjunct:
        if question.names == (POSITION,) and isinstance(question.inside, Area):
            return question.inside
    return None
