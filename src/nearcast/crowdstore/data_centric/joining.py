"""A newcomer asks a member of its cell for all that the cell keeps (THYME 5.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.crowdstore.data_centric.anti_entropy import in_batches
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import Entry
from nearcast.crowdstore.data_centric.messages import Join, State
from nearcast.runtime.ports import Address, Cancellable


class Joining:
    """``joined`` is called once for each cell in which this host settles, with what ``informed`` says at the member that told it all.

    Who settles alone, or together with others that are as new, is told by nobody who knows more than its cell.
    """

    def __init__(
        self,
        desk: Desk,
        wait: float,
        tries: int,
        absorb: Callable[[Iterable[Entry]], None],
        informed: Callable[[], bool],
        joined: Callable[[bool], None],
    ) -> None:
        self._desk: Final = desk
        self._wait: Final = wait
        self._tries: Final = tries
        self._absorb: Final = absorb
        self._informs: Final = informed
        self._joined: Final = joined
        self._random: Final = desk.host.random("crowdstore joining")
        self._pieces: set[int] = set()
        self._asked: Address | None = None
        self._tried = 0
        self._informed = False
        self._timer: Cancellable | None = None
        self.complete = False

    def begin(self) -> None:
        """Listen first."""
        self.stop()
        self._tried = 0
        self._informed = False
        self._arm()

    def stop(self) -> None:
        self.complete = False
        self._asked = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        # Not all at the same time, if all start together.
        self._timer = self._desk.host.timers.after(self._wait * (0.75 + 0.5 * self._random.random()), self._ask)

    def _ask(self) -> None:
        members, cell = self._desk.router.members(), self._desk.router.cell
        if self._tried >= self._tries or cell is None or (not members and self._tried):
            self._end()
            return
        self._asked = members[self._tried % len(members)] if members else None
        self._pieces = set()
        self._tried += 1
        if self._asked is not None:
            self._desk.to_node(cell, self._asked, Join())
        self._arm()

    def asked(self, source: Address) -> None:
        """Answer, unless this host is as new; of two that are, the first in alphabetical order does."""
        cell = self._desk.router.cell
        if cell is None or not (self.complete or self._desk.router.address < source):
            return
        pieces = list(in_batches(list(self._desk.state.entries.values()))) or [()]
        for number, entries in enumerate(pieces):
            self._desk.to_node(cell, source, State(entries, number, len(pieces), self._informs()))

    def told(self, source: Address, message: State) -> None:
        """All that anybody tells is kept; but only when the one that was asked has told all of it, this host is a member like others."""
        self._absorb(message.entries)
        if self.complete or source != self._asked or message.number >= message.count:
            return
        self._pieces.add(message.number)
        if len(self._pieces) == message.count:
            self._informed = message.informed
            self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.complete = True
        self._joined(self._informed)
