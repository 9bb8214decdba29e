"""Objects for the application: where they are, by what this host was told or by asking, and then the object itself (THYME 5.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


ASKED: Final = 3
"""Cells that are asked at most, one after the other, where an object is."""


Found = Callable[[Item | None, bytes | None, Failure | None], None]
"""Told where it was, if anybody knew that, and the object or why there is none."""


@dataclass(slots=True)
class _Sought:
    metadata: Metadata
    homes: list[Cell]
    """Who may know where it is; the first of them is asked."""

    found: Found


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
        self._locating: Final[dict[int, _Sought]] = {}

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
        """For this host's own use."""
        self.find(metadata, partial(self._downloaded, done))

    def find(self, metadata: Metadata, found: Found) -> None:
        """From wherever it is."""
        item = self._known.get(metadata.key)
        if item is not None and item.metadata == metadata:
            self._fetch(item, found)
            return
        if not metadata.tags:  # nothing that was ever published
            self._desk.host.timers.after(0, partial(found, None, None, Failure.NOT_FOUND))
            return
        # The application has it from elsewhere: those who keep its metadata know where it is.
        self._locate(_Sought(metadata, list(self._desk.homes(metadata.tags))[:ASKED], found))

    def _locate(self, sought: _Sought) -> None:
        number = self._operations.number()
        self._locating[number] = sought
        locate = Locate(number, sought.metadata.key)
        self._operations.begin(number, [([sought.homes[0]], locate)], partial(self._not_located, number))

    def located(self, message: Located) -> None:
        sought = self._locating.pop(message.operation, None)
        if sought is None:
            return
        self._operations.answered(message.operation, sought.homes[0])
        metadata = sought.metadata
        if message.item is None or message.item.metadata != metadata:
            self._locate_elsewhere(sought, Failure.NOT_FOUND)
            return
        self.know(message.item)
        self._fetch(self._known.get(metadata.key, message.item), sought.found)

    def _not_located(self, number: int, outcome: Outcome) -> None:
        sought = self._locating.pop(number, None)
        if sought is not None:
            self._locate_elsewhere(sought, outcome.failure)

    def _locate_elsewhere(self, sought: _Sought, failure: Failure | None) -> None:
        """All who kept it in that cell may have failed: those of another tag know it as well."""
        del sought.homes[0]
        if sought.homes:
            self._locate(sought)
        else:
            sought.found(None, None, failure)

    def _fetch(self, item: Item, found: Found) -> None:
        sources = sources_of(item, self._desk, self._tries)
        self._downloading.begin(item.metadata, sources, partial(found, item))

    def _downloaded(self, done: Done, item: Item | None, content: bytes | None, failure: Failure | None) -> None:
        if (
            item is not None
            and content is not None
            and self._copies.hold_for_itself(Publication(item.metadata, content))
        ):
            self._announcing.has(item)
        done(Outcome(failure, content))
