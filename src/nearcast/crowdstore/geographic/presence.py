"""Who is where: this host by its location sensor, others by their beacons (THYME 5.8.1, 5.8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.messages import Beacon
from nearcast.errors import InvalidSettings
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address, Fix

MOST_HEARD: Final = 4_096
"""Hosts; nobody has so many around, unless somebody makes them up."""

STILL: Final = 0.2
"""Metres per second: slower than any walk, faster than the drift of a receiver that lies on a table."""

SURE: Final = 2.0
"""Standard deviations of a fix by which a host must be outside its cell to have left it: else those at a border would flap."""


@dataclass(frozen=True, slots=True)
class Presence:
    """How hosts show that they are there; the paper says nothing of it but that beacons are periodic."""

    beacon: float = 2.0
    """Seconds between beacons, on average: each is up to a quarter earlier or later, so that neighbours do not collide for ever."""

    missed: float = 3.5
    """After so many periods of silence a host is gone."""

    settle: float = 2.0
    """Seconds that a host has to stand still in one cell before it is a member of it."""

    look: float = 1.0
    """Seconds between looks at the location sensor."""

    skip: bool = True
    """Messages skip cells where somebody farther away is heard steadily; else they go from each cell to one around it, as in the paper."""

    def __post_init__(self) -> None:
        if not (self.beacon > 0 and self.missed >= 1.25 and self.settle >= 0 and self.look > 0):
            raise InvalidSettings(f"beacons, and looks at the sensor, need times between them: {self}")


STEADY: Final = 10
"""Beacons in a row without a gap, after which a link counts as good: of one that loses a tenth of them, that is true for a third of the time, of
one that loses a quarter, for a twentieth."""

GAP: Final = 1.5
"""Periods: two beacons that follow each other are never farther apart, unless one between them was lost."""


class Heard:
    """A host that was heard lately."""

    __slots__ = ("place", "row", "suspect", "time")

    def __init__(self, place: int, time: Instant) -> None:
        self.place = place
        """As in its beacon."""

        self.time = time
        self.row = 1
        """So many of its beacons were heard without a gap."""

        self.suspect = False
        """What was sent to it since its last beacon was not acknowledged."""


class Surroundings:
    """Those heard lately, by name and by cell."""

    def __init__(self, grid: CellGrid, now: Callable[[], Instant], beacon: float) -> None:
        self.heard: Final[dict[Address, Heard]] = {}
        self.by_cell: Final[dict[Cell, dict[Address, Heard]]] = {}
        """Only members: who moves is in no cell."""

        self.now: Final = now
        self._grid: Final = grid
        self._gap: Final = round(GAP * beacon * MICROSECONDS)

    def beacon(self, sender: Address, place: int) -> tuple[Cell | None, Cell | None] | None:
        """Take one; the cells that the sender has left and joined by that, if it did either.  Called very often."""
        known = self.heard.get(sender)
        if known is not None and known.place == place:
            now = self.now()
            known.row = known.row + 1 if now - known.time <= self._gap else 1
            known.time = now
            known.suspect = False
            return None
        return self._changed(sender, known, place)

    def _changed(self, sender: Address, known: Heard | None, place: int) -> tuple[Cell | None, Cell | None] | None:
        if place >> 1 >= len(self._grid) or (known is None and len(self.heard) >= MOST_HEARD):
            return None
        left = None if known is None else self._drop(sender, known)
        known = self.heard[sender] = Heard(place, self.now())
        joined = self._cell(known)
        if joined is not None:
            self.by_cell.setdefault(joined, {})[sender] = known
        return left, joined

    def expire(self, before: Instant) -> list[tuple[Address, Cell | None]]:
        """Forget those not heard since; with the cells that they were members of."""
        gone = [(name, known) for name, known in self.heard.items() if known.time < before]
        return [(name, self._drop(name, known)) for name, known in gone]

    def _drop(self, name: Address, known: Heard) -> Cell | None:
        del self.heard[name]
        cell = self._cell(known)
        if cell is not None:
            members = self.by_cell[cell]
            del members[name]
            if not members:
                del self.by_cell[cell]
        return cell

    def _cell(self, known: Heard) -> Cell | None:
        return None if known.place & 1 else self._grid.cell(known.place >> 1)

    def usable(self, cell: Cell) -> list[Address]:
        """Its members that have not been in vain since their last beacon."""
        return [name for name, known in self.by_cell.get(cell, {}).items() if not known.suspect]

    def steady(self, cell: Cell) -> list[Address]:
        """Those of them that are heard without gaps: however far away they are, what is sent to them arrives."""
        members = self.by_cell.get(cell, {}).items()
        return [name for name, known in members if known.row >= STEADY and not known.suspect]

    def suspect(self, name: Address) -> None:
        known = self.heard.get(name)
        if known is not None:
            known.suspect = True
            known.row = 0

    def clear(self) -> None:
        self.heard.clear()
        self.by_cell.clear()


class HearsBeacons(Protocol):
    def hear(self, sender: Address, place: int) -> None: ...


def hear_together(receivers: Iterable[HearsBeacons], sender: Address, message: Beacon) -> None:
    """One beacon that many hear."""
    place = message.place
    for receiver in receivers:
        receiver.hear(sender, place)


class Whereabouts:
    """In which cell this host is, and whether as a member."""

    def __init__(self, grid: CellGrid, settle: float) -> None:
        self.place: Cell | None = None
        self.member = False
        self._grid: Final = grid
        self._settle: Final = round(settle * MICROSECONDS)
        self._since: Instant = 0
        """When it was first seen standing in this cell."""

    def look(self, fix: Fix, now: Instant) -> bool:
        """Take what the sensor says; true if cell or membership has changed.

        Sensors that are asked in vain give an old fix again: whoever stood then stands still, as far as is known.
        """
        if self.member and self.place is not None:
            # Within its cell a member may move about (5.8.3).
            if self._grid.outside(fix.position, self.place) <= SURE * fix.accuracy and (
                fix.accuracy or self._grid.cell_at(fix.position) == self.place
            ):
                return False
            self.member = False
            self.place, self._since = self._grid.cell_at(fix.position), now
            return True
        cell, before = self._grid.cell_at(fix.position), self.place
        if cell != before or fix.speed > STILL:
            self.place, self._since = cell, now
        if fix.speed <= STILL and now - self._since >= self._settle:
            self.member = True
            return True
        return cell != before
