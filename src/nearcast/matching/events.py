"""Events in columns: what a batch of them looks like to the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidEvent, InvalidPosition
from nearcast.matching.grid import Floats, Int32s, Int64s
from nearcast.model.area import Area
from nearcast.model.event import RESERVED_PROPERTIES, Event
from nearcast.model.geometry import Point
from nearcast.model.normal_form import Conjunct
from nearcast.model.time import to_datetime


@dataclass(frozen=True, eq=False, slots=True)
class Texts:
    """A column of texts, each written once; code -1 is missing."""

    codes: Int32s
    dictionary: tuple[str, ...]


Column = npt.NDArray[Any] | Texts
"""Booleans, integers, floats (NaN is missing), datetime64 (NaT is missing), or texts."""


@dataclass(frozen=True, eq=False)
class EventBatch:
    """Events as columns.

    ``lat`` and ``lon`` are NaN for an event without a place.  Reaches and addressing are rare next to places and
    attributes; they are kept by the index of their event.  ``events`` holds the events themselves if the batch was
    made of them (``EventBatch.of``); what does not fit into columns (tags, paths, points) is then found there.
    """

    published: Int64s
    lat: Floats
    lon: Floats
    topics: Sequence[str]
    topic: Int32s
    attributes: Mapping[str, Column] = field(default_factory=dict)
    publishers: Sequence[str | None] | None = None
    reaches: Mapping[int, Area] = field(default_factory=dict)
    addressing: Mapping[int, tuple[Conjunct, ...]] = field(default_factory=dict)
    events: Sequence[Event] | None = None

    def __post_init__(self) -> None:
        for name, kind in (("published", np.int64), ("lat", np.float64), ("lon", np.float64), ("topic", np.int32)):
            object.__setattr__(self, name, _as_column(name, getattr(self, name), kind))
        size = len(self.published)
        columns: dict[str, Any] = {"lat": self.lat, "lon": self.lon, "topic": self.topic}
        columns.update((name, _codes(column)) for name, column in self.attributes.items())
        if self.publishers is not None:
            columns["publishers"] = self.publishers
        for name, column in columns.items():
            if len(column) != size:
                raise InvalidEvent(f"column {name!r} has {len(column)} values for {size} events")
        if size and not (self.topic.min() >= 0 and self.topic.max() < len(self.topics)):
            raise InvalidEvent("a topic code points outside the list of topics")
        if not positions_valid(self.lat, self.lon):
            raise InvalidPosition("a latitude is outside [-90, 90] or a longitude outside [-180, 180] degrees")
        if (self.lon == 180.0).any():
            object.__setattr__(self, "lon", np.where(self.lon == 180.0, -180.0, self.lon))
        for name, column in self.attributes.items():
            _check_column(name, column)
        for name, by_event in (("reaches", self.reaches), ("addressing", self.addressing)):
            if any(not 0 <= event < size for event in by_event):
                raise InvalidEvent(f"{name} are kept by the index of their event, from 0 to {size - 1}")
        if any(reach.is_relative for reach in self.reaches.values()):
            raise InvalidEvent("a reach is relative to its publisher; use reach.anchored(position)")

    def __len__(self) -> int:
        return len(self.published)

    @classmethod
    def of(cls, events: Sequence[Event]) -> EventBatch:
        codes: dict[str, int] = {}
        return cls(
            published=np.array([event.published for event in events], np.int64),
            lat=np.array([np.nan if event.place is None else event.place.lat for event in events], np.float64),
            lon=np.array([np.nan if event.place is None else event.place.lon for event in events], np.float64),
            topic=np.array([codes.setdefault(event.topic, len(codes)) for event in events], np.int32),
            topics=tuple(codes),
            publishers=[event.publisher for event in events],
            reaches={i: event.reach for i, event in enumerate(events) if event.reach is not None},
            addressing={i: event.conjuncts for i, event in enumerate(events) if event.to is not None},
            events=events,
        )

    def place(self, index: int) -> Point | None:
        lat = float(self.lat[index])
        return None if np.isnan(lat) else Point(lat, float(self.lon[index]))

    def properties(self, index: int) -> dict[str, object]:
        """What a filter sees of one event."""
        if self.events is not None:
            return self.events[index].properties()
        properties: dict[str, object] = {}
        for name, column in self.attributes.items():
            value = _value(column, index)
            if value is not None:
                properties[name] = value
        properties["tags"] = frozenset()
        properties["published"] = to_datetime(int(self.published[index]))
        place = self.place(index)
        if place is not None:
            properties["place"] = place
        return properties


def _as_column(name: str, column: npt.ArrayLike, kind: type[np.generic]) -> npt.NDArray[Any]:
    """The column as the kernels take it: one type each, without gaps; the same array where it is so already."""
    try:
        array = np.asarray(column)
        if array.ndim == 1 and (not len(array) or np.can_cast(array.dtype, kind, "same_kind")):
            return np.ascontiguousarray(array, kind)
    except (TypeError, ValueError):
        pass
    raise InvalidEvent(f"column {name!r} must be a plain array of {kind.__name__}")


def _check_column(name: str, column: Column) -> None:
    if not name or name in RESERVED_PROPERTIES:
        raise InvalidEvent(f"the attribute name {name!r} is empty or reserved; choose another")
    if not isinstance(column, Texts) and (not isinstance(column, np.ndarray) or column.ndim != 1):
        raise InvalidEvent(f"column {name!r} must be a plain array or Texts")
    if isinstance(column, Texts):
        if len(column.codes) and not (column.codes.min() >= -1 and column.codes.max() < len(column.dictionary)):
            raise InvalidEvent(f"a code of column {name!r} points outside its dictionary")
    elif column.dtype.kind not in "biufM":
        raise InvalidEvent(
            f"column {name!r} holds {column.dtype}, but booleans, numbers, datetime64 or Texts are needed"
        )


def positions_valid(lat: Floats, lon: Floats) -> bool:
    """Whether all are on earth; a pair of NaN is no position."""
    nowhere = np.isnan(lat)
    good = (np.abs(lat) <= 90.0) & (np.abs(lon) <= 180.0)
    return bool(np.all(good | (nowhere & np.isnan(lon))))


def _codes(column: Column) -> npt.NDArray[Any]:
    return column.codes if isinstance(column, Texts) else column


def _value(column: Column, index: int) -> object:
    if isinstance(column, Texts):
        code = column.codes[index]
        return None if code < 0 else column.dictionary[code]
    value = column[index]
    if column.dtype.kind == "M":
        return None if np.isnat(value) else to_datetime(int(value.astype("datetime64[us]").astype(np.int64)))
    if column.dtype.kind == "f" and np.isnan(value):
        return None
    return value.item()
