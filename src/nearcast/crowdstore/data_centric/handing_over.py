"""Keys of cells that empty and fill go where they will be looked for (THYME 5.8.2, which the paper does not implement).

An entry is sent to its home, the cell that its key hashes to; the router finds who stands in for that one, if it is empty.  So a last member
that leaves, and a cell that stands in for another one no more, do the same.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nearcast.crowdstore.data_centric.anti_entropy import in_batches
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Entry, Gone, Indexed, Part
from nearcast.crowdstore.data_centric.messages import Entrusted, Handed
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.storage import Outcome


class HandingOver:
    def __init__(self, desk: Desk, operations: Operations) -> None:
        self._desk: Final = desk
        self._operations: Final = operations
        self._under_way: Final[dict[Cell, None]] = {}
        self.handed = 0

    def by_home(self) -> dict[Cell, list[Entry]]:
        """All that is kept here for others to find, by the cells it belongs to."""
        found: dict[Cell, list[Entry]] = {}
        cell_of = self._desk.grid.cell_of
        for entry in self._desk.state.entries.values():
            if isinstance(entry, Indexed):
                homes: dict[Cell, list[str]] = {}
                for tag in entry.tags:
                    homes.setdefault(cell_of(tag), []).append(tag)
                for home, tags in homes.items():
                    found.setdefault(home, []).append(msgspec.structs.replace(entry, tags=tuple(tags)))
            elif isinstance(entry, Part) and entry.tag != EVERYTHING:
                found.setdefault(cell_of(entry.tag), []).append(entry)
        return found

    def everywhere(self) -> list[Entry]:
        """What every cell has to know: conjunctions without a key, and what was withdrawn."""
        entries = self._desk.state.entries.values()
        return [e for e in entries if isinstance(e, Gone) or (isinstance(e, Part) and e.tag == EVERYTHING)]

    def leave(self, cell: Cell) -> None:
        """The last member is leaving: before it forgets."""
        homes = self.by_home()
        common = self.everywhere()
        if common:
            homes.setdefault(cell, [])
        for home, entries in homes.items():
            self._send(home, [*common, *entries])

    def filled(self, cell: Cell) -> None:
        """It has a first member, who has nothing yet."""
        if common := self.everywhere():
            self._send(cell, common)
        self.tidy()

    def tidy(self) -> None:
        """Of the acting member: hand over what another cell is nearer to."""
        own = self._desk.router.cell
        homes = [home for home in self.by_home() if home != own and not self._desk.router.nearest(home)]
        for home in homes:
            if home not in self._under_way:
                self._under_way[home] = None
                self._send(home, self.by_home()[home], drop=True)

    def _send(self, home: Cell, entries: list[Entry], *, drop: bool = False) -> None:
        pieces = list(in_batches(entries))
        left = len(pieces)

        def done(outcome: Outcome) -> None:
            nonlocal left
            left -= 1 if outcome.ok else 0
            if drop and (not left or not outcome.ok):
                self._done(home, outcome)

        for some in pieces:
            number = self._operations.number()
            self._operations.begin(number, [([home], Entrusted(number, some))], done)
        self.handed += len(entries)

    def _done(self, home: Cell, outcome: Outcome) -> None:
        self._under_way.pop(home, None)
        if outcome.ok:
            self._desk.tell(Handed(*home))
            self.drop(home)

    def drop(self, home: Cell) -> None:
        """It is there now; unless this cell has become the nearest one again."""
        desk = self._desk
        if home == desk.router.cell or desk.router.nearest(home):
            return
        for entry in self.by_home().get(home, []):
            kept = desk.state.entries.get(entry.identity)
            if kept is None:
                continue
            desk.state.drop(kept)
            if isinstance(kept, Indexed) and isinstance(entry, Indexed):
                rest = tuple(tag for tag in kept.tags if tag not in entry.tags)
                if rest:
                    desk.state.put(msgspec.structs.replace(kept, tags=rest), desk.now())

    def stop(self) -> None:
        self._under_way.clear()
