"""BYPASS.KOM 6.3.4: another way to spread events begins with a few, and others follow whom they hear (E8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nearcast.experiment.adhoc.crowd import CLIENTS, TARGETS, TIMETABLE, planned
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between
from nearcast.experiment.drawings import mechanisms_of, windows_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.figures.spread import spread_maps
from nearcast.experiment.measures import Followed, Measures
from nearcast.experiment.runs import Run
from nearcast.experiment.values import Value, difference, mean, quotient

INITIATORS: Final = {"one": 1, "thirty": 30}
MARKS: Final = {name: mark for mark, name in TARGETS.items()}
"""Transitions by the mechanism that spreads."""

QUICK: Final = (4.0, 12.0, 20.0, 28.0, 53.0)
"""Seconds: BROADCAST has more time than the others, as it needs most."""

TOGETHER: Final = 20.0
"""Seconds within which those follow of whom the text says that they do at roughly the same time."""

TENTH: Final = 10
"""So many must have followed before the initial delay is over."""

SHOWN: Final = 80
"""Points of a line in a figure."""


def _runs(quick: bool) -> tuple[Run, ...]:
    return tuple(planned(name, quick=QUICK if quick else (), initiators=number) for name, number in INITIATORS.items())


def _of(measures: Measures, mechanism: str) -> tuple[Followed, float]:
    """Who followed, and how long they had time to."""
    number = list(MARKS).index(mechanism)
    mark = measures.mark(MARKS[mechanism])
    until = measures.marks[number + 1].at if number + 1 < len(measures.marks) else measures.seconds
    if mark.followed is None:
        raise KeyError(mechanism)
    return mark.followed, until - mark.at


def until(run: str, mechanism: str, share: float) -> Value:
    """Seconds until that share of all clients had followed; if so many never did, how long they had time to."""

    def value(outcome: Outcome) -> float:
        followed, time = _of(outcome[run], mechanism)
        place = math.ceil(share * followed.clients) - 1
        return followed.after[place] if place < len(followed.after) else time

    return value


def within(run: str, mechanism: str, seconds: float) -> Value:
    """Share of all clients that followed so soon."""

    def value(outcome: Outcome) -> float:
        followed, _ = _of(outcome[run], mechanism)
        return sum(after <= seconds for after in followed.after) / followed.clients

    return value


def initial(run: str, mechanism: str) -> Value:
    """Seconds until ten others had followed."""

    def value(outcome: Outcome) -> float:
        followed, time = _of(outcome[run], mechanism)
        place = INITIATORS[run] + TENTH - 1
        return followed.after[place] if place < len(followed.after) else time

    return value


def last(run: str, mechanism: str, needed: float) -> Value:
    """Seconds until the last that followed; not known if there was less time than needed."""

    def value(outcome: Outcome) -> float | None:
        followed, time = _of(outcome[run], mechanism)
        return followed.after[-1] if time >= needed and followed.after else None

    return value


def outskirts(run: str, mechanism: str) -> Value:
    """How much farther from the middle of them all the last tenth of those who followed were than the others."""

    def value(outcome: Outcome) -> float | None:
        followed, _ = _of(outcome[run], mechanism)
        x, y = np.array(followed.x), np.array(followed.y)
        away = np.hypot(x - np.median(x), y - np.median(y))
        late = max(1, len(away) // 10)
        others = away[:-late]
        return float(away[-late:].mean() / others.mean()) if others.sum() else None

    return value


def _shares(run: str) -> Drawing:
    number = INITIATORS[run]

    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {mechanism: _steps(*_of(outcomes[0][run], mechanism)) for mechanism in TIMETABLE[1:]}
        return lines(series, x="seconds", y="share of the clients", title=f"How many have followed, from {number}")

    return Drawing(f"share-from-{run}", f"How many have followed, from {number}", (run,), draw)


def _steps(followed: Followed, time: float) -> list[tuple[float, float]]:
    """Points of a line: seconds, and the share that had followed by then."""
    end, steps = min(time, TOGETHER), np.linspace(0, len(followed.after) - 1, SHOWN).round().astype(int)
    points = [(followed.after[step], (step + 1) / followed.clients) for step in np.unique(steps).tolist() if step >= 0]
    shown = [point for point in points if point[0] <= end]
    return [*shown, (end, shown[-1][1] if shown else 0.0)]


def _maps(run: str) -> Drawing:
    number = INITIATORS[run]
    return Drawing(
        f"spread-from-{run}",
        f"Where and when clients followed, from {number}",
        (run,),
        lambda outcomes: spread_maps(
            {f"to {name}, from {number}": outcomes[0][run].mark(mark) for mark, name in TARGETS.items()}
        ),
    )


_FAST: Final = ("PLAN-B", "HYPERG", "FLOODING")

E8: Final = Experiment(
    "bypass-e8",
    "BYPASS.KOM 6.3.4, figures 52 to 55",
    "Another way to spread events, which hosts learn from each other",
    _runs,
    (
        Check(
            "E8.1",
            "About 90 % of the clients follow at roughly the same time",
            "text",
            (
                Part(
                    f"within {TOGETHER:g} s, mean over PLAN-B, HYPERG, FLOODING",
                    between(0.8, 0.98),
                    mean([within("one", name, TOGETHER) for name in _FAST]),
                ),
            ),
            note="in quick runs they have 8 s, so that it is within 8 s",
        ),
        Check(
            "E8.2",
            "HYPERG spreads soonest, then PLAN-B, then BROADCAST",
            "text",
            tuple(
                Part(
                    f"from {number}: half of all later with {later} than with {sooner} by",
                    at_least(0.05),
                    difference(until(run, later, 0.5), until(run, sooner, 0.5)),
                    " s",
                )
                for run, number in INITIATORS.items()
                for sooner, later in (("HYPERG", "PLAN-B"), ("PLAN-B", "BROADCAST"))
            ),
        ),
        Check(
            "E8.3",
            "HYPERG spreads at once",
            "text",
            (
                Part("ten others after", at_most(1.0), initial("one", "HYPERG"), " s"),
                Part("80 % after", at_most(5.0), until("one", "HYPERG", 0.8), " s"),
            ),
        ),
        Check(
            "E8.4",
            "PLAN-B spreads rapidly, after about ten seconds",
            "text",
            (
                Part("ten others after", between(5.0, 15.0), initial("one", "PLAN-B"), " s"),
                Part(
                    "from there to 80 %",
                    at_most(5.0),
                    difference(until("one", "PLAN-B", 0.8), initial("one", "PLAN-B")),
                    " s",
                ),
            ),
            note="a client publishes once a second, so it cannot be silent for ten",
        ),
        Check(
            "E8.5",
            "With BROADCAST a large fraction follows within 10 to 20 s, and not all within three minutes",
            "text",
            (
                Part("three quarters after", between(5.0, 25.0), until("one", "BROADCAST", 0.75), " s"),
                Part("share at the end", at_most(0.997), within("one", "BROADCAST", math.inf)),
            ),
            note="quick runs end 25 s after T4",
        ),
        Check(
            "E8.6",
            "PLAN-B reaches clients at the outskirts last",
            "text",
            (Part("last tenth farther out", at_least(1.1), outskirts("one", "PLAN-B"), " times"),),
        ),
        Check(
            "E8.7",
            "PLAN-B reaches the last after one to two minutes",
            "text",
            (Part("the last after", between(30.0, 180.0), last("one", "PLAN-B", 180.0), " s"),),
            note="quick runs leave 8 s and cannot tell",
        ),
        Check(
            "E8.8",
            f"From {INITIATORS['thirty']} clients ({100 * INITIATORS['thirty'] / CLIENTS:.0f} %) it spreads markedly faster than from one",
            "text",
            tuple(
                Part(
                    f"{name}: time to half of all, of that from one",
                    at_most(0.7),
                    quotient(until("thirty", name, 0.5), until("one", name, 0.5)),
                    " times",
                )
                for name in TIMETABLE[1:]
            ),
        ),
    ),
    (
        *(_shares(run) for run in INITIATORS),
        *(_maps(run) for run in INITIATORS),
        mechanisms_of("one"),
        windows_of("one"),
    ),
)  # fmt: skip
