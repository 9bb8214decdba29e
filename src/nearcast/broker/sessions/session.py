"""What is remembered of a client while it is there, and while it is away: subscriptions, and messages that it has not confirmed.

Nothing here touches a socket.  What must be on disk before the next word is said goes through the journal, whose answer comes
back on the loop's own thread (brief: QoS 2 doubles nothing, whenever the power fails):

- an outgoing packet id of quality 2 is durable before the PUBLISH goes out: after a restart another message under the same id
  would be taken for a copy of this one;
- "received" is durable before the PUBREL: after it the receiver forgets the id, and would take the PUBLISH for a new message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from mqtt5 import PubRelPacket

from nearcast.broker.access.grants import Grant
from nearcast.broker.publishing.message import DUPLICATE, Message
from nearcast.broker.sessions.confirmed_offsets import ConfirmedOffsets
from nearcast.broker.tracing.tracer import ReceiverTrace
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put
from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.mqtt.names import ReservedTopic
from nearcast.mqtt.observations import Observation

OUTGOING: Final = "outgoing"
"""Table of packet ids of quality 2 that are on their way to durable sessions."""

HIGHEST_PACKET_ID: Final = 65_535
MOST_HAD: Final = 256
"""Keys of events that a session remembers in case its client goes to another broker."""


class Store(Protocol):
    """Where sessions are kept on disk."""

    journal: Journal

    def row(self, session: Session) -> Put:
        """All that is to be remembered of it, apart from subscriptions and messages."""

    def dirty(self, session: Session) -> None:
        """Its row is to be written again, some time soon."""


PROBLEMS: Final = ReservedTopic.PROBLEMS.topic


class Rights(Protocol):
    """What the client may do, whether it is there or not."""

    @property
    def user(self) -> str | None:
        """Who it is; none: nobody knows."""

    @property
    def metered(self) -> bool:
        """Whether it is counted how many people its messages go to."""

    def allowing(self, event: Event) -> tuple[Grant, ...]:
        """The rules that allow the event."""

    @property
    def unrestricted(self) -> bool:
        """Whether there is nothing that it may not publish."""

    def may_publish_plain(self, topic: str) -> bool:
        """Whether it may publish there without a place."""

    @property
    def may_observe(self) -> bool:
        """Whether it may be told of other clients at all."""

    def may_receive(self, topic: str) -> bool:
        """Whether it may get events of that topic without a subscription, because they are addressed to it."""

    def check_event(self, event: Event) -> None:
        """``Denied`` if it may not publish the event."""


class Wire(Protocol):
    """What a session needs of the connection that it has at present."""

    version: int
    congested: bool

    def write(self, data: bytes) -> None: ...
    def write_all(self, packets: list[bytes]) -> None: ...
    def send(self, packet: PubRelPacket) -> None: ...
    def has_room(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Held:
    """A subscription, as MQTT sees it."""

    filter: str
    name: str
    subscription: Subscription
    qos: int
    no_local: bool
    retain_as_published: bool
    identifiers: tuple[int, ...]
    near: bool
    """It has a place, a filter or a time: its deliveries say more."""

    group: str | None = None
    """Of a shared subscription."""

    properties: tuple[tuple[str, str], ...] = ()
    """As it was asked for, beside the filter."""

    since: Instant = 0
    """When it was accepted."""

    observation: Observation | None = None
    """It is about clients, not about events."""

    @property
    def size(self) -> int:
        """Characters of what it asks for beside the filter: its area, above all."""
        return sum(len(value) for _, value in self.properties)


@dataclass(slots=True, eq=False)
class Outgoing:
    """A message of quality 1 or 2 on its way to one client."""

    message: Message
    qos: int
    retain: bool
    near: bool
    identifiers: tuple[int, ...]
    released: bool = False
    """It was received (quality 2): only the release goes on."""

    confirmed: Callable[[], None] | None = None
    """Told when it is over: confirmed, expired or given up."""

    shared: Held | None = None
    """The shared subscription by which it came: another member of the group may take it instead."""

    trace: ReceiverTrace | None = None

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return len(self.message.payload) + len(self.message.topic)


class CatchingUp(Protocol):
    """Subscriptions of a session that are still being given what is stored."""

    def hold_back(
        self, held: tuple[Held, ...], message: Message, qos: int, identifiers: tuple[int, ...], near: bool, retain: bool
    ) -> bool:
        """Keep a live message until then, if nobody else of the session asked for it."""

    def go_on(self) -> None:
        """There is room again."""


class Had(dict[str, bool]):
    """The keys of the newest events for a client, bounded by number; and whether it has confirmed them."""

    def add(self, key: str, *, confirmed: bool = False) -> bool:
        """False if it was there already."""
        if key in self:
            return False
        self[key] = confirmed
        if len(self) > MOST_HAD:
            del self[next(iter(self))]
        return True

    def confirm(self, key: str) -> None:
        if key in self:
            self[key] = True

    def confirmed(self) -> tuple[str, ...]:
        return tuple(key for key, done in self.items() if done)


class Queue(deque[Outgoing]):
    """Messages that wait for a client; knows how much memory they hold."""

    bytes = 0

    def append(self, out: Outgoing) -> None:
        self.bytes += out.size
        super().append(out)

    def popleft(self) -> Outgoing:
        out = super().popleft()
        self.bytes -= out.size
        return out


@dataclass(frozen=True, slots=True)
class SessionLimits:
    queued: int = 10_000
    in_flight: int = 1_000
    queued_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    subscriptions: int
    queued: int
    in_flight: int
    dropped: int


@dataclass(slots=True, eq=False)
class Session:
    """One client."""

    client: str
    identity: str
    """Under which it is recorded."""

    store: Store
    limits: SessionLimits
    now: Callable[[], Instant]

    version: int = 5
    expiry: int = 0
    """Seconds for which it outlives its connection."""

    speaks_schemes: bool = False
    rights: Rights | None = None
    """Of whom it is; none: everything is allowed."""

    connection: Wire | None = None
    held: dict[str, Held] = field(default_factory=dict)
    held_size: int = 0
    """Of all of them."""

    queue: Queue = field(default_factory=Queue)
    in_flight: dict[int, Outgoing] = field(default_factory=dict)
    incoming: set[int] = field(default_factory=set)
    """Packet ids of quality 2 that it sent and has not released."""

    unwritten: set[int] = field(default_factory=set)
    """Of these, the ones that are not on disk yet."""

    pending: dict[int, None] = field(default_factory=dict)
    """Offsets of what it has not confirmed, if it is durable."""

    done: ConfirmedOffsets = field(default_factory=ConfirmedOffsets)
    """Offsets that it has confirmed, above the first pending one."""

    announced: dict[str, Area] = field(default_factory=dict)
    """STEAM: the reach of what it publishes under a topic, unless it says otherwise."""

    ended: Instant | None = None
    """Since when it has no connection."""

    catching_up: CatchingUp | None = None
    forward: Callable[[Outgoing], None] | None = None
    """The client is with another broker now (``federation``): what comes for it follows it there."""

    had: Had | None = None
    """In a federation: the newest events that the client got, which may come to it from another broker as well."""

    window: int = HIGHEST_PACKET_ID
    largest: int | None = None
    dropped: int = 0
    alive: bool = True
    _again: deque[int] = field(default_factory=deque)
    """Packet ids of what was on its way when the connection was lost, and has not gone out on this one."""

    _last_id: int = 0

    @property
    def durable(self) -> bool:
        return self.expiry > 0

    def statistics(self) -> SessionStatistics:
        return SessionStatistics(len(self.held), len(self.queue), len(self.in_flight), self.dropped)

    def may_receive(self, topic: str) -> bool:
        return self.rights is None or self.rights.may_receive(topic)

    def complain(self, problem: str) -> None:
        """To who subscribes to problems, and is there."""
        held = self.held.get(PROBLEMS)
        if held is not None and self.connection is not None:
            self.deliver(Message(PROBLEMS, problem.encode()), 0, held.identifiers, near=False)

    # Messages to the client

    def deliver(
        self,
        message: Message,
        qos: int,
        identifiers: tuple[int, ...],
        *,
        near: bool,
        retain: bool = False,
        confirmed: Callable[[], None] | None = None,
        shared: Held | None = None,
    ) -> None:
        """One copy, as soon as the client can take it; ``confirmed`` is told of the end of one of quality 1 or 2."""
        connection = self.connection
        if self.forward is not None:
            if qos and message.offset is not None:
                self.pending[message.offset] = None
            self.forward(Outgoing(message, qos, retain, near, identifiers, False, confirmed, shared))
        elif qos:
            if self.durable and message.offset is not None:
                self.pending[message.offset] = None
            out = Outgoing(message, qos, retain, near, identifiers, False, confirmed, shared)
            if message.trace is not None:
                out.trace = message.trace.receiver(qos)
            self._take(out)
        elif connection is None or (connection.congested and not connection.has_room()):
            self.dropped += 1
        elif message.expires is not None and message.expires <= self.now():
            pass  # it was held back for too long
        else:
            data, _ = message.parts(
                connection.version, near=near, qos=0, retain=retain, identifiers=identifiers, now=self.now()
            )
            if self.largest is not None and len(data) > self.largest:
                self.dropped += 1  # MQTT 5, 3.1.2.11.4: as if it had been delivered
            else:
                connection.write(data)

    def deliver_made(self, packets: list[bytes]) -> None:
        """Messages of quality 0 whose packets are made already, for this connection's version, with one write."""
        connection = self.connection
        if connection is None or self.forward is not None or (connection.congested and not connection.has_room()):
            self.dropped += len(packets)
            return
        if self.largest is not None:
            fitting = [packet for packet in packets if len(packet) <= self.largest]
            self.dropped += len(packets) - len(fitting)
            packets = fitting
        connection.write_all(packets)

    def forwarded(self, out: Outgoing) -> None:
        """It is kept for the broker to which the client went."""
        self._finish(out)

    def undelivered(self) -> list[Outgoing]:
        """Hand out all that the client has not confirmed, in the order in which it was to come."""
        under_way = [out for out in self.in_flight.values() if not out.released]
        for out in [out for out in self.in_flight.values() if out.released]:
            self._finish(out)
        waiting = [*under_way, *self.queue]
        self.in_flight.clear()
        self._again.clear()
        self.queue = Queue()
        return waiting

    def owe(self, offset: int) -> None:
        """What stands there in the journal is for this session.

        Said when it is written, not when it is delivered: a row of the session that is written in between would have it that
        nothing before it is unconfirmed, and a restart would not look for it.
        """
        self.pending[offset] = None

    def _take(self, out: Outgoing) -> None:
        connection, limits = self.connection, self.limits
        if connection is None or self.queue or connection.congested or len(self.in_flight) >= self._allowed:
            if connection is None and not self.durable:
                self._drop(out)
                return
            queue = self.queue
            queue.append(out)
            if out.trace is not None:
                out.trace.queued()
            while len(queue) > limits.queued or queue.bytes > limits.queued_bytes:
                self._drop(queue.popleft())
        else:
            self._send(connection, out)

    @property
    def _allowed(self) -> int:
        window, most = self.window, self.limits.in_flight
        return window if window < most else most

    def _drop(self, out: Outgoing) -> None:
        self.dropped += 1
        self._finish(out)

    def _send(self, connection: Wire, out: Outgoing) -> None:
        message = out.message
        if message.expires is not None and message.expires <= self.now():
            self._finish(out)
            return
        head, tail = self._parts(connection, out)
        if self.largest is not None and len(head) + 2 + len(tail) > self.largest:
            self._drop(out)
            return
        packet_id = self._free_id()
        self.in_flight[packet_id] = out
        if out.trace is not None:
            out.trace.sent()
        data = head + packet_id.to_bytes(2) + tail
        if out.qos == 2 and self.durable:
            self._remember(packet_id, out, lambda: connection.write(data), connection)
        else:
            connection.write(data)

    def _parts(self, connection: Wire, out: Outgoing) -> tuple[bytes, bytes]:
        return out.message.parts(
            connection.version,
            near=out.near,
            qos=out.qos,
            retain=out.retain,
            identifiers=out.identifiers,
            now=self.now(),
        )

    def _free_id(self) -> int:
        packet_id = self._last_id
        while True:
            packet_id = packet_id % HIGHEST_PACKET_ID + 1
            if packet_id not in self.in_flight:
                self._last_id = packet_id
                return packet_id

    def _remember(self, packet_id: int, out: Outgoing, go_on: Callable[[], None], connection: Wire) -> None:
        """Write the state of an outgoing packet id, then go on, unless the connection is another by then."""

        def written(failed: JournalFailed | None) -> None:
            # What could not be written stays in flight: it goes out when the client comes back.
            if failed is None and self.connection is connection and self.in_flight.get(packet_id) is out:
                go_on()

        self.store.journal.write(puts=(Put(OUTGOING, self.key(packet_id), outgoing_state(out)),), then=written)

    def key(self, packet_id: int) -> str:
        return f"{self.client}\0{packet_id}"

    def acknowledged(self, packet_id: int) -> bool:
        """PUBACK, or the end of quality 2; false if there was no such message."""
        out = self.in_flight.pop(packet_id, None)
        if out is None:
            return False
        if self.had is not None and out.message.key is not None:
            self.had.confirm(out.message.key)
        if out.qos == 2 and self.durable:
            self._finish(out)
            # Together: were the id forgotten and the message not, it would go out again.
            self.store.journal.write(puts=(Put(OUTGOING, self.key(packet_id), None), self.store.row(self)))
        else:
            self._finish(out)
        self.go_on()
        return True

    def received(self, packet_id: int) -> bool:
        """PUBREC; false if there was no such message."""
        out = self.in_flight.get(packet_id)
        if out is None or out.qos != 2:
            return False
        connection = self.connection
        if connection is None:
            return True
        out.released = True
        self._release(connection, packet_id, out)
        return True

    def _release(self, connection: Wire, packet_id: int, out: Outgoing) -> None:
        release = PubRelPacket(packet_id)
        if self.durable:
            self._remember(packet_id, out, lambda: connection.send(release), connection)
        else:
            connection.send(release)

    def withdraw(self, unwanted: Callable[[Message], bool]) -> None:
        """What was unpublished does not go out any more; what is on its way already stands."""
        gone = [out for out in self.queue if unwanted(out.message)]
        if gone:
            kept = Queue()
            for out in self.queue:
                if not unwanted(out.message):
                    kept.append(out)
            self.queue = kept
            for out in gone:
                self._finish(out)

    def _finish(self, out: Outgoing) -> None:
        if out.trace is not None:
            out.trace.over()
            out.trace = None
        if out.confirmed is not None:
            out.confirmed()
        if out.message.offset is not None:
            self.give_up(out.message.offset)

    def give_up(self, offset: int) -> None:
        """What stands at that offset of the journal is not owed any more."""
        if offset not in self.pending:
            return
        was_first = offset == next(iter(self.pending))
        del self.pending[offset]
        if was_first:
            self.done.forget(next(iter(self.pending), None))
        else:
            self.done.add(offset, self.pending)
        self.store.dirty(self)

    def go_on(self) -> None:
        """There is room again."""
        connection = self.connection
        if connection is not None:
            again, allowed = self._again, self._allowed
            while again and not connection.congested and len(self.in_flight) - len(again) < allowed:
                self._send_again(connection, again.popleft())
            while self.queue and not connection.congested and len(self.in_flight) < allowed:
                self._send(connection, self.queue.popleft())
        if self.catching_up is not None:
            self.catching_up.go_on()

    def resume(self) -> None:
        """On a new connection: what was on its way goes out again, in the order of before; then the rest (MQTT 5, 4.4)."""
        connection = self.connection
        if connection is None:
            return
        # Not more at once than the client takes this time; releases do not count (MQTT 5, 4.9).
        self._again = deque(packet_id for packet_id, out in self.in_flight.items() if not out.released)
        for packet_id, out in self.in_flight.items():
            if out.released:
                self._release(connection, packet_id, out)
        self.go_on()

    def _send_again(self, connection: Wire, packet_id: int) -> None:
        out = self.in_flight.get(packet_id)
        if out is None or out.released:
            return
        head, tail = self._parts(connection, out)
        data = bytes([head[0] | DUPLICATE]) + head[1:] + packet_id.to_bytes(2) + tail
        if out.qos == 2 and self.durable:
            self._remember(packet_id, out, lambda: connection.write(data), connection)
        else:
            connection.write(data)


def outgoing_state(out: Outgoing) -> bytes:
    """As it is written: where the message is, if it is in the journal, and how far it has come."""
    place = "-" if out.message.offset is None else out.message.offset
    return f"{place} {'released' if out.released else 'sent'}".encode()
