"""What this host asks of cells: to keep its publications and subscriptions, and to forget them (THYME 5.2 to 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
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
from nearcast.crowdstore.data_centric.operations import Operations, heedless
from nearcast.crowdstore.formula import Conjunction
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.storage import Done, Outcome
from nearcast.model.time import Instant

Position = tuple[Instant, ObjectKey]
"""In the order in which objects are told."""

PERSISTENCE: Final = 4
"""So many times more a host tells where it is, if nobody answers."""

_Asked = tuple[SubscriptionKey, int, Cell]
_FIRST: Final = ObjectKey("", "")


class Requests:
    def __init__(self, desk: Desk, operations: Operations) -> None:
        self._desk: Final = desk
        self._operations: Final = operations
        self._active: Final[dict[ObjectKey, Cell]] = {}
        """Where this host's own publications were made."""

        self._parts: Final[dict[SubscriptionKey, list[Part]]] = {}
        """Of this host's own subscriptions, as they were sent (5.4.5)."""

        self._further: Final[dict[_Asked, Position]] = {}
        """Up to where the past has been told, where there is more."""

        self._told: Final[dict[_Asked, Position]] = {}
        """The same, also where more was asked for since."""

        self._since: Final[dict[_Asked, Position]] = {}
        """Up to where what was published since the subscription was made has been told, because there was more than was told at once."""

    def publish(self, metadata: Metadata, done: Done) -> None:
        desk = self._desk
        here, cell = desk.here, desk.router.cell
        if cell is not None:
            active = self._active.setdefault(metadata.key, cell)
            desk.nucleus.spread.setdefault(metadata.key, {})[desk.grid, active] = None
        active = self._active.get(metadata.key, here)
        item = Item(metadata, *active, (Place(desk.now(), desk.router.address, *here),))
        number = self._operations.number()
        self._operations.begin(number, [(desk.homes(metadata.tags), Publish(number, item))], done)

    def active(self, key: ObjectKey) -> Cell | None:
        """The cell all of whose members have a copy of that publication of this host; none, if it was in none."""
        return self._active.get(key)

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        number = self._operations.number()
        desk = self._desk
        cells = desk.homes(metadata.tags)
        cells[self._active.pop(metadata.key, desk.here)] = None
        # Also where it was published in an earlier life, or before other mechanisms ran.
        cells.update(
            (desk.grid.cell_like(cell, grid), None) for grid, cell in desk.nucleus.spread.get(metadata.key, ())
        )
        withdrawal = desk.nucleus.withdrawal(metadata)
        self._operations.begin(number, [(cells, Unpublish(number, withdrawal, desk.now()))], done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        desk, frame = self._desk, subscription.frame
        here = desk.here
        parts = [
            Part(
                subscription.key, index, desk.router.address, key_of(each, subscription.key),
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
            self._operations.begin(number, [(desk.cells_of(part.tag), Subscribe(number, part))], ended)

    def more(self, subscription: SubscriptionKey) -> None:
        for part in self._parts.get(subscription, ()):
            for cell in self._desk.cells_of(part.tag):
                key = subscription, part.number, cell
                after = self._further.pop(key, None)
                if after is not None:
                    self._ask(part, cell, after, partial(self._not_told, key, after))

    def _ask(self, part: Part, cell: Cell, after: Position, done: Done = heedless) -> None:
        number = self._operations.number()
        self._operations.begin(number, [([cell], More(number, part, after))], done)

    def _not_told(self, key: _Asked, after: Position, outcome: Outcome) -> None:
        if not outcome.ok and key[0] in self._parts:
            self._further.setdefault(key, after)  # so that who asks again is told

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        number = self._operations.number()
        self._parts.pop(subscription.key, None)
        # Also those that only an earlier life of this host has told.
        keys = [key_of(each, subscription.key) for each in subscription.formula.conjunctions]
        cells = dict.fromkeys(cell for key in keys for cell in self._desk.cells_of(key))
        for places in (self._further, self._told, self._since):
            for known in [each for each in places if each[0] == subscription.key]:
                del places[known]
        self._operations.begin(number, [(cells, Unsubscribe(number, subscription.key, self._desk.now()))], done)

    def found(self, message: Found) -> None:
        """Some of what a subscription matches in the past; the applications were told."""
        cell = Cell(message.column, message.row)
        made = self._desk.nucleus.made(message.subscription)
        if message.items and message.total > len(message.items) and made is not None:
            last = message.items[-1].metadata
            self._there_is_more(message, cell, (last.published, last.key), made)
        self._operations.answered(message.operation, cell)

    def _there_is_more(self, message: Found, cell: Cell, last: Position, made: Instant) -> None:
        """Of what was published since the subscription was made the application hears unasked, of what was before when it asks for more."""
        key = message.subscription, message.number, cell
        part = next((each for each in self._parts.get(key[0], ()) if each.number == message.number), None)
        if part is None or cell not in self._desk.cells_of(part.tag):
            return
        # An answer may come twice, or late: what it says counts only if nobody has said more.
        if last[0] >= made:
            if last > self._since.get(key, (made, _FIRST)):
                self._since[key] = last
                self._ask(part, cell, last)
        elif key not in self._told or last > self._told[key]:
            self._further[key] = self._told[key] = last
            if key not in self._since:
                self._since[key] = made, _FIRST
                self._ask(part, cell, (made, _FIRST))

    def relocated(self, cell: Cell, copies: list[tuple[str, ...]]) -> None:
        """In a new cell: tell where this host's subscriptions and copies, with these tags, are now (5.2.3, 5.4.4)."""
        desk = self._desk
        cells = dict.fromkeys(
            each for parts in self._parts.values() for part in parts for each in desk.cells_of(part.tag)
        )
        for tags in copies:
            cells.update(desk.homes(tags))
        if cells:
            self._tell_place(cell, cells, PERSISTENCE)

    def _tell_place(self, cell: Cell, cells: Iterable[Cell], left: int) -> None:
        desk, number = self._desk, self._operations.number()
        message = Relocated(number, desk.router.address, *cell, desk.now())
        self._operations.begin(number, [(cells, message)], partial(self._place_told, cell, cells, left))

    def _place_told(self, cell: Cell, cells: Iterable[Cell], left: int, outcome: Outcome) -> None:
        # Nobody else notices that it failed; but for those who do not know where this host is, it is nowhere.
        if not outcome.ok and left and self._desk.router.cell == cell:
            self._tell_place(cell, cells, left - 1)


def key_of(conjunction: Conjunction, subscription: SubscriptionKey) -> str:
    """One of the tags that must be there: any with the same probability, so that popular tags are shared, but always the same one.

    A host that returns tells of its subscriptions again: by another key, cells would keep what nobody takes back.
    """
    return min(conjunction.present, key=partial(_drawn, subscription), default=EVERYTHING)


def _drawn(subscription: SubscriptionKey, tag: str) -> bytes:
    named = f"{len(subscription.owner)} {subscription} {tag}"
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _one_ended(left: list[int], failures: list[Outcome], done: Done, outcome: Outcome) -> None:
    """Of the conjunctions of a subscription: it is done when all are."""
    left[0] -= 1
    if not outcome.ok:
        failures.append(outcome)
    if not left[0]:
        done(failures[0] if failures else outcome)
