"""Visits that may become stays: when the clock decides, and how they get through a restart."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from nearcast.broker.observation.watches import Key, Watch, Watches
from nearcast.journal import Journal, Put
from nearcast.model.presence import Stay
from nearcast.model.time import MICROSECONDS, Instant

STAYS: Final = "stays"
FEW: Final = 1_024
"""So many may be expected before it is looked for those who have left meanwhile."""


class Timer(Protocol):
    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Timer]
"""Has a function called after so many seconds: ``loop.call_later``."""


class StayRow(msgspec.Struct, frozen=True, array_like=True):
    observer: str
    subscription: str
    client: str
    since: Instant
    told: bool


@dataclass(slots=True, eq=False)
class Stays:
    journal: Journal
    watches: Watches
    now: Callable[[], Instant]
    later: Later
    tick: Callable[[], None]
    """Called when the time of one may have come."""

    _due: list[tuple[Instant, Key, str]] = field(default_factory=list)
    """Also of visits that are over: these are left out when their time comes, or when there are too many."""

    _most: int = FEW
    _armed: Instant | None = None
    _timer: Timer | None = None
    """There is one at most: what is armed twice would be so for ever, since each time arms the next."""

    def set(self, watch: Watch, client: str, visit: Stay | None) -> list[Put]:
        """The visit that is going on; what is to be written for that."""
        before = watch.stays.get(client)
        if visit is None:
            if before is None:
                return []
            del watch.stays[client]
        else:
            watch.stays[client] = visit
            if visit is before and not visit.told:
                return []
            if not visit.told:
                self._expect(watch, client, visit)
        return self._row(watch, client, visit)

    def told(self, watch: Watch, client: str, visit: Stay) -> list[Put]:
        visit.told = True
        return self._row(watch, client, visit)

    def drop(self, watch: Watch) -> list[Put]:
        """Nobody asks any more."""
        puts = [put for client in list(watch.stays) for put in self.set(watch, client, None)]
        watch.stays.clear()
        return puts

    def due(self) -> Iterator[tuple[Watch, str, Stay]]:
        """Those whose time has come, by the clock."""
        now = self.now()
        self._disarm()
        while self._due and self._due[0][0] <= now:
            _, key, client = heapq.heappop(self._due)
            watch = self.watches.get(key)
            visit = None if watch is None else watch.stays.get(client)
            if watch is None or visit is None or visit.told or watch.wanted.stay is None:
                continue
            if visit.since + watch.wanted.stay <= now:
                yield watch, client, visit

    def arm(self) -> None:
        if self._due and (self._armed is None or self._due[0][0] < self._armed):
            self._disarm()
            self._armed = self._due[0][0]
            self._timer = self.later(max(0.0, (self._armed - self.now()) / MICROSECONDS), self.tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed = self._timer = None

    def _expect(self, watch: Watch, client: str, visit: Stay) -> None:
        assert watch.wanted.stay is not None
        heapq.heappush(self._due, (visit.since + watch.wanted.stay, watch.key, client))
        if len(self._due) > self._most:
            self._leave_out()

    def _leave_out(self) -> None:
        """Visits that are over: whoever goes in and out of an area would else be expected once for each time, for as long as a stay is."""
        self._due = [
            (visit.since + watch.wanted.stay, watch.key, client)
            for watch in self.watches.staying
            if watch.wanted.stay is not None
            for client, visit in watch.stays.items()
            if not visit.told
        ]
        heapq.heapify(self._due)
        self._most = max(FEW, 2 * len(self._due))

    def _row(self, watch: Watch, client: str, visit: Stay | None) -> list[Put]:
        if not watch.session.durable:
            return []
        observer, subscription = watch.key
        row = None if visit is None else StayRow(observer, subscription, client, visit.since, visit.told)
        data = None if row is None else msgspec.msgpack.encode(row)
        return [Put(STAYS, f"{observer}\0{subscription}\0{client}", data)]

    def load(self) -> None:
        """After a restart, when all who watch are known again."""
        for key, data in self.journal.load(STAYS).items():
            row = msgspec.msgpack.decode(data, type=StayRow)
            watch = self.watches.get((row.observer, row.subscription))
            if watch is None or watch.wanted.stay is None:
                self.journal.write(puts=(Put(STAYS, key, None),))
                continue
            visit = watch.stays[row.client] = Stay(row.since, row.told)
            if not visit.told:
                self._expect(watch, row.client, visit)
        self.arm()
