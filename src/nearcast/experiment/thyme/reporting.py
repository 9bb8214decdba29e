"""What the experiments of THYME's crowd have in common: worst cases, and figures with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Outcome
from nearcast.experiment.experiment import Draw
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.thyme.book import OPERATIONS
from nearcast.experiment.values import Value
from nearcast.metrics.distribution import grand_mean

JUDGED: Final = (*OPERATIONS, "notification")


def worst(runs: Sequence[str], kind: str) -> Value:
    """The least success of an operation in any of the runs; one of which there is none in any has not failed."""

    def value(outcome: Outcome) -> float | None:
        found = [outcome[run].numbers.get(f"{kind} success") for run in runs]
        return min((each for each in found if each is not None), default=1.0)

    return value


def drawn(xs: Sequence[float], ways: Sequence[str], name: str, *, x: str, y: str, title: str) -> Draw:
    """One line for each way, over runs that are called after the way and the place on the x axis, with the mean of all seeds."""

    def draw(outcomes: Sequence[Outcome]) -> Any:
        return _figure(outcomes, {way: [(at, f"{way}-{at:g}", name) for at in xs] for way in ways}, x, y, title)

    return draw


def operations_drawn(xs: Sequence[float], way: str, *, x: str, title: str) -> Draw:
    """One line for each operation."""

    def draw(outcomes: Sequence[Outcome]) -> Any:
        points = {kind: [(at, f"{way}-{at:g}", f"{kind} success") for at in xs] for kind in JUDGED}
        return _figure(outcomes, points, x, "share that succeeded", title)

    return draw


def _figure(
    outcomes: Sequence[Outcome], points: Mapping[str, Sequence[tuple[float, str, str]]], x: str, y: str, title: str
) -> Any:
    series: dict[str, list[tuple[float, float | None]]] = {}
    intervals: dict[str, dict[float, float]] = {}
    for label, places in points.items():
        series[label], intervals[label] = [], {}
        for at, run, name in places:
            found = [value for outcome in outcomes if (value := outcome[run].numbers.get(name)) is not None]
            over_seeds = grand_mean(found) if found else None
            series[label].append((at, None if over_seeds is None else over_seeds.mean))
            if over_seeds is not None and over_seeds.interval is not None:
                intervals[label][at] = over_seeds.interval
    return lines(series, x=x, y=y, title=title, intervals=intervals)
