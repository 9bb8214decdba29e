"""Publishes of quality 0 that came together: matched, stored and delivered together.

The matcher, the journal and each receiver's connection are called once for all of them.  A receiver gets its copies in
the order of the events, as if they had been published one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec
import numpy as np
from mqtt5 import PubAckReasonCode, PublishPacket

from nearcast.broker.publishing.entries import packet_entry
from nearcast.broker.publishing.message import Message, message_of, size_of
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.publishing.router import Target
from nearcast.broker.sessions.session import Session
from nearcast.journal import EventEntry
from nearcast.matching.events import EventBatch
from nearcast.matching.matches import Matches
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.model.time import to_text as instant_text
from nearcast.mqtt import names
from nearcast.mqtt.publication import Publication
from nearcast.mqtt.stream import encode

_SMALL: Final = 1 << 16
"""Numbers below are sorted by their digits, in no time."""

_MOST_COPIES: Final = 100_000
"""Copies that go together: each takes some memory while it is on its way."""

_MOST_FORMS: Final = 16
"""Beyond that, all are made anew: receivers may number their subscriptions as they like."""

log: Final = logging.getLogger(__name__)


class Gathered(msgspec.Struct, frozen=True, gc=False):
    """A publish that waits; all of it has been checked.  Nothing that it holds knows of it, so the garbage collector need not look."""

    publisher: Session
    packet: PublishPacket
    topic: str
    place: Point | None
    read: Publication | None
    """All that it says, if that is more than its place."""
    complain: Callable[[str], None]

    def event(self, id: str, at: Instant) -> Event:  # noqa: A002 - the word for it
        if self.read is not None:
            return self.read.event(id, at, self.publisher.client, None)
        packet = self.packet
        return Event(id, self.topic, at, payload=packet.payload, publisher=self.publisher.client, place=self.place)

    def message(self, id: str, at: Instant, published: tuple[str, str]) -> Message:  # noqa: A002 - the word for it
        """Its message; all is said already but who it is and when it was."""
        message = message_of(self.packet, self.topic, at)
        message.event = id
        message.near_properties = (*message.properties, (names.ID, id), published)
        return message

    def entry(self, id: str, at: Instant, receivers: tuple[str, ...]) -> EventEntry:  # noqa: A002 - the word for it
        identity = self.publisher.identity
        return packet_entry(id, self.topic, at, self.packet, identity, 0, receivers, place=self.place, read=self.read)

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return size_of(self.packet, self.topic)

    @property
    def addressed(self) -> bool:
        """It said something to nearcast, and is archived for it."""
        return self.read is None or self.read.addressed

    def publish(self, publishing: Publishing) -> None:
        """By itself."""
        name, at = publishing.next_id(), publishing.now()
        message = self.message(name, at, (names.PUBLISHED, instant_text(at)))
        publishing.event(self.event(name, at), message, self.publisher, _unacknowledged, archived=self.addressed)


def _unacknowledged(_code: PubAckReasonCode, _why: str | None) -> None:
    """Quality 0."""


class _Copies(NamedTuple):
    """What one receiver gets: numbers of events."""

    target: Target
    events: list[int]


class Qos0Batch:
    def __init__(self, publishing: Publishing, gathered: list[Gathered]) -> None:
        self._publishing: Final = publishing
        self._gathered: Final = gathered
        self._at: Final = publishing.now()
        self._published: Final = names.PUBLISHED, instant_text(self._at)
        self._ids: Final = [publishing.next_id() for _ in gathered]
        self._messages: Final[list[Message | None]] = [None] * len(gathered)
        self._offsets: Final[list[int | None]] = [None] * len(gathered)
        self._forms: Final[dict[tuple[int, bool, tuple[int, ...]], list[bytes | None]]] = {}
        self.done = 0
        """So many of them, from the first on, have been published."""

        self.copies = 0
        """Of all of them."""

    def publish(self) -> None:
        """Raises a ``NearcastError`` if the journal does not take what comes after ``done``; nothing of that has happened then."""
        matches = self._publishing.router.together(self._events())
        self.copies = len(matches.clients)
        for first, last in _parts(matches):
            self._publish(matches, first, last)

    def _publish(self, matches: Matches, first: int, last: int) -> None:
        publishing = self._publishing
        copies = self._copies(matches, first, last)
        if copies is None:
            self._one_by_one(matches, first, last)
            return
        self._write(copies, first, last)
        publishing.together(last - first, sum(len(each.events) for each in copies))
        self.done = last
        for each in copies:
            try:
                self._send(each)
            except Exception:  # nobody else is to miss anything
                log.exception("client %s did not get %d messages", each.target.session.identity, len(each.events))
        publishing.dispatch.timed(self._at, sum(len(each.events) for each in copies))
        if publishing.spectator is not None:
            publishing.spectator.seen_together(
                last - first,
                lambda number: self._gathered[first + number].event(self._ids[first + number], self._at),
                lambda number: self._receivers(matches, first + number),
            )

    def _events(self) -> EventBatch | list[Event]:
        """As the matcher takes them; where there is nothing but places, columns are made faster than events."""
        gathered = self._gathered
        if any(each.read is not None for each in gathered):
            return [each.event(name, self._at) for each, name in zip(gathered, self._ids, strict=True)]
        codes: dict[str, int] = {}
        places = [each.place for each in gathered if each.place is not None]
        return EventBatch(
            published=np.full(len(gathered), self._at, np.int64),
            lat=np.array([place.lat for place in places]),
            lon=np.array([place.lon for place in places]),
            topic=np.array([codes.setdefault(each.topic, len(codes)) for each in gathered], np.int32),
            topics=tuple(codes),
            publishers=[each.publisher.client for each in gathered],
        )

    # Receivers

    def _copies(self, matches: Matches, first: int, last: int) -> list[_Copies] | None:
        """By receiver; none if one of them is a group that shares what it gets, since that is decided event by event."""
        router = self._publishing.router
        singles = router.single_of
        copies: list[_Copies] = []
        for number, events in _by_receiver(matches, first, last):
            single = singles[number] if number < len(singles) else None
            if single is not None:
                wanted = self._without_own(single.session, events) if single.picky else events
                if wanted:
                    copies.append(_Copies(single, wanted))
                continue
            session = router.sessions.get(matches.ids[number] or "")
            if session is None:
                return None
            for event in events:
                target = self._target(session, event, matches.asked_by(event, number))
                if target is not None:
                    copies.append(_Copies(target, [event]))
        return copies

    def _receivers(self, matches: Matches, event: int) -> list[int]:
        """Of one event, by their numbers: for whoever looks on."""
        numbers: list[int] = matches.clients[matches.offsets[event] : matches.offsets[event + 1]].tolist()
        own = self._gathered[event].publisher
        number = self._publishing.router.matcher.number(own.client)
        if number is not None and number in numbers:
            target = self._target(own, event, matches.asked_by(event, number))
            return numbers if target is not None else [each for each in numbers if each != number]
        return numbers

    def _without_own(self, session: Session, events: list[int]) -> list[int]:
        gathered = self._gathered
        return [event for event in events if gathered[event].publisher is not session]

    def _target(self, session: Session, event: int, asked: list[str]) -> Target | None:
        """Of a client that holds several subscriptions."""
        target = Target.of(session, [session.held[name] for name in asked])
        own = target.picky and self._gathered[event].publisher is session
        return target.without_own() if own else target

    def _one_by_one(self, matches: Matches, first: int, last: int) -> None:
        publishing = self._publishing
        for number in range(first, last):
            each, name = self._gathered[number], self._ids[number]
            event = each.event(name, self._at)
            route = publishing.router.route_of(event, matches.deliveries(number))
            message = each.message(name, self._at, self._published)
            publishing.event(event, message, each.publisher, _unacknowledged, archived=each.addressed, route=route)
            self.done = number + 1

    # Journal

    def _write(self, copies: list[_Copies], start: int, stop: int) -> None:
        publishing = self._publishing
        receivers: list[list[str]] = [[] for _ in range(stop)]
        add = [each.append for each in receivers]
        for target, events in copies:
            identity = target.session.identity
            for event in events:
                add[event](identity)
        entries, archived = [], []
        for number in range(start, stop):
            each = self._gathered[number]
            if each.addressed or publishing.keeps(each.topic):
                archived.append(number)
                entries.append(each.entry(self._ids[number], self._at, tuple(receivers[number])))
        if entries:
            first = publishing.journal.write(entries)
            for offset, number in enumerate(archived, first):
                self._offsets[number] = offset

    # Delivery

    def _send(self, copies: _Copies) -> None:
        target, events = copies
        session = target.session
        connection = session.connection
        if connection is None or connection.congested or session.largest is not None or session.catching_up is not None:
            for event in events:
                self._publishing.dispatch.copy((target,), self._message(event))
            return
        form = connection.version, target.near, target.identifiers
        known = self._forms.get(form)
        if known is None:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            known = self._forms[form] = [None] * len(self._gathered)
        connection.write_all([known[event] or self._encoded(event, form, known) for event in events])

    def _encoded(self, event: int, form: tuple[int, bool, tuple[int, ...]], known: list[bytes | None]) -> bytes:
        """As ``Message.parts`` does, without making one: hardly any receiver needs it."""
        version, near, identifiers = form
        each = self._gathered[event]
        packet, properties = each.packet, each.packet.user_properties
        if near:
            properties = [*properties, (names.ID, self._ids[event]), self._published]
        copy = PublishPacket(
            each.topic,
            packet.payload,
            payload_format_indicator=packet.payload_format_indicator,
            content_type=packet.content_type,
            response_topic=packet.response_topic,
            correlation_data=packet.correlation_data,
            subscription_ids=list(identifiers),
            user_properties=properties,
        )
        data = known[event] = encode(copy, version)
        return data

    def _message(self, event: int) -> Message:
        message = self._messages[event]
        if message is None:
            message = self._gathered[event].message(self._ids[event], self._at, self._published)
            message.offset = self._offsets[event]
            self._messages[event] = message
        return message


def _parts(matches: Matches) -> Iterator[tuple[int, int]]:
    """Spans of events that go together; nearly always there is one."""
    offsets, first = matches.offsets, 0
    while first < len(matches):
        last = int(np.searchsorted(offsets, offsets[first] + _MOST_COPIES, "right")) - 1
        yield first, max(last, first + 1)
        first = max(last, first + 1)


def _by_receiver(matches: Matches, first: int, last: int) -> Iterator[tuple[int, list[int]]]:
    """Receivers by their numbers, each with those of the events that it gets, in their order."""
    span = slice(int(matches.offsets[first]), int(matches.offsets[last]))
    clients = matches.clients[span]
    if not len(clients):
        return
    keys = clients.astype(np.uint16) if len(matches.ids) <= _SMALL else clients
    order = np.argsort(keys, kind="stable")
    ordered = clients[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    events = matches.events()[span][order].tolist()
    bounds = [*starts.tolist(), len(events)]
    for number, start, stop in zip(ordered[starts].tolist(), bounds, bounds[1:], strict=False):
        yield number, events[start:stop]
