"""Numbers of computed runs, as checks want them."""

from __future__ import annotations

from collections.abc import Sequence

from nearcast.experiment.checks import Outcome
from nearcast.experiment.values import Value, number


def less(run: str, than: str, *names: str) -> Value:
    """By which share it is less than in the other run; negative: more."""

    def value(outcome: Outcome) -> float | None:
        ours, theirs = number(run, *names)(outcome), number(than, *names)(outcome)
        return None if (not ours and not theirs) or not theirs else 1.0 - (ours or 0.0) / theirs

    return value


def times(run: str, than: str, *names: str) -> Value:
    """How many times what the other run has."""

    def value(outcome: Outcome) -> float | None:
        ours, theirs = number(run, *names)(outcome), number(than, *names)(outcome)
        return None if ours is None or not theirs else ours / theirs

    return value


def largest_over_smallest(values: Sequence[Value]) -> Value:
    def value(outcome: Outcome) -> float | None:
        found = [each(outcome) for each in values]
        known = [each for each in found if each is not None]
        return max(known) / min(known) if len(known) == len(found) and min(known) > 0 else None

    return value


def total(runs: Sequence[str], name: str) -> Value:
    """Of all these runs together."""
    return lambda outcome: sum(outcome[run].numbers[name] for run in runs)
