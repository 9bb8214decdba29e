"""The router of one host: tells neighbours what it knows, and passes packets on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from nearcast.crowdstore.unicast.messages import FRAME, Advertised, Packet, Routes
from nearcast.crowdstore.unicast.table import Table
from nearcast.crowdstore.unicast.waiting import Waiting
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.messages import encoded
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Link, Sending

PORT: Final = 31
_HEAD: Final = 32
"""Bytes of a message around what is packed into it."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSettings:
    """Times in seconds."""

    period: float
    settling: float
    hold: float
    """What was not heard for so many periods is no longer there."""

    gathering: float
    """Up to so long a host waits with what has changed, so that neighbours do not speak all at once, and changes go together."""

    renewals: bool
    """Whether a route that is only known anew counts as one that has changed."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    destinations: int
    reachable: int
    neighbours: int
    full_updates: int
    triggered_updates: int
    update_frames: int
    forwarded: int
    """Packets of others."""

    forwarded_bytes: int
    waiting: int
    unroutable: int
    """Packets without a route: those of others at once, those from here when they had waited too long, or were too many."""

    worn_out: int
    """Packets that had made too many hops."""

    refused: int
    """Packets that the link did not take."""


class Router:
    """Of one life of a mechanism; packets come in and go out at the port of whoever uses it."""

    def __init__(
        self, host: Host, link: Link, settings: RouterSettings, post: Callable[[Address, Packet], Sending]
    ) -> None:
        self._host: Final = host
        self._link: Final = link
        self._settings: Final = settings
        self._period: Final = round(settings.period * MICROSECONDS)
        self._hold: Final = round(settings.period * settings.hold * MICROSECONDS)
        self._post: Final = post
        now = host.now()
        # By the clock: so those of a later life are larger, and what others still know of this one does no harm.
        sequence = max(0, 2 * (now // MICROSECONDS))
        self.table: Final = Table(
            host.name, sequence, now, round(settings.settling * MICROSECONDS), renewals=settings.renewals
        )
        self._heard: Final[dict[Address, Instant]] = {}
        """Neighbours, and when each was last heard."""

        self._waiting: Final = Waiting()
        self._awaited: Final[dict[str, Callable[[], None]]] = {}
        self._random: Final = host.random("crowd routes").random
        self._endpoint: Endpoint | None = None
        self._updates: Cancellable | None = None
        self._trigger: Cancellable | None = None
        self._armed: Instant = 0
        """What the trigger was set for."""

        self._full = self._triggered = self._frames = 0
        self._forwarded = self._forwarded_bytes = self._unroutable = self._worn_out = self._refused = 0

    def start(self) -> None:
        self._endpoint = self._link.open(PORT, self._learn, Routes)
        # Not all at once: whoever starts together would speak together ever after.
        self._updates = self._host.timers.every(
            self._settings.period, self._tell_all, first=self._random() * self._settings.period
        )
        self._arm()

    def stop(self) -> None:
        for timer in (self._updates, self._trigger):
            if timer is not None:
                timer.cancel()
        self._updates = self._trigger = None
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    @property
    def neighbours(self) -> int:
        return len(self._heard)

    def send(self, packet: Packet) -> None:
        """Of this host; it waits for a while if there is no route."""
        if not self._pass_on(packet):
            self._waiting.add(packet, self._host.now())

    def reaches(self, destination: str) -> bool:
        """Whether there is a route, as far as is known here."""
        return self.table.usable(destination) is not None

    def when_reachable(self, destination: str, act: Callable[[], None]) -> None:
        """Act once as soon as there is a route, now if there is one; of several wishes for one destination the last counts."""
        if self.reaches(destination):
            act()
        else:
            self._awaited[destination] = act

    def no_longer_awaited(self, destination: str) -> None:
        self._awaited.pop(destination, None)

    def arrived(self, neighbour: Address, packet: Packet) -> bool:
        """Whether a packet that came in is for this host; if not, it is passed on."""
        if neighbour in self._heard:
            self._heard[neighbour] = self._host.now()
        if packet.destination == self._host.name:
            return True
        if packet.hops <= 1:
            self._worn_out += 1
            return False
        further = msgspec.structs.replace(packet, hops=packet.hops - 1)
        if self._pass_on(further):
            self._forwarded += 1
            self._forwarded_bytes += len(encoded(further))
        else:
            self._unroutable += 1
        return False

    def statistics(self) -> RouterStatistics:
        others = [route for route in self.table.routes.values() if route is not self.table.own]
        return RouterStatistics(
            len(others), sum(not route.broken for route in others), len(self._heard),
            self._full, self._triggered, self._frames, self._forwarded, self._forwarded_bytes,
            len(self._waiting), self._unroutable + self._waiting.dropped, self._worn_out, self._refused,
        )  # fmt: skip

    # Packets

    def _pass_on(self, packet: Packet) -> bool:
        route = self.table.usable(packet.destination)
        if route is None:
            return False
        neighbour = route.next_hop
        if self._post(neighbour, packet) is not Sending.DROPPED:
            return True
        self._refused += 1
        # Its queue may be full; but if the neighbour has missed its turn to speak as well, it has gone.
        now = self._host.now()
        if self._heard.get(neighbour, 0) + self._period * 5 // 4 < now:
            self._lose([neighbour])
            return False
        return True

    def _lose(self, neighbours: Iterable[Address]) -> None:
        for neighbour in neighbours:
            self._heard.pop(neighbour, None)
        self.table.lose(neighbours, self._host.now())
        self._arm()

    # Routes

    def _learn(self, neighbour: Address, routes: Routes) -> None:
        now = self._host.now()
        self._heard[neighbour] = now
        self.table.learn(neighbour, routes.routes, now)
        if self.table.changed:
            self._arm()
        if self._waiting:
            for destination in self._waiting.destinations:
                if self.table.usable(destination) is not None:
                    for packet in self._waiting.take(destination, now):
                        self.send(packet)
        if self._awaited:
            for destination in [name for name in self._awaited if self.table.usable(name) is not None]:
                self._awaited.pop(destination)()

    def _arm(self) -> None:
        """See to it that others are told what has changed, when it is due."""
        due = self.table.due
        if self._endpoint is None or not self.table.changed or (self._trigger is not None and due >= self._armed):
            return
        if self._trigger is not None:
            self._trigger.cancel()
        self._armed = due
        wait = max(0, due - self._host.now()) / MICROSECONDS
        self._trigger = self._host.timers.after(wait + self._random() * self._settings.gathering, self._tell_news)

    def _tell_news(self) -> None:
        self._trigger = None
        if self._tell(self.table.news(self._host.now())):
            self._triggered += 1
        self._arm()

    def _tell_all(self) -> None:
        now = self._host.now()
        lost = [neighbour for neighbour, heard in self._heard.items() if heard < now - self._hold]
        if lost:
            self._lose(lost)
        # What is broken is remembered for long enough that no older route to it is left anywhere.
        self.table.expire(now - self._hold, now - 4 * self._hold, now)
        self._waiting.forget(now)
        self._full += 1
        self._tell(self.table.everything())

    def _tell(self, routes: Iterator[Advertised]) -> bool:
        told = False
        for part in in_frames(routes):
            assert self._endpoint is not None  # timers end with it
            self._endpoint.broadcast(Routes(part))
            self._frames += 1
            told = True
        return told


def in_frames(things: Iterable[T], head: int = _HEAD) -> Iterator[tuple[T, ...]]:
    """As many as fit into a frame each time; ``head`` bytes are taken by what is around them."""
    part: list[T] = []
    size = head
    for thing in things:
        length = len(_encode(thing))
        if part and size + length > FRAME:
            yield tuple(part)
            part, size = [], head
        part.append(thing)
        size += length
    if part:
        yield tuple(part)


_encode: Final = msgspec.msgpack.Encoder().encode
