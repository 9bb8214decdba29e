"""Operations on several cells: what has not been answered is asked again, and only there (THYME 5.6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.storage import DONE, Done, Failure, Outcome
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Cancellable


@dataclass(slots=True)
class _Open:
    left: dict[Cell, Message]
    """What each cell that has not answered is to be told."""

    done: Done
    tries: int
    timer: Cancellable


def heedless(_outcome: Outcome) -> None:
    """Nobody waits for it."""


class Operations:
    """Those of this host that are under way, by number."""

    def __init__(self, desk: Desk, timeout: float, tries: int) -> None:
        self.timeout: Final = timeout
        self.tries: Final = tries
        self.repeated = 0
        self._desk: Final = desk
        self._open: Final[dict[int, _Open]] = {}
        # Answers to an earlier life of this host are not for this one.
        self._last = desk.now() // 1_000 % (1 << 30)

    def __len__(self) -> int:
        return len(self._open)

    def number(self) -> int:
        self._last += 1
        return self._last

    def begin(self, number: int, messages: Iterable[tuple[Iterable[Cell], Message]], done: Done = heedless) -> None:
        """Tell each of the cells; ``done`` when all have answered, or have not, however often they were told."""
        left = {cell: message for cells, message in messages for cell in cells}
        opened = _Open(left, done, 1, self._timer(number))
        self._open[number] = opened
        if left:
            self._send(opened)
        else:
            opened.timer.cancel()
            self._desk.host.timers.after(0, partial(self._finish, number, DONE))

    def answered(self, number: int, cell: Cell) -> None:
        opened = self._open.get(number)
        if opened is not None and opened.left.pop(cell, None) is not None and not opened.left:
            self._finish(number, DONE)

    def stop(self) -> None:
        for opened in self._open.values():
            opened.timer.cancel()
        self._open.clear()

    def _timer(self, number: int) -> Cancellable:
        return self._desk.host.timers.after(self.timeout, partial(self._again, number))

    def _send(self, opened: _Open) -> None:
        together: dict[int, tuple[Message, list[Cell]]] = {}
        for cell, message in opened.left.items():
            together.setdefault(id(message), (message, []))[1].append(cell)
        for message, cells in together.values():
            self._desk.to_cells(cells, message)

    def _again(self, number: int) -> None:
        opened = self._open[number]
        if opened.tries >= self.tries:
            self._finish(number, Outcome(Failure.TIMED_OUT))
            return
        opened.tries += 1
        self.repeated += 1
        opened.timer = self._timer(number)
        self._send(opened)

    def _finish(self, number: int, outcome: Outcome) -> None:
        opened = self._open.pop(number, None)
        if opened is not None:
            opened.timer.cancel()
            opened.done(outcome)
