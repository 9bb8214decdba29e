"""Stored events that a subscription into the past gets: ``model.delivery`` applied to the journal.

Area around the position at the time of subscribing, relevance as at publication.  What the client was and where is looked up
only when an event is met that asks for it: by a reach, or by addressing.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

from nearcast.broker.known_context import PRESENCE_RECORDS, KnownContext, PresenceRecord
from nearcast.broker.publishing.entries import event_in
from nearcast.errors import OffsetTrimmed
from nearcast.journal import EventEntry, Journal, Record
from nearcast.model.delivery import in_area
from nearcast.model.evaluation import evaluate
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.model.topic import topic_matches

Stored = tuple[int, EventEntry]
Withdrawn = Container[int]
"""Offsets of events that were unpublished."""

_MOST_TOPICS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A subscription and the moment at which it was made."""

    identity: str
    subscription: Subscription
    at: Instant
    position: Point | None
    boundary: int
    """The offset that the next record had: what is below was published before, what is above comes live."""


class StoredEvents:
    """The answer, for a worker thread."""

    def __init__(self, journal: Journal, inquiry: Inquiry, withdrawn: Withdrawn) -> None:
        self._journal: Final = journal
        self._inquiry: Final = inquiry
        self._withdrawn: Final = withdrawn
        self._topics: dict[str, bool] = {}
        self._known: KnownContext | None = None

    def chunks(self, first: int) -> Generator[list[Stored], None, None]:
        """Events from that offset on, in their order; each chunk may be empty."""
        inquiry = self._inquiry
        frame = inquiry.subscription.frame
        last = inquiry.boundary
        while True:
            kinds = (EventEntry,) if self._known is None else (EventEntry, *PRESENCE_RECORDS)
            since = frame.since if self._known is None else None
            first = max(first, self._journal.oldest)
            try:
                for chunk in self._journal.read(first, last, since=since, until=frame.until, kinds=kinds):
                    found, first = self._sifted(chunk)
                    yield found
                    if first <= chunk[-1][0]:
                        break  # whom the event there concerns is to be found out first
                else:
                    return
            except OffsetTrimmed as error:
                first = error.oldest
                continue
            yield from self._look_back(first)

    def _sifted(self, chunk: list[tuple[int, Record]]) -> tuple[list[Stored], int]:
        """What the subscription gets of these, and the offset to go on from."""
        found: list[Stored] = []
        for offset, record in chunk:
            if type(record) is not EventEntry:
                if self._known is not None and self._is_mine(record):
                    self._known.apply(record)
            elif self._interesting(offset, record):
                if record.reach is not None or record.to is not None:
                    if self._known is None:
                        return found, offset
                    if not self._known.concerned(event_in(record)):
                        continue
                found.append((offset, record))
        return found, chunk[-1][0] + 1

    def _interesting(self, offset: int, entry: EventEntry) -> bool:
        inquiry, subscription = self._inquiry, self._inquiry.subscription
        if not self._topic_matches(entry.topic) or not subscription.frame.contains(entry.published):
            return False
        if entry.when is not None:  # it comes at its own moment, and finds the subscription or does not
            return False
        if entry.lifetime is not None and entry.published + entry.lifetime <= inquiry.at:
            return False
        if subscription.no_local and entry.publisher == inquiry.identity:
            return False
        place = None if entry.lat is None or entry.lon is None else Point(entry.lat, entry.lon)
        if not in_area(subscription.area, place, inquiry.position) or offset in self._withdrawn:
            return False
        # `distance_decreases` is unknown of what was published before the client subscribed (delivery.approaching).
        return subscription.where is None or evaluate(subscription.where, event_in(entry).properties()) is True

    def _topic_matches(self, topic: str) -> bool:
        known = self._topics.get(topic)
        if known is None:
            if len(self._topics) >= _MOST_TOPICS:
                self._topics.clear()
            known = self._topics[topic] = topic_matches(self._inquiry.subscription.topic, topic)
        return known

    def _is_mine(self, record: Record) -> TypeGuard[PresenceRecord]:
        """Whether it says something of the client."""
        return isinstance(record, PRESENCE_RECORDS) and record.who == self._inquiry.identity

    def _look_back(self, offset: int) -> Iterator[list[Stored]]:
        """Find out what was known of the client when that offset was written."""
        known = KnownContext()
        try:
            for chunk in self._journal.read(self._journal.oldest, offset, kinds=PRESENCE_RECORDS):
                for _, record in chunk:
                    if self._is_mine(record):
                        known.apply(record)
                yield []
        except OffsetTrimmed:
            yield from self._look_back(offset)
            return
        self._known = known
