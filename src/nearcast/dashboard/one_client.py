"""The broker with the eyes of one client: where it is, what it wants, what it was sent, and what was withheld from it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final

from nearcast.broker.core import Broker
from nearcast.broker.sessions.session import Held, Session
from nearcast.dashboard.cells import cell_at, collection, features, has_cells
from nearcast.dashboard.contract import (
    Area,
    ClientShown,
    ContextShown,
    EventRow,
    GeoJson,
    Place,
    SubscriptionShown,
)
from nearcast.dashboard.explaining import event_row
from nearcast.dashboard.shapes import area_kind, area_shape
from nearcast.dashboard.tables import addresses_of, session_row
from nearcast.errors import OffsetTrimmed, UnknownName
from nearcast.journal import DeliveryEntry, EventEntry
from nearcast.model.area import Circle
from nearcast.model.area_text import area_text
from nearcast.model.geometry import Point
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import to_text
from nearcast.model.topic import topic_matches
from nearcast.model.value_text import value_text

REMEMBERED: Final = 300
"""Of the last recorded events, so many are looked through."""

MOST_NEW: Final = 2_000
"""Records that are read at a time; if there are more, those before them are left out."""

SHOWN: Final = 20


class RecentEvents:
    """The end of the journal, read on when somebody wants to see it; for all who do."""

    def __init__(self, broker: Broker) -> None:
        self._journal: Final = broker.journal
        self._events: Final[deque[tuple[int, EventEntry]]] = deque(maxlen=REMEMBERED)
        self._later: dict[int, set[str]] = {}
        self._next = 0
        self._turn: Final = asyncio.Lock()

    async def refresh(self) -> None:
        async with self._turn:
            if self._journal.stored > self._next:
                await asyncio.to_thread(self._read)

    def of(self, identity: str, held: list[Held]) -> tuple[list[EventRow], list[EventRow]]:
        """What a client was sent, and what was withheld of the topics that it subscribed to; latest first."""
        sent: list[EventRow] = []
        withheld: list[EventRow] = []
        filters = [each.subscription.topic for each in held]
        for offset, entry in reversed(self._events):
            if identity in entry.receivers or identity in self._later.get(offset, ()):
                if len(sent) < SHOWN:
                    sent.append(event_row(entry))
            elif len(withheld) < SHOWN and any(topic_matches(each, entry.topic) for each in filters):
                withheld.append(event_row(entry))
            if len(sent) >= SHOWN and len(withheld) >= SHOWN:
                break
        return sent, withheld

    def _read(self) -> None:
        journal, end = self._journal, self._journal.stored
        # Among other records there are fewer events than that.
        first = max(self._next, end - (MOST_NEW if self._events else 10 * MOST_NEW), journal.oldest)
        try:
            for chunk in journal.read(first, end, kinds=(EventEntry, DeliveryEntry)):
                for offset, record in chunk:
                    if isinstance(record, EventEntry):
                        self._events.append((offset, record))
                    elif isinstance(record, DeliveryEntry):
                        self._later.setdefault(record.of, set()).update(record.event.receivers)
        except OffsetTrimmed:
            pass  # the next look begins later
        self._next = end
        known = {offset for offset, _ in self._events}
        self._later = {offset: who for offset, who in self._later.items() if offset in known}


async def client_shown(broker: Broker, recent: RecentEvents, client: str) -> ClientShown:
    """``UnknownName`` if it has no session."""
    if client not in broker.sessions.all:
        raise UnknownName(f"no client {client!r:.80} has a session here")
    await recent.refresh()
    session = broker.sessions.all.get(client)
    if session is None:
        raise UnknownName(f"client {client!r:.80} has just gone")
    position = broker.presence.position(client)
    live = broker.scheming.live
    sent, withheld = recent.of(session.identity, list(session.held.values()))
    return ClientShown(
        client,
        session_row(broker, session, addresses_of(broker)),
        None if position is None else Place(position.lat, position.lon),
        [
            ContextShown(name, {key: value_text(key, value) for key, value in attributes.items()})
            for name, attributes in broker.presence.contexts(client).items()
        ],
        broker.presence.takes_addressed(client),
        [_subscription(held, position) for held in session.held.values()],
        str(live.scheme_of(client)) if live.takes_part(client) else "",
        cell_at(live.scheme_of(client), live.territory, position) if live.takes_part(client) else None,
        _cells(broker, session),
        sent,
        withheld,
    )


def _subscription(held: Held, position: Point | None) -> SubscriptionShown:
    subscription = held.subscription
    area = subscription.area
    return SubscriptionShown(
        subscription.id,
        held.filter,
        None if subscription.where is None else predicate_text(subscription.where),
        None
        if area is None
        else Area(
            area_kind(area),
            area_text(area),
            area.radius if isinstance(area, Circle) else None,
            area_shape(area, position),
        ),
        to_text(held.since),
    )


def _cells(broker: Broker, session: Session) -> GeoJson | None:
    live = broker.scheming.live
    if not live.takes_part(session.client) or not has_cells(live.scheme_of(session.client)):
        return None
    counts = Counter(live.channels_of(session.client))
    return collection(features(live.scheme_of(session.client), live.territory, counts, empty=False))
