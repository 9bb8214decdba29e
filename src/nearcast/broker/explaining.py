"""Why somebody got an event, or did not: the definition of delivery, term by term, with what was known at publication.

What was known is read back from the records before the event, until the client's session began.  Whether the event was sent is read from the event
itself.  The two may differ where a filter scheme decided: it knows cells, or positions that have grown old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.core import Broker
from nearcast.broker.explained import EventRow, Explained, Place, Term
from nearcast.broker.known_context import KnownContext
from nearcast.broker.publishing.entries import event_in
from nearcast.broker.recorded import Lake, Numbered, back_from, find_event
from nearcast.broker.sessions.sessions import client_in
from nearcast.errors import HistoryNeeded, UnknownName
from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    Journal,
    Record,
    ReportEntry,
    SubscriptionEntry,
)
from nearcast.model.area_text import area_in
from nearcast.model.explanation import Explanation, explain
from nearcast.model.history import IMPLICIT_CONTEXT, History
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, TimeFrame, to_text

LONGEST_PAYLOAD: Final = 200
ABOUT_CLIENTS: Final = (ReportEntry, ContextEntry, ClientEntry, SubscriptionEntry)
_INCOMPLETE: Final = "its session began before all that is read for this; what it said before that is left out"
_BY_SCHEME: Final = (
    "the filter scheme {scheme} decided for this client; it may know less of where a client is than is recorded, "
    "so that what was sent differs from the definition"
)


@dataclass(slots=True)
class Known:
    """What was known of a client at one time."""

    context: KnownContext = field(default_factory=KnownContext)
    held: dict[str, tuple[Instant, Subscription]] = field(default_factory=dict)
    accepts: bool = False

    def hear(self, record: Record) -> None:
        """It was recorded next."""
        match record:
            case SubscriptionEntry(what="subscribed"):
                self.held[record.id] = record.at, _subscription(record)
            case SubscriptionEntry():
                self.held.pop(record.id, None)
            case ClientEntry(what="accepting" | "declining"):
                self.accepts = record.what == "accepting"
            case ReportEntry() | ContextEntry() | ClientEntry():
                if _begins(record) or (isinstance(record, ContextEntry) and record.name == IMPLICIT_CONTEXT):
                    self.held, self.accepts = {}, False
                self.context.apply(record)

    def history(self, client: str, at: Instant) -> History:
        """The same as the definition reads it."""
        history = History()
        if not self.context.present and not self.held:
            return history
        held = sorted(self.held.values(), key=lambda each: each[0])
        history.connected(client, min([at, *(since for since, _ in held)]))
        for since, subscription in held:
            history.subscribed(client, min(since, at), subscription)
        history.moved(client, at, self.context.position)
        for name, attributes in self.context.contexts.items():
            history.registered(client, at, name, attributes)
        history.accepts_addressed(client, at, self.accepts)
        return history


def known_before(records: Iterable[Numbered]) -> Known:
    known = Known()
    for _, record in records:
        known.hear(record)
    return known


def records_of(journal: Journal, lake: Lake, identity: str, below: int) -> tuple[list[Numbered], bool]:
    """What is recorded of a client before an offset since its session began; and whether that was found."""
    found: list[Numbered] = []
    if below > journal.oldest:
        for stretch in back_from(journal, below, ABOUT_CLIENTS):
            own = [each for each in stretch if each[1].who == identity]  # type: ignore[union-attr]
            found = [*own, *found]
            began = max((place for place, (_, record) in enumerate(found) if _begins(record)), default=None)
            if began is not None:
                return found[began:], True
        if journal.oldest == 0:
            return found, True
    if below <= journal.oldest or journal.exported >= journal.oldest:
        first = found[0][0] if found else below
        found = [*lake.of_client(identity, first), *found]
        began = max((place for place, (_, record) in enumerate(found) if _begins(record)), default=None)
        if began is not None:
            return found[began:], True
    return found, False


async def explained(broker: Broker, name: str, client: str) -> Explained:
    """``UnknownName`` if the event is not recorded, or nobody was ever here under that name; ``HistoryNeeded`` for messages to other times."""
    session = broker.sessions.all.get(client)
    present = None if session is None else session.identity
    return await asyncio.to_thread(_explained, broker, name, client, present, names_of(broker))


def names_of(broker: Broker) -> Callable[[str], str | None]:
    """Clients by the identities under which they are recorded; of those who have gone as long as they are known."""
    present = {session.identity: session.client for session in broker.sessions}
    gone: dict[str, str | None] = {}

    def client_of(identity: str) -> str | None:
        if identity in present:
            return present[identity]
        if identity not in gone:
            who = broker.identities.who(identity)
            gone[identity] = None if who is None else client_in(who)
        return gone[identity]

    return client_of


def _explained(
    broker: Broker, name: str, client: str, present: str | None, client_of: Callable[[str], str | None]
) -> Explained:
    """In a worker thread; ``present`` is the identity of the client's session, if it has one."""
    identities = broker.sessions.identities_of(client, present)
    if not identities:
        raise UnknownName(
            f"no client {client!r:.80} is known here: none has a session, and none had one under that name"
        )
    journal, lake = broker.journal, Lake(broker.settings.lake)
    offset, entry = find_event(journal, lake.folder, name)
    # Several users may have come by one client id: it is the one who got the event, or the one who is there now.
    identity = next((each for each in identities if each in entry.receivers), identities[0])
    if entry.when is not None:
        raise HistoryNeeded(
            f"event {name!r} speaks of other times than its publication; nearcast.model.explanation explains it with a history"
        )
    records, complete = records_of(journal, lake, identity, offset)
    publisher = None if entry.publisher is None else client_of(entry.publisher)
    event = event_in(entry, publisher)
    found = explain(known_before(records).history(client, event.published), event, client, event.published)
    delivered = identity in entry.receivers or _later(journal, offset, identity)
    notes = [] if complete else [_INCOMPLETE]
    if delivered != found.holds:
        live = broker.scheming.live
        if live.takes_part(client):
            notes.append(_BY_SCHEME.format(scheme=live.scheme_of(client)))
        else:
            notes.append(
                "what is recorded and what was sent differ: an unpublished event, a lost session or a shared subscription"
            )
    return Explained(event_row(entry), client, delivered, term_of(found), "; ".join(notes) or None)


def _later(journal: Journal, offset: int, identity: str) -> bool:
    """Whether it was delivered after its publication: the records behind it are looked at, some way."""
    if offset < journal.oldest:
        return False
    for chunk in journal.read(offset, kinds=(DeliveryEntry,), limit=1_000):
        for _, record in chunk:
            if isinstance(record, DeliveryEntry) and record.of == offset and identity in record.event.receivers:
                return True
    return False


def term_of(explanation: Explanation) -> Term:
    return Term(explanation.holds, explanation.term, explanation.detail, [term_of(part) for part in explanation.parts])


def event_row(entry: EventEntry) -> EventRow:
    return EventRow(
        entry.id,
        entry.topic,
        to_text(entry.published),
        None if entry.lat is None or entry.lon is None else Place(entry.lat, entry.lon),
        payload_text(entry.payload),
    )


def payload_text(payload: bytes) -> str | None:
    """The beginning of a text; none of what is no text."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"{len(payload)} bytes"
    return text[:LONGEST_PAYLOAD] or None


def _begins(record: Record) -> bool:
    return isinstance(record, ClientEntry) and record.what == "joined"


def _subscription(entry: SubscriptionEntry) -> Subscription:
    area = None if entry.area is None else area_in(entry.area)
    frame = TimeFrame(entry.since, entry.until)
    shown = entry.id.replace("\0", ", named ")  # as people know it: the filter, and perhaps nc-name
    return Subscription(entry.filter, entry.where, area, frame, shown, no_local=entry.no_local)
