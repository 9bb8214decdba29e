"""What this host asks of cells: to keep its publications and subscriptions, and to forget them (THYME 5.2 to 5.4)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Item, Part, Place
from nearcast.crowdstore.data_centric.messages import (
    Found,
    More,
    Publish,
    Relocated,
    Subscribe,
    Unpublish,
    Unsubscribe,
)
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.storage import Done, Outcome
from nearcast.model.time import Instant


class Requests:
    def __init__(self, desk: Desk, operations: Operations) -> None:
        self._desk: Final = desk
        self._operations: Final = operations
        self._random: Final = desk.host.random("crowdstore keys")
        self._active: Final[dict[ObjectKey, Cell]] = {}
        """Where this host's own publications were made."""

        self._parts: Final[dict[SubscriptionKey, list[Part]]] = {}
        """Of this host's own subscriptions, as they were sent (5.4.5)."""

        self._further: Final[dict[tuple[SubscriptionKey, int, Cell], tuple[Instant, ObjectKey]]] = {}
        """Up to where the past has been told, where there is more."""

    def publish(self, metadata: Metadata, done: Done) -> None:
        desk = self._desk
        here = desk.here
        self._active[metadata.key] = here
        item = Item(metadata, *here, (Place(desk.now(), desk.router.address, *here),))
        number = self._operations.number()
        self._operations.begin(number, [(desk.homes(metadata.tags), Publish(number, item))], done)

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        number = self._operations.number()
        cells = self._desk.homes(metadata.tags)
        cells[self._active.pop(metadata.key, self._desk.here)] = None
        self._operations.begin(number, [(cells, Unpublish(number, metadata.key, self._desk.now()))], done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        desk, frame = self._desk, subscription.frame
        here = desk.here
        parts = [
            Part(
                subscription.key, index, desk.router.address,
                self._random.choice(sorted(each.present)) if each.present else EVERYTHING,
                tuple(sorted(each.present)), tuple(sorted(each.absent)), frame.since, frame.until, *here, desk.now(),
            )
            for index, each in enumerate(subscription.formula.conjunctions)
        ]  # fmt: skip
        self._parts[subscription.key] = parts
        left = [len(parts)]
        failures: list[Outcome] = []
        for part in parts:
            number = self._operations.number()
            ended = partial(_one_ended, left, failures, done)
            self._operations.begin(number, [(desk.cells_of(part), Subscribe(number, part))], ended)

    def more(self, subscription: SubscriptionKey) -> None:
        for part in self._parts.get(subscription, ()):
            for cell in self._desk.cells_of(part):
                after = self._further.pop((subscription, part.number, cell), None)
                if after is not None:
                    number = self._operations.number()
                    self._operations.begin(number, [([cell], More(number, part, after))])

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        number = self._operations.number()
        parts = self._parts.pop(subscription.key, [])
        cells = dict.fromkeys(cell for part in parts for cell in self._desk.cells_of(part))
        for known in [each for each in self._further if each[0] == subscription.key]:
            del self._further[known]
        self._operations.begin(number, [(cells, Unsubscribe(number, subscription.key, self._desk.now()))], done)

    def found(self, message: Found) -> None:
        """Some of what a subscription matches in the past; the applications were told."""
        cell = Cell(message.column, message.row)
        key = message.subscription, message.number, cell
        wanted = self._desk.nucleus.subscription(message.subscription)
        if message.items and message.total > len(message.items) and wanted:
            last = message.items[-1].metadata
            self._further[key] = last.published, last.key
        self._operations.answered(message.operation, cell)

    def relocated(self, cell: Cell, copies: list[tuple[str, ...]]) -> None:
        """In a new cell: tell where this host's subscriptions and copies, with these tags, are now (5.2.3, 5.4.4)."""
        desk = self._desk
        cells = dict.fromkeys(each for parts in self._parts.values() for part in parts for each in desk.cells_of(part))
        for tags in copies:
            cells.update(desk.homes(tags))
        if cells:
            number = self._operations.number()
            message = Relocated(number, desk.router.address, *cell, desk.now())
            self._operations.begin(number, [(cells, message)])


def _one_ended(left: list[int], failures: list[Outcome], done: Done, outcome: Outcome) -> None:
    """Of the conjunctions of a subscription: it is done when all are."""
    left[0] -= 1
    if not outcome.ok:
        failures.append(outcome)
    if not left[0]:
        done(failures[0] if failures else outcome)
