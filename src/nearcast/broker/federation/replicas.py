"""Nothing is acknowledged before a neighbour has stored it as well (the option ``replicate``), be it to a publisher or to the broker before.

A replica says of an event which brokers it is for, and whose it is: that of who has it at present.  While its owner lives nothing happens to it, until the owner has passed the event
on and some time has gone by.  If the owner dies, whoever has the replica sends the event on its way: to all that it was for, and to
the owner itself, where it is recognised should it return.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from mqtt5 import PubAckReasonCode

from nearcast.broker.federation.custody import Custody
from nearcast.broker.federation.parcels import Done
from nearcast.broker.federation.wire import EVENT, Holding, Released, Replica, Replicated
from nearcast.broker.publishing.ports import FAILURE, Acknowledge
from nearcast.errors import JournalFailed, QuotaExceeded
from nearcast.journal import Journal, Put
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending

log: Final = logging.getLogger(__name__)
TABLE: Final = "replicas"
RETRY: Final = 2 * MICROSECONDS
KEPT: Final = 60 * MICROSECONDS
"""For so long a replica stays although its owner has passed the event on: it may still be on its way to the owner's own clients."""

DEAD: Final = 5 * MICROSECONDS
"""An owner that cannot be reached for so long is not waited for."""

AT_ONCE: Final = 500


class ReplicaRow(msgspec.Struct, frozen=True, array_like=True):
    owner: str
    brokers: tuple[str, ...]
    body: bytes
    since: Instant


@dataclass(slots=True)
class _Wanted:
    """A replica that a neighbour is asked to keep."""

    message: Replica
    to: Address | None
    sent: Instant
    then: list[Callable[[], object]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplicasStatistics:
    kept: int
    wanted: int
    """Events that are not acknowledged yet, because no neighbour has stored them."""

    taken_over: int


@dataclass(slots=True, eq=False)
class Replicas:
    me: str
    on: bool
    journal: Journal
    custody: Custody
    now: Callable[[], Instant]
    send: Callable[[Address, Message], Sending]
    neighbours: Callable[[], Sequence[Address]]
    address: Callable[[str], Address | None]
    """Of a broker that can be reached."""

    open: Callable[[str, bytes, list[Put], Done], None]
    """``open(key, body, puts, done)``: an event whose owner is gone may be for somebody here; ``puts`` are written with it."""

    _kept: dict[str, ReplicaRow] = field(default_factory=dict)
    _wanted: dict[str, _Wanted] = field(default_factory=dict)
    _asked: dict[str, Instant] = field(default_factory=dict)
    """When their owner was asked last whether they are still needed."""

    _missing: dict[str, Instant] = field(default_factory=dict)
    """Owners that cannot be reached, and since when."""

    _turn: int = 0
    _taken_over: int = 0

    def statistics(self) -> ReplicasStatistics:
        return ReplicasStatistics(len(self._kept), len(self._wanted), self._taken_over)

    # The owner

    def check(self) -> None:
        if self.on and not self.neighbours():
            raise QuotaExceeded("no other broker is in reach that could keep a replica (federation.replicate)")

    def ask(self, key: str, body: bytes, brokers: Iterable[str]) -> None:
        """The event is on disk here."""
        wanted = self._wanted.get(key)
        if wanted is not None and wanted.to is None:
            wanted.message = Replica(f"{self.me} {key}", self.me, tuple(brokers), body)
            self._send(wanted)

    def secure(self, key: str, body: bytes, brokers: Iterable[str], then: Callable[[], object]) -> None:
        """An event from another broker is on disk here: ``then`` is called when it has its replica."""
        if not self.on:
            then()
            return
        self._want(key).then.append(then)
        self.ask(key, body, brokers)

    def drop(self, key: str) -> None:
        """The event could not be written, and will be refused."""
        self._wanted.pop(key, None)

    def after(self, key: str, acknowledge: Acknowledge) -> Acknowledge:
        """Acknowledge that event only when it has its replica."""
        if not self.on:
            return acknowledge
        return self._later(self._want(key), acknowledge)

    def _want(self, key: str) -> _Wanted:
        return self._wanted.setdefault(key, _Wanted(Replica(f"{self.me} {key}", self.me, (), b""), None, 0))

    def again(self, key: str, acknowledge: Acknowledge) -> Acknowledge:
        """The same for an event that comes again: its replica may be there already."""
        wanted = self._wanted.get(key)
        return acknowledge if wanted is None else self._later(wanted, acknowledge)

    def _later(self, wanted: _Wanted, acknowledge: Acknowledge) -> Acknowledge:
        key = _event(wanted.message.key)

        def answer(code: PubAckReasonCode, why: str | None) -> None:
            if int(code) >= FAILURE:
                self._wanted.pop(key, None)
                acknowledge(code, why)
            elif key not in self._wanted:
                acknowledge(code, why)
            else:
                wanted.then.append(lambda: acknowledge(code, why))

        return answer

    def _send(self, wanted: _Wanted) -> None:
        neighbours = self.neighbours()
        wanted.sent = self.now()
        if neighbours:
            self._turn += 1
            wanted.to = neighbours[self._turn % len(neighbours)]
            self.send(wanted.to, wanted.message)

    def replicated(self, message: Replicated) -> None:
        wanted = self._wanted.pop(_event(message.key), None)
        for then in () if wanted is None else wanted.then:
            then()

    def asked(self, sender: Address, message: Holding) -> None:
        """Somebody keeps replicas of ours: those of events that are on their way are still needed."""
        done = tuple(key for key in message.keys if self.custody.get(_event(key)) is None)
        self.send(sender, Released(done))

    # Who keeps it

    def hear(self, sender: Address, message: Replica) -> None:
        row = ReplicaRow(message.owner, message.brokers, message.body, self.now())

        def written(failed: JournalFailed | None) -> None:
            if failed is None:
                self._kept[message.key] = row
                self.send(sender, Replicated(message.key))

        self.journal.write(puts=(Put(TABLE, message.key, msgspec.msgpack.encode(row)),), then=written)

    def released(self, message: Released) -> None:
        self._forget([key for key in message.keys if key in self._kept])

    def cancel(self, key: str) -> None:
        """The event was taken back."""
        self._forget([name for name in self._kept if _event(name) == key])

    def _forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            del self._kept[key]
            self._asked.pop(key, None)
        if keys:
            self.journal.write(puts=[Put(TABLE, key, None) for key in keys])

    # From time to time

    def tick(self) -> None:
        now = self.now()
        for wanted in self._wanted.values():
            if wanted.message.body and now >= wanted.sent + RETRY:
                self._send(wanted)
        old: dict[str, list[str]] = {}
        for key, row in list(self._kept.items()):
            if self.address(row.owner) is None:
                if now >= self._missing.setdefault(row.owner, now) + DEAD:
                    self._take_over(key, row)
            else:
                self._missing.pop(row.owner, None)
                if now >= self._asked.get(key, row.since) + KEPT and len(old.setdefault(row.owner, [])) < AT_ONCE:
                    old[row.owner].append(key)
        for owner, keys in old.items():
            address = self.address(owner)
            if address is not None:
                # Those that are still needed are not asked for again at once: the others are to have their turn.
                self._asked.update(dict.fromkeys(keys, now))
                self.send(address, Holding(tuple(keys)))

    def _take_over(self, key: str, row: ReplicaRow) -> None:
        """Its owner is gone: it is our event now."""
        del self._kept[key]
        self._asked.pop(key, None)
        self._taken_over += 1
        log.info("an event of %s, which is gone, is sent on its way from here", row.owner)

        event = _event(key)

        def opened(failed: JournalFailed | None) -> None:
            if failed is not None:  # it is tried again, and what was done is recognised
                self._kept[key] = row

        def written(failed: JournalFailed | None) -> None:
            if failed is None:
                self.open(event, row.body, [Put(TABLE, key, None)], opened)
            else:
                opened(failed)

        self.custody.add(event, EVENT, row.body, sorted({*row.brokers, row.owner} - {self.me}), written)

    def load(self) -> None:
        self._kept = {
            key: msgspec.msgpack.decode(data, type=ReplicaRow) for key, data in self.journal.load(TABLE).items()
        }


def _event(name: str) -> str:
    """The key of the event: two brokers may have replicas of one."""
    return name.rpartition(" ")[2]
