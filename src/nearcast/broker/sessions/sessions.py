"""All sessions: who is known, who comes back, who is forgotten; and how they get through a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.confirmed_offsets import ConfirmedOffsets, Span
from nearcast.broker.sessions.session import OUTGOING, Outgoing, Session, SessionLimits
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put, Then
from nearcast.journal.identities import BETWEEN, Identities
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.client_ids import is_generated

log: Final = logging.getLogger(__name__)
SESSIONS: Final = "sessions"
SUBSCRIPTIONS: Final = "subscriptions"
INCOMING: Final = "incoming"
"""Packet ids of quality 2 that durable sessions sent and have not released."""

NEVER: Final = 0xFFFFFFFF
"""The expiry of a session that does not end by itself (MQTT 5, 3.1.2.11.2)."""


class WillRow(msgspec.Struct, frozen=True, array_like=True):
    """The last message of a client that vanishes."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    delay: int
    expiry: int | None
    payload_format: int
    content_type: str | None
    response_topic: str | None
    correlation: bytes | None
    properties: tuple[tuple[str, str], ...]


class SessionRow(msgspec.Struct, frozen=True, array_like=True):
    version: int
    expiry: int
    speaks_schemes: bool
    ended: Instant | None
    first: int
    """Offset from which on messages may be unconfirmed."""

    done: tuple[Span, ...]
    """Those above it that are confirmed all the same."""

    will: WillRow | None = None
    will_due: Instant | None = None
    user: str | None = None
    identity: str | None = None


class SubscriptionRow(msgspec.Struct, frozen=True, array_like=True):
    """A subscription as it was asked for: made anew by the same code after a restart."""

    filter: str
    properties: tuple[tuple[str, str], ...]
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int | None
    since: Instant
    """When it was accepted."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_SESSION: Final = msgspec.msgpack.Decoder(SessionRow)
_SUBSCRIPTION: Final = msgspec.msgpack.Decoder(SubscriptionRow)


@dataclass(slots=True, eq=False)
class Departed:
    """What is to happen with a session that has no connection."""

    will: WillRow | None = None
    will_due: Instant | None = None


@dataclass(frozen=True, slots=True)
class SessionsStatistics:
    sessions: int
    connected: int
    subscriptions: int
    queued: int
    dropped: int


@dataclass(slots=True, eq=False)
class Sessions:
    """The store of sessions, and the sessions themselves."""

    journal: Journal
    identities: Identities
    now: Callable[[], Instant]
    limits: SessionLimits
    all: dict[str, Session] = field(default_factory=dict)
    wills: dict[str, Departed] = field(default_factory=dict)
    """Of clients that are connected, or that left less than their will's delay ago."""

    users: dict[str, str] = field(default_factory=dict)
    _dirty: dict[str, Session] = field(default_factory=dict)
    _dropped: int = 0
    _first: dict[str, int] = field(default_factory=dict)
    """While loading: from which offset on each session may be owed something."""

    def statistics(self) -> SessionsStatistics:
        sessions = self.all.values()
        return SessionsStatistics(
            sessions=len(self.all),
            connected=sum(session.connection is not None for session in sessions),
            subscriptions=sum(len(session.held) for session in sessions),
            queued=sum(len(session.queue) + len(session.in_flight) for session in sessions),
            dropped=self._dropped + sum(session.dropped for session in sessions),
        )

    def __iter__(self) -> Iterator[Session]:
        return iter(self.all.values())

    def by_identity(self) -> dict[str, Session]:
        return {session.identity: session for session in self.all.values()}

    def identities_of(self, client: str, present: str | None = None) -> list[str]:
        """All under which a client of that id is recorded, of whatever user; the ``present`` one first.  For a worker thread."""
        found = [self.identities.of(who) for who in self.identities.clients() if client_in(who) == client]
        return [*([] if present is None else [present]), *(each for each in found if each != present)]

    # Coming and going

    def create(self, client: str, user: str | None = None, identity: str | None = None) -> Session:
        """A new session; its identity is that of user and client id together: another user may come by the same client id."""
        session = Session(client, identity or self.identities.of(_who(client, user)), self, self.limits, self.now)
        self.all[client] = session
        return session

    def remove(self, session: Session) -> list[Put]:
        """Forget a session; what is to be written so that it stays forgotten."""
        session.alive = False
        self._dropped += session.dropped
        self.all.pop(session.client, None)
        self.wills.pop(session.client, None)
        user = self.users.pop(session.client, None)
        if is_generated(session.client):
            self._nobody([_who(session.client, user)])
        self._dirty.pop(session.client, None)
        return self.rows_gone(session)

    def _nobody(self, clients: Sequence[str]) -> None:
        """They had generated ids, by which nobody comes back: whoever they were, nobody can be asked for."""
        try:
            self.identities.forget(clients)
        except JournalFailed as error:  # the next start tidies up
            log.warning("%s", error)

    def rows_gone(self, session: Session) -> list[Put]:
        """Nothing of it is kept on disk any more."""
        puts = [Put(SUBSCRIPTIONS, f"{session.client}\0{held}", None) for held in session.held]
        puts += [Put(OUTGOING, session.key(packet_id), None) for packet_id in session.in_flight]
        puts += [Put(INCOMING, session.key(packet_id), None) for packet_id in session.incoming]
        return [*puts, Put(SESSIONS, session.client, None)]

    def expired(self, now: Instant) -> list[Session]:
        return [
            session
            for session in self.all.values()
            if session.ended is not None
            and session.expiry != NEVER
            and now >= session.ended + session.expiry * MICROSECONDS
        ]

    # On disk

    def row(self, session: Session) -> Put:
        """All that is to be remembered of it, apart from subscriptions and messages."""
        if not session.durable:
            return Put(SESSIONS, session.client, None)
        departed = self.wills.get(session.client)
        row = SessionRow(
            session.version,
            session.expiry,
            session.speaks_schemes,
            session.ended,
            next(iter(session.pending), self.journal.head),
            session.done.spans(session.pending),
            departed.will if departed else None,
            departed.will_due if departed else None,
            self.users.get(session.client),
            session.identity,
        )
        return Put(SESSIONS, session.client, _ENCODER.encode(row))

    def dirty(self, session: Session) -> None:
        self._dirty[session.client] = session

    def flush(self) -> None:
        """Write what has changed; a confirmation that gets lost only means that a message is sent again."""
        changed, self._dirty = self._dirty, {}
        if changed:
            self.journal.write(puts=[self.row(session) for session in changed.values() if session.alive])

    def save(self, session: Session, then: Then | None = None) -> None:
        self._dirty.pop(session.client, None)
        self.journal.write(puts=(self.row(session),), then=then)

    def subscription_row(self, session: Session, held_id: str, row: SubscriptionRow | None) -> Put:
        return Put(SUBSCRIPTIONS, f"{session.client}\0{held_id}", None if row is None else _ENCODER.encode(row))

    # After a restart

    def load(self) -> dict[str, list[SubscriptionRow]]:
        """All durable sessions, without their messages; what they were subscribed to is handed back."""
        now = self.now()
        for client, data in self.journal.load(SESSIONS).items():
            row = _SESSION.decode(data)
            session = self.create(client, row.user, row.identity)
            session.version, session.expiry, session.speaks_schemes = row.version, row.expiry, row.speaks_schemes
            # Whoever was connected when the broker fell left at that moment, which nobody noted: now is the latest it can be.
            session.ended = row.ended if row.ended is not None else now
            session.done = ConfirmedOffsets(list(row.done))
            if row.will is not None:
                due = row.will_due if row.will_due is not None else now + row.will.delay * MICROSECONDS
                self.wills[client] = Departed(row.will, due)
            if row.user is not None:
                self.users[client] = row.user
            self._first[client] = row.first
        known = {_who(client, self.users.get(client)) for client in self.all}
        self._nobody([who for who in self.identities.clients() if who not in known and is_generated(client_in(who))])
        for key in self.journal.load(INCOMING):
            client, _, packet_id = key.rpartition("\0")
            if client in self.all:
                self.all[client].incoming.add(int(packet_id))
        subscriptions: dict[str, list[SubscriptionRow]] = {}
        for key, data in self.journal.load(SUBSCRIPTIONS).items():
            client, _, _ = key.partition("\0")
            if client in self.all:
                subscriptions.setdefault(client, []).append(_SUBSCRIPTION.decode(data))
        return subscriptions

    def oldest_unconfirmed(self) -> int:
        """Where to begin to look for messages that durable sessions have not confirmed."""
        return min(self._first.values(), default=self.journal.head)

    def unconfirmed(self, session: Session, offset: int) -> bool:
        return offset >= self._first.get(session.client, 0) and offset not in session.done

    def restore_messages(self, found: dict[str, list[Outgoing]]) -> None:
        """Put back what each client has not confirmed: under its old packet id, if it has one, else into the queue."""
        known: dict[str, dict[str, tuple[int, bool]]] = {}
        for key, data in self.journal.load(OUTGOING).items():
            client, _, packet_id = key.rpartition("\0")
            place, state = data.decode().split()
            # What is not in the journal is told apart by its id.
            where = place if place != "-" else f"-{packet_id}"
            known.setdefault(client, {})[where] = int(packet_id), state == "released"
        for client, messages in found.items():
            session, ids = self.all[client], known.get(client, {})
            for out in messages:
                offset = out.message.offset
                assert offset is not None
                session.owe(offset)
                if str(offset) in ids:
                    number, out.released = ids.pop(str(offset))
                    session.in_flight[number] = out
                else:
                    session.queue.append(out)
            for number, _ in ids.values():
                # The message is gone (unpublished, too old, from the archive): the client may wait for its release all the
                # same, and would take another message under this id for a copy of it.
                session.in_flight[number] = Outgoing(Message("", b"", 2), 2, False, False, (), released=True)
        self._first.clear()


def _who(client: str, user: str | None) -> str:
    """To whom an identity is given."""
    return client if user is None else f"{user}{BETWEEN}{client}"


def client_in(who: str) -> str:
    """The client id of somebody to whom an identity was given."""
    return who.rpartition(BETWEEN)[2]
