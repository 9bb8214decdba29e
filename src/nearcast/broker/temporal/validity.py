"""When an event with a temporal predicate becomes relevant to whom: the maximal intervals during which its reach and one conjunct of
its addressing hold, followed change by change (``model.delivery.validities``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.broker.known_context import KnownContext
from nearcast.model.delivery import within_reach
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.predicate import And
from nearcast.model.time import Instant

_Key = tuple[str, int]
"""A context and a conjunct."""

_REACH_ALONE: Final[_Key] = ("", -1)


@dataclass(slots=True)
class Interval:
    """One that has not ended."""

    start: Instant
    judged: bool = False
    """The predicate became true of it already."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What a change brought."""

    at: Instant | None
    """When the predicate became true of an interval: the last time, if of several."""

    next: Instant | None
    """When it will be true next, if nothing changes until then."""


class Validities:
    """Of one event: the intervals of everybody that have not ended."""

    def __init__(self, event: Event) -> None:
        assert event.when is not None
        self._event: Final = event
        self._when: Final = event.when
        self._proofs: dict[Instant, Instant | None] = {}
        self.open: Final[dict[str, dict[_Key, Interval]]] = {}

    def changed(self, client: str, at: Instant, known: KnownContext) -> Decided:
        """From then on, this is known of the client."""
        holding = self._holding(known)
        intervals = self.open.get(client)
        if intervals is None:
            if not holding:
                return _NOTHING
            intervals = self.open[client] = {}
        ended = [self._end(intervals.pop(key), at) for key in [key for key in intervals if key not in holding]]
        for key in holding:
            intervals.setdefault(key, Interval(at))
        if not intervals:
            del self.open[client]
        now = self.passed(client, at)
        return Decided(max((each for each in (now.at, *ended) if each is not None), default=None), now.next)

    def passed(self, client: str, at: Instant) -> Decided:
        """Nothing has changed until then."""
        decided: Instant | None = None
        following: Instant | None = None
        for interval in self.open.get(client, {}).values():
            if interval.judged:
                continue
            proof = self._proof(interval.start)
            if proof is None:
                continue
            if proof <= at:
                interval.judged = True
                decided = proof if decided is None else max(decided, proof)
            else:
                following = proof if following is None else min(following, proof)
        return Decided(decided, following)

    def _end(self, interval: Interval, at: Instant) -> Instant | None:
        if interval.judged or interval.start >= at:  # two reports at one instant: the second one counts
            return None
        return self._when.decided_at(interval.start, at, at)

    def _proof(self, start: Instant) -> Instant | None:
        """When an interval that does not end proves the predicate."""
        if start not in self._proofs:
            if len(self._proofs) > 1_000:
                self._proofs.clear()
            self._proofs[start] = self._when.decided_at(start, None)
        return self._proofs[start]

    def _holding(self, known: KnownContext) -> list[_Key]:
        event = self._event
        if not known.present or not within_reach(event.reach, known.position):
            return []
        if event.to is None:
            return [_REACH_ALONE]
        return [
            (name, number)
            for name, context in known.seen()
            for number, conjunct in enumerate(event.conjuncts)
            if evaluate(And(conjunct), context) is True
        ]


_NOTHING: Final = Decided(None, None)
