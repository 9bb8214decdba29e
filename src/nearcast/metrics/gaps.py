"""Gaps of recall: for how long after an instant, such as a transition, events did not reach whom they should.

"Recall 0 for about 100 ms" (BYPASS.KOM 6.2.2) and "one round trip" (LCN 2016) are statements about bins much finer than the
usual windows.  A bin of one run holds few events, so runs with several seeds are added before they are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.metrics.columns import Flags, Floats, Wholes, instants, ratio, sums, wholes
from nearcast.model.time import MICROSECONDS, Instant

BIN: Final = 20_000
"""Microseconds."""


@dataclass(frozen=True, eq=False)
class AlignedRecall:
    """Pairs of events in bins of the time of publication, relative to an instant."""

    length: int
    """Microseconds of a bin."""

    bins_before: int
    due: Wholes
    correct: Wholes

    @property
    def offsets(self) -> Wholes:
        """Where each bin begins, in microseconds after the instant; half-open."""
        return (np.arange(len(self.due)) - self.bins_before) * self.length

    @property
    def recall(self) -> Floats:
        """NaN where nothing was due."""
        return ratio(self.correct, self.due)

    @property
    def recall_before(self) -> float | None:
        """Of all bins before the instant, as a ratio of sums; none if nothing was due."""
        due, correct = self.due[: self.bins_before].sum(), self.correct[: self.bins_before].sum()
        return float(correct / due) if due else None

    def __add__(self, other: AlignedRecall) -> AlignedRecall:
        """Both together: of another seed, or around another instant."""
        if (self.length, self.bins_before, len(self.due)) != (other.length, other.bins_before, len(other.due)):
            raise InvalidInput("only bins of the same length and number can be added; align both in the same way")
        return AlignedRecall(self.length, self.bins_before, self.due + other.due, self.correct + other.correct)


@dataclass(frozen=True, eq=False)
class RecallGap:
    """The bins from the instant on whose recall is below ``threshold``; bins in which nothing was due are not."""

    threshold: float
    below: Flags
    """For each bin."""

    duration: int
    """Microseconds of all these bins together; they need not be neighbours."""

    first: int | None
    """Start of the first of them, in microseconds after the instant."""

    last: int | None
    """End of the last of them."""

    missed: int
    """Pairs in these bins that were due and not notified."""


def aligned_recall(
    per_event: Any, at: Instant, *, before: int = 2 * MICROSECONDS, after: int = 2 * MICROSECONDS, length: int = BIN
) -> AlignedRecall:
    """The events (``delivery.per_event``) published from ``before`` microseconds before the instant until ``after`` it."""
    if length <= 0 or before < 0 or after < 0 or before % length or after % length:
        raise InvalidTime(
            f"{before} and {after} microseconds before and after must be whole numbers of bins of {length} microseconds"
        )
    bins_before, count = before // length, (before + after) // length
    offset = instants(per_event, "time") - at
    bins = offset // length + bins_before
    inside = (bins >= 0) & (bins < count)
    due, correct = (
        sums(bins[inside], wholes(per_event, name)[inside], count).astype(np.int64) for name in ("due", "correct")
    )
    return AlignedRecall(length, bins_before, due, correct)


def recall_gap(aligned: AlignedRecall, *, below: float, baseline: float | None = None) -> RecallGap:
    """The gap: recall of less than ``baseline - below``; unless given, the baseline is the recall before the instant."""
    baseline = aligned.recall_before if baseline is None else baseline
    if baseline is None:
        raise InvalidInput(
            "no event was due to anybody before the instant; give a baseline, or a longer time before it"
        )
    threshold = baseline - below
    offsets = aligned.offsets
    low = (offsets >= 0) & (aligned.due > 0) & (np.nan_to_num(aligned.recall, nan=1.0) < threshold)
    where = np.flatnonzero(low)
    return RecallGap(
        threshold=threshold,
        below=low,
        duration=len(where) * aligned.length,
        first=int(offsets[where[0]]) if len(where) else None,
        last=int(offsets[where[-1]]) + aligned.length if len(where) else None,
        missed=int((aligned.due - aligned.correct)[low].sum()),
    )
