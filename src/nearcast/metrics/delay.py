"""Delivery delay: from publication to the subscribers that were reached (BYPASS.KOM 6.1.4).

It is counted over correct pairs - the event was due to the client and reached it, publishers aside - and for the first
copy only, whatever became of it.  What never arrived has no delay: it is recall that speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.metrics.columns import Floats, Wholes, ratio, sums
from nearcast.metrics.distribution import BANDS
from nearcast.metrics.pairs import Pairs
from nearcast.model.time import MICROSECONDS


@dataclass(frozen=True, slots=True)
class DelayTotals:
    """In seconds; none if nobody was reached."""

    reached: int
    """Correct pairs."""

    mean: float | None
    p5: float | None
    p25: float | None
    p50: float | None
    p75: float | None
    p95: float | None


def reached(pairs: Pairs) -> Wholes:
    """The numbers of the pairs that have a delay."""
    return np.flatnonzero(pairs.counted & pairs.correct)


def delays(pairs: Pairs) -> Floats:
    """Seconds, of the pairs that were reached."""
    return pairs.delay[reached(pairs)] / MICROSECONDS


def delay_totals(pairs: Pairs) -> DelayTotals:
    seconds = delays(pairs)
    if not len(seconds):
        return DelayTotals(0, None, None, None, None, None, None)
    return DelayTotals(len(seconds), float(seconds.mean()), *(float(value) for value in np.percentile(seconds, BANDS)))


def delay_per_event(pairs: Pairs) -> Floats:
    """Mean seconds of each event, in the order of ``pairs.events``; NaN if it reached nobody to whom it was due."""
    return _mean(pairs, pairs.event, len(pairs.times))


def delay_per_client(pairs: Pairs) -> Floats:
    """Mean seconds of each client, in the order of ``pairs.clients``; NaN if nothing reached it that was due to it."""
    return _mean(pairs, pairs.client, len(pairs.clients))


def _mean(pairs: Pairs, group: Wholes, groups: int) -> Floats:
    who = reached(pairs)
    total = sums(group[who], pairs.delay[who], groups)
    return ratio(total, np.bincount(group[who], minlength=groups)) / MICROSECONDS
