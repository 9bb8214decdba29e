"""The broker with the eyes of one client: where it is, what it wants, what it was sent, and what was withheld from it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.broker.core import Broker
from nearcast.broker.explained import EventRow, Place
from nearcast.broker.explaining import event_row
from nearcast.broker.sessions.session import Held
from nearcast.dashboard.cells import MOST, cell_at, collection, features_of, has_cells
from nearcast.dashboard.contract import (
    Area,
    ClientShown,
    ContextShown,
    GeoJson,
    ProximityShown,
    SubscriptionShown,
)
from nearcast.dashboard.shapes import area_kind, area_shape
from nearcast.dashboard.tables import addresses_of, session_row
from nearcast.dashboard.turns import Turns
from nearcast.errors import OffsetTrimmed, UnknownName
from nearcast.journal import DeliveryEntry, EventEntry, Journal
from nearcast.model.area import Area as AnyArea
from nearcast.model.area import Circle
from nearcast.model.area_text import area_text
from nearcast.model.geometry import Point
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import to_text
from nearcast.model.topic import topic_matches
from nearcast.model.value_text import value_text

REMEMBERED: Final = 300
"""Of the last recorded events, so many are looked through."""

MOST_RECEIVERS: Final = 2_000_000
"""Of all of these together; if there are more, fewer events are looked through."""

MOST_NEW: Final = 2_000
"""Records that are read at a time; if there are more, those before them are left out."""

SHOWN: Final = 20


@dataclass(slots=True)
class _Recent:
    """A recorded event, as far as it is looked at again."""

    row: EventRow
    receivers: npt.NDArray[np.int64]
    """Hashes of their identities: an event may have gone to everybody, and there are many events."""

    def was_sent_to(self, identity: int) -> bool:
        return bool((self.receivers == identity).any())


class RecentEvents:
    """The end of the journal, read on when somebody wants to see it; for all who do."""

    def __init__(self, broker: Broker) -> None:
        self._journal: Final = broker.journal
        self._end = _End(broker.journal)
        self._turn: Final = asyncio.Lock()

    async def of(self, identity: str, filters: Iterable[str]) -> tuple[list[EventRow], list[EventRow]]:
        """What a client was sent, and what was withheld of the topics that it subscribed to; latest first."""
        wanted = frozenset(filters)
        async with self._turn:
            return await asyncio.to_thread(self._end.of, hash(identity), wanted)

    def purge(self) -> None:
        """Something was erased from the journal: what is remembered of it is read anew.

        Who is just reading may have read it before, and goes on with what nobody will look at again.
        """
        self._end = _End(self._journal)


class _End:
    """What was read."""

    def __init__(self, journal: Journal) -> None:
        self._journal: Final = journal
        self._events: Final[OrderedDict[int, _Recent]] = OrderedDict()
        self._receivers = 0
        self._next = 0

    def of(self, identity: int, filters: frozenset[str]) -> tuple[list[EventRow], list[EventRow]]:
        if self._journal.stored > self._next:
            self._read()
        sent: list[EventRow] = []
        withheld: list[EventRow] = []
        matches: dict[str, bool] = {}
        for recent in reversed(self._events.values()):
            topic = recent.row.topic
            if recent.was_sent_to(identity):
                if len(sent) < SHOWN:
                    sent.append(recent.row)
            elif len(withheld) < SHOWN:
                if topic not in matches:
                    matches[topic] = any(topic_matches(each, topic) for each in filters)
                if matches[topic]:
                    withheld.append(recent.row)
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
                        self._add(offset, _Recent(event_row(record), _hashes(record.receivers)))
                    elif isinstance(record, DeliveryEntry) and record.of in self._events:
                        recent = self._events[record.of]
                        later = _hashes(record.event.receivers)
                        recent.receivers = np.concatenate([recent.receivers, later])
                        self._receivers += len(later)
        except OffsetTrimmed:
            pass  # the next look begins later
        self._next = end

    def _add(self, offset: int, recent: _Recent) -> None:
        self._events[offset] = recent
        self._receivers += len(recent.receivers)
        while len(self._events) > 1 and (len(self._events) > REMEMBERED or self._receivers > MOST_RECEIVERS):
            _, oldest = self._events.popitem(last=False)
            self._receivers -= len(oldest.receivers)


def _hashes(identities: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.fromiter((hash(each) for each in identities), np.int64, len(identities))


async def client_shown(broker: Broker, recent: RecentEvents, client: str) -> ClientShown:
    """``UnknownName`` if it has no session."""
    if client not in broker.sessions.all:
        raise UnknownName(f"no client {client!r:.80} has a session here")
    asked = broker.sessions.all[client]
    sent, withheld = await recent.of(asked.identity, [each.subscription.topic for each in asked.held.values()])
    addresses = await addresses_of(broker, client)
    cells = await _cells(broker, client)
    session = broker.sessions.all.get(client)
    if session is None:
        raise UnknownName(f"client {client!r:.80} has just gone")
    position = broker.presence.position(client)
    live = broker.scheming.live
    return ClientShown(
        client,
        session_row(broker, session, addresses),
        None if position is None else Place(position.lat, position.lon),
        [
            ContextShown(name, {key: value_text(key, value) for key, value in attributes.items()})
            for name, attributes in broker.presence.contexts(client).items()
        ],
        broker.presence.takes_addressed(client),
        [_subscription(held, position) for held in session.held.values()],
        [ProximityShown(topic, _area(area, position)) for topic, area in session.announced.items()],
        str(live.scheme_of(client)) if live.takes_part(client) else "",
        cell_at(live.scheme_of(client), live.territory, position) if live.takes_part(client) else None,
        cells,
        sent,
        withheld,
    )


def _area(area: AnyArea, position: Point | None) -> Area:
    radius = area.radius if isinstance(area, Circle) else None
    return Area(area_kind(area), area_text(area), radius, area_shape(area, position))


def _subscription(held: Held, position: Point | None) -> SubscriptionShown:
    subscription = held.subscription
    area = subscription.area
    return SubscriptionShown(
        subscription.id,
        held.filter,
        None if subscription.where is None else predicate_text(subscription.where),
        None if area is None else _area(area, position),
        to_text(held.since),
    )


async def _cells(broker: Broker, client: str) -> GeoJson | None:
    live = broker.scheming.live
    if not live.takes_part(client) or not has_cells(live.scheme_of(client)):
        return None
    names = dict.fromkeys(live.channels_of(client)[:MOST], 1)
    return collection((await features_of(live.scheme_of(client), live.territory, names.items(), Turns())).values())
