"""Who is told of what, by the member that acts for its cell (THYME 5.4.2 to 5.4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from nearcast.crowdstore.access import genuine, genuine_withdrawal
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Entry, Gone, Indexed, Item, Part
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


@dataclass(frozen=True, slots=True)
class _Waiting:
    since: Instant
    node: Address
    notify: Notify


def valid(entry: Entry, desk: Desk) -> bool:
    """Whether it can be kept at all; whoever sent it may be wrong, or lie (``access``)."""
    if isinstance(entry, Indexed):
        item, tags = entry.item, entry.item.metadata.tags
        places = (item.active, *(place.cell for place in item.replicas))
        possible = bool(tags) and {*entry.tags} <= {*tags} and all(Cell(*place) in desk.grid for place in places)
        return possible and genuine(item.metadata)
    if isinstance(entry, Part):
        return (entry.tag == EVERYTHING or entry.tag in entry.present) and Cell(*entry.cell) in desk.grid
    if isinstance(entry, Gone):
        return entry.subscription or genuine_withdrawal(entry.withdrawal)
    return bool(entry.metadata.tags) and genuine(entry.metadata)


class Matching:
    """Notifications of one host that acts, or has acted, for its cell."""

    def __init__(self, desk: Desk, patience: float) -> None:
        self._desk: Final = desk
        self._patience: Final = round(patience * MICROSECONDS)
        self._said: Final[dict[tuple[ObjectKey, SubscriptionKey], None]] = {}
        self._acted: Final[dict[ObjectKey, None]] = {}
        """Objects that this host compared with the subscriptions it had then."""

        self._waiting: Final[list[_Waiting]] = []
        self.sent = self.undelivered = self.sent_again = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def forget(self) -> None:
        """This host is in another cell now; what waits is still to be told."""
        self._acted.clear()

    def publication(self, indexed: Indexed) -> None:
        """It is new here."""
        _remember(self._acted, indexed.key)
        found = self._desk.state.parts_for(indexed)
        self._notify(indexed.item, found)

    def part(self, part: Part) -> None:
        """It was missing here: what this host has acted on meanwhile may match."""
        for indexed in list(self._desk.state.objects_for(part)):
            if indexed.key in self._acted:
                self._notify(indexed.item, [part])

    def _notify(self, item: Item, parts: Iterable[Part]) -> None:
        owners: dict[Address, Part] = {}
        told: dict[SubscriptionKey, None] = {}
        for part in parts:
            said = item.metadata.key, part.subscription
            if said in self._said:
                continue
            _remember(self._said, said)
            told[part.subscription] = None
            before = owners.get(part.node)
            if before is None or before.version < part.version:
                owners[part.node] = part
        if told:
            self.sent += len(told)
            destinations = [Destination(Cell(*part.cell), part.node) for part in owners.values()]
            self._desk.to_nodes(destinations, Notify(item, tuple(told)))

    def undeliverable(self, node: Address, notify: Notify) -> None:
        """It waits until its receiver says where it is (5.4.4)."""
        self.undelivered += 1
        self.tidy()
        if len(self._waiting) < WAITING:
            self._waiting.append(_Waiting(self._desk.now(), node, notify))

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


def _remember(things: dict[K, None], key: K) -> None:
    things[key] = None
    if len(things) > REMEMBERED:
        del things[next(iter(things))]
