"""Who is told of what, by the member that acts for its cell (THYME 5.4.2 to 5.4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import Indexed, Item, Part
from nearcast.crowdstore.data_centric.messages import Notify
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import ObjectKey, SubscriptionKey
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address

K = TypeVar("K")

REMEMBERED: Final = 20_000
"""Notifications that are not sent twice; whoever hears of more than that twice knows it anyway."""

WAITING: Final = 1_000
"""Notifications that wait for their receiver to settle, at most."""

HEADER: Final = 700
"""Bytes of the names of those who get one message: with a piece of it they fill a frame."""

SUBSCRIPTIONS: Final = 16_384
"""Bytes of the subscriptions that are named by it."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    since: Instant
    node: Address
    notify: Notify


class Matching:
    """Notifications of one host that acts, or has acted, for its cell."""

    def __init__(self, desk: Desk, patience: float) -> None:
        self._desk: Final = desk
        self._patience: Final = round(patience * MICROSECONDS)
        self._said: Final[dict[tuple[ObjectKey, SubscriptionKey], None]] = {}
        self._acted: Final[dict[tuple[ObjectKey, str], None]] = {}
        """Objects, by tag, that this host compared with the subscriptions it had then."""

        self._waiting: Final[list[_Waiting]] = []
        self.sent = self.undelivered = self.sent_again = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def forget(self) -> None:
        """This host is in another cell now; what waits is still to be told."""
        self._acted.clear()

    def acted(self, indexed: Indexed) -> bool:
        """Whether this host has told whom it concerns."""
        return all((indexed.key, tag) in self._acted for tag in indexed.tags)

    def publication(self, indexed: Indexed) -> None:
        """It is new here, or nobody has acted on it yet."""
        for tag in indexed.tags:
            _remember(self._acted, (indexed.key, tag))
        self._notify(indexed.item, self._desk.state.parts_for(indexed))

    def part(self, part: Part) -> None:
        """It was missing here: what this host has acted on meanwhile may match."""
        for indexed in list(self._desk.state.objects_for(part)):
            if any((indexed.key, tag) in self._acted for tag in indexed.tags):
                self._notify(indexed.item, [part])

    def _notify(self, item: Item, parts: Iterable[Part]) -> None:
        owners: dict[Address, Part] = {}
        told: dict[Address, dict[SubscriptionKey, None]] = {}
        for part in parts:
            said = item.metadata.key, part.subscription
            if said in self._said:
                continue
            _remember(self._said, said)
            self.sent += 1
            told.setdefault(part.node, {})[part.subscription] = None
            before = owners.get(part.node)
            if before is None or before.version < part.version:
                owners[part.node] = part
        for nodes, keys in _together(told):
            destinations = [Destination(Cell(*owners[node].cell), node) for node in nodes]
            self._desk.to_nodes(destinations, Notify(item, keys))

    def undeliverable(self, destination: Destination, notify: Notify) -> None:
        """It waits until its receiver says where it is (5.4.4), unless that has been said meanwhile."""
        if destination.node is None:
            return
        self.undelivered += 1
        self.tidy()
        parts = self._desk.state.parts_for(Indexed(notify.item, notify.item.metadata.tags))
        own = [part for part in parts if part.node == destination.node]
        newest = max(own, key=lambda part: part.version, default=None)
        if newest is not None and newest.cell != destination.cell:
            self.sent_again += 1
            self._desk.to_node(Cell(*newest.cell), newest.node, notify)
        elif len(self._waiting) < WAITING:
            self._waiting.append(_Waiting(self._desk.now(), destination.node, notify))

    def relocated(self, node: Address, cell: Cell) -> None:
        again = [each for each in self._waiting if each.node == node]
        if not again:
            return
        self._waiting[:] = [each for each in self._waiting if each.node != node]
        self.sent_again += len(again)
        for each in again:
            self._desk.to_node(cell, node, each.notify)

    def tidy(self) -> None:
        """Nobody waits for ever."""
        oldest = self._desk.now() - self._patience
        self._waiting[:] = [each for each in self._waiting if each.since > oldest]


def _together(
    told: dict[Address, dict[SubscriptionKey, None]],
) -> Iterator[tuple[list[Address], tuple[SubscriptionKey, ...]]]:
    """Owners who get one message: so many that their names fit into the router's header, and their subscriptions into few pieces."""
    nodes: dict[Address, None] = {}
    keys: list[SubscriptionKey] = []
    header = size = 0
    for node, mine in told.items():
        for key in mine:
            longer = 0 if node in nodes else len(node.encode()) + 16
            more = len(key.owner.encode()) + len(key.name.encode()) + 8
            if keys and (header + longer > HEADER or size + more > SUBSCRIPTIONS):
                yield list(nodes), tuple(keys)
                nodes, keys, header, size = {}, [], 0, 0
                longer = len(node.encode()) + 16
            nodes[node] = None
            keys.append(key)
            header += longer
            size += more
    if keys:
        yield list(nodes), tuple(keys)


def _remember(things: dict[K, None], key: K) -> None:
    things[key] = None
    if len(things) > REMEMBERED:
        del things[next(iter(things))]
