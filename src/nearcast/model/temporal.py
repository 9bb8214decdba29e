"""Temporal predicates on the validity ``[t_r, t_d)`` of a context.

The ten predicates of Contextcast (Table 6.1; ``meets`` has two forms, here ``meets`` and ``met_by``) and the
fifteen ``t_*`` relations of CQL2, which compare the bounds of both intervals as they are.  Times are whole
microseconds since the epoch; ``a`` or ``b`` may be ``None``: open.

While a context is still registered its end is known only to lie after *now*, so a predicate is true, false or
not decided yet.  The document expires ``starts_in`` and ``contains`` at ``b``, before the end that proves them
can be seen; here "still registered at b" is the proof (digest 3.9, remark 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nearcast.errors import InvalidTime
from nearcast.model.time import LARGEST, MICROSECONDS, Instant, duration_text, instant, to_text

_Bound = float  # an instant, or an infinity: Python compares int and float exactly
_Relation = Callable[[_Bound, _Bound, _Bound, _Bound], bool]

CQL2_RELATIONS: Final[dict[str, _Relation]] = {
    "t_after": lambda s, _e, _a, b: s > b,
    "t_before": lambda _s, e, a, _b: e < a,
    "t_contains": lambda s, e, a, b: s < a and e > b,
    "t_disjoint": lambda s, e, a, b: e < a or s > b,
    "t_during": lambda s, e, a, b: s > a and e < b,
    "t_equals": lambda s, e, a, b: s == a and e == b,
    "t_finishedby": lambda s, e, a, b: s < a and e == b,
    "t_finishes": lambda s, e, a, b: s > a and e == b,
    "t_intersects": lambda s, e, a, b: s <= b and e >= a,
    "t_meets": lambda _s, e, a, _b: e == a,
    "t_metby": lambda s, _e, _a, b: s == b,
    "t_overlappedby": lambda s, e, a, b: a < s < b < e,
    "t_overlaps": lambda s, e, a, b: s < a < e < b,
    "t_startedby": lambda s, e, a, b: s == a and e > b,
    "t_starts": lambda s, e, a, b: s == a and e < b,
}
"""Of the intervals (s, e) and (a, b); an instant is the interval from itself to itself."""

_CONTEXTCAST: Final[dict[str, Callable[[_Bound, _Bound, _Bound, _Bound, int], bool]]] = {
    "before": lambda _r, d, a, _b, _z: d <= a,
    "after": lambda r, _d, _a, b, _z: b < r,
    "equals": lambda r, d, a, b, z: abs(r - a) <= z and abs(d - b) < z,
    "meets": lambda _r, d, a, _b, z: abs(d - a) < z,
    "met_by": lambda r, _d, _a, b, z: abs(b - r) <= z,
    "ends_in": lambda r, d, a, b, _z: r < a < d <= b,
    "starts_in": lambda r, d, a, b, _z: a <= r <= b < d,
    "overlaps": lambda r, d, a, b, _z: r <= b and a < d,
    "excludes": lambda r, d, a, b, _z: d <= a or b < r,
    "during": lambda r, d, a, b, _z: a <= r and d <= b,
    "contains": lambda r, d, a, b, _z: r <= a and b < d,
}
CONTEXTCAST_RELATIONS: Final = tuple(_CONTEXTCAST)
WITH_TOLERANCE: Final = ("equals", "meets", "met_by")
RELATIONS: Final = (*CONTEXTCAST_RELATIONS, *CQL2_RELATIONS)
WIDENING: Final = frozenset({"overlaps", "contains", "t_intersects", "t_contains"})
"""What is true of an interval is true of every longer one that holds it."""


@dataclass(frozen=True, slots=True)
class TemporalPredicate:
    """``relation`` between a validity interval and ``[a, b]``, with tolerance ``z`` where the relation has one."""

    relation: str
    a: Instant | None
    b: Instant | None
    z: int = 0

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise InvalidTime(f"unknown temporal predicate {self.relation!r}; known: {', '.join(RELATIONS)}")
        for bound in (self.a, self.b):
            if bound is not None:
                instant(bound)
        if self.a is not None and self.b is not None and self.a > self.b:
            raise InvalidTime(
                f"{self.relation}: the interval ends at {to_text(self.b)}, before its start {to_text(self.a)}"
            )
        if self.z < 0:
            raise InvalidTime(f"{self.relation}: the tolerance is not negative, but it is {self.z}")
        if self.z and self.relation not in WITH_TOLERANCE:
            raise InvalidTime(f"{self.relation} takes no tolerance; only {', '.join(WITH_TOLERANCE)} do")
        # The table compares |t_d - b| < z strictly, so without tolerance these two could never hold.
        if self.z == 0 and self.relation in ("equals", "meets"):
            raise InvalidTime(
                f"{self.relation} needs a tolerance of at least one microsecond, such as '5m': without one it never holds"
            )

    def __str__(self) -> str:
        """As a filter writes it."""
        start, end = ("'..'" if bound is None else f"'{to_text(bound)}'" for bound in (self.a, self.b))
        if self.relation in CQL2_RELATIONS:
            return f"{self.relation.upper()}(time, INTERVAL({start}, {end}))"
        tolerance = f", '{duration_text(self.z)}'" if self.z else ""
        return f"{self.relation}(time, {start}, {end}{tolerance})"

    def holds(self, t_r: Instant, t_d: Instant) -> bool:
        """Whether an interval that has ended satisfies the predicate."""
        a: _Bound = -math.inf if self.a is None else self.a
        b: _Bound = math.inf if self.b is None else self.b
        cql2 = CQL2_RELATIONS.get(self.relation)
        return cql2(t_r, t_d, a, b) if cql2 else _CONTEXTCAST[self.relation](t_r, t_d, a, b, self.z)

    def judge(self, t_r: Instant, t_d: Instant | None, now: Instant) -> bool | None:
        """The same as far as it is known at ``now``.

        An end that is ``None`` or later than ``now`` is not known yet; all that is known is that it comes after
        ``now``.  True if the predicate holds wherever the end will be, false if nowhere, else ``None``.
        """
        if t_d is not None and t_d <= now:
            return self.holds(t_r, t_d)
        answers = {self.holds(t_r, end) for end in self._possible_ends(max(t_r, now))}
        return answers.pop() if len(answers) == 1 else None

    def decided_at(self, t_r: Instant, t_d: Instant | None, as_of: Instant | None = None) -> Instant | None:
        """The earliest instant at which ``judge`` says true, or ``None`` if it never does.

        ``t_d`` is the true end; ``None`` means "not ended so far".  ``as_of`` is the last instant about which
        something is known; an answer after it is no answer.
        """
        failing = self._last_failing_end(t_r)
        # Once the last end that would fail has passed, every end to come will do.
        proven = max(t_r, failing) if math.isfinite(failing) or failing < 0 else None
        if proven is not None and (t_d is None or proven < t_d):
            decided: Instant | None = int(proven)
        else:
            decided = t_d if t_d is not None and self.holds(t_r, t_d) else None
        return None if decided is None or (as_of is not None and decided > as_of) else decided

    def expires_at(self) -> Instant | None:
        """The last instant at which the predicate can become true of some interval; ``None`` if there is no last.

        A predicate that nothing satisfies expired at the beginning of time.
        """
        latest = max(self._decisions(0), default=1 - LARGEST)
        # Beyond the last breakpoint nothing tells one instant from the next: if one decides there, so do all later.
        return None if latest > max([*self._breakpoints(), 0]) else latest

    def _breakpoints(self) -> list[Instant]:
        """Where the truth of ``holds`` may change, as a function of t_r or t_d."""
        bounds = [bound for bound in (self.a, self.b) if bound is not None]
        return sorted({bound + shift for bound in bounds for shift in (-self.z, 0, self.z)})

    def _possible_ends(self, after: Instant) -> list[Instant]:
        """Ends later than ``after``, at least one for each piece on which ``holds`` is constant; the last stands for all later ones."""
        points = self._breakpoints()
        ends = {point + shift for point in points for shift in (-1, 0, 1)} | {after + 1}
        return sorted(end for end in ends if end > after)

    def _last_failing_end(self, t_r: Instant) -> float:
        """The last end that fails the predicate: -inf if none does, +inf if there is no last."""
        ends = self._possible_ends(t_r)
        if not self.holds(t_r, ends[-1]):
            return math.inf
        return max((end for end in ends if not self.holds(t_r, end)), default=-math.inf)

    def _decisions(self, now: Instant) -> set[Instant]:
        """When satisfying intervals are decided: one of each kind.

        Truth and decision depend only on how t_r and t_d lie to each other, to the breakpoints and to now; three
        points beside each of these are enough to realise every such position.
        """
        marks = [*self._breakpoints(), now]
        points = sorted({mark + shift for mark in marks for shift in range(-3, 4)})
        found = (
            self.decided_at(t_r, t_d) for i, t_r in enumerate(points) for t_d in points[i + 1 :] if self.holds(t_r, t_d)
        )
        return {at for at in found if at is not None}


def message_class(predicate: TemporalPredicate, now: Instant) -> str:
    """How a message with this predicate, sent at ``now``, finds its receivers (Contextcast 6.2).

    *historical*: every interval that can satisfy it is decided at ``now``; asking the archive is enough.
    *future*: no interval that can satisfy it is decided yet; there is nothing to ask the archive for.
    *hybrid*: both kinds exist.  A predicate that nothing satisfies is historical: nothing to wait for.
    """
    decisions = predicate._decisions(now)  # noqa: SLF001 - one module, one thought
    if all(at <= now for at in decisions):
        return "historical"
    return "future" if all(at > now for at in decisions) else "hybrid"


def expiry(predicate: TemporalPredicate) -> Instant | None:
    """``predicate.expires_at()``, which takes 10 ms, but is the same for all predicates that differ only by a shift."""
    anchor = predicate.b if predicate.a is None else predicate.a
    if anchor is None:
        return predicate.expires_at()
    a, b = (None if bound is None else bound - anchor for bound in (predicate.a, predicate.b))
    after = _expiry(predicate.relation, a, b, predicate.z)
    return None if after is None else anchor + after


@lru_cache(maxsize=1_024)
def _expiry(relation: str, a: int | None, b: int | None, z: int) -> int | None:
    shifted = TemporalPredicate(relation, None if a is None else _SOMEWHEN + a, None if b is None else _SOMEWHEN + b, z)
    expires = shifted.expires_at()
    return None if expires is None else expires - _SOMEWHEN


_SOMEWHEN: Final = 1_000_000_000 * MICROSECONDS


def first_that_matters(predicate: TemporalPredicate) -> Instant | None:
    """Starts before it are all the same, and what ended before it does not satisfy; none: it may."""
    bounds = [bound for bound in (predicate.a, predicate.b) if bound is not None]
    if not bounds:
        return None
    first = min(bounds) - predicate.z - 2
    return None if predicate.holds(first - 2, first - 1) else first


def last_that_matters(predicate: TemporalPredicate) -> Instant | None:
    """Ends after it are all the same, and what starts after it does not satisfy; none: it may."""
    bounds = [bound for bound in (predicate.a, predicate.b) if bound is not None]
    if not bounds:
        return None
    last = max(bounds) + predicate.z + 2
    return None if predicate.holds(last + 1, last + 2) else last
