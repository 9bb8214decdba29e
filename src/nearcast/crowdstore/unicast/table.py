"""Routes of one host, and the rules by which it learns and unlearns them; no loop ever forms.

A route is as good as the pair (sequence number, -metric).  Whatever a host adopts is a step behind what its next hop has, and nobody's pair
ever gets worse; so the pairs grow strictly along the way to a destination (Perkins and Bhagwat, 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nearcast.crowdstore.unicast.messages import INFINITE, LATEST, Advertised
from nearcast.model.time import Instant
from nearcast.runtime.ports import Address

MOST_DESTINATIONS: Final = 4_096
"""Destinations that a table has room for: what is beyond does not become known here."""


class Route:
    """The best that is known of a destination."""

    __slots__ = ("metric", "next_hop", "renewed", "sequence", "told")

    def __init__(self, next_hop: Address, metric: int, sequence: int, renewed: Instant) -> None:
        self.next_hop = next_hop
        self.metric = metric
        self.sequence = sequence
        self.renewed = renewed
        """When its next hop spoke of it last; of a broken one, when it broke."""

        self.told = -1
        """The metric that others were told last."""

    @property
    def broken(self) -> bool:
        return self.metric == INFINITE


class Table:
    """By destination; that of the host itself is the route of metric 0."""

    def __init__(self, name: str, sequence: int, now: Instant, settling: int, *, renewals: bool = False) -> None:
        """``renewals``: that a route is known anew is told at once, as what has changed is."""
        self.own: Final = Route("", 0, sequence, now)
        self.routes: Final[dict[str, Route]] = {name: self.own}
        self.changed: Final[dict[str, Instant]] = {name: now}
        """What others should be told before the next full update, and from when on."""

        self.due = now
        """Nothing of it before that."""

        self._name: Final = name
        self._settling: Final = settling
        self._renewals: Final = renewals

    def usable(self, destination: str) -> Route | None:
        route = self.routes.get(destination)
        return None if route is None or route.metric == INFINITE or route is self.own else route

    def learn(self, neighbour: Address, advertised: Iterable[Advertised], now: Instant) -> None:
        """What a neighbour knows."""
        find = self.routes.get
        for name, metric, sequence in advertised:
            route = find(name)
            # Nearly everything is old, or no shorter.
            if route is not None and sequence <= route.sequence:
                if sequence < route.sequence:
                    continue
                if metric + 1 >= route.metric:
                    if route.next_hop == neighbour and metric < INFINITE:
                        route.renewed = now
                    continue
            if sequence & 1:
                if metric == INFINITE:
                    self._unlearn(name, route, neighbour, sequence, now)
            elif metric + 1 < INFINITE:
                self._adopt(name, route, Route(neighbour, metric + 1, sequence, now))

    def _adopt(self, name: str, known: Route | None, found: Route) -> None:
        if known is self.own:
            # Of an earlier life of this host: outdo it, or its old routes stay.
            self._outdo(found.sequence, found.renewed)
            return
        if known is None:
            if len(self.routes) >= MOST_DESTINATIONS:
                return
            self.routes[name] = found
            self._mark(name, found.renewed)
            return
        revived, renewed, now = known.broken, known.metric == found.metric, found.renewed
        known.next_hop, known.metric, known.sequence, known.renewed = found.next_hop, found.metric, found.sequence, now
        if self._renewals:
            # As in ns-3: only another metric has to settle.
            self._mark(name, now if renewed else now + self._settling)
        elif known.metric == known.told:
            # A newer sequence number alone is told with the next full update.
            self.changed.pop(name, None)
        elif revived:
            self._mark(name, now)
        elif name not in self.changed:
            # The first to tell of a new sequence number is seldom the nearest: a better route may follow.
            self._mark(name, now + self._settling)

    def _unlearn(self, name: str, route: Route | None, neighbour: Address, sequence: int, now: Instant) -> None:
        if route is self.own:
            self._outdo(sequence, now)
        elif route is not None and route.next_hop == neighbour:
            # Only from the next hop: who goes another way is not concerned.
            self._break(name, route, sequence, now)

    def _outdo(self, sequence: int, now: Instant) -> None:
        if sequence + 2 <= LATEST:
            self.own.sequence = sequence + 2 - sequence % 2
            self._mark(self._name, now)

    def _break(self, name: str, route: Route, sequence: int, now: Instant) -> None:
        route.metric, route.sequence, route.renewed = INFINITE, sequence, now
        self._mark(name, now)

    def _mark(self, name: str, since: Instant) -> None:
        self.due = min(self.due, since) if self.changed else since
        self.changed[name] = since

    def lose(self, neighbours: Iterable[Address], now: Instant) -> None:
        """They are no longer there, and nothing that leads through them."""
        lost = frozenset(neighbours)
        for name, route in self.routes.items():
            if route.next_hop in lost and not route.broken:
                self._break(name, route, route.sequence + 1, now)

    def expire(self, before: Instant, gone: Instant, now: Instant) -> None:
        """Break what the next hop has not spoken of since ``before``.  Forget what was broken before ``gone``."""
        for name, route in list(self.routes.items()):
            if route is self.own:
                continue
            if route.broken:
                if route.renewed < gone:
                    del self.routes[name]
                    self.changed.pop(name, None)
            elif route.renewed < before:
                self._break(name, route, route.sequence + 1, now)

    def everything(self) -> Iterator[Advertised]:
        """For a full update, with a new sequence number of this host's own."""
        self.own.sequence += 2
        self.changed.clear()
        return self._told(list(self.routes))

    def news(self, now: Instant) -> Iterator[Advertised]:
        """What has changed, and has settled."""
        due = [name for name, since in self.changed.items() if since <= now]
        for name in due:
            del self.changed[name]
        self.due = min(self.changed.values(), default=now)
        return self._told(due)

    def _told(self, names: list[str]) -> Iterator[Advertised]:
        for name in names:
            route = self.routes[name]
            route.told = route.metric
            yield name, route.metric, route.sequence
