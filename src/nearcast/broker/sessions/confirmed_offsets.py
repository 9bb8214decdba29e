"""Which messages a session is not owed any more although an older one is still on its way."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

Span = tuple[int, int]
"""Offsets, half-open."""

MOST_FRESH: Final = 256
"""Offsets noted one by one before they are joined."""


@dataclass(slots=True, eq=False)
class ConfirmedOffsets:
    """Offsets of the journal, in spans.

    Nothing in a span is owed, so there are at most as many spans as gaps between what is.  One by one they would grow for ever: a
    client that leaves one message unconfirmed, and whose queue then overflows for days, gives up millions.
    """

    _spans: list[Span] = field(default_factory=list)
    _fresh: set[int] = field(default_factory=set)

    def __contains__(self, offset: int) -> bool:
        before = bisect_right(self._spans, offset, key=lambda span: span[0]) - 1
        return offset in self._fresh or (before >= 0 and offset < self._spans[before][1])

    def add(self, offset: int, pending: Collection[int]) -> None:
        """It is not among ``pending``, which are owed."""
        self._fresh.add(offset)
        if len(self._fresh) > MOST_FRESH:
            self._join(pending)

    def forget(self, first: int | None) -> None:
        """Everything below is confirmed anyway; none: everything is."""
        if self._spans or self._fresh:
            self._spans = [span for span in self._spans if first is not None and span[1] > first]
            self._fresh = {each for each in self._fresh if first is not None and each > first}

    def spans(self, pending: Collection[int]) -> tuple[Span, ...]:
        if self._fresh:
            self._join(pending)
        return tuple(self._spans)

    def _join(self, pending: Collection[int]) -> None:
        owed = sorted(pending)
        joined: list[Span] = []
        for start, end in sorted([*self._spans, *((each, each + 1) for each in self._fresh)]):
            if joined and bisect_left(owed, joined[-1][1]) == bisect_left(owed, start):
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        self._spans, self._fresh = joined, set()
