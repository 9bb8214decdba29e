"""Events as the kernels take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nearcast.matching.columns import Bytes, Events
from nearcast.matching.events import Column, EventBatch, Texts
from nearcast.matching.filters import FilterTable
from nearcast.matching.grid import Floats, Int32s
from nearcast.matching.predicates import LARGEST_EXACT, PredicateIndex, columns_of
from nearcast.model.event import Event

_WIDE: Final = 8
"""Bytes of integers that double precision may not hold."""


class Encoder:
    """Turns events into columns of numbers, as far as predicates and subscribers ask for them."""

    def __init__(self, filters: FilterTable, numbers: Mapping[str, int]) -> None:
        self._filters = filters
        self._numbers = numbers
        self._topics: tuple[Sequence[str], int, Int32s, Int32s] | None = None
        self._one = _one_event(1, 1)

    def one(self, event: Event) -> Events:
        """The arrays are used again for the next event, and are the same as long as they have room."""
        predicates = self._filters.predicates
        matching = self._filters.topics_matching(event.topic)
        one = self._one
        if one.values.shape[0] < predicates.columns or len(one.topic_filters) < len(matching):
            one = self._one = _one_event(predicates.columns, 2 * len(matching))
        place = event.place
        one.lat[0], one.lon[0] = (np.nan, np.nan) if place is None else (place.lat, place.lon)
        one.published[0] = event.published
        one.publisher[0] = -1 if event.publisher is None else self._numbers.get(event.publisher, -1)
        one.exotic[0] = not columns_of(predicates, event.attributes, one.values[:, 0])
        one.topic_start[1] = len(matching)
        one.topic_filters[: len(matching)] = matching
        return one

    def many(self, batch: EventBatch) -> Events:
        size, predicates = len(batch), self._filters.predicates
        values = np.empty((max(1, predicates.columns), size))
        exotic = np.zeros(size, np.uint8)
        if batch.events is not None:
            for i, event in enumerate(batch.events):
                exotic[i] = not columns_of(predicates, event.attributes, values[:, i])
        else:
            for (name, family), column in predicates.dimensions.items():
                given = batch.attributes.get(name)
                if given is None or not _write(given, family, predicates, values[column], exotic):
                    values[column] = np.nan
        publisher = np.full(size, -1, np.int32)
        if batch.publishers is not None:
            for i, who in enumerate(batch.publishers):
                publisher[i] = -1 if who is None else self._numbers.get(who, -1)
        start, matching = self._topic_filters(batch.topics)
        return Events(
            lat=batch.lat,
            lon=batch.lon,
            published=batch.published,
            topic=batch.topic,
            publisher=publisher,
            exotic=exotic,
            values=values,
            topic_start=start,
            topic_filters=matching,
        )

    def _topic_filters(self, topics: Sequence[str]) -> tuple[Int32s, Int32s]:
        """For each topic the topic filters that match; batches that follow mostly share their list of topics."""
        known = self._topics
        if known is not None and known[0] is topics and known[1] == self._filters.version:
            return known[2], known[3]
        answers = [self._filters.topics_matching(topic) for topic in topics]
        start = np.zeros(len(topics) + 1, np.int32)
        np.cumsum([len(answer) for answer in answers], out=start[1:])
        matching = np.concatenate(answers) if answers else np.zeros(0, np.int32)
        if isinstance(topics, tuple):  # what could change under our hands is not kept
            self._topics = topics, self._filters.version, start, matching
        return start, matching


def _one_event(columns: int, topic_filters: int) -> Events:
    return Events(
        lat=np.zeros(1),
        lon=np.zeros(1),
        published=np.zeros(1, np.int64),
        topic=np.zeros(1, np.int32),
        publisher=np.zeros(1, np.int32),
        exotic=np.zeros(1, np.uint8),
        values=np.full((max(1, columns), 1), np.nan),
        topic_start=np.zeros(2, np.int32),
        topic_filters=np.zeros(topic_filters, np.int32),
    )


def _write(given: Column, family: str, predicates: PredicateIndex, column: Floats, exotic: Bytes) -> bool:
    """One attribute of all events into one dimension; whether the family is that of the attribute."""
    if isinstance(given, Texts):
        if family == "string":
            codes = np.array([*(predicates.text(text) for text in given.dictionary), np.nan])
            column[:] = codes[given.codes]  # code -1 is the last: missing
        elif family == "presence":
            column[:] = np.where(given.codes >= 0, 1.0, np.nan)
        return family in ("string", "presence")
    kind = given.dtype.kind
    if family == "presence":
        absent = np.isnat(given) if kind == "M" else (np.isnan(given) if kind == "f" else np.zeros(len(given), bool))
        column[:] = np.where(absent, np.nan, 1.0)
        return True
    if family == "instant" and kind == "M":
        instants = given.astype("datetime64[us]").astype(np.int64)
        column[:] = np.where(np.isnat(given), np.nan, instants)
        return True
    if (family == "boolean" and kind == "b") or (family == "number" and kind in "iuf"):
        column[:] = given
        if kind in "iu" and given.dtype.itemsize == _WIDE and len(given):
            beyond = np.abs(column) >= LARGEST_EXACT  # one more may have been rounded to it
            if beyond.any():
                exotic[beyond] = 1
        return True
    return False
