"""Positions and events of a time ago, from the journal, or from the lake for what the journal does not have any more.

A replay asks again and again for a little later: what was known at the time before is remembered, and only what came since is read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from nearcast.broker.core import Broker
from nearcast.broker.recorded import MOST_READ, Lake, back_from, last_scheme, offset_at
from nearcast.dashboard.contract import ClientThen, EventThen, Extent, Past
from nearcast.dashboard.shapes import area_shape
from nearcast.errors import InvalidArea, InvalidTime, OffsetTrimmed
from nearcast.journal import ContextEntry, EventEntry, ReportEntry, TransitionEntry
from nearcast.model.area_text import area_in
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT
from nearcast.model.time import MICROSECONDS, Instant, to_text

MOST_EVENTS: Final = 200
MOST_CLIENTS: Final = 20_000
LONGEST_WINDOW: Final = 3_600
MOST_REMEMBERED: Final = 8
STEP: Final = 300 * MICROSECONDS
"""As far as that a replay goes on from what is remembered."""

LAKE_WINDOW: Final = 900.0
"""Seconds before the time in which somebody must have been heard of to be shown from the lake."""

ClientOf = Callable[[str], str | None]


@dataclass(slots=True)
class _Then:
    """Who was where when everything below an offset had been recorded."""

    at: Instant
    offset: int
    where: dict[str, tuple[float, float]]
    scheme: str | None
    complete: bool


class Pasts:
    """One for each broker; asked in worker threads, two at a time at most."""

    def __init__(self, broker: Broker) -> None:
        self.broker: Final = broker
        self._remembered = OrderedDict[Instant, _Then]()
        self._lock: Final = threading.Lock()

    def purge(self) -> None:
        """Something was erased from the journal, and is not remembered either.

        Who is just reading may have read it before: it remembers in what nobody will look at again.
        """
        self._remembered = OrderedDict()

    def extent(self) -> Extent:
        journal = self.broker.journal
        first = next((chunk[0][1] for chunk in journal.read(journal.oldest, limit=1)), None)
        times = [] if first is None else [first.published if isinstance(first, EventEntry) else first.at]
        if journal.oldest > 0:
            older = Lake(self.broker.settings.lake).oldest()
            times += [] if older is None else [older]
        if not times:
            return Extent(None, None)
        return Extent(to_text(min(times)), to_text(self.broker.clock.now()))

    def past(self, at: Instant, window: float, client_of: ClientOf) -> Past:
        if at > self.broker.clock.now():
            raise InvalidTime(f"{to_text(at)} has not been yet")
        journal, remembered = self.broker.journal, self._remembered
        first = next((chunk[0][1] for chunk in journal.read(journal.oldest, limit=1)), None)
        begins = None if first is None else first.published if isinstance(first, EventEntry) else first.at
        if journal.oldest > 0 and begins is not None and at < begins:
            return self._of_lake(at, window, client_of)
        with self._lock:
            before = [each for each in remembered.values() if 0 <= at - each.at <= STEP]
        then = self._further(max(before, key=lambda each: each.at), at) if before else self._read(at)
        with self._lock:
            remembered[at] = then
            while len(remembered) > MOST_REMEMBERED:
                remembered.popitem(last=False)
        events, more = self._events(at - round(window * MICROSECONDS), at, then.offset)
        return Past(
            to_text(at),
            _clients(then.where, client_of),
            [event_then(entry, client_of) for entry in events],
            then.scheme,
            "the journal",
            then.complete and not more and len(then.where) <= MOST_CLIENTS,
        )

    def _events(self, since: Instant, at: Instant, below: int) -> tuple[list[EventEntry], bool]:
        """The last of a time, and whether there were more: read back from its end, and no farther than has to be."""
        journal, events = self.broker.journal, deque[EventEntry]()
        for stretch in back_from(journal, below, (EventEntry,), since=since, until=at + 1):
            for _, record in reversed(stretch):
                if isinstance(record, EventEntry):
                    if len(events) >= MOST_EVENTS:
                        return list(events), True
                    events.appendleft(record)
        unread = max(journal.oldest, below - MOST_READ)
        older = journal.read(journal.oldest, unread, since=since, until=at + 1, kinds=(EventEntry,), limit=1)
        return list(events), unread > journal.oldest and any(older)

    def _read(self, at: Instant) -> _Then:
        journal = self.broker.journal
        end = offset_at(journal, at)
        seen: set[str] = set()
        where: dict[str, tuple[float, float]] = {}
        scheme: str | None = None
        read = 0
        for stretch in back_from(journal, end, (ReportEntry, ContextEntry, TransitionEntry), until=at + 1):
            read += len(stretch)
            for _, record in reversed(stretch):
                if isinstance(record, TransitionEntry):
                    scheme = scheme or last_scheme([(0, record)])
                elif isinstance(record, ReportEntry) or _is_end(record):
                    who = record.who  # type: ignore[union-attr]
                    if who not in seen:
                        seen.add(who)
                        if isinstance(record, ReportEntry) and record.lat is not None and record.lon is not None:
                            where[who] = record.lat, record.lon
        return _Then(at, end, where, scheme, complete=end - journal.oldest <= MOST_READ)

    def _further(self, before: _Then, at: Instant) -> _Then:
        journal, end = self.broker.journal, offset_at(self.broker.journal, at)
        where, scheme = dict(before.where), before.scheme
        first = max(before.offset, journal.oldest)
        try:
            kinds = (ReportEntry, ContextEntry, TransitionEntry)
            for chunk in journal.read(first, end, kinds=kinds) if end > first else ():
                for _, record in chunk:
                    if isinstance(record, TransitionEntry):
                        scheme = last_scheme([(0, record)]) or scheme
                    elif isinstance(record, ReportEntry) and record.lat is not None and record.lon is not None:
                        where[record.who] = record.lat, record.lon
                    elif isinstance(record, ReportEntry) or _is_end(record):
                        where.pop(record.who, None)  # type: ignore[union-attr]
        except OffsetTrimmed:
            return _Then(at, end, where, scheme, complete=False)
        return _Then(at, end, where, scheme, before.complete)

    def _of_lake(self, at: Instant, window: float, client_of: ClientOf) -> Past:
        records = Lake(self.broker.settings.lake).records(at, max(window, LAKE_WINDOW))
        where: dict[str, tuple[float, float]] = {}
        since, events = at - round(window * MICROSECONDS), []
        for _, record in records:
            if isinstance(record, EventEntry):
                if record.published >= since:
                    events.append(record)
            elif isinstance(record, ReportEntry):
                if record.lat is None or record.lon is None:
                    where.pop(record.who, None)
                else:
                    where[record.who] = record.lat, record.lon
        return Past(
            to_text(at),
            _clients(where, client_of),
            [event_then(entry, client_of) for entry in events[-MOST_EVENTS:]],
            None,
            f"the lake: who was heard of in the {LAKE_WINDOW / 60:g} minutes before",
            complete=False,
        )


def _is_end(record: object) -> bool:
    return isinstance(record, ContextEntry) and record.name == IMPLICIT_CONTEXT and record.attributes is None


def _clients(where: dict[str, tuple[float, float]], client_of: ClientOf) -> list[ClientThen]:
    """Of too many always the same, or a replay would show others with every step."""
    identities = where if len(where) <= MOST_CLIENTS else nsmallest(MOST_CLIENTS, where)
    return [ClientThen(client_of(each) or f"? {each[:8]}", *where[each]) for each in identities]


def event_then(entry: EventEntry, client_of: ClientOf) -> EventThen:
    place = None if entry.lat is None or entry.lon is None else Point(entry.lat, entry.lon)
    try:
        reach = None if entry.reach is None else area_shape(area_in(entry.reach), place)
    except InvalidArea:
        reach = None
    names = [client_of(each) for each in entry.receivers[:MOST_EVENTS]]
    return EventThen(
        entry.id,
        entry.topic,
        entry.published,
        entry.lat,
        entry.lon,
        reach,
        None if entry.publisher is None else client_of(entry.publisher),
        [name for name in names if name is not None],
        len(entry.receivers),
    )
