"""Small crowds of radios for tests, and bounds for what chance may do to them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearcast.runtime.simulation.motion import Legs, standing
from nearcast.runtime.simulation.radio.engine import RadioEngine
from nearcast.runtime.simulation.radio.statistics import RadioStatistics

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Told(NamedTuple):
    """One thing that the engine reported, and when."""

    time: int
    key: int
    node: int
    other: int  # the sender, or the outcome


def placed(places: Iterable[tuple[float, float]]) -> Legs:
    chosen = list(places)
    legs = standing(len(chosen))
    legs["x"], legs["y"] = np.array(chosen).T
    return legs


def on_a_line(*x: float) -> Legs:
    return placed((place, 0.0) for place in x)


def around_a_sink(senders: int, distance: float = 20.0) -> Legs:
    """Station 0 in the middle, all others equally far from it: it hears all of them equally loud."""
    angles = 2 * np.pi * np.arange(senders) / senders
    return placed([(0.0, 0.0), *zip(distance * np.cos(angles), distance * np.sin(angles), strict=True)])


def listen(engine: RadioEngine, until: int) -> tuple[list[Told], list[Told]]:
    """All deliveries and all completions up to ``until``."""
    delivered: list[Told] = []
    completed: list[Told] = []
    while True:
        time = engine.advance(until)
        reports = engine.reports()
        if not reports.delivered and not reports.completed:
            return delivered, completed
        delivered += [Told(time, *report) for report in reports.delivered]
        completed += [Told(time, *report) for report in reports.completed]


def share_bound(share: float, trials: int) -> float:
    """What the share of successes may differ from their probability: four standard deviations of the binomial."""
    return float(4 * (share * (1 - share) / trials) ** 0.5)


def check_conservation(statistics: RadioStatistics) -> None:
    """Nothing is lost that is not counted, nothing is counted twice."""
    accounted = sum(statistics.outcomes.values()) + statistics.queue_full + statistics.station_off
    assert statistics.handed_in == accounted + statistics.pending
    heard = statistics.received + sum(statistics.losses.values()) + statistics.undecided
    assert statistics.potential_receptions == heard
