"""Parcels are kept until whoever is next on their way has stored them.

A parcel is for brokers by name, wherever they are and whether they can be reached or not.  It is on disk here before anything else
happens; then it goes to the neighbours behind which its brokers lie, a bounded number at a time; and as a neighbour says that it has
stored it, it is no longer our business.  After the tree has changed it goes another way.  So it may come twice, and is recognised
then; but it is never nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from nearcast.broker.federation.wire import Parcel, Stored
from nearcast.errors import JournalFailed, QuotaExceeded
from nearcast.journal import Journal, Put, Then
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending

PARCELS: Final = "parcels"
DESTINATIONS: Final = "parcel destinations"

LARGEST: Final = 60 * 1024 * 1024
"""Bytes of a parcel: a link takes not much more at once, and what it does not take would hold up all that is behind it."""

WINDOW: Final = 256
"""Parcels on their way to one neighbour that it has not confirmed."""

WINDOW_BYTES: Final = 4 * 1024 * 1024
RETRY: Final = 5 * MICROSECONDS
"""After so long without confirmation a parcel is sent again: the connection may have broken and come back unnoticed."""


class Directions(Protocol):
    """Where brokers lie."""

    def hop(self, broker: str) -> Address | None:
        """The neighbour behind which it lies; none: it cannot be reached."""


class ParcelRow(msgspec.Struct, frozen=True, array_like=True):
    kind: str
    body: bytes
    since: Instant
    number: int


@dataclass(slots=True, eq=False)
class Kept:
    """A parcel that is kept here."""

    key: str
    kind: str
    body: bytes
    since: Instant
    number: int
    """In the order in which they came."""

    waiting: set[str] = field(default_factory=set)
    """Brokers that it is for, and whose neighbour has not confirmed it."""

    unwritten: Counter[str] = field(default_factory=Counter)
    """Of these, the ones that are not on disk yet, and how many writes would bring them there."""

    durable: bool = False
    """Whether the parcel itself is."""

    ever: set[str] = field(default_factory=set)
    """All that it was for, since the start."""


@dataclass(slots=True)
class _UnderWay:
    number: int
    """Of the sending."""

    brokers: set[str]
    sent: Instant


@dataclass(frozen=True, slots=True)
class CustodyStatistics:
    parcels: int
    bytes: int
    stranded: Mapping[str, int]
    """Parcels by broker that cannot be reached at present."""

    taken: int
    sent: int
    confirmed: int
    repeated: int
    expired: int
    """Parcels that were given up, because their broker did not come back in time."""


@dataclass(slots=True, eq=False)
class Custody:
    journal: Journal
    now: Callable[[], Instant]
    send: Callable[[Address, Message], Sending]
    directions: Directions
    longest: int
    """Microseconds for which parcels are kept."""

    most_bytes: int
    _kept: dict[str, Kept] = field(default_factory=dict)
    _queues: dict[str, dict[str, None]] = field(default_factory=dict)
    """By broker: keys of parcels that are to be sent, in their order."""

    _disordered: set[str] = field(default_factory=set)
    _under_way: dict[Address, dict[str, _UnderWay]] = field(default_factory=dict)
    _under_way_bytes: dict[Address, int] = field(default_factory=dict)
    _bytes: int = 0
    _number: int = 0
    _sendings: int = 0
    _taken: int = 0
    _sent: int = 0
    _confirmed: int = 0
    _repeated: int = 0
    _expired: int = 0

    def statistics(self) -> CustodyStatistics:
        stranded = {
            broker: len(queue) for broker, queue in sorted(self._queues.items()) if queue and not self._hop(broker)
        }
        return CustodyStatistics(
            len(self._kept),
            self._bytes,
            stranded,
            self._taken,
            self._sent,
            self._confirmed,
            self._repeated,
            self._expired,
        )

    def _hop(self, broker: str) -> Address | None:
        return self.directions.hop(broker)

    def get(self, key: str) -> Kept | None:
        return self._kept.get(key)

    def stranded(self) -> dict[str, None]:
        """Keys of parcels of which a broker cannot be reached, for each in the order in which they came."""
        missing = [broker for broker in sorted(self._queues) if self._hop(broker) is None]
        return {key: None for broker in missing for key in self._in_order(broker)}

    # What is taken in

    def check_room(self, size: int) -> None:
        if size > LARGEST:
            raise QuotaExceeded(f"an event of {size} bytes is too large for other brokers; {LARGEST} is the most")
        if self._bytes + size > self.most_bytes:
            raise QuotaExceeded(
                f"{self._bytes} bytes wait for other brokers of this federation, which is all that may wait; "
                "bring them back, or raise federation.custody_bytes"
            )

    def begin(
        self, key: str, kind: str, body: bytes, brokers: Iterable[str], since: Instant | None = None
    ) -> list[Put]:
        """Keep it for these; what is to be written, after which comes ``end``.  ``since``: if it was kept elsewhere before."""
        puts, kept = [], self._kept.get(key)
        if kept is None:
            self._number += 1
            now = self.now()
            kept = self._keep(Kept(key, kind, body, now if since is None else min(since, now), self._number))
            self._taken += 1
        # Whatever is not on disk by another write is part of this one: each may fail for itself.
        if not kept.durable:
            puts.append(Put(PARCELS, key, msgspec.msgpack.encode(ParcelRow(kind, body, kept.since, kept.number))))
        for broker in brokers:
            if broker not in kept.waiting or broker in kept.unwritten:
                kept.waiting.add(broker)
                kept.unwritten[broker] += 1
                kept.ever.add(broker)
                puts.append(Put(DESTINATIONS, f"{key}\0{broker}", b""))
        return puts

    def end(self, key: str, brokers: Iterable[str], *, failed: bool) -> None:
        """What ``begin`` said for these is on disk, or it is not and never will be."""
        kept = self._kept.get(key)
        if kept is None:
            return
        decided = [broker for broker in brokers if broker in kept.unwritten]
        if failed:
            kept.unwritten.subtract(decided)
            self._drop(kept, [broker for broker in decided if not kept.unwritten[broker]])
            return
        kept.durable = True
        for broker in decided:
            del kept.unwritten[broker]
            self._queues.setdefault(broker, {})[key] = None
        for hop in sorted({hop for broker in decided if (hop := self._hop(broker)) is not None}):
            self._pump(hop)

    def add(self, key: str, kind: str, body: bytes, brokers: Iterable[str], then: Then | None = None) -> None:
        """Keep it for these, written by itself."""
        those = tuple(brokers)

        def written(failed: JournalFailed | None) -> None:
            self.end(key, those, failed=failed is not None)
            if then is not None:
                then(failed)

        self.journal.write(puts=self.begin(key, kind, body, those), then=written)

    def _keep(self, kept: Kept) -> Kept:
        self._kept[kept.key] = kept
        self._bytes += len(kept.body)
        return kept

    def holds(self, key: str, brokers: Iterable[str]) -> bool:
        """Whether it is kept here already, for all of these."""
        kept = self._kept.get(key)
        return kept is not None and all(each in kept.waiting and each not in kept.unwritten for each in brokers)

    def release(self, kept: Kept, broker: str) -> None:
        """It is not for that one any more."""
        self._drop(kept, (broker,))

    # Sending

    def _pump(self, hop: Address) -> None:
        under_way = self._under_way.setdefault(hop, {})
        for broker in sorted(self._queues):
            if self._hop(broker) != hop:
                continue
            queue = self._in_order(broker)
            while queue:
                if len(under_way) >= WINDOW or self._under_way_bytes.get(hop, 0) >= WINDOW_BYTES:
                    return
                key = next(iter(queue))
                if not self._send(hop, self._kept[key], under_way):
                    return

    def _send(self, hop: Address, kept: Kept, under_way: dict[str, _UnderWay]) -> bool:
        """To all brokers behind that neighbour at once."""
        key, before = kept.key, under_way.get(kept.key)
        brokers = {
            broker for broker in kept.waiting if key in self._queues.get(broker, ()) and self._hop(broker) == hop
        }
        if before is not None:
            brokers |= before.brokers  # a sending that takes the place of the one before
        self._sendings += 1
        parcel = Parcel(key, tuple(sorted(brokers)), kept.kind, kept.body, self._sendings, kept.since)
        if self.send(hop, parcel) is Sending.DROPPED:
            return False
        self._sent += 1
        for broker in brokers:
            self._queues.get(broker, {}).pop(key, None)
        under_way[key] = _UnderWay(self._sendings, brokers, self.now())
        if before is None:
            self._under_way_bytes[hop] = self._under_way_bytes.get(hop, 0) + len(kept.body)
        return True

    def stored(self, neighbour: Address, message: Stored) -> None:
        """The neighbour has it on disk."""
        under_way = self._under_way.get(neighbour, {}).get(message.key)
        if under_way is None or under_way.number != message.number:
            return  # of a sending that does not count any more
        self._landed(neighbour, message.key)
        kept = self._kept.get(message.key)
        if kept is not None:
            self._confirmed += 1
            self._drop(kept, under_way.brokers & kept.waiting)
        self._pump(neighbour)

    def retake(self, key: str, brokers: Iterable[str]) -> None:
        """Whoever it is on its way to, for these: a confirmation does not count any more."""
        those = set(brokers)
        for neighbour, parcels in list(self._under_way.items()):
            under_way = parcels.get(key)
            if under_way is not None and under_way.brokers & those:
                self._again(neighbour, key, set(under_way.brokers))

    def _landed(self, neighbour: Address, key: str) -> None:
        if self._under_way[neighbour].pop(key, None) is not None:
            kept = self._kept.get(key)
            size = 0 if kept is None else len(kept.body)
            self._under_way_bytes[neighbour] = max(0, self._under_way_bytes.get(neighbour, 0) - size)
        if not self._under_way[neighbour]:
            self._under_way_bytes[neighbour] = 0

    def cancel(self, key: str) -> None:
        """It is for nobody any more."""
        kept = self._kept.get(key)
        if kept is not None:
            self._drop(kept, set(kept.waiting))

    def give_up(self, broker: str) -> int:
        """It will not come back: how many parcels were for it."""
        lost = [kept for kept in self._kept.values() if broker in kept.waiting]
        self._expired += len(lost)
        self.journal.write(puts=[put for kept in lost for put in self._dropped(kept, (broker,))])
        self._queues.pop(broker, None)
        return len(lost)

    def _drop(self, kept: Kept, brokers: Iterable[str]) -> None:
        """These have it, or will not get it."""
        puts = self._dropped(kept, brokers)
        if puts:
            self.journal.write(puts=puts)

    def _dropped(self, kept: Kept, brokers: Iterable[str]) -> list[Put]:
        puts = []
        for broker in brokers:
            kept.waiting.discard(broker)
            kept.unwritten.pop(broker, None)
            self._queues.get(broker, {}).pop(kept.key, None)
            puts.append(Put(DESTINATIONS, f"{kept.key}\0{broker}", None))
        if not kept.waiting and self._kept.pop(kept.key, None) is not None:
            self._bytes -= len(kept.body)
            puts.append(Put(PARCELS, kept.key, None))
        return puts

    # What changes

    def tree_changed(self) -> None:
        """What is under way to somebody who is no way any more goes another one."""
        for neighbour in list(self._under_way):
            for key, under_way in list(self._under_way[neighbour].items()):
                if any(self._hop(broker) != neighbour for broker in under_way.brokers):
                    self._again(neighbour, key, set(under_way.brokers))
        self.pump()

    def joined(self, neighbour: Address) -> None:
        """It may know nothing of what was on its way to it."""
        for key, under_way in list(self._under_way.get(neighbour, {}).items()):
            self._again(neighbour, key, set(under_way.brokers))
        self._pump(neighbour)

    def tick(self) -> None:
        late = self.now() - RETRY
        for neighbour, parcels in list(self._under_way.items()):
            for key, under_way in list(parcels.items()):
                if under_way.sent <= late:
                    self._again(neighbour, key, set(under_way.brokers))
        self._expire()
        self.pump()

    def _again(self, neighbour: Address, key: str, brokers: set[str]) -> None:
        """That sending does not count any more: it goes once more, perhaps another way."""
        self._landed(neighbour, key)
        kept = self._kept.get(key)
        if kept is None:
            return
        for broker in sorted(brokers & kept.waiting):
            self._repeated += 1
            self._queues.setdefault(broker, {})[key] = None
            self._disordered.add(broker)

    def _in_order(self, broker: str) -> dict[str, None]:
        """What goes again goes before what came later."""
        if broker in self._disordered:
            self._disordered.discard(broker)
            kept = self._kept
            self._queues[broker] = dict.fromkeys(sorted(self._queues[broker], key=lambda key: kept[key].number))
        return self._queues[broker]

    def pump(self) -> None:
        hops = {hop for broker, queue in self._queues.items() if queue and (hop := self._hop(broker)) is not None}
        for hop in sorted(hops):
            self._pump(hop)

    def _expire(self) -> None:
        before = self.now() - self.longest
        for kept in [kept for kept in self._kept.values() if kept.since < before]:
            self._expired += 1
            self._drop(kept, set(kept.waiting))

    def load(self) -> Sequence[Kept]:
        """After a restart: all that was kept."""
        rows = self.journal.load(PARCELS)
        for key, data in rows.items():
            row = msgspec.msgpack.decode(data, type=ParcelRow)
            self._keep(Kept(key, row.kind, row.body, row.since, row.number, durable=True))
            self._number = max(self._number, row.number)
        for name in self.journal.load(DESTINATIONS):
            key, _, broker = name.rpartition("\0")
            kept = self._kept.get(key)
            if kept is not None:
                kept.waiting.add(broker)
                kept.ever.add(broker)
            else:  # everybody had it, and not all of that could be written
                self.journal.write(puts=(Put(DESTINATIONS, name, None),))
        for kept in sorted(self._kept.values(), key=lambda each: each.number):
            for broker in kept.waiting:
                self._queues.setdefault(broker, {})[kept.key] = None
        for kept in [kept for kept in self._kept.values() if not kept.waiting]:
            self._drop(kept, ())
        return list(self._kept.values())
