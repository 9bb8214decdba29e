"""BYPASS.KOM 6.4.1: ad hoc dissemination at attraction points, the cloud elsewhere (E9: CX-AH)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.coexistence.plans import around_points, percent
from nearcast.experiment.drawings import boxes_of, schemes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.runs import Run
from nearcast.experiment.values import difference, distance, number, precision, quotient, recall

KINDS: Final = ("AR", "LBS")
WAYS: Final = {"cloud": None, "cx": "augment", "cx-without-cloud": "offload"}
"""The cloud alone; CX-AH, whose local events go to the cloud as well; its second configuration, in which they do not."""

SECONDS: Final = {True: 75.0, False: 1500.0}
RATE: Final = {True: 0.5, False: 1.0}
DELAYS: Final = ("delay", "delay inside", "delay at points", "delay outside")
_CELLULAR: Final = ("cellular upload", "cellular download")


def _runs(quick: bool) -> tuple[Run, ...]:
    return tuple(
        around_points(
            f"{kind}-{way}",
            "ar-darmstadt",
            city="DA",
            kind=kind,
            seconds=SECONDS[quick],
            quick=quick,
            rate=RATE[quick],
            inside=inside,
        )
        for kind in KINDS
        for way, inside in WAYS.items()
    )


def _delays(outcomes: Sequence[Outcome]) -> Any:
    groups = {
        run: {name: outcomes[0][run].numbers.get(name) for name in DELAYS} for run in (f"AR-{way}" for way in WAYS)
    }
    return bars(groups, label="milliseconds", title="Mean delay, by where clients were")


def _traffic(outcomes: Sequence[Outcome]) -> Any:
    groups = {run: {name: outcomes[0][run].numbers[name] for name in _CELLULAR} for run in _NAMES}
    return bars(groups, label="megabytes", title="Cellular traffic of all clients")


_NAMES: Final = tuple(f"{kind}-{way}" for kind in KINDS for way in WAYS)

E9: Final = Experiment(
    "bypass-e9",
    "BYPASS.KOM 6.4.1, figure 56",
    "Ad hoc dissemination at attraction points, the cloud elsewhere",
    _runs,
    (
        Check(
            "E9.1",
            "Mean delay falls from 200 ms to 150 ms",
            "text",
            (
                Part("AR, cloud alone", near(200.0, 20.0), number("AR-cloud", "delay"), " ms"),
                Part("AR, CX-AH", near(150.0, 15.0), number("AR-cx", "delay"), " ms"),
            ),
            note="the first part is given by the model of the cellular network (75 to 125 ms each way); the second depends on how much "
            "of what is due is due within one channel, and so on the city",
        ),
        Check(
            "E9.2",
            "Inside the channels it is below 50 ms",
            "text",
            (Part("AR, CX-AH", at_most(50.0), number("AR-cx", "delay inside"), " ms"),),
        ),
        Check(
            "E9.3",
            "Coordination is less than 0.1 % of the cellular traffic",
            "text",
            tuple(
                Part(f"{kind}, CX-AH", at_most(0.1), percent(f"{kind}-cx", "coordination share"), " %")
                for kind in KINDS
            ),
        ),
        Check(
            "E9.4",
            "Cellular traffic rises, and precision falls",
            "text",
            (
                *(
                    Part(
                        f"{kind}, CX-AH against the cloud alone",
                        at_least(1.01),
                        quotient(number(f"{kind}-cx", *_CELLULAR), number(f"{kind}-cloud", *_CELLULAR)),
                        " times",
                    )
                    for kind in KINDS
                ),
                *(
                    Part(
                        f"{kind}: precision, lower by",
                        at_least(0.01),
                        difference(precision(f"{kind}-cloud"), precision(f"{kind}-cx")),
                    )
                    for kind in KINDS
                ),
            ),
            note="the text has the second as the cause of the first",
        ),
        Check(
            "E9.5",
            "Events that are published to elsewhere (LBS) are no faster: none of them is local",
            "inferred",
            (
                Part(
                    "LBS, delay, off by",
                    at_most(5.0),
                    distance(number("LBS-cx", "delay"), number("LBS-cloud", "delay")),
                    " ms",
                ),
            ),
        ),
        Check(
            "E9.6",
            "A second configuration does not send local events at points to the cloud",
            "text",
            (
                Part(
                    "AR, cellular traffic against CX-AH",
                    at_most(0.99),
                    quotient(number("AR-cx-without-cloud", *_CELLULAR), number("AR-cx", *_CELLULAR)),
                    " times",
                ),
                Part(
                    "AR, loss of recall against CX-AH",
                    at_least(0.0),
                    difference(recall("AR-cx"), recall("AR-cx-without-cloud")),
                ),
                Part("AR, inside", at_most(50.0), number("AR-cx-without-cloud", "delay inside"), " ms"),
            ),
            not_checkable="what it brings is not in the text that we have",
        ),
    ),
    (
        Drawing("delay", "Mean delay by where clients were, AR", tuple(f"AR-{way}" for way in WAYS), _delays),
        Drawing("traffic", "Cellular traffic", _NAMES, _traffic),
        boxes_of({name.replace("-", "\n", 1): name for name in _NAMES}),
        schemes_of("AR-cx"),
    ),
)
