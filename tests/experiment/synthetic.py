"""Measures of runs that never took place, so that it is known what checks must say about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nearcast.experiment.measures import Bands, Delivery, Mark, Measures, Phase, Rate, Series
from nearcast.metrics.distribution import BoxPlot

BIN, BEFORE, AFTER = 0.05, 5, 10
CLIENTS = 100.0


@dataclass(frozen=True)
class Part:
    """A phase."""

    recall: float = 1.0
    precision: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    """kbit/s."""

    operations: float = 25.0
    below_one: float = 0.25
    p25: float = 0.95
    quartiles: tuple[float, float] = (0.25, 0.35)
    """Of the precision of clients."""

    multicast: float = 0.9
    delay: float = 0.2
    """Seconds, mean."""


@dataclass(frozen=True)
class Around:
    """What happens around a transition."""

    before: float = 1.0
    after: float = 1.0
    dip: int = 0
    """Milliseconds from the transition on in which nobody gets anything."""

    first_second: float | None = None
    """Recall of the first second after the transition, if it is another."""

    bursts: Mapping[str, float] = field(default_factory=dict)
    """Messages for each client in the first second after it, by direction and class."""


def measures(
    phases: Mapping[str, Part],
    marks: Mapping[str, Around] | None = None,
    *,
    doubled: int = 0,
    whole: Part | None = None,
    operations: float = CLIENTS,
    folder: str = "",
) -> Measures:
    return Measures(
        seconds=100.0,
        whole=_phase("whole", whole or next(iter(phases.values())), doubled),
        phases=[_phase(label, part) for label, part in phases.items()],
        marks=[_mark(label, number, around) for number, (label, around) in enumerate((marks or {}).items(), 1)],
        series=series(operations=operations),
        recall_map=None,
        transition_map=None,
        timelines=[],
        folder=folder,
    )


def series(values: Iterable[float] = (1.0,) * 10, operations: float = CLIENTS) -> Series:
    shown = list(values)
    given: list[float | None] = [*shown]
    bands = Bands(given, given, given, given, given, given)
    return Series(
        length=10.0,
        starts=[10.0 * number for number in range(len(shown))],
        recall=bands,
        precision=bands,
        rates={"upload context": shown, "download context": shown},
        operations_counted=[operations] * len(shown),
        clients=[CLIENTS] * len(shown),
        mechanisms={"RADIAL": [int(CLIENTS)] * len(shown)},
    )


def box(low: float, high: float) -> BoxPlot:
    return BoxPlot(10, (low + high) / 2, low, low, (low + high) / 2, high, high)


def _phase(label: str, part: Part, doubled: int = 0) -> Phase:
    return Phase(
        label=label,
        since=0.0,
        until=10.0,
        delivery=Delivery(
            events=1000,
            due=10_000,
            notified=10_000,
            correct=10_000,
            recall=part.recall,
            precision=part.precision,
            client_recall=box(part.recall, part.recall),
            client_precision=box(*part.quartiles),
            doubled=doubled,
            mean_delay=part.delay,
        ),
        rates={name: Rate(1, 1, rate) for name, rate in part.rates.items()},
        operations_counted=part.operations,
        operations_done=1.0,
        clients=CLIENTS,
        windows_below_one=part.below_one,
        window_recall_p25=part.p25,
        multicast_saving=part.multicast,
    )


def _mark(label: str, number: int, around: Around) -> Mark:
    bins = round((BEFORE + AFTER) / BIN)
    times = [BIN * place - BEFORE for place in range(bins)]
    correct = [round(1000 * _recall(around, round(time, 9))) for time in times]
    seconds = BEFORE + AFTER
    control = {name: [0] * seconds for name in around.bursts}
    for name, each in around.bursts.items():
        control[name][BEFORE] = round(each * CLIENTS)
    return Mark(
        label=label,
        at=20.0 * number,
        source="A",
        target="B",
        bin=BIN,
        before=BEFORE,
        due=[1000] * bins,
        correct=correct,
        control=control,
        executed=int(CLIENTS),
        median=0.1,
        ninety_percent=0.12,
        last=0.13,
    )


def _recall(around: Around, time: float) -> float:
    if time < 0:
        return around.before
    if 1000 * time < around.dip:
        return 0.0
    if time < 1 and around.first_second is not None:
        return around.first_second
    return around.after
