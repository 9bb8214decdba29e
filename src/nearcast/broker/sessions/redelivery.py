"""What a group was given through a member whose session has ended, and which that member did not take, goes to another one.

MQTT 5, 4.8.2: a message of quality 1 that was not acknowledged is for another member then; one of quality 2 that was on its
way is not, since nobody knows whether it has arrived.  What was not sent yet is for another member in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from nearcast.broker.publishing.entries import entry_of, message_in
from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.router import Router, Target
from nearcast.broker.sessions.session import Outgoing, Session
from nearcast.errors import JournalFailed
from nearcast.journal import DeliveryEntry, EventEntry, Journal
from nearcast.model.time import Instant
from nearcast.mqtt.publication import delivered_event


def orphans_of(session: Session) -> list[Outgoing]:
    """In the order in which they were published."""
    sent = [out for out in session.in_flight.values() if out.qos == 1]
    return [out for out in (*sent, *session.queue) if out.shared is not None]


@dataclass(frozen=True, slots=True)
class RedeliveryStatistics:
    handed_on: int


@dataclass(slots=True, eq=False)
class Redelivery:
    journal: Journal
    router: Router
    now: Callable[[], Instant]
    _handed_on: int = 0

    def statistics(self) -> RedeliveryStatistics:
        return RedeliveryStatistics(self._handed_on)

    def hand_on(self, redelivery: Iterable[Outgoing]) -> None:
        """After their session has ended: it is not a member any more."""
        found = [(out, target) for out in redelivery if (target := self._successor(out)) is not None]
        if not found:
            return
        entries = [self._entry(out.message, target) for out, target in found]
        records = [
            DeliveryEntry(self.now(), _origin(out.message), entry)
            for (out, _), entry in zip(found, entries, strict=True)
        ]
        first = -1

        def written(failed: JournalFailed | None) -> None:
            for offset, (out, target), entry in zip(range(first, first + len(found)), found, entries, strict=True):
                if failed is not None:
                    target.session.give_up(offset)
                if not target.session.alive:
                    self.hand_on([out])
                elif failed is not None:  # nothing can be written: better once too often than not at all
                    self._deliver(replace(out.message, offset=None, _encoded={}), target, out)
                else:
                    message = message_in(entry, offset)
                    message.of = _origin(out.message)
                    self._deliver(message, target, out)

        first = self.journal.write(records, then=written)
        for offset, (_, target), entry in zip(range(first, first + len(found)), found, entries, strict=True):
            if entry.owed:
                target.session.owe(offset)

    def _successor(self, out: Outgoing) -> Target | None:
        expires = out.message.expires
        if out.shared is None or (expires is not None and expires <= self.now()):
            return None
        return self.router.member(out.shared)

    def _deliver(self, message: Message, target: Target, out: Outgoing) -> None:
        self._handed_on += 1
        target.session.deliver(
            message,
            min(message.qos, target.qos),
            target.identifiers,
            near=target.near,
            retain=out.retain,
            shared=target.shared,
        )

    def _entry(self, message: Message, target: Target) -> EventEntry:
        event = delivered_event(
            message.topic, message.payload, message.near_properties, None, id=message.event or "-", received=self.now()
        )
        identity, qos = target.session.identity, min(message.qos, target.qos)
        owed = [(identity, qos, target.near, target.identifiers)] if qos and target.session.durable else []
        entry = entry_of(event, message, None, [identity], owed)
        lifetime = None if message.expires is None else max(message.expires - event.published, 1)
        return msgspec.structs.replace(entry, lifetime=lifetime)


def _origin(message: Message) -> int:
    origin = message.of if message.of is not None else message.offset
    assert origin is not None, "messages of quality 1 and 2 for groups are in the journal"
    return origin
