"""Publishes of quality 1 that came together: written together, then delivered and acknowledged together.

Those that have nothing but a topic, which are most of them.  One write of the journal and one wait for the disk serve all;
each publisher gets its acknowledgements at once.  A receiver gets its copies in the order of the events.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

import msgspec
from mqtt5 import PublishPacket

from nearcast.broker.publishing.entries import owed_to, packet_entry, plain_event
from nearcast.broker.publishing.message import Message, message_of, size_of
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.publishing.router import Route, Target
from nearcast.broker.sessions.session import Session
from nearcast.errors import JournalFailed, NearcastError
from nearcast.journal import EventEntry
from nearcast.model.time import Instant
from nearcast.mqtt.publication import delivery_properties

log: Final = logging.getLogger(__name__)


MOST_COPIES: Final = 20_000
"""About so many go together: whom each event is for is written with it, and those behind would wait for all of that."""


class Promiser(Protocol):
    """The connection on which a publish came."""

    def keep(self, promised: list[tuple[int, bool]]) -> None:
        """Publishes of these packet ids are on disk, and whether anybody gets them."""

    def refuse(self, packet: PublishPacket, error: NearcastError) -> None:
        """This one is not, and will not be."""


class Promised(msgspec.Struct, frozen=True, gc=False):
    """A publish that waits; all of it has been checked."""

    promiser: Promiser
    publisher: Session
    packet: PublishPacket
    topic: str

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return size_of(self.packet, self.topic)


class _Copies(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one that somebody gets."""

    message: Message
    targets: list[Target]
    lasting: list[Target]
    """Of these, the ones that are owed it."""


class Qos1Batches:
    """As many as go together of those that wait, from the first on."""

    def __init__(self, publishing: Publishing, promised: list[Promised]) -> None:
        self._publishing: Final = publishing
        self._promised: Final = promised
        self._at: Final = publishing.now()
        self._copies: Final[list[_Copies | None]] = []
        self._count = 0
        """Of copies."""

        self.taken = 0
        """So many of them are on their way."""

    def publish(self) -> None:
        """Raises a ``NearcastError`` if the journal does not take them; nothing has happened then."""
        publishing, at = self._publishing, self._at
        entries = []
        for each in self._promised:
            entries.append(self._entry(each, at))
            if self._count >= MOST_COPIES:
                break
        first = publishing.journal.write(entries, then=self._written)
        self.taken = len(entries)
        for offset, copies in enumerate(self._copies, first):
            if copies is not None:
                copies.message.offset = offset
                for target in copies.lasting:
                    target.session.owe(offset)
        publishing.together(self.taken, 0)

    def _entry(self, each: Promised, at: Instant) -> EventEntry:
        publishing, publisher, packet = self._publishing, each.publisher, each.packet
        name, route = publishing.next_id(), publishing.router.route(each.topic)
        if not route.targets and not route.groups:
            self._copies.append(None)
            return packet_entry(name, each.topic, at, packet, publisher.identity, 1)
        copies = self._copied(each, route, name, at)
        self._copies.append(copies)
        self._count += len(copies.targets)
        receivers = tuple([target.session.identity for target in copies.targets])
        owed = owed_to(copies.lasting, 1)
        return packet_entry(name, each.topic, at, packet, publisher.identity, 1, receivers, owed)

    def _copied(self, each: Promised, route: Route, name: str, at: Instant) -> _Copies:
        packet = each.packet
        message = message_of(packet, each.topic, at)
        message.event = name
        if packet.message_expiry_interval is None and packet.topic_alias is None and not packet.duplicate:
            message.came = packet
        if not route.plain:
            message.near_properties = tuple(delivery_properties(plain_event(message, name, each.publisher.client, at)))
        targets = route.chosen(each.publisher)
        return _Copies(message, targets, [target for target in targets if target.qos and target.session.durable])

    def _written(self, failed: JournalFailed | None) -> None:
        kept: dict[Promiser, list[tuple[int, bool]]] = {}
        if failed is None:
            self._publishing.dispatch.timed(self._at, self._count)
        # Whatever goes wrong with one of them, all the others are delivered and answered.
        for each, copies in zip(self._promised, self._copies, strict=False):  # the rest goes another way
            try:
                if failed is not None:
                    self._give_up(each, copies, failed)
                elif copies is not None:
                    self._publishing.dispatch.deliver(copies.targets, copies.message)
                    self._show(each, copies)
            except Exception:
                log.exception("a publish to %r was not brought to its end", each.topic)
            if failed is not None:
                continue
            # Also if not everybody got it: it is on disk, and who sent it once more would double it for the others.
            answers = kept.get(each.promiser)
            if answers is None:
                answers = kept[each.promiser] = []
            answers.append((each.packet.packet_id or 0, copies is not None and bool(copies.targets)))
        for promiser, answers in kept.items():
            try:
                promiser.keep(answers)
            except Exception:
                log.exception("%d publishes were not acknowledged", len(answers))

    def _show(self, each: Promised, copies: _Copies) -> None:
        spectator, message = self._publishing.spectator, copies.message
        if spectator is not None:
            spectator.seen(plain_event(message, message.event or "", each.publisher.client, self._at), copies.targets)

    def _give_up(self, each: Promised, copies: _Copies | None, failed: JournalFailed) -> None:
        try:
            if copies is not None and copies.message.offset is not None:
                for target in copies.lasting:
                    target.session.give_up(copies.message.offset)
        finally:
            each.promiser.refuse(each.packet, failed)
