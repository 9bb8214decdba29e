"""BYPASS.KOM 6.2.3: EGRID changes a parameter of its own (E3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from nearcast.experiment.checks import Check, Part, at_least
from nearcast.experiment.drawings import transitions_of, windows_of
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.parts import A_GAP, NO_DIP, ONE, dips, gaps, nothing_lost
from nearcast.experiment.plans import RADIAL, WITHOUT_LOSS, Scheme, egrid, planned, workload
from nearcast.experiment.runs import DOCUMENTS_WAY, Run
from nearcast.experiment.values import difference, precision, recall

FACTORS: Final[Mapping[str, Scheme]] = {
    "EGRID 2": egrid(2),
    "EGRID 5": egrid(5),
    "EGRID 10": egrid(10),
    "EGRID 20": egrid(20),
    "RADIAL": RADIAL,
}
"""Table 6."""


def _e3_runs(quick: bool) -> tuple[Run, ...]:
    rate = 0.25 if quick else 1.0
    return tuple(
        planned(f"{kind}-{way}", FACTORS, quick=quick, transitions=table, changes={"workload": workload(kind, rate)})
        for kind, way, table in (
            ("AR", "plain", DOCUMENTS_WAY),
            ("LBS", "plain", DOCUMENTS_WAY),
            ("AR", "lossless", WITHOUT_LOSS),
        )
    )


_SELF: Final = ("T1", "T2", "T3")
_PHASES: Final = tuple(FACTORS)

E3: Final = Experiment(
    "bypass-e3",
    "BYPASS.KOM 6.2.3, Table 6, figures 37 to 39",
    "EGRID changes its grid factor while it runs",
    _e3_runs,
    (
        Check(
            "E3.1",
            "Precision rises with every step",
            "text",
            tuple(
                Part(
                    f"{before} to {after}",
                    at_least(0.03),
                    difference(precision("AR-plain", after), precision("AR-plain", before)),
                )
                for before, after in pairwise(_PHASES)
            ),
        ),
        Check(
            "E3.2",
            "EGRID has a recall of 1.0 throughout",
            "text",
            tuple(Part(phase, ONE, recall("AR-plain", phase)) for phase in _PHASES[:-1]),
        ),
        Check(
            "E3.3",
            "Recall of AR dips for about the latency of the cellular network, 200 ms",
            "text",
            gaps("AR-plain", A_GAP, _SELF),
        ),
        Check("E3.4", "Recall of LBS does not dip", "text", dips("LBS-plain", NO_DIP, _SELF)),
        Check(
            "E3.5",
            "Keeping old channels for a while cures the loss",
            "inferred",
            nothing_lost("AR-lossless"),
        ),
    ),
    (
        windows_of("AR-plain"),
        transitions_of({"AR": "AR-plain", "LBS": "LBS-plain", "AR without loss": "AR-lossless"}),
    ),
)
