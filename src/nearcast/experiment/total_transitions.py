"""BYPASS.KOM 6.2.1 and 6.2.2: all clients change their scheme at set times (E1), with and without transfer of state (E2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nearcast.experiment.checks import Check, Part, at_least, at_most, between, near
from nearcast.experiment.drawings import schemes_of, transitions_of, windows_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.bands import compared
from nearcast.experiment.parts import A_BURST, A_GAP, ALL_MARKS, NO_BURST, NO_DIP, ONE, bursts, dips, gaps, nothing_lost
from nearcast.experiment.plans import RADIAL, STE, WITHOUT_LOSS, Scheme, egrid, grid, planned, static, workload
from nearcast.experiment.runs import DOCUMENTS_WAY, Run
from nearcast.experiment.values import depth, distance, kilobits, of_phase, precision, quotient, recall

SCHEMES: Final[Mapping[str, Scheme]] = {
    "RADIAL": RADIAL,
    "STE": STE,
    "GRID": grid(5),
    "EGRID": egrid(10),
    "RADIAL again": RADIAL,
}
"""Table 5."""

# E1


def _e1_runs(quick: bool) -> tuple[Run, ...]:
    changes = {"workload": workload("AR", 0.5 if quick else 1.0)}
    kinds = {"RADIAL": RADIAL, "STE": STE, "GRID": grid(5), "EGRID": egrid(10)}
    statics = (
        static(f"static-{name}", kind, quick=quick, phases=tuple(SCHEMES), changes=changes)
        for name, kind in kinds.items()
    )
    return (planned("transitions", SCHEMES, quick=quick, changes=changes), *statics)


def _tracks(what: Any) -> tuple[Part, ...]:
    """How far each phase is off the same time of a run that has its scheme all along."""
    return tuple(
        Part(
            phase, at_most(0.01), distance(what("transitions", phase), what(f"static-{SCHEMES[phase]['kind']}", phase))
        )
        for phase in SCHEMES
    )


E1: Final = Experiment(
    "bypass-e1",
    "BYPASS.KOM 6.2.1, Table 5, figures 33 and 34",
    "Transitions of all clients between filter schemes",
    _e1_runs,
    (
        Check("E1.1", "Recall is that of the scheme in use, as if it had always been in use", "text", _tracks(recall)),
        Check(
            "E1.2",
            "Precision is that of the scheme in use, as if it had always been in use",
            "text",
            _tracks(precision),
        ),
        Check(
            "E1.3", "GRID has a recall of 0.7", "text", (Part("GRID", near(0.7, 0.05), recall("transitions", "GRID")),)
        ),
        Check(
            "E1.4",
            "STE and EGRID have a recall of 1.0",
            "text",
            tuple(Part(phase, ONE, recall("transitions", phase)) for phase in ("STE", "EGRID")),
        ),
        Check(
            "E1.5",
            "With RADIAL, 25 % of the clients have a recall below 1.0 but above 0.9",
            "text",
            (
                Part(
                    "25th percentile of clients",
                    between(0.9, 0.9999),
                    of_phase("transitions", "RADIAL", lambda phase: phase.window_recall_p25),
                ),
                Part(
                    "share of clients below 1.0",
                    between(0.15, 0.35),
                    of_phase("transitions", "RADIAL", lambda phase: phase.windows_below_one),
                ),
            ),
            note="of clients in windows, mean over windows",
        ),
        Check(
            "E1.6",
            "Context traffic to clients peaks after T2 and T3",
            "text",
            bursts("transitions", "download context", A_BURST, ("T2", "T3")),
        ),
        Check(
            "E1.7",
            "Context traffic from clients peaks after T3",
            "text",
            bursts("transitions", "upload context", A_BURST, ("T3",)),
            note="the text names T4 too, in brackets: there RADIAL's reports begin, which is a step rather than a peak",
        ),
        Check(
            "E1.8",
            "There is no other peak of context traffic to clients",
            "inferred",
            bursts("transitions", "download context", NO_BURST, ("T1", "T4")),
        ),
    ),
    (
        windows_of("transitions"),
        Drawing(
            "static",
            "Mean recall with transitions and with each scheme all the time",
            ("transitions", "static-RADIAL", "static-STE", "static-GRID", "static-EGRID"),
            lambda outcomes: compared(
                {
                    name.removeprefix("static-"): outcomes[0][name]
                    for name in ("static-RADIAL", "static-STE", "static-GRID", "static-EGRID", "transitions")
                },
                "recall",
                "Recall with transitions follows that of the scheme in use",
            ),
        ),
        schemes_of("transitions"),
    ),
)


# E2


def _e2_runs(quick: bool) -> tuple[Run, ...]:
    ways: dict[str, Mapping[str, Any]] = {
        "transfer": DOCUMENTS_WAY,
        "none": {**DOCUMENTS_WAY, "state_transfer": False},
        "lossless": WITHOUT_LOSS,
    }
    return tuple(
        # Half as many events of LBS: each concerns twice as many people.
        planned(
            f"{kind}-{way}",
            SCHEMES,
            quick=quick,
            transitions=table,
            changes={"workload": workload(kind, 0.5 if quick and kind == "LBS" else 1.0)},
        )
        for way, table in ways.items()
        for kind in ("AR", "LBS")
    )


def _ways_compared(kind: str) -> Drawing:
    ways = {"state transfer": "transfer", "no state transfer": "none", "without loss": "lossless"}
    return transitions_of({shown: f"{kind}-{way}" for shown, way in ways.items()}, name=f"close-up-{kind}", of=kind)


E2: Final = Experiment(
    "bypass-e2",
    "BYPASS.KOM 6.2.2, figures 35 and 36",
    "Transitions with and without transfer of state",
    _e2_runs,
    (
        Check(
            "E2.1",
            "With state transfer, recall stays constant at T1 and T2",
            "text",
            (*dips("AR-transfer", NO_DIP, ("T1", "T2")), *dips("LBS-transfer", NO_DIP, ("T1", "T2"))),
        ),
        Check(
            "E2.2",
            "At T3, events of AR reach nobody for about 100 ms",
            "text",
            gaps("AR-transfer", A_GAP, ("T3",)),
            note="events published with the name of an old channel until the new one has arrived",
        ),
        Check("E2.3", "At T3, LBS is unaffected", "text", dips("LBS-transfer", NO_DIP, ("T3",))),
        Check(
            "E2.4",
            "At T4, recall is slightly lower for a while, as positions are old",
            "text",
            (Part("AR, lowest below usual by", between(0.02, 0.3), depth("AR-transfer", "T4")),),
        ),
        Check(
            "E2.5",
            "Without state transfer, recall drops at every transition",
            "inferred",
            gaps("AR-none", at_least(100.0), ALL_MARKS),
            note="clients must be heard of again first",
        ),
        Check(
            "E2.6",
            "State transfer costs no traffic",
            "text",
            (
                Part(
                    "traffic with transfer, of that without",
                    at_most(1.01),
                    quotient(kilobits("AR-transfer", "download", "upload"), kilobits("AR-none", "download", "upload")),
                ),
            ),
        ),
        Check(
            "E2.7",
            "Context messages are 2.5 % of the upload",
            "text",
            (
                Part(
                    "share",
                    between(0.015, 0.035),
                    quotient(kilobits("AR-transfer", "upload context"), kilobits("AR-transfer", "upload")),
                ),
            ),
            note="message sizes are not in the text",
        ),
        Check(
            "E2.8",
            "Keeping old channels for a while cures the loss",
            "inferred",
            (*nothing_lost("AR-lossless"), *nothing_lost("LBS-lossless")),
            note="the text names the cure, here it is on",
        ),
    ),
    (
        _ways_compared("AR"),
        _ways_compared("LBS"),
        windows_of("AR-transfer"),
    ),
)
