"""Whose records are to be erased, and what is left of a record without them.

========================  =================================================================================
an event of theirs        goes, with what was delivered of it later, and with its unpublishing
an event of others        stays; they are no longer among its receivers, nor owed it
reports, contexts, ...    of theirs go
========================  =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from nearcast.journal.entries import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
    key_of,
)
from nearcast.journal.identities import is_of


@dataclass(slots=True, eq=False)
class Subject:
    """One person, by all identities under which it is recorded, and what it published."""

    identities: frozenset[str]
    secret: bytes | None = None
    """Of a user: identities that the map has forgotten are recognised by it."""

    clients: frozenset[str] = frozenset()
    """Its client ids: events that came from another broker have no identity, but a key that is made of them."""

    offsets: set[int] = field(default_factory=set)
    """Of its events."""

    ids: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    """By which the brokers of a federation know its events."""

    _known: dict[str, bool] = field(default_factory=dict)

    def is_one(self, identity: str | None) -> bool:
        """Whether that is one of its identities."""
        if identity is None or self.secret is None:
            return identity in self.identities
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = identity in self.identities or is_of(self.secret, identity)
        return known

    def published(self, event: EventEntry) -> bool:
        if event.publisher is not None:
            return self.is_one(event.publisher)
        if event.key is None:
            return False
        return event.key in self.keys or any(key_of(each, event.id) == event.key for each in self.clients)

    def learn(self, offset: int, record: Record) -> None:
        """Take note of an event of theirs: what speaks of it is found by that."""
        if type(record) is EventEntry and self.published(record):
            self.offsets.add(offset)
            self.ids.add(record.id)
            if record.key is not None:
                self.keys.add(record.key)

    def concerns(self, offset: int, record: Record) -> bool:
        """Whether there is anything of theirs in a record."""
        return self.without(offset, record) is not record

    def without(self, offset: int, record: Record) -> Record | None:
        """What is left of a record; the record itself, if nothing in it is theirs."""
        return _WITHOUT[type(record)](self, offset, record) if type(record) in _WITHOUT else _of_one(self, record)

    def event(self, offset: int, event: EventEntry) -> EventEntry | None:
        if offset in self.offsets or self.published(event):
            return None
        receivers = self.others(event.receivers)
        owed = tuple(each for each in event.owed if not self.is_one(each[0]))
        if len(receivers) == len(event.receivers) and len(owed) == len(event.owed):
            return event
        return msgspec.structs.replace(event, receivers=receivers, owed=owed)

    def others(self, identities: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in identities if not self.is_one(each))


def _of_one(subject: Subject, record: Record) -> Record | None:
    """A record that speaks of one client."""
    who = record.host if type(record) is TransitionEntry else cast("_OfOne", record).who
    return None if subject.is_one(who) else record


_OfOne = ReportEntry | ContextEntry | SubscriptionEntry | ClientEntry


def _delivery(subject: Subject, _offset: int, record: DeliveryEntry) -> Record | None:
    event = subject.event(record.of, record.event)
    if event is record.event:
        return record
    # To nobody else: that somebody was there is all that it says.
    return None if event is None or not event.receivers else msgspec.structs.replace(record, event=event)


def _unpublishing(subject: Subject, _offset: int, record: UnpublishEntry) -> Record | None:
    gone = record.event in subject.ids if record.offset is None else record.offset in subject.offsets
    return None if gone else record


_WITHOUT: Final[dict[type, Callable[[Subject, int, Any], Record | None]]] = {
    EventEntry: lambda subject, offset, record: subject.event(offset, record),
    DeliveryEntry: _delivery,
    UnpublishEntry: _unpublishing,
}
