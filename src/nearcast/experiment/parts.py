"""Parts that checks of several experiments have, and what they accept (docs/experiments.md, "Verdicts")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nearcast.experiment.checks import Accepted, Outcome, Part, at_least, at_most, between
from nearcast.experiment.values import burst, dip, gap

ALL_MARKS: Final = ("T1", "T2", "T3", "T4")

ONE: Final = at_least(0.99)
"""What counts as a stated recall of 1: the documents give one or two digits, and a fix is up to one interval old."""

NO_DIP: Final = at_most(50.0)
"""Milliseconds: one bin."""

A_GAP: Final = between(100.0, 400.0)
"""Milliseconds: stated are about 100 and about 200."""

ROUND_TRIP: Final = between(100.0, 600.0)
"""Milliseconds: stated are about 400, and each way takes 100 to 300 (LCN 2016)."""

A_BURST: Final = at_least(2.0)
NO_BURST: Final = at_most(1.2)


def dips(run: str, accepted: Accepted, marks: Sequence[str]) -> tuple[Part, ...]:
    return tuple(Part(f"{run}, {mark}", accepted, dip(run, mark), " ms") for mark in marks)


def gaps(run: str, accepted: Accepted, marks: Sequence[str]) -> tuple[Part, ...]:
    return tuple(Part(f"{run}, {mark}", accepted, gap(run, mark), " ms") for mark in marks)


def bursts(run: str, kind: str, accepted: Accepted, marks: Sequence[str]) -> tuple[Part, ...]:
    return tuple(Part(f"{kind}, {mark}", accepted, burst(run, mark, kind), " times") for mark in marks)


def nothing_lost(run: str) -> tuple[Part, ...]:
    """No dip at any transition, and no event twice."""

    def doubled(outcome: Outcome) -> float:
        return float(outcome[run].whole.delivery.doubled)

    return (*dips(run, NO_DIP, ALL_MARKS), Part(f"{run}: events doubled", at_most(0.0), doubled))
