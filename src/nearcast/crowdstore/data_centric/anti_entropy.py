"""Members of a cell compare what they have, and tell each other what is missing.

The paper's members hear of changes by a broadcast that nobody acknowledges, and so come to differ (6.5, its weak point under mobility).
Here the acting member says now and then what it has, in one number.  Whoever has something else answers with a sum for each bucket; they
exchange names and hashes of the buckets that differ, and then the entries themselves.  As long as all have the same, that costs one
small broadcast for each cell and period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.crowdstore.data_centric.desk import Desk, batches
from nearcast.crowdstore.data_centric.entries import Entry
from nearcast.crowdstore.data_centric.messages import MOST, Digest, Entries, Lack, Listing, Sums
from nearcast.crowdstore.data_centric.state import BUCKETS
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.ports import Address


class AntiEntropy:
    def __init__(self, desk: Desk, absorb: Callable[[Iterable[Entry]], None]) -> None:
        self._desk: Final = desk
        self._absorb: Final = absorb
        self.differences = 0
        """How often this host had something else than the acting member."""

    def tick(self) -> None:
        """Of the acting member."""
        if self._desk.router.members():
            self._desk.tell(Digest(self._desk.state.root()))

    def receive(self, source: Address, message: Message) -> None:
        state = self._desk.state
        if isinstance(message, Digest):
            if message.root != state.root():
                self.differences += 1
                self._say(source, Sums(tuple(state.sums)))
        elif isinstance(message, Sums):
            self._list(source, message)
        elif isinstance(message, Listing):
            self._compare(source, message)
        elif isinstance(message, Lack):
            self.give(source, state.named(message.names))
        elif isinstance(message, Entries):
            self._absorb(message.entries)

    def _list(self, source: Address, message: Sums) -> None:
        if len(message.sums) != BUCKETS:
            return
        buckets: list[int] = []
        listed: list[tuple[int, int]] = []
        for bucket, (own, other) in enumerate(zip(self._desk.state.sums, message.sums, strict=True)):
            if own == other:
                continue
            found = self._desk.state.listing(bucket)
            if len(listed) + len(found) > MOST:
                continue  # it comes with another digest, when others are equal
            buckets.append(bucket)
            listed += found
        if buckets:
            names, stamps = tuple(name for name, _ in listed), tuple(stamp for _, stamp in listed)
            self._say(source, Listing(tuple(buckets), names, stamps))

    def _compare(self, source: Address, message: Listing) -> None:
        if len(message.names) != len(message.stamps) or not all(bucket < BUCKETS for bucket in message.buckets):
            return
        state = self._desk.state
        theirs = dict(zip(message.names, message.stamps, strict=True))
        lacking = [name for name, stamp in theirs.items() if state.stamp(name) != stamp]
        own = (pair for bucket in dict.fromkeys(message.buckets) for pair in state.listing(bucket))
        unknown = [name for name, stamp in own if theirs.get(name) != stamp]
        # First what they lack: of an entry that both have differently, both then have what it merges to.
        self.give(source, state.named(unknown))
        if lacking:
            self._say(source, Lack(tuple(lacking)))

    def give(self, to: Address, entries: list[Entry]) -> None:
        for some in in_batches(entries):
            self._say(to, Entries(some))

    def _say(self, to: Address, message: Message) -> None:
        cell = self._desk.router.cell
        if cell is not None:
            self._desk.to_node(cell, to, message)


def in_batches(entries: list[Entry]) -> Iterable[tuple[Entry, ...]]:
    """So that each fits into a frame."""
    start = 0
    for count in batches(len(encoded(Entries((entry,)))) for entry in entries):
        yield tuple(entries[start : start + count])
        start += count
