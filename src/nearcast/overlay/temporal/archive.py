"""The contexts that were registered at one node, with the time during which they were (Def. 6.2).

A *piece* is a context under one virtual identity from one instant to another; a new one begins with every change.  Pieces lie in
columns: which of a million concern some hours and some streets is a comparison of arrays.  Who asks is told when a message
would have met somebody, and never what that somebody was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.matching.context_columns import ContextColumns, Questions, questions
from nearcast.matching.growing import grown
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.temporal import first_that_matters, last_that_matters
from nearcast.model.time import LARGEST, Instant
from nearcast.overlay.routing.reporting import alike
from nearcast.overlay.routing.wire import addressing
from nearcast.overlay.temporal.messages import Span, Vid

_OPEN: Final = LARGEST
"""The end of what has not ended."""

_NOT_USED: Final = 1 - LARGEST


def placed(event: Event) -> Questions:
    """The conjuncts of an event, each with its reach: who is to get it stands there."""
    return questions(addressing(event))


class Piece(NamedTuple):
    """A context under one identity; without an end, it is still registered, and without length, it is void."""

    vid: Vid
    start: Instant
    end: Instant | None
    context: Context


@dataclass(frozen=True, slots=True)
class ArchiveStatistics:
    pieces: int
    identities: int
    open: int
    """Contexts that are registered now."""


class Archive:
    """Pieces of one node."""

    def __init__(self) -> None:
        self._columns: Final = ContextColumns()
        self._start: npt.NDArray[np.int64] = np.zeros(16, np.int64)
        self._end: npt.NDArray[np.int64] = np.full(16, _NOT_USED, np.int64)
        self._number: npt.NDArray[np.int32] = np.zeros(16, np.int32)
        """By row: which identity."""

        self._vids: Final[list[Vid | None]] = []
        self._number_of: Final[dict[Vid, int]] = {}
        self._pieces_of: Final[list[int]] = []
        self._free: Final[list[int]] = []
        self._open: Final[dict[Vid, int]] = {}
        self._last = 0
        """The row that was filled last."""

    def __len__(self) -> int:
        return len(self._columns)

    def statistics(self) -> ArchiveStatistics:
        return ArchiveStatistics(pieces=len(self), identities=len(self._number_of), open=len(self._open))

    # What is registered

    def record(self, vid: Vid, at: Instant, context: Context | None) -> list[Piece]:
        """Since then this is the context of that identity; none: it has none any more.  The pieces that are new or changed."""
        row = self._open.get(vid)
        if row is None:
            return [] if context is None else [self._begin(vid, at, None, context)]
        before = self._columns.contexts[row] or {}
        if context is not None and alike(before, context):
            return []
        start = int(self._start[row])
        end = max(at, start)
        if end == start:  # two reports at one instant: the second one counts
            self.remove(row)
        else:
            self._end[row] = end
            del self._open[vid]
        ended = Piece(vid, start, end, before)
        return [ended] if context is None else [ended, self._begin(vid, end, None, context)]

    def put(self, piece: Piece) -> int:
        """A piece from elsewhere; in which row it is."""
        self._begin(*piece)
        return self._last

    def pieces(self) -> Iterator[Piece]:
        """All of them, in no order."""
        for row in np.flatnonzero(self._end != _NOT_USED).tolist():
            end = int(self._end[row])
            context = self._columns.contexts[row]
            vid = self._vids[self._number[row]]
            assert context is not None
            assert vid is not None
            yield Piece(vid, int(self._start[row]), None if end == _OPEN else end, context)

    def forget(self, before: Instant) -> int:
        """What ended before then; how many pieces that were."""
        rows = np.flatnonzero((self._end < before) & (self._end != _NOT_USED)).tolist()
        for row in rows:
            self.remove(row)
        return len(rows)

    def _begin(self, vid: Vid, start: Instant, end: Instant | None, context: Context) -> Piece:
        row = self._last = self._columns.add(context)
        self._start, self._end = grown(self._start, row + 1), grown(self._end, row + 1, _NOT_USED)
        self._number = grown(self._number, row + 1)
        number = self._number_of.get(vid)
        if number is None:
            number = self._number_of[vid] = self._free.pop() if self._free else len(self._vids)
            if number == len(self._vids):
                self._vids.append(None)
                self._pieces_of.append(0)
            self._vids[number] = vid
        self._pieces_of[number] += 1
        self._start[row], self._end[row], self._number[row] = start, _OPEN if end is None else end, number
        if end is None:
            self._open[vid] = row
        return Piece(vid, start, end, context)

    def remove(self, row: int) -> None:
        """Forget a piece."""
        number = int(self._number[row])
        vid = self._vids[number]
        assert vid is not None
        if self._open.get(vid) == row:
            del self._open[vid]
        self._columns.remove(row)
        self._end[row] = _NOT_USED
        self._pieces_of[number] -= 1
        if not self._pieces_of[number]:
            del self._number_of[vid]
            self._vids[number] = None
            self._free.append(number)

    # What is asked

    def spans(self, event: Event, among: frozenset[int] | None = None) -> list[Span]:
        """When which conjunct of the event and its reach held of whom: for each identity the longest intervals that this node knows of.

        What lies so far from the bounds of its temporal predicate that it makes no difference is left out.  ``among``: numbers of
        conjuncts, if not all are asked for.
        """
        matters = self._that_matter(event)
        spans: list[Span] = []
        for number, conjunct in enumerate(placed(event)):
            if among is None or number in among:
                spans += self._united(number, self._columns.met(conjunct, matters))
        return spans

    def _that_matter(self, event: Event) -> npt.NDArray[np.int64]:
        used = self._end != _NOT_USED
        if event.when is not None:
            first, last = first_that_matters(event.when), last_that_matters(event.when)
            if first is not None:
                used &= self._end >= first
            if last is not None:
                used &= self._start <= last
        return np.flatnonzero(used)

    def _united(self, conjunct: int, rows: npt.NDArray[np.int64]) -> Iterator[Span]:
        order = np.lexsort((self._start[rows], self._number[rows]))
        rows = rows[order]
        pieces = zip(self._number[rows].tolist(), self._start[rows].tolist(), self._end[rows].tolist(), strict=True)
        return (
            Span(self._vids[number] or "", conjunct, start, None if end == _OPEN else end)
            for number, start, end in joined(pieces)
        )


def joined(pieces: Iterable[tuple[int, Instant, Instant]]) -> Iterator[tuple[int, Instant, Instant]]:
    """Of pieces (whose, start, end), ordered by these, those together that touch or overlap."""
    last: tuple[int, Instant, Instant] | None = None
    for whose, start, end in pieces:
        if last is not None and last[0] == whose and start <= last[2]:
            last = whose, last[1], max(last[2], end)
            continue
        if last is not None:
            yield last
        last = whose, start, end
    if last is not None:
        yield last
