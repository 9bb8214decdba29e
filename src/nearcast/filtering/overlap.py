"""Both schemes for a while: no client is given up by the old one before it has arrived in the new one.

The remedy that LCN 2016 names (section VI) and leaves open: where no state can be transferred, or what can be is old, the old
scheme goes on in parallel.  Every client is served by one scheme at a time, that in which it was last heard: so nothing is lost,
nothing is sent twice, and nothing is sent because of a position that the old scheme did not care to keep up to date.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nearcast.filtering.broker_half import BrokerHalf
from nearcast.model.event import Event
from nearcast.model.time import Instant


@dataclass(slots=True)
class Overlap:
    """What is left of a scheme that was exchanged: those clients that have not been heard in the new one."""

    half: BrokerHalf
    clock: int
    """Of the plan; a client that says something with this tag, or a later one, has arrived in the new scheme."""

    until: Instant


class Overlaps:
    """Those of one broker, oldest first."""

    def __init__(self) -> None:
        self._running: list[Overlap] = []

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, half: object) -> bool:
        """Whether that half goes on."""
        return any(overlap.half is half for overlap in self._running)

    def begin(self, half: BrokerHalf, clock: int, until: Instant) -> None:
        self._running.append(Overlap(half, clock, until))

    def halves_of(self, client: str) -> list[BrokerHalf]:
        return [overlap.half for overlap in self._running if client in overlap.half.contexts]

    def receivers(self, event: Event, channel: str | None) -> list[str]:
        """Of the clients that are served here, each by the oldest scheme that it is in."""
        found: list[str] = []
        for place, overlap in enumerate(self._running):
            older = [before.half.contexts for before in self._running[:place]]
            found += [
                client
                for client in overlap.half.receivers(event, channel)
                if not any(client in contexts for contexts in older)
            ]
        return found

    def serve(self, client: str) -> bool:
        """Whether the client is served here, and not by the scheme that it is to come to."""
        return any(client in overlap.half.contexts for overlap in self._running)

    def arrived(self, client: str, clock: int) -> None:
        """The client has spoken in the scheme of that plan."""
        if self._running:
            for overlap in self._running:
                if overlap.clock <= clock:
                    overlap.half.forget(client)
            self._tidy()

    def prolong(self, client: str, clock: int, until: Instant) -> None:
        """The client has spoken in the scheme of that plan: it does not know of later ones yet."""
        for overlap in self._running:
            if overlap.clock > clock and client in overlap.half.contexts:
                overlap.until = max(overlap.until, until)

    def forget(self, clients: Iterable[str]) -> None:
        for client in clients:
            for overlap in self._running:
                overlap.half.forget(client)
        self._tidy()

    def expire(self, now: Instant) -> None:
        """Give up those that were silent for too long; what the new scheme knows of them must do."""
        self._running = [overlap for overlap in self._running if overlap.until > now]

    def _tidy(self) -> None:
        self._running = [overlap for overlap in self._running if overlap.half.contexts]
