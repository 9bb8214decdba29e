"""What comes from the broker, sorted by subscription: each event once, only what was asked for, and never more than fits.

An event is acknowledged when the application has taken it from every subscription that it belongs to.  So whoever is slow is
sent no more than the receive maximum; events of quality 0, which nobody can hold back, are dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from mqtt5 import PublishPacket

from nearcast.client.protocol import Delivered, Receipt
from nearcast.client.tracing import received
from nearcast.client.track import Own
from nearcast.errors import InvalidInput, NearcastError
from nearcast.model.acceptance import accepted
from nearcast.model.delivery import in_area
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, Instant
from nearcast.mqtt import names
from nearcast.mqtt.publication import delivered_event
from nearcast.mqtt.requests import SubscriptionRequest

REMEMBERED: Final = 8192
"""So many events at least, and twice as many at most, each subscription recognises when they come again."""

UNCLAIMED: Final = 100
"""Messages kept for subscriptions that a resumed session has and the application has not asked for again yet."""

ADDRESSED: Final = 0
"""Stands for the identifier of what comes without a subscription, because it is addressed to a context of this client."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What one subscription has had."""

    delivered: int
    """Taken by the application."""

    waiting: int
    duplicates: int
    unwanted: int
    """Refused by the last check: the broker may send more than is wanted while it knows less."""

    dropped: int
    """Of quality 0, because the application was too slow."""


@dataclass(frozen=True, slots=True)
class InboxStatistics:
    received: int
    unreadable: int
    unclaimed: int
    """Dropped, because no subscription of this client took them."""

    waiting: int


@dataclass(slots=True, eq=False)
class Claim:
    """An acknowledgement that is due once all who got the event have taken it."""

    receipt: Receipt | None
    acknowledge: Callable[[Receipt], None]
    holders: int = 0
    taken: Callable[[], None] | None = None
    """Told when all of them have."""

    def release(self) -> None:
        self.holders -= 1
        if self.holders <= 0 and self.taken is not None:
            taken, self.taken = self.taken, None
            taken()
        if self.holders <= 0 and self.receipt is not None:
            receipt, self.receipt = self.receipt, None
            self.acknowledge(receipt)


class Seen:
    """The ids of the newest events, bounded by number."""

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._older: set[str] = set()

    def add(self, event: str) -> bool:
        """False if it was there already."""
        if event in self._recent or event in self._older:
            return False
        if len(self._recent) >= REMEMBERED:
            self._older, self._recent = self._recent, set()
        self._recent.add(event)
        return True


@dataclass(slots=True, eq=False)
class Stream:
    """The events of one subscription that the application has not taken yet."""

    identifier: int
    request: SubscriptionRequest | None
    """None: what is addressed to this client, without a subscription."""

    limit: int
    """Events of quality 0 that may wait."""

    qos: int = 1
    check: Subscription | None = None
    retained: bool = True
    begun: Instant = 0
    ends: Instant | None = None
    """When its time frame does."""

    by_scheme: bool = False
    """A filter scheme decides what comes of it, which knows the client's position not exactly: the last check is needed."""

    stored: tuple[int, int] | None = None
    """So many of so many stored events have come, as the broker said last (``nc-past``)."""

    active: bool = False
    """The broker has it."""

    newest: Instant | None = None
    """When the newest event that came was published."""

    taken: int = 0
    _queue: deque[tuple[Event, Claim]] = field(default_factory=deque)
    _seen: Seen = field(default_factory=Seen)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)
    _duplicates: int = 0
    _unwanted: int = 0
    _dropped: int = 0
    _ended: bool = False
    _error: NearcastError | None = None

    def statistics(self) -> StreamStatistics:
        return StreamStatistics(self.taken, len(self._queue), self._duplicates, self._unwanted, self._dropped)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def wants(self, event: Event, at: Instant, own: Own) -> bool:
        """The last check (model.acceptance): by the position at that time, which this client knows best.

        What the broker matched itself, exactly and by what it knew then, is not judged again by what is known now.
        """
        around = self.check if self.by_scheme else None
        if around is not None and not accepted(around, event, ""):
            return False
        # Of what was stored the broker has judged the place, by where this client was when it subscribed.
        if event.when is not None or at < self.begun:
            return True
        if around is not None and own.track.knows(at):
            if not in_area(around.area, event.place, own.track.position(at)):
                return False
        elif not own.vague:
            return True
        return own.concerned(event, at)

    def offer(self, event: Event, named: bool, claim: Claim, at: Instant, own: Own) -> None:
        """Take the event in, unless it came before or is not wanted at that time; ``named`` if its id is the broker's."""
        if self._ended:
            return
        if not self.wants(event, at, own):
            self._unwanted += 1
            return
        if claim.receipt is None and len(self._queue) >= self.limit:
            self._dropped += 1
            return
        if named and not self._seen.add(event.id):
            self._duplicates += 1
            return
        self.newest = event.published if self.newest is None else max(self.newest, event.published)
        claim.holders += 1
        self._queue.append((event, claim))
        self._arrival.set()

    @property
    def is_relative(self) -> bool:
        """Its area moves with this client."""
        return self.check is not None and self.check.area is not None and self.check.area.is_relative

    async def arrival(self) -> None:
        """Wait until there is something to take, or nothing to wait for."""
        while not self._queue and not self._ended:
            self._arrival.clear()
            await self._arrival.wait()

    async def take(self) -> Event | None:
        """The next event; ``None`` at the end.  Raises what ended the stream, if nobody wanted that."""
        await self.arrival()
        if not self._queue:
            if self._error is not None:
                raise self._error
            return None
        event, claim = self._queue.popleft()
        self.taken += 1
        claim.release()
        return event

    def end(self, error: NearcastError | None = None, *, drop: bool = False) -> None:
        """Nothing more comes; ``drop`` also what has come."""
        if self._ended:
            return
        self._ended, self._error = True, error
        if drop:
            queue, self._queue = self._queue, deque()
            for _, claim in queue:
                claim.release()
        self._arrival.set()


def checked(request: SubscriptionRequest, now: Instant, qos: int, *, no_local: bool) -> Subscription:
    """The subscription that a request asks for; raises what is wrong with it.

    Without its time frame: the broker judges that, by its own clock.
    """
    asked = request.subscription(now, qos, no_local=no_local)
    return Subscription(asked.topic, asked.where, asked.area, EVER, asked.id, qos, no_local)


@dataclass(slots=True, eq=False)
class Inbox:
    """All subscriptions of one client."""

    own: Own
    now: Callable[[], Instant]
    acknowledge: Callable[[Receipt], None]
    streams: dict[int, Stream] = field(default_factory=dict)
    _unclaimed: deque[tuple[PublishPacket, Claim]] = field(default_factory=deque)
    _received: int = 0
    _unreadable: int = 0
    _lost: int = 0

    def statistics(self) -> InboxStatistics:
        waiting = sum(stream.waiting for stream in self.streams.values())
        return InboxStatistics(self._received, self._unreadable, self._lost, waiting)

    def add(self, stream: Stream) -> None:
        """Begin a subscription; what came for it before it was asked for is in it."""
        self.streams[stream.identifier] = stream
        kept, self._unclaimed = self._unclaimed, deque()
        for packet, claim in kept:
            self._sort(packet, claim)

    def remove(self, stream: Stream) -> None:
        if self.streams.get(stream.identifier) is stream:
            del self.streams[stream.identifier]
        stream.end(drop=True)

    def deliver(self, delivery: Delivered) -> None:
        self._received += 1
        self._sort(delivery.packet, Claim(delivery.receipt, self.acknowledge))

    def _sort(self, packet: PublishPacket, claim: Claim) -> None:
        streams = self._streams_of(packet.subscription_ids)
        if not streams:
            self._keep(packet, claim)
            return
        try:
            event, named = self._event(packet)
        except InvalidInput:  # of a broker that knows nothing of the contract, or of a newer one
            self._unreadable += 1
        else:
            event, claim.taken = received(event)
            stored = _stored(packet)
            # What is retained holds still (broker.subscribing): it is judged like an event of this moment.
            at = self.now() if packet.retain else event.published
            for stream in streams:
                stream.stored = stored or stream.stored
                stream.offer(event, named, claim, at, self.own)
        if not claim.holders:
            claim.release()

    def _streams_of(self, identifiers: Iterable[int]) -> list[Stream]:
        return [self.streams[number] for number in identifiers or (ADDRESSED,) if number in self.streams]

    def _event(self, packet: PublishPacket) -> tuple[Event, bool]:
        properties = [pair for pair in packet.user_properties if pair[0] != names.PAST]
        named = any(name == names.ID for name, _ in properties)
        event = delivered_event(
            packet.topic,
            packet.payload,
            properties,
            packet.message_expiry_interval,
            id=f"unnamed-{self._received}",
            received=self.now(),
        )
        return event, named

    def _keep(self, packet: PublishPacket, claim: Claim) -> None:
        self._unclaimed.append((packet, claim))
        if len(self._unclaimed) > UNCLAIMED:
            _, oldest = self._unclaimed.popleft()
            self._lost += 1
            oldest.release()


def _stored(packet: PublishPacket) -> tuple[int, int] | None:
    """``nc-past: 20 of 64`` on the last event of a batch."""
    text = next((value for name, value in packet.user_properties if name == names.PAST), "")
    count, _, total = text.partition(" of ")
    return (int(count), int(total)) if count.isdecimal() and total.isdecimal() else None
