"""Packets that wait for a route, within the bounds of ns-3's DSDV."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from nearcast.crowdstore.unicast.messages import Packet
from nearcast.model.time import MICROSECONDS, Instant

MOST: Final = 500
MOST_PER_DESTINATION: Final = 5
LONGEST: Final = 30 * MICROSECONDS


class Waiting:
    def __init__(self) -> None:
        self._by_destination: Final[dict[str, deque[tuple[Instant, Packet]]]] = {}
        self._count = 0
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    @property
    def destinations(self) -> Iterator[str]:
        return iter(tuple(self._by_destination))

    def add(self, packet: Packet, now: Instant) -> None:
        """Those that came first go first; what does not fit in is lost."""
        self.forget(now)
        queue = self._by_destination.setdefault(packet.destination, deque())
        if self._count < MOST and len(queue) < MOST_PER_DESTINATION:
            queue.append((now, packet))
            self._count += 1
        else:
            self.dropped += 1
            if not queue:
                del self._by_destination[packet.destination]

    def take(self, destination: str, now: Instant) -> list[Packet]:
        """All that wait for it and have not waited too long."""
        self.forget(now)
        taken = [packet for _, packet in self._by_destination.pop(destination, ())]
        self._count -= len(taken)
        return taken

    def forget(self, now: Instant) -> None:
        for destination, queue in list(self._by_destination.items()):
            while queue and queue[0][0] < now - LONGEST:
                queue.popleft()
                self._count -= 1
                self.dropped += 1
            if not queue:
                del self._by_destination[destination]
