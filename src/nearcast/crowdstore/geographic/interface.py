"""Routing between cells, as whoever uses it sees it (THYME 5.8.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.runtime.ports import Address


class Destination(NamedTuple):
    """All members of a cell, or one node that is believed to be in it."""

    cell: Cell
    node: Address | None = None
    """By its address on the link, which is what ``arrived`` gives as the source."""


class Passenger(ABC):
    """Who uses a router.  Nothing of this is called from inside a call of the router."""

    @abstractmethod
    def arrived(self, source: Address, origin: Cell, destination: Destination, payload: bytes) -> None:
        """A message is here, once.

        ``origin`` is the cell that the source is in, or was in, if it moves: an answer goes to ``Destination(origin, source)``.
        ``destination`` is the one that the source named.  Its cell is another one than this host's if it is empty and this one stands in
        for it, as the nearest populated one (5.8.2).
        """

    @abstractmethod
    def undeliverable(self, destination: Destination, payload: bytes) -> None:
        """What this host sent to that node did not reach it: it is not (any more) where it was believed to be (5.8.4).

        Best effort: of what is lost on its way, nobody hears.
        """

    def settled(self, cell: Cell) -> None:
        """This host is a member of that cell from now on; whoever wants its state asks now (5.7)."""

    def unsettled(self, cell: Cell) -> None:
        """This host has left its cell, and is a member of none.  It may still send, and hears what is sent to it alone."""

    def populated(self, cell: Cell) -> None:
        """A cell next to this host's own has its first member, as far as this host has heard.

        The nearest populated cell to one that fills or empties is always next to it, as long as any is: so those who have stood in for
        it, and those who will, hear of it by this and by ``emptied`` (5.8.2).
        """

    def emptied(self, cell: Cell) -> None:
        """Nobody has been heard there lately."""

    def member_joined(self, member: Address) -> None:
        """Another member of this host's own cell was heard for the first time."""

    def member_left(self, member: Address) -> None:
        """It has left the cell, or was not heard lately."""


class Router(ABC):
    """One host's part in the routing between cells."""

    grid: CellGrid
    address: Address
    """Of this host, on the link that is used."""

    @property
    @abstractmethod
    def cell(self) -> Cell | None:
        """The one that this host is a member of; none while it moves between cells."""

    @property
    @abstractmethod
    def place(self) -> Cell | None:
        """The cell that this host is in, member or not; none as long as nobody knows."""

    @abstractmethod
    def route(self, destinations: Iterable[Destination], payload: bytes) -> None:
        """Send a message to all of them, in one copy as long as its ways agree (5.8.5).

        All members of a cell hear it, this host included if it is one; for an empty cell, those of the populated cell nearest to it.
        """

    @abstractmethod
    def tell_cell(self, payload: bytes) -> None:
        """Broadcast to the other members of the own cell, without any acknowledgement; nobody hears it while this host is in none."""

    @abstractmethod
    def members(self) -> tuple[Address, ...]:
        """The other members of the own cell that were heard lately, in alphabetical order."""

    @abstractmethod
    def leader(self) -> Address | None:
        """The member that acts for the cell: the first in alphabetical order, this host included; none while this host is in no cell.

        Members that have not heard of each other may both believe that they are it.
        """

    @property
    def leads(self) -> bool:
        return self.leader() == self.address

    @abstractmethod
    def heard(self) -> tuple[Cell, ...]:
        """Other cells than this host's own of which members were heard lately, the nearest first; none while it is in no cell."""

    @abstractmethod
    def inhabitants(self, cell: Cell) -> tuple[Address, ...]:
        """Other members of that cell that were heard lately."""

    @abstractmethod
    def nearest(self, cell: Cell) -> bool:
        """Whether no populated cell that this host knows is nearer to that one than its own: else it stands in for it no more."""

    @abstractmethod
    def start(self) -> None:
        """Listen, and be heard; says nothing yet."""

    @abstractmethod
    def stop(self) -> None:
        """Say nothing more, and forget everything."""

    @abstractmethod
    def statistics(self) -> Any:
        """A frozen dataclass."""
