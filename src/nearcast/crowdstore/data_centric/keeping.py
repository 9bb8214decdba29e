"""What a host does as a member of its cell: all members keep the same, and one of them acts for all (THYME 5.1 to 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from nearcast.crowdstore.data_centric.desk import Desk, batches
from nearcast.crowdstore.data_centric.entries import (
    EVERYTHING,
    Entry,
    Gone,
    Indexed,
    Item,
    Kept,
    Part,
    Place,
    withdrawn,
)
from nearcast.crowdstore.data_centric.matching import Matching
from nearcast.crowdstore.data_centric.messages import (
    Answered,
    Entrusted,
    Found,
    Locate,
    Located,
    More,
    Operation,
    Publish,
    Relocated,
    Replicated,
    Subscribe,
    Unpublish,
    Unsubscribe,
)
from nearcast.crowdstore.data_centric.validity import remembered, timely, valid
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.model.time import Instant
from nearcast.runtime.ports import Address

ANSWER: Final = 65_536
"""Bytes of what a subscription is told at once; more comes when it is asked for, as more than a batch does."""


def _size(item: Item) -> int:
    return len(msgspec.msgpack.encode(item))


class Keeping:
    def __init__(
        self, desk: Desk, matching: Matching, batch: int, acts: Callable[[], bool],
        lacks: Callable[[Metadata], None], forgets: Callable[[Gone], None], pass_on: Callable[[Cell, Gone], None],
    ) -> None:  # fmt: skip
        self._desk: Final = desk
        self._matching: Final = matching
        self._batch: Final = batch
        self._acts: Final = acts
        self._lacks: Final = lacks
        """Told of objects that all members should have a copy of, and this one does not."""

        self._forgets: Final = forgets
        """Told of objects that nobody should have a copy of any more."""

        self._pass_on: Final = pass_on
        """Tells another cell of that."""

    def receive(self, source: Address, origin: Cell, home: Cell, message: Operation) -> None:
        """An operation for one cell: this host's own, or one that it stands in for."""
        if isinstance(message, Subscribe | More):
            self._subscribe(source, origin, home, message)
            return
        if isinstance(message, Locate):
            if self._acts():
                found = self._desk.state.indexed(message.key)
                item = None if found is None else found.item
                self._desk.to_node(origin, source, Located(message.operation, item))
            return
        if self._done(source, home, message) and self._acts():
            self._desk.to_node(origin, source, Answered(message.operation, *home))

    def _done(self, source: Address, home: Cell, message: Operation) -> bool:
        """False: it is none that can be."""
        desk = self._desk
        if isinstance(message, Publish):
            tags = tuple(tag for tag in message.item.metadata.tags if desk.grid.cell_of(tag) == home)
            return self._publish(Indexed(message.item, tags))
        if isinstance(message, Unpublish):
            return self._unpublish(home, remembered(withdrawn(message.withdrawal, message.at), desk))
        if isinstance(message, Unsubscribe):
            return self.take(remembered(Gone(True, message.key.owner, message.key.name, message.at), desk))
        if isinstance(message, Relocated):
            return message.node == source and self._relocated(message)
        if isinstance(message, Entrusted):
            for entry in message.entries:
                if isinstance(entry, Indexed):
                    self._publish(entry)
                else:
                    self.absorb([entry])
        return True

    def _publish(self, indexed: Indexed) -> bool:
        if not self.take(indexed):
            return False
        # Who acts now may have heard of it when nobody did, or another one who is gone: as long as nobody answers, it comes again.
        # That holds for what is published as for what another cell hands over.
        if self._acts() and self._desk.state.indexed(indexed.key) is not None and not self._matching.acted(indexed):
            self._matching.publication(indexed)
        return True

    def _unpublish(self, home: Cell, gone: Gone) -> bool:
        found = self._desk.state.indexed(gone.withdrawal.key)
        if not self.take(gone):
            return False
        if found is not None and self._acts() and gone.covers(found.item.metadata):
            # Whoever withdraws it may not know the cell whose members all have a copy: its owner may have forgotten that, and a bridge
            # withdraws by an owner's word.  One of those who keep its metadata sees to it.
            active = Cell(*found.item.active)
            if self._desk.grid.cell_of(found.item.metadata.tags[0]) == home != active:
                self._pass_on(active, gone)
        return True

    def replicated(self, source: Address, message: Replicated) -> None:
        """A hint; of others' copies nobody may speak."""
        if message.node != source:
            return
        place = Place(message.at, message.node, message.column, message.row)
        for key in message.keys:
            found = self._desk.state.indexed(key)
            if found is not None:
                self.take(msgspec.structs.replace(found, item=found.item.with_replicas([place])))

    def take(self, entry: Entry) -> bool:
        """Keep it; if that is new, and this host acts for the cell, tell whom it concerns.  False if it cannot be."""
        if not valid(entry, self._desk) or not self._desk.state.takes(entry):
            return False
        before = self._desk.state.entries.get(entry.identity)
        changed = self._desk.state.put(entry, self._desk.now())
        # More copies of an object, or a newer place of one, are no news.
        known = isinstance(before, Indexed) and isinstance(entry, Indexed) and {*entry.tags} <= {*before.tags}
        if changed and isinstance(entry, Indexed) and not known and self._acts():
            self._matching.publication(entry)
        elif isinstance(entry, Gone) and not entry.subscription:
            self._forgets(entry)
        return True

    def absorb(self, entries: Iterable[Entry]) -> None:
        """Entries from others who keep them."""
        for entry in entries:
            new = entry.identity not in self._desk.state.entries
            if not self.take(entry):
                continue
            if isinstance(entry, Part) and new:
                # Also of one that acts no more: what it has acted on, the next one has not.
                self._matching.part(entry)
            elif isinstance(entry, Kept) and self._desk.state.kept(entry.metadata.key):
                self._lacks(entry.metadata)

    def _subscribe(self, source: Address, origin: Cell, home: Cell, message: Subscribe | More) -> None:
        desk, part = self._desk, message.part
        if not valid(part, desk) or part.node != source or not desk.state.takes(part):
            return
        if part.tag != EVERYTHING and desk.grid.cell_of(part.tag) != home:
            return
        desk.state.put(part, desk.now())
        if not self._acts():
            return
        found = [
            (indexed.item.metadata.published, indexed.key, indexed.item)
            for indexed in desk.state.objects_for(part)
            # One that stands in for several cells answers for each of them.
            if part.tag != EVERYTHING or desk.grid.cell_of(indexed.item.metadata.tags[0]) == home
        ]
        found.sort(key=lambda each: each[:2])
        after: tuple[Instant, ObjectKey] | None = message.after if isinstance(message, More) else None
        items = [item for at, key, item in found if after is None or (at, key) > after]
        some = tuple(items[: min(self._batch, next(batches(map(_size, items), ANSWER), 0))])
        answer = Found(message.operation, *home, part.subscription, part.number, len(items), some)
        desk.to_node(origin, source, answer)

    def _relocated(self, message: Relocated) -> bool:
        cell = Cell(message.column, message.row)
        if cell not in self._desk.grid or not timely(message.at, self._desk):
            return False
        place = Place(message.at, message.node, message.column, message.row)
        for entry in list(self._desk.state.entries.values()):
            if isinstance(entry, Part) and entry.node == message.node and entry.version < message.at:
                moved = msgspec.structs.replace(entry, column=cell.column, row=cell.row, version=message.at)
                self._desk.state.put(moved, self._desk.now())
            elif isinstance(entry, Indexed) and any(each.node == message.node for each in entry.item.replicas):
                self.take(msgspec.structs.replace(entry, item=entry.item.with_replicas([place])))
        self._matching.relocated(message.node, cell)
        return True
