"""Clients as they come and go: sessions are made, taken over, resumed, left, and forgotten when their time is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mqtt5 import ConnectPacket

from nearcast.broker.access import Access, Principal
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.router import Router
from nearcast.broker.schemes.scheming import Scheming
from nearcast.broker.sessions.redelivery import Redelivery, orphans_of
from nearcast.broker.sessions.session import Session, Wire
from nearcast.broker.sessions.sessions import NEVER, Sessions
from nearcast.broker.sessions.subscribing import Past
from nearcast.broker.sessions.wills import Wills
from nearcast.errors import JournalFailed
from nearcast.journal import ClientEntry, Journal, Put, Then
from nearcast.model.time import Instant
from nearcast.mqtt import names


class Conversing(Protocol):
    """A conversation that can be ended because its client came by another connection, or to another broker."""

    def taken_over(self) -> None: ...

    def dismissed(self) -> None:
        """Whoever that was is being erased."""

    def moved(self) -> None:
        """The client is said to have come to another broker of the federation."""


@dataclass(slots=True, eq=False)
class SessionLifecycle:
    journal: Journal
    sessions: Sessions
    router: Router
    presence: Presence
    wills: Wills
    past: Past
    now: Callable[[], Instant]
    longest_expiry: int
    """Seconds."""

    scheming: Scheming
    forgetting: Callable[[Session], list[Put]] = lambda _session: []
    """What others have to write when a session is over."""

    redelivery: Redelivery = field(init=False)
    conversations: dict[str, Conversing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redelivery = Redelivery(self.journal, self.router, self.now)

    def check_owner(self, client: str, principal: Principal) -> None:
        """``Denied`` if there is a session of that name, and it belongs to another user."""
        if client in self.sessions.all:
            principal.check_ownership(self.sessions.users.get(client))

    def enter(
        self,
        packet: ConnectPacket,
        client: str,
        version: int,
        principal: Principal,
        here: Conversing,
        then: Callable[[Session, bool, JournalFailed | None], None],
    ) -> None:
        """Give the client its session; ``then`` is told whether it was there before, once that is on disk."""
        self.check_owner(client, principal)  # before anything changes
        before = self.conversations.pop(client, None)
        if before is not None:
            before.taken_over()
        old = self.sessions.all.get(client)
        if old is not None and packet.clean_start:
            self.forget(old)
            old = None
        session = old if old is not None else self.sessions.create(client, principal.user)
        lasted = session.durable
        if principal.user is not None:
            self.sessions.users[client] = principal.user
        session.version = version
        session.expiry = self._expiry(packet.session_expiry_interval)
        session.window = packet.receive_max
        session.largest = packet.max_packet_size
        silenced = self._speaks(session, schemes=(names.SCHEMES, "1") in packet.user_properties)
        session.ended = None
        session.rights = principal
        self._withdraw(session, principal)
        self.wills.made(session, packet.will)
        self.conversations[client] = here
        entry = ClientEntry(self.now(), session.identity, "joined" if old is None else "returned")
        self.presence.watch(client, entry.at)

        def written(failed: JournalFailed | None) -> None:
            then(session, old is not None, failed)

        # One that does not last any more leaves nothing behind that a later one of this name could take for its own.
        ends = lasted and not session.durable
        puts = self.sessions.rows_gone(session) if ends else [self.sessions.row(session)]
        self.journal.write((entry,), [*puts, *silenced], written)

    def _speaks(self, session: Session, *, schemes: bool) -> list[Put]:
        """Another program may come back to the session: its areas then are in other hands."""
        spoke, session.speaks_schemes = session.speaks_schemes, schemes
        if spoke == schemes:
            return []
        for held in list(session.held.values()):
            self.router.subscribe(session, held)
        return self.scheming.silenced(session) if spoke else []

    def judge_again(self, session: Session, access: Access) -> int:
        """The rules have changed: how many of its subscriptions have ended, since they are not allowed any more.

        As if the client had unsubscribed: what was accepted for it before still comes.
        """
        principal = (
            access.again(session.rights)
            if isinstance(session.rights, Principal)
            else access.absent(self.sessions.users.get(session.client), session.client)
        )
        session.rights = principal
        if access.takes_tokens and principal.is_absent:
            return 0  # into which groups its token had put it nobody remembers: it is judged when it comes back
        return self._withdraw(session, principal)

    def _withdraw(self, session: Session, principal: Principal) -> int:
        """Rules may have changed since, and so may who uses the session."""
        before = len(session.held)
        for held in list(session.held.values()):
            allowed = principal.may_subscribe(held.subscription.topic)
            if held.observation is not None:
                allowed = allowed and principal.may_watch(held.observation.area)
            if not allowed:
                self.past.end(session, held)
                self.router.unsubscribe(session, held)
                self.journal.write(puts=(self.sessions.subscription_row(session, held.subscription.id, None),))
                session.complain(f"the subscription to {held.filter!r} has ended: the rules do not allow it any more")
        return before - len(session.held)

    def resumed(self, session: Session, connection: Wire, present: bool) -> None:
        """It was told so: what waits for it goes out."""
        session.connection = connection
        self.scheming.arrived(session, present)
        session.resume()

    def left(self, session: Session, here: Conversing, *, politely: bool, expiry: int | None = None) -> None:
        """Its connection is over."""
        if self.conversations.get(session.client) is here:
            del self.conversations[session.client]
        if not session.alive:
            return
        session.connection = None
        session.ended = self.now()
        self.scheming.departed(session)
        if expiry is not None and session.durable:
            session.expiry = self._expiry(expiry)
        if politely:
            self.wills.cancelled(session)
        else:
            self.wills.vanished(session)
        self.journal.write((ClientEntry(session.ended, session.identity, "left" if politely else "failed"),))
        if session.durable:
            self.sessions.save(session)
        else:
            self.forget(session)

    def forget(self, session: Session, then: Then | None = None) -> None:
        """The session is over."""
        self.wills.publish(session)
        redelivery = orphans_of(session)
        for held in list(session.held.values()):
            self.past.end(session, held)
        self.router.forget(session)
        puts = [
            *self.presence.forget(session),
            *self.scheming.forgotten(session),
            *self.forgetting(session),
            *self.sessions.remove(session),
        ]
        self.presence.watch(session.client, self.now())
        self.journal.write(puts=puts, then=then)
        self.redelivery.hand_on(redelivery)

    def expire(self) -> None:
        for session in self.sessions.expired(self.now()):
            self.forget(session)

    def _expiry(self, wanted: int) -> int:
        return self.longest_expiry if wanted == NEVER else min(wanted, self.longest_expiry)
