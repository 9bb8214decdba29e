"""Clients that go from broker to broker: where each is at home, how its session follows it, and what still comes for it.

Where a client is at home stands on the notice board.  A client that comes to another broker is claimed there: the old one, if it can be
reached, hands over its session (subscriptions, position, contexts), and then its home is announced.  The old broker keeps what it knows
of the client for a while, and whatever comes for it until then, or has been waiting, follows it in parcels.  The same happens when the
old broker was dead meanwhile, and returns.

Who announces a home says which announcement it knew of.  A broker whose client is connected, and of whom the other did not know,
announces once more; so of two that did not know of each other the one with the client stays.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.federation.custody import Custody, Kept
from nearcast.broker.federation.notices import NoticeBoard
from nearcast.broker.federation.parcels import Done
from nearcast.broker.federation.wire import RELAY, Claim, Granted, Notice, RelayBody, SessionState, encode, relay_body
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.entries import entry_of, message_in
from nearcast.broker.sessions.lifecycle import SessionLifecycle
from nearcast.broker.sessions.session import Had, Outgoing, Rights, Session
from nearcast.broker.sessions.sessions import SessionRow, Sessions, SubscriptionRow
from nearcast.broker.sessions.subscribing import Subscribing, row_of
from nearcast.errors import Denied, InvalidInput, JournalFailed
from nearcast.journal import Journal, Put
from nearcast.journal.entries import key_of
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.publication import delivered_event
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending

log: Final = logging.getLogger(__name__)
PREFIX: Final = "c/"
HOMES: Final = "homes"
LINGER: Final = 30 * MICROSECONDS
"""For so long after a client has left, its old broker stays known for its contexts: the new one may not be, yet."""


class Home(msgspec.Struct, frozen=True, array_like=True):
    broker: str
    user: str | None
    clean: bool
    """What was there before is not wanted."""

    basis: tuple[int, str]
    """Version and author of the announcement that the author knew of."""

    before: str = ""
    """The broker where it was then."""


class HomeRow(msgspec.Struct, frozen=True, array_like=True):
    notice: Notice
    moved: Instant | None
    """When the client left this broker."""


_home: Final = msgspec.msgpack.Decoder(Home).decode
_session: Final = msgspec.msgpack.Decoder(SessionRow).decode
_subscription: Final = msgspec.msgpack.Decoder(SubscriptionRow).decode


@dataclass(frozen=True, slots=True)
class RoamingStatistics:
    homes: int
    arrived: int
    """Clients that came from another broker."""

    departed: int
    handed_over: int
    """Sessions that came with them."""

    forwarding: int
    """Clients that are elsewhere, and whose messages still follow them."""

    relayed: int
    """Messages that did."""


@dataclass(slots=True, eq=False)
class Roaming:
    me: str
    journal: Journal
    board: NoticeBoard
    custody: Custody
    sessions: Sessions
    lifecycle: SessionLifecycle
    presence: Presence
    subscribing: Subscribing
    rights: Callable[[str | None, str], Rights]
    """Of a user by a client id, while it is away."""

    address: Callable[[str], Address | None]
    """Of a broker that can be reached."""

    send: Callable[[Address, Message], Sending]
    loose: Callable[[str, bytes, Sequence[str]], None]
    """``loose(kind, body, brokers)``: send something that nobody keeps."""

    changed: Callable[[str], None]
    """Told of clients that have come or gone."""

    gone: Callable[[str, str], None]
    """``gone(before, now)``: some client has gone from one broker to another."""

    taken_back: Callable[[str], bool]
    """Whether the event of that key was unpublished."""

    now: Callable[[], Instant]
    wait: float
    """Seconds."""

    forward_for: int
    _claims: dict[int, asyncio.Future[Granted]] = field(default_factory=dict)
    _claimed: int = 0
    _had: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of clients that are about to enter: what they had elsewhere."""

    _moved: dict[str, Instant] = field(default_factory=dict)
    """Clients that are elsewhere, and since when."""

    _announced: dict[str, int] = field(default_factory=dict)
    """Of clients whose home was announced here: the version of that."""

    _unwritten: list[tuple[Session, Outgoing]] = field(default_factory=list)
    """What is to follow a client, and could not be written for that: it is tried again."""

    _settled: set[str] = field(default_factory=set)
    """Clients that are elsewhere for so long that everybody was told."""

    _arrived: int = 0
    _departed: int = 0
    _handed_over: int = 0
    _relayed: int = 0

    def statistics(self) -> RoamingStatistics:
        homes = sum(notice.key.startswith(PREFIX) for notice in self.board)
        return RoamingStatistics(
            homes, self._arrived, self._departed, self._handed_over, len(self._moved), self._relayed
        )

    def home(self, client: str) -> Home | None:
        notice = self.board.get(PREFIX + client)
        return None if notice is None or not notice.value else _home(notice.value)

    def came(self, session: Session) -> bool:
        """Whether it is here, and was elsewhere before."""
        home = self.home(session.client)
        return session.forward is None and home is not None and home.broker == self.me and bool(home.before)

    def left(self, session: Session) -> bool:
        """Whether it is elsewhere for so long that its new broker is known to everybody."""
        moved = self._moved.get(session.client)
        return session.forward is not None and moved is not None and self.now() >= moved + LINGER

    # Arrival

    async def arrive(self, client: str, user: str | None, *, clean: bool) -> None:
        """Before it gets a session: see whether it has one elsewhere.  ``Denied`` if that is somebody else's."""
        home, session = self.home(client), self.sessions.all.get(client)
        if session is not None and session.forward is not None:
            self._end(session)  # what was for it is in parcels
            session = None
        if home is None or home.broker == self.me:
            return
        self._arrived += 1
        state: SessionState | None = None
        address = self.address(home.broker)
        if not clean and address is not None:
            state = await self._claim(client, user, address)
        if state is not None and client not in self.sessions.all:
            self._restore(client, user, state)

    async def _claim(self, client: str, user: str | None, address: Address) -> SessionState | None:
        self._claimed += 1
        number = self._claimed
        answer: asyncio.Future[Granted] = asyncio.get_running_loop().create_future()
        self._claims[number] = answer
        try:
            if self.send(address, Claim(number, client, user)) is Sending.DROPPED:
                return None
            async with asyncio.timeout(self.wait):
                granted = await answer
        except TimeoutError:
            log.info("%s did not hand over the session of client %r in time; it follows as it comes", address, client)
            return None
        finally:
            self._claims.pop(number, None)
        if granted.problem:
            raise Denied(granted.problem)
        self._had[client] = granted.had
        return granted.session

    def granted(self, message: Granted) -> None:
        answer = self._claims.get(message.number)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _restore(self, client: str, user: str | None, state: SessionState) -> None:
        row = _session(state.row)
        session = self.sessions.create(client, user)
        session.version, session.expiry = row.version, row.expiry
        session.ended = self.now()
        if user is not None:
            self.sessions.users[client] = user
        session.rights = self.rights(user, client)
        puts = [self.sessions.row(session)]
        for data in state.subscriptions:
            try:
                subscription = _subscription(data)
                self.subscribing.restore(session, subscription)
            except InvalidInput as error:
                log.warning("a subscription of %r was not taken over: %s", client, error)
        puts += [
            self.sessions.subscription_row(session, held.subscription.id, row_of(held))
            for held in session.held.values()
        ]
        self.journal.write(puts=puts)
        if state.presence is not None:
            self.presence.take_over(session, state.presence)
        self._handed_over += 1

    def entered(self, session: Session, *, clean: bool) -> None:
        """It has its session here: everybody is to know."""
        notice = self.board.get(PREFIX + session.client)
        home, had = self.home(session.client), self._had.pop(session.client, ())
        if session.had is None and (home is not None or session.durable):
            session.had = Had()
        if session.had is not None:
            for key in had:
                session.had.add(key, confirmed=True)
        if home is not None and home.broker == self.me:
            return
        if home is None and not session.durable:
            return  # it will not outlive its connection, and nobody waits for it
        before = "" if home is None else home.broker
        self._announce(session, notice, clean=clean, before=before)

    def _announce(self, session: Session, known: Notice | None, *, clean: bool, before: str) -> None:
        user = self.sessions.users.get(session.client)
        basis = (0, "") if known is None else (known.version, known.author)
        notice = self.board.post(PREFIX + session.client, encode(Home(self.me, user, clean, basis, before)))
        self.gone(before, self.me)
        self._moved.pop(session.client, None)
        self._announced[session.client] = notice.version
        self._write(notice, None)
        self.changed(session.client)

    def over(self, session: Session) -> list[Put]:
        """Its session ends here; what is to be written for that."""
        client, home = session.client, self.home(session.client)
        self._moved.pop(client, None)
        self._announced.pop(client, None)
        if home is None:
            return []
        if home.broker == self.me:
            self.board.remove(PREFIX + client)
        return [Put(HOMES, client, None)]

    def _write(self, notice: Notice, moved: Instant | None) -> None:
        row = HomeRow(notice, moved)
        self.journal.write(puts=(Put(HOMES, notice.key.removeprefix(PREFIX), encode(row)),))

    # Departure

    def heard(self, notice: Notice) -> None:
        """A client's home was announced elsewhere."""
        client = notice.key.removeprefix(PREFIX)
        if notice.value and (announced := _home(notice.value)).before:
            self.gone(announced.before, announced.broker)
        session = self.sessions.all.get(client)
        if session is None:
            if notice.value and _home(notice.value).broker == self.me:
                self.board.remove(notice.key)  # from an earlier life: that session is over
            return
        if not notice.value:
            if session.forward is not None:
                self._end(session)
            return
        home = _home(notice.value)
        if home.broker == self.me:
            return
        if session.forward is None and session.connection is not None and not self._knew_of_us(client, home):
            self._announce(session, notice, clean=False, before=home.broker)
            return
        if home.user != self.sessions.users.get(client):
            log.warning("client %r of another user is at %s now; what is for this one stays here", client, home.broker)
            return
        self._depart(session, notice, home)

    def abandon(self, broker: str) -> None:
        """It will not come back: whoever was at home there is at home nowhere."""
        lost = [notice for notice in self.board if notice.key.startswith(PREFIX) and notice.value]
        for notice in lost:
            if _home(notice.value).broker == broker:
                self.board.remove(notice.key)
                self.heard(msgspec.structs.replace(notice, value=b""))

    def _knew_of_us(self, client: str, home: Home) -> bool:
        announced = self._announced.get(client)
        return announced is None or home.basis == (announced, self.me)

    def _depart(self, session: Session, notice: Notice, home: Home) -> None:
        client = session.client
        conversation = self.lifecycle.conversations.get(client)
        self.lifecycle.wills.cancelled(session)
        if conversation is not None:
            conversation.moved()
        if not session.alive:
            return
        if home.clean:
            session.forward = None
            self._end(session)
            return
        self._departed += session.forward is None
        self._moved[client] = self._moved.get(client, self.now())
        self._write(notice, self._moved[client])
        self._follow(session)
        self.changed(client)

    def _follow(self, session: Session) -> None:
        """From now on everything goes after it."""
        if session.forward is not None:
            return
        for held in list(session.held.values()):
            self.lifecycle.past.end(session, held)
        session.forward = lambda out: self._forward(session, out)
        for out in session.undelivered():
            self._forward(session, out)

    def _forward(self, session: Session, out: Outgoing) -> None:
        home = self.home(session.client)
        if home is None:
            session.forwarded(out)  # it has ended for good
            return
        body = encode(self._body(session.client, out))
        if not out.qos and home.broker != self.me:
            self.loose(RELAY, body, (home.broker,))
            return

        def written(failed: JournalFailed | None) -> None:
            if failed is None:
                self._relayed += bool(out.qos)
                session.forwarded(out)
            elif out.qos:
                self._unwritten.append((session, out))

        if home.broker == self.me:  # it came back meanwhile
            self.relayed(body, [], written)
            return
        event = out.message.key or secrets.token_hex(8)
        self.custody.add(key_of(session.client, f"{event}\0relay"), RELAY, body, (home.broker,), written)

    def _body(self, client: str, out: Outgoing) -> RelayBody:
        message = out.message
        event = delivered_event(
            message.topic, message.payload, message.near_properties, None, id=message.event or "-", received=self.now()
        )
        lifetime = None if message.expires is None else max(message.expires - event.published, 1)
        entry = msgspec.structs.replace(entry_of(event, message, None), lifetime=lifetime)
        return RelayBody(client, message.key or "", entry, out.qos, out.near, out.retain, out.identifiers)

    def _end(self, session: Session) -> None:
        """Nothing more of it is needed here; what is still being written for it follows its client all the same."""
        session.undelivered()
        self.lifecycle.wills.cancelled(session)
        self._moved.pop(session.client, None)
        self.lifecycle.forget(session)

    def claimed(self, sender: Address, message: Claim) -> None:
        """A client of ours is with that broker."""
        session = self.sessions.all.get(message.client)
        asker = message.asker or sender
        if not message.asker and (session is None or session.forward is not None):
            # It went on meanwhile, which the asker has not heard: where it went, its session is.
            home = self.home(message.client)
            there = None if home is None or home.broker == self.me else self.address(home.broker)
            if there is not None and there != asker:
                self.send(there, msgspec.structs.replace(message, asker=asker))
                return
        state, problem = None, ""
        if session is not None and session.forward is None:
            if self.sessions.users.get(message.client) != message.user:
                problem = "the client id belongs to another user"
            # Whoever speaks filter schemes tells its new broker everything again: what the scheme here knows of it is of no use there.
            elif session.durable and not session.speaks_schemes:
                state = self._state(session)
        had = () if session is None or session.had is None or problem else session.had.confirmed()
        self.send(asker, Granted(message.number, message.client, state, problem, had))

    def _state(self, session: Session) -> SessionState:
        row = self.sessions.row(session).value
        assert row is not None
        subscriptions = tuple(encode(row_of(held)) for held in session.held.values())
        return SessionState(row, subscriptions, self.presence.packed(session))

    # What follows a client

    def relayed(self, body: bytes, puts: list[Put], done: Done) -> None:
        """A copy for a client that is here, or was."""
        try:
            relay = relay_body(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:  # of another version
            log.warning("a copy from another broker cannot be read, and is given up: %s", error)
            self.journal.write(puts=puts, then=done)
            return
        if self.taken_back(relay.event):
            self.journal.write(puts=puts, then=done)
            return
        session = self.sessions.all.get(relay.client)
        if session is None or not session.alive or session.forward is not None:
            self._relay_on(relay, body, puts, done)
            return
        had = session.had
        if had is not None and relay.event and not had.add(relay.event):
            self.journal.write(puts=puts, then=done)
            return
        owed = [(session.identity, relay.qos, relay.near, relay.identifiers)] if session.durable and relay.qos else []
        entry = msgspec.structs.replace(relay.entry, qos=relay.qos, receivers=(session.identity,), owed=tuple(owed))
        if not relay.qos:
            session.deliver(message_in(entry, -1), 0, relay.identifiers, near=relay.near, retain=relay.retain)
            done(None)
            return

        def written(failed: JournalFailed | None) -> None:
            if failed is None:
                message = message_in(entry, offset)
                session.deliver(message, relay.qos, relay.identifiers, near=relay.near, retain=relay.retain)
            else:
                session.give_up(offset)
                if had is not None:
                    had.pop(relay.event, None)
            done(failed)

        offset = self.journal.write((entry,), puts, written)
        if owed:
            session.owe(offset)

    def _relay_on(self, relay: RelayBody, body: bytes, puts: list[Put], done: Done) -> None:
        home = self.home(relay.client)
        if home is None or home.broker == self.me:
            log.info("a message for client %r, whose session has ended, is given up", relay.client)
            self.journal.write(puts=puts, then=done)
        elif relay.qos:
            key = key_of(relay.client, f"{relay.event}\0relay")

            def written(failed: JournalFailed | None) -> None:
                self.custody.end(key, (home.broker,), failed=failed is not None)
                done(failed)

            self.journal.write(puts=[*puts, *self.custody.begin(key, RELAY, body, (home.broker,))], then=written)
        else:
            self.loose(RELAY, body, (home.broker,))
            done(None)

    def reconsider(self, kept: Kept) -> None:
        """A copy for a client waits for a broker that cannot be reached: perhaps the client is elsewhere by now."""
        client = relay_body(kept.body).client
        home = self.home(client)
        if home is None or home.broker in kept.waiting:
            return
        if home.broker == self.me:
            self.relayed(kept.body, [], lambda failed: self._replaced(kept, failed))
        else:
            self.custody.add(kept.key, RELAY, kept.body, (home.broker,), lambda failed: self._replaced(kept, failed))

    def _replaced(self, kept: Kept, failed: JournalFailed | None) -> None:
        if failed is None:
            home = self.home(relay_body(kept.body).client)
            for broker in sorted(kept.waiting):
                if home is None or broker != home.broker:
                    self.custody.release(kept, broker)

    # From time to time, and after a restart

    def tick(self) -> None:
        now = self.now()
        unwritten, self._unwritten = self._unwritten, []
        for left, out in unwritten:
            self._forward(left, out)
        self._settled &= self._moved.keys()
        held_up = {left.client for left, _ in unwritten}
        for client, moved in list(self._moved.items()):
            session = self.sessions.all.get(client)
            if session is None:
                self._moved.pop(client, None)
            elif now >= moved + self.forward_for and client not in held_up:
                self._end(session)
            elif now >= moved + LINGER and client not in self._settled:
                self._settled.add(client)
                self.changed(client)

    def load(self) -> None:
        """Sessions are back, their messages are not."""
        for client, data in self.journal.load(HOMES).items():
            row = msgspec.msgpack.decode(data, type=HomeRow)
            session = self.sessions.all.get(client)
            if session is None:
                self.journal.write(puts=(Put(HOMES, client, None),))
                continue
            self.board.take(row.notice)
            if row.moved is not None:
                self._moved[client] = row.moved
            else:
                self._announced[client] = row.notice.version
                session.had = Had()

    def resume(self) -> None:
        """So are their messages: what waits for clients that are elsewhere follows them."""
        for client in self._moved:
            self._follow(self.sessions.all[client])
