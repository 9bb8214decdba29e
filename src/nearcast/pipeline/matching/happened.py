"""Events of Arrow batches as the matcher takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nearcast.errors import HistoryNeeded
from nearcast.matching.events import EventBatch
from nearcast.model.area import Area
from nearcast.model.cql2 import parse_addressing
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form
from nearcast.model.predicate import Predicate
from nearcast.model.value_text import attributes_in
from nearcast.model.values import Value
from nearcast.pipeline.matching.packing import codes
from nearcast.pipeline.rows import reach_of

if TYPE_CHECKING:
    from nearcast.matching.areas import Bools
    from nearcast.matching.grid import Floats, Int32s, Int64s

_CACHED = 4096


class Detail(msgspec.Struct, frozen=True):
    """What an event says beside time and place."""

    topic: str
    reach: float | None = None
    reach_area: str | None = None
    addressing: str | None = None
    attributes: str | None = None
    tags: tuple[str, ...] = ()
    publisher: str | None = None
    """In Spark its id; to the matcher its number, as all clients of a group have one."""

    def area(self, place: Point | None) -> Area | None:
        """Where it matters: as the text says, else so many metres around its place."""
        return reach_of(self.reach_area, self.reach, place)

    def to(self) -> Predicate | None:
        return None if self.addressing is None else _addressing(self.addressing)

    def values(self) -> dict[str, Value]:
        return attributes_in(self.attributes)


@lru_cache(_CACHED)
def _addressing(text: str) -> Predicate | None:
    to, when = parse_addressing(text, now=0)
    if when is not None:
        raise HistoryNeeded(
            f"the addressing {text!r} speaks of other times than the present; leave it to pipeline.history"
        )
    return to


@lru_cache(_CACHED)
def _conjuncts(text: str) -> tuple[Conjunct, ...]:
    to = _addressing(text)
    return () if to is None else disjunctive_normal_form(to)


@dataclass(frozen=True, eq=False, slots=True)
class Happened:
    """Events in the order of their time."""

    time: Int64s
    lat: Floats
    lon: Floats
    topics: tuple[str, ...]
    topic: Int32s
    chosen: Bools
    """Whether the sender chooses whom it reaches."""
    details: Sequence[Detail] | None
    """Each distinct one once, if events may say more than their topic; ``topic`` then is the number of the detail."""

    def __len__(self) -> int:
        return len(self.time)

    def batch(self, first: int, last: int, *, whole: bool) -> EventBatch:
        """Some of them; as ``whole`` events, if filters look at more than the topic."""
        rows = slice(first, last)
        if self.details is None:
            return EventBatch(self.time[rows], self.lat[rows], self.lon[rows], self.topics, self.topic[rows])
        details = [self.details[number] for number in self.topic[rows].tolist()]
        places = [
            None if lat != lat else Point(lat, lon)  # noqa: PLR0124 - NaN
            for lat, lon in zip(self.lat[rows].tolist(), self.lon[rows].tolist(), strict=True)
        ]
        if whole:
            return EventBatch.of(
                [
                    Event(
                        str(index), detail.topic, at, detail.values(), detail.tags or (),
                        publisher=detail.publisher, place=place, reach=detail.area(place), to=detail.to(),
                    )
                    for index, (detail, at, place) in enumerate(zip(details, self.time[rows].tolist(), places, strict=True))
                ]
            )  # fmt: skip
        reaches = (
            (index, detail.area(place)) for index, (detail, place) in enumerate(zip(details, places, strict=True))
        )
        return EventBatch(
            self.time[rows],
            self.lat[rows],
            self.lon[rows],
            self.topics,
            self.topic[rows],
            publishers=[detail.publisher for detail in details],
            reaches={index: reach for index, reach in reaches if reach is not None},
            addressing={
                index: _conjuncts(detail.addressing)
                for index, detail in enumerate(details)
                if detail.addressing is not None
            },
        )


def happened(time: Int64s, lat: Any, lon: Any, detail: Any, *, rich: bool, ids: Any | None = None) -> Happened:
    """Of Arrow arrays; ``detail`` is the topic, or JSON where events are ``rich``; ``ids`` are those of clients by number."""
    said, code = codes(detail)
    texts = said.to_pylist()
    details = _numbered([msgspec.json.decode(text, type=Detail) for text in texts], ids) if rich else None
    topics = tuple(texts) if details is None else tuple(each.topic for each in details)
    chosen = np.zeros(len(time), np.bool_)
    if details is not None:
        chooses = [d.reach is not None or d.reach_area is not None or d.addressing is not None for d in details]
        chosen = np.array(chooses, np.bool_)[code]
    return Happened(time, lat, lon, topics, code, chosen, details)


def _numbered(details: list[Detail], ids: Any | None) -> list[Detail]:
    """With publishers by their numbers; who is no client of the group is of no interest."""
    import pyarrow as pa
    import pyarrow.compute as pc

    publishers = [detail.publisher for detail in details]
    if ids is None or not any(publishers):
        return details
    numbers = pc.index_in(pa.array(publishers, pa.string()), value_set=ids.cast(pa.string())).to_pylist()
    named = [None if number is None else str(number) for number in numbers]
    return [msgspec.structs.replace(detail, publisher=name) for detail, name in zip(details, named, strict=True)]
