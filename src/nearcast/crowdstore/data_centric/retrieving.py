"""Objects for the application: where they are, by what this host was told or by asking, and then the object itself (THYME 5.5)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.crowdstore.data_centric.announcing import Announcing
from nearcast.crowdstore.data_centric.copies import Copies
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading, sources_of
from nearcast.crowdstore.data_centric.entries import Item
from nearcast.crowdstore.data_centric.messages import Locate, Located
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication
from nearcast.crowdstore.storage import Done, Failure, Outcome

KNOWN: Final = 4_096
"""Objects that this host was told of, and knows where to get."""


class Retrieving:
    def __init__(
        self, desk: Desk, operations: Operations, downloading: Downloading, copies: Copies, announcing: Announcing,
        tries: int,
    ) -> None:  # fmt: skip
        self._desk: Final = desk
        self._operations: Final = operations
        self._downloading: Final = downloading
        self._copies: Final = copies
        self._announcing: Final = announcing
        self._tries: Final = tries
        self._known: Final[dict[ObjectKey, Item]] = {}
        self._locating: Final[dict[int, tuple[Metadata, Done]]] = {}

    def stop(self) -> None:
        self._locating.clear()

    def know(self, item: Item) -> None:
        """Somebody said where it is."""
        places = (item.active, *(place.cell for place in item.replicas))
        if all(Cell(*place) in self._desk.grid for place in places):
            self._known[item.metadata.key] = item
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]

    def download(self, metadata: Metadata, done: Done) -> None:
        item = self._known.get(metadata.key)
        if item is not None and item.metadata == metadata:
            self._fetch(item, done)
            return
        if not metadata.tags:  # nothing that was ever published
            self._desk.host.timers.after(0, partial(done, Outcome(Failure.NOT_FOUND)))
            return
        # The application has it from elsewhere: those who keep its metadata know where it is.
        number = self._operations.number()
        self._locating[number] = metadata, done
        home = self._desk.grid.cell_of(metadata.tags[0])
        self._operations.begin(number, [([home], Locate(number, metadata.key))], partial(self._not_located, number))

    def located(self, message: Located) -> None:
        metadata, done = self._locating.pop(message.operation, (None, None))
        if metadata is None or done is None:
            return
        self._operations.answered(message.operation, self._desk.grid.cell_of(metadata.tags[0]))
        if message.item is None or message.item.metadata != metadata:
            done(Outcome(Failure.NOT_FOUND))
            return
        self.know(message.item)
        self._fetch(self._known.get(metadata.key, message.item), done)

    def _not_located(self, number: int, outcome: Outcome) -> None:
        waiting = self._locating.pop(number, None)
        if waiting is not None:
            waiting[1](outcome)

    def _fetch(self, item: Item, done: Done) -> None:
        sources = sources_of(item, self._desk, self._tries)
        self._downloading.begin(item.metadata, sources, partial(self._got, item, done))

    def _got(self, item: Item, done: Done, content: bytes | None, failure: Failure | None) -> None:
        if content is not None:
            self._copies.hold_for_itself(Publication(item.metadata, content))
            self._announcing.has(item)
        done(Outcome(failure, content))
