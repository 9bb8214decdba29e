"""BYPASS.KOM, appendix A.1: filter schemes without transitions (A1).

Recall and precision do not depend on how often clients publish, so quick runs publish less often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, between, near
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.plans import RADIAL, STE, Scheme, grid, static, workload
from nearcast.experiment.runs import Run
from nearcast.experiment.values import kilobits, precision, quotient

DOCUMENT: Final = "BYPASS.KOM, appendix A.1"
QUICK_SECONDS: Final = 40.0
QUICK_RATE: Final = 0.25
WORKLOADS: Final = ("AR", "LBS", "RND")
SCHEMES: Final[Mapping[str, Scheme]] = {"RADIAL": RADIAL, "STE": STE, "GRID": grid(2)}


def short_static(name: str, scheme: Scheme, quick: bool, kind: str = "AR", **changes: Any) -> Run:
    return static(
        name,
        scheme,
        quick=quick,
        seconds=QUICK_SECONDS if quick else None,
        changes={"workload": workload(kind, QUICK_RATE if quick else 1.0), **changes},
    )


def _a1_runs(quick: bool) -> tuple[Run, ...]:
    return tuple(
        short_static(f"{name}-{kind}", scheme, quick, kind) for name, scheme in SCHEMES.items() for kind in WORKLOADS
    )


def _for_workloads(accepted: Any, value: Any) -> tuple[Part, ...]:
    return tuple(Part(kind, accepted, value(kind)) for kind in WORKLOADS)


def _a1_traffic(outcomes: Sequence[Outcome]) -> Any:
    groups = {
        kind: {name: kilobits(f"{name}-{kind}", "download")(outcomes[0]) for name in SCHEMES} for kind in WORKLOADS
    }
    return bars(groups, label="kbit/s", title="Cellular download of a client")


A1: Final = Experiment(
    "bypass-a1",
    DOCUMENT + ", figure 65",
    "Filter schemes and workloads",
    _a1_runs,
    (
        Check(
            "A1.1",
            "RADIAL has a precision of 0.98",
            "text",
            _for_workloads(near(0.98, 0.02), lambda kind: precision(f"RADIAL-{kind}")),
        ),
        Check(
            "A1.2",
            "STE has a precision of 0.75",
            "text",
            _for_workloads(near(0.75, 0.05), lambda kind: precision(f"STE-{kind}")),
        ),
        Check(
            "A1.3",
            "GRID has a precision of 0.1 to 0.2",
            "text",
            _for_workloads(between(0.08, 0.22), lambda kind: precision(f"GRID-{kind}")),
            note="grid factor 2, to which the figures belong",
        ),
        Check(
            "A1.4",
            "GRID causes about four times the traffic of RADIAL",
            "text",
            _for_workloads(
                between(3.0, 5.0),
                lambda kind: quotient(kilobits(f"GRID-{kind}", "download"), kilobits(f"RADIAL-{kind}", "download")),
            ),
            note="precisions of 0.98 and 0.1 to 0.2 as stated would imply a factor of 5 to 9 at equal recall",
        ),
    ),
    (
        boxes_of({f"{name}\n{kind}": f"{name}-{kind}" for name in SCHEMES for kind in WORKLOADS}),
        Drawing(
            "traffic",
            "Cellular download by workload and scheme",
            tuple(f"{name}-{kind}" for name in SCHEMES for kind in WORKLOADS),
            _a1_traffic,
        ),
    ),
)
