"""Keys of cells that empty and fill go where they will be looked for (THYME 5.8.2, which the paper does not implement).

An entry is sent to its home, the cell that its key hashes to; the router finds who stands in for that one, if it is empty.  So a last member
that leaves, and a cell that stands in for another one no more, do the same.  What is promised: whatever a cell has answered for stays with
the crowd when its last members walk away, also if they leave together, as long as one of them is in reach of others for some seconds.  When
they fail instead, what only they had is lost: other members' copies are all that is against that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from nearcast.crowdstore.data_centric.anti_entropy import in_batches
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Entry, Gone, Indexed, Part
from nearcast.crowdstore.data_centric.messages import Arrived, Entrusted, Handed
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.data_centric.state import stamp_of
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.planar import surely_nearest
from nearcast.crowdstore.storage import Outcome
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address, Cancellable

TOLD: Final = 100
"""Entries that members are told together to be elsewhere: so many fit into a frame."""

SELDOM: Final = 6
"""Every so many periods a cell asks whether it still stands in for one that is out of its sight."""


def _heedless(_ok: bool) -> None:
    """Whether or not."""


class HandingOver:
    def __init__(self, desk: Desk, operations: Operations, wait: float, joining: float) -> None:
        self._desk: Final = desk
        self._operations: Final = operations
        self._wait: Final = wait
        """Seconds after which a member that has left knows whether others have, too."""

        self._joining: Final = round(joining * MICROSECONDS)
        """After which a newcomer has been told what the cell keeps."""

        self._under_way: Final[dict[Cell, None]] = {}
        self._sent: Final[dict[int, None]] = {}
        """Operations that have not come back to this cell."""

        self._since: Final[dict[Address, Instant]] = {}
        """When this host first heard those who came to its cell after it."""

        self._leaving: Final[dict[Cell, Cancellable]] = {}
        self.informed = False
        """Whether this host's cell was told what every cell has to know."""

        self._inquired = 0
        self._inquiring: int | None = None
        self._periods = 0
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

    def member(self, name: Address) -> None:
        """It is new in this cell."""
        self._since[name] = self._desk.now()

    def member_gone(self, name: Address) -> None:
        """So nobody who makes names up fills anything: only those that are heard are remembered."""
        self._since.pop(name, None)

    def _newcomers(self) -> list[Address]:
        """Those that may not have been told yet what the cell keeps."""
        oldest = self._desk.now() - self._joining
        return [name for name, since in self._since.items() if since > oldest]

    # A cell empties

    def leave(self, cell: Cell, left: Callable[[bool], None]) -> None:
        """This host is leaving, and forgets then: if it is the last, others are to have all of it.  ``left`` is told whether it was."""
        homes, common = self.by_home(), self.everywhere()
        if common:
            homes.setdefault(cell, [])
        pieces = {home: [*common, *entries] for home, entries in homes.items()}
        others = {*self._desk.router.inhabitants(cell)} - {*self._newcomers()}
        self._since.clear()
        if not others:
            self._last(pieces, left)
            return
        # They may be leaving at the same time, and see this one as a member, as it sees them.
        look_back = partial(self._look_back, cell, others, pieces, left)
        self._leaving[cell] = self._desk.host.timers.after(self._wait, look_back)

    def _look_back(
        self, cell: Cell, others: set[Address], pieces: dict[Cell, list[Entry]], left: Callable[[bool], None]
    ) -> None:
        self._leaving.pop(cell, None)
        if others & {*self._desk.router.inhabitants(cell)}:
            left(False)
        else:
            self._last(pieces, left)

    def _last(self, pieces: dict[Cell, list[Entry]], left: Callable[[bool], None]) -> None:
        for home, entries in pieces.items():
            self._send(home, entries)
        left(True)

    # A cell fills

    def settled(self, *, informed: bool) -> None:
        """This host is a member now."""
        self.informed, self._inquiring = informed, None

    def inquire(self) -> None:
        """Of the acting member: somebody who is heard tells this cell what every cell has to know, if nobody has.

        The nearest cell first, then others; who is alone so far asks when it hears somebody.
        """
        heard = self._desk.router.heard()
        if self.informed or self._inquiring is not None or not heard:
            return
        number = self._inquiring = self._operations.number()
        asked = heard[self._inquired % len(heard)]
        self._inquired += 1
        self._operations.begin(number, [([asked], Arrived(number))], partial(self._answered, number))

    def _answered(self, number: int, outcome: Outcome) -> None:
        if number == self._inquiring:  # of this cell, and not of one that was left since
            self._inquiring = None
            self.informed = outcome.ok

    def tell_first(self, cell: Cell) -> None:
        if common := self.everywhere():
            self._send(cell, common)

    def tell(self, cell: Cell, gone: Gone) -> None:
        """What that one has to know, wherever else it belongs."""
        self._send(cell, [gone])

    def tidy(self) -> None:
        """Of the acting member: hand over what another cell is nearer to."""
        own, router = self._desk.router.cell, self._desk.router
        for home, entries in self.by_home().items():
            if home != own and home not in self._under_way and not router.nearest(home):
                self._hand(home, entries)

    def tick(self) -> None:
        self.inquire()
        self.tidy()
        self._periods += 1
        own = self._desk.router.cell
        if self._periods % SELDOM or own is None:
            return
        # Somebody who settled nearer to an empty cell, on the other side of a void, is not heard here: a message finds out.
        for home, entries in self.by_home().items():
            if home != own and home not in self._under_way and not surely_nearest(self._desk.grid, own, home):
                self._send(home, [], partial(self._elsewhere, home, entries))

    def came_back(self, number: int) -> None:
        """A message of this host for a cell that this one stands in for."""
        self._sent.pop(number, None)

    def _elsewhere(self, home: Cell, entries: list[Entry], ok: bool) -> None:
        if ok and home not in self._under_way:
            self._hand(home, entries)

    # Entries go elsewhere

    def _hand(self, home: Cell, entries: list[Entry]) -> None:
        self._under_way[home] = None
        self._send(home, entries, partial(self._handed, home, entries, self._desk.router.cell))

    def _send(self, home: Cell, entries: list[Entry], done: Callable[[bool], None] = _heedless) -> None:
        """``done`` is told whether another cell has all of them."""
        pieces = list(in_batches(entries)) or [()]
        outcomes: list[bool] = []

        def ended(number: int, outcome: Outcome) -> None:
            outcomes.append(outcome.ok and number in self._sent)
            self._sent.pop(number, None)
            if len(outcomes) == len(pieces):
                done(all(outcomes))

        for some in pieces:
            number = self._operations.number()
            self._sent[number] = None
            self._operations.begin(number, [([home], Entrusted(number, some))], partial(ended, number))
        self.handed += len(entries)

    def _handed(self, home: Cell, entries: list[Entry], own: Cell | None, ok: bool) -> None:
        self._under_way.pop(home, None)
        if not ok or own is None or self._desk.router.cell != own:
            return
        # What has come here, or has changed, meanwhile is not there: it stays, and goes later.
        stamps = tuple(map(stamp_of, entries))
        for start in range(0, len(stamps), TOLD):
            self._desk.tell(Handed(*home, stamps[start : start + TOLD]))
        self.drop(home, stamps)

    def drop(self, home: Cell, stamps: tuple[int, ...]) -> None:
        """They are there now."""
        desk, gone = self._desk, {*stamps}
        if home == desk.router.cell:
            return
        for entry in self.by_home().get(home, []):
            kept = desk.state.entries.get(entry.identity)
            if kept is None or stamp_of(entry) not in gone:
                continue
            desk.state.drop(kept)
            if isinstance(kept, Indexed) and isinstance(entry, Indexed):
                rest = tuple(tag for tag in kept.tags if tag not in entry.tags)
                if rest:
                    desk.state.put(msgspec.structs.replace(kept, tags=rest), desk.now())

    def stop(self) -> None:
        self._under_way.clear()
        self._sent.clear()
        self._since.clear()
        self._inquiring = None
        for timer in self._leaving.values():
            timer.cancel()
        self._leaving.clear()
