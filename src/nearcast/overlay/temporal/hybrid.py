"""What a message has to ask of the past, and what of the future (6.2, 6.3.4).

By the document a message is historical, future or hybrid, and only the last is split.  But what has begun before a message for the future
is sent may have begun at another node than where it is now: whether somebody came after eight, that node alone cannot tell.  So the past is asked
whenever it can make a difference, and not only where it can decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from nearcast.model.temporal import TemporalPredicate, expiry, first_that_matters
from nearcast.model.time import Instant


@dataclass(frozen=True, slots=True)
class Parts:
    past: bool
    """Archives are asked."""

    future: bool
    """It waits for somebody to come."""


def parts(when: TemporalPredicate, now: Instant) -> Parts:
    """Of a message that is sent now.  One that nothing can satisfy asks the past, in vain."""
    expires = expiry(when)
    future = expires is None or expires > now
    return Parts(past=not future or past_matters(when, now), future=future)


def past_matters(when: TemporalPredicate, now: Instant) -> bool:
    """Whether something that ended by ``now`` can satisfy the predicate, or what began by then depends on when it began.

    If not, whoever looks from now on sees all that counts; of what holds at ``now``, that it does.
    """
    first = first_that_matters(when)
    if first is not None and first > now:
        return False
    # Truth depends only on how start and end lie to each other, to the bounds and to now: some points beside each of these will do.
    marks = [now, *(bound + shift for bound in (when.a, when.b) if bound is not None for shift in (-when.z, 0, when.z))]
    points = sorted({mark + shift for mark in marks for shift in range(-2, 3)})
    before, after = ([at for at in points if at <= now], [at for at in points if at > now])
    if any(when.holds(start, end) for start, end in combinations(before, 2)):
        return True
    return any(len({when.holds(start, end) for start in before}) > 1 for end in after)
