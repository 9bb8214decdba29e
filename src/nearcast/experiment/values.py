"""Numbers that checks speak of, each as a function of the outcome of one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from nearcast.experiment.checks import Outcome
from nearcast.experiment.measures import Mark, Measures, Phase
from nearcast.metrics.columns import Wholes
from nearcast.metrics.gaps import AlignedRecall, recall_gap
from nearcast.model.time import MICROSECONDS

Value: TypeAlias = Callable[[Outcome], float | None]

DIP: Final = 0.5
"""A bin belongs to a dip if its recall is below this share of what is usual: 15 events scatter, but not that far."""

SILENCE: Final = 0.05
"""Messages for each client in 5 s."""

AROUND: Final = 15
"""Seconds that are looked at around a transition."""

_BEFORE: Final = (-3.0, -0.5)
"""Seconds around a transition that say what was usual before it: events of the last round trip already meet the new scheme."""

_AFTERWARDS: Final = (6.0, 10.0)
"""And what is usual after it: every client has had a fix since."""


def recall(run: str, phase: str = "all") -> Value:
    return lambda outcome: outcome[run].phase(phase).delivery.recall


def precision(run: str, phase: str = "all") -> Value:
    return lambda outcome: outcome[run].phase(phase).delivery.precision


def delay(run: str, phase: str = "all") -> Value:
    """Milliseconds, mean over all that were reached and should be."""

    def value(outcome: Outcome) -> float | None:
        mean = outcome[run].phase(phase).delivery.mean_delay
        return None if mean is None else 1000.0 * mean

    return value


def number(run: str, *names: str) -> Value:
    """The sum of these, which only some runs have."""
    return lambda outcome: sum(outcome[run].numbers[name] for name in names)


def of_phase(run: str, phase: str, value: Callable[[Phase], float | None]) -> Value:
    return lambda outcome: value(outcome[run].phase(phase))


def difference(one: Value, other: Value) -> Value:
    return _joined(one, other, lambda a, b: a - b)


def distance(one: Value, other: Value) -> Value:
    return _joined(one, other, lambda a, b: abs(a - b))


def quotient(one: Value, other: Value) -> Value:
    return _joined(one, other, lambda a, b: a / b if b else None)


def mean(values: Sequence[Value]) -> Value:
    return _of_all(values, lambda found: sum(found) / len(found))


def least(values: Sequence[Value]) -> Value:
    return _of_all(values, min)


def most(values: Sequence[Value]) -> Value:
    return _of_all(values, max)


def span(values: Sequence[Value]) -> Value:
    """How far apart these are."""
    return _of_all(values, lambda found: max(found) - min(found))


def concordance(pairs: Sequence[tuple[Value, Value]]) -> Value:
    """Of all two pairs with different first values, the share in which the greater first has the greater second, too."""

    def value(outcome: Outcome) -> float | None:
        found = [(one(outcome), other(outcome)) for one, other in pairs]
        known = [(one, other) for one, other in found if one is not None and other is not None]
        two = [(b[0] - a[0], b[1] - a[1]) for a, b in combinations(known, 2) if a[0] != b[0]]
        if len(known) < len(found) or not two:
            return None
        return sum(first * second > 0 for first, second in two) / len(two)

    return value


def kilobits(run: str, *names: str, phase: str | None = None) -> Value:
    """kbit/s of a mean client: all that these names begin, such as ``download``, or ``upload context``."""

    def value(outcome: Outcome) -> float:
        rates = _phase(outcome[run], phase).rates
        return sum(rate.kilobits_per_second for name, rate in rates.items() if name.startswith(names))

    return value


def gap(run: str, mark: str) -> Value:
    """Milliseconds from a transition on in which events reached less than half as many as usual (``metrics.gaps``)."""

    def value(outcome: Outcome) -> float | None:
        found = outcome[run].mark(mark)
        usual = _usual(found)
        if usual is None:
            return None
        length = round(found.bin * MICROSECONDS)
        bins = AlignedRecall(length, round(found.before / found.bin), np.array(found.due), np.array(found.correct))
        return recall_gap(bins, below=(1.0 - DIP) * usual, baseline=usual).duration / 1000.0

    return value


def dip(run: str, mark: str, below: float = DIP) -> Value:
    """As ``gap``, with the half second before: events that are on their way to the broker at a transition were published there.

    That is what must be 0 where nothing is to be lost.
    """

    def value(outcome: Outcome) -> float | None:
        found = outcome[run].mark(mark)
        usual = _usual(found)
        if usual is None:
            return None
        due, correct = _between(found, -0.5, 2.0)
        return 1000.0 * found.bin * int((correct[due > 0] / due[due > 0] < below * usual).sum())

    return value


def drop(run: str, mark: str, seconds: float) -> Value:
    """By how much recall is lower in the first seconds after a transition than it is later."""

    def value(outcome: Outcome) -> float | None:
        found = outcome[run].mark(mark)
        first, later = _recall(found, 0.0, seconds), _recall(found, *_AFTERWARDS)
        return None if first is None or later is None else later - first

    return value


def recall_around(run: str, mark: str, since: float, until: float) -> Value:
    """Of what was published so many seconds after a transition, all together."""
    return lambda outcome: _recall(outcome[run].mark(mark), since, until)


def depth(run: str, mark: str) -> Value:
    """By how much recall falls below what is usual around a transition, at its lowest: mean of the two lowest bins."""

    def value(outcome: Outcome) -> float | None:
        found = outcome[run].mark(mark)
        usual = _usual(found)
        due, correct = _between(found, -0.5, 0.5)
        lowest = np.sort(correct[due > 0] / due[due > 0])[:2]
        return None if usual is None or not len(lowest) else usual - float(lowest.mean())

    return value


def burst(run: str, mark: str, kind: str) -> Value:
    """How many times as many messages of that direction and class there are in the 5 s after a transition as in the 5 s before
    it or in the 5 s that follow, whichever are more.

    With fixes every 5 s, regular reports cancel out.  Less than one message for 20 clients counts as so many: a single one after
    none is no peak.
    """

    def value(outcome: Outcome) -> float | None:
        measures = outcome[run]
        found = measures.mark(mark)
        counts, start = found.control.get(kind, [0] * AROUND), int(found.before)
        before, after, later = (sum(counts[start + first : start + first + 5]) for first in (-5, 0, 5))
        clients = float(np.interp(found.at, measures.series.starts, measures.series.clients))
        return after / max(before, later, SILENCE * clients) if clients else None

    return value


def _usual(mark: Mark) -> float | None:
    """What recall is before a transition or after it, whichever is lower: a scheme with a lower recall is no gap."""
    before, after = _recall(mark, *_BEFORE), _recall(mark, *_AFTERWARDS)
    return None if before is None or after is None else min(before, after)


def _recall(mark: Mark, since: float, until: float) -> float | None:
    due, correct = _between(mark, since, until)
    return float(correct.sum() / due.sum()) if due.sum() else None


def _between(mark: Mark, since: float, until: float) -> tuple[Wholes, Wholes]:
    first, last = (round((mark.before + seconds) / mark.bin) for seconds in (since, until))
    return np.array(mark.due[first:last]), np.array(mark.correct[first:last])


def _phase(measures: Measures, label: str | None) -> Phase:
    return measures.whole if label is None else measures.phase(label)


def _of_all(values: Sequence[Value], join: Callable[[Sequence[float]], float]) -> Value:
    """None if one of them is not known."""

    def value(outcome: Outcome) -> float | None:
        found = [each(outcome) for each in values]
        known = [each for each in found if each is not None]
        return join(known) if len(known) == len(found) else None

    return value


def _joined(one: Value, other: Value, join: Callable[[float, float], float | None]) -> Value:
    def value(outcome: Outcome) -> float | None:
        a, b = one(outcome), other(outcome)
        return None if a is None or b is None else join(a, b)

    return value
