"""BYPASS.KOM 6.3.1: events from host to host and no other way (E5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from nearcast.experiment.adhoc.crowd import (
    AGGRESSIVE,
    MECHANISMS,
    MULTI_HOP,
    SPARING,
    download,
    static,
    upload,
)
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.figures.maps import recall_maps
from nearcast.experiment.runs import Run
from nearcast.experiment.values import Value, delay, difference, mean, precision, quotient, recall

WORKLOADS: Final = ("AR", "RND")
OPEN: Final = ("FLOODING", "GOSSIP")
"""The most and the least aggressive mechanism, which also run without geofencing."""

RECALLS: Final = {"FLOODING": 0.95, "PLAN-B": 0.95, "GOSSIP": 0.85, "HYPERG": 0.8}
FEW_MILLISECONDS: Final = at_most(20.0)
"""What appendix A.3 gives for the same mechanisms."""


def _runs(quick: bool) -> tuple[Run, ...]:
    fenced = (
        static(f"{name}-{kind}", mechanism, quick=quick, kind=kind, maps=kind == "AR")
        for kind in WORKLOADS
        for name, mechanism in MECHANISMS.items()
    )
    unfenced = (
        static(f"{name}-open", MECHANISMS[name], quick=quick, spreads=True, changes={"adhoc.geofence": False})
        for name in OPEN
    )
    return (*fenced, *unfenced)


def _crowded(run: str) -> Value:
    """Recall in the cells in which most was due, minus that in the others; both have half of what was due."""

    def value(outcome: Outcome) -> float | None:
        cells = outcome[run].recall_map
        if cells is None:
            return None
        due, correct = np.array(cells.values["due"]), np.array(cells.values["correct"])
        order = np.argsort(-due, kind="stable")
        half = int(np.searchsorted(np.cumsum(due[order]), due.sum() / 2)) + 1
        dense, thin = order[:half], order[half:]
        if not due[dense].sum() or not due[thin].sum():
            return None
        return float(correct[dense].sum() / due[dense].sum() - correct[thin].sum() / due[thin].sum())

    return value


def _bars(value: Callable[[str], Value], label: str, title: str) -> Callable[[Sequence[Outcome]], Any]:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        groups = {kind: {name: value(f"{name}-{kind}")(outcomes[0]) for name in MECHANISMS} for kind in WORKLOADS}
        return bars(groups, label=label, title=title)

    return draw


_ALL: Final = tuple(f"{name}-{kind}" for kind in WORKLOADS for name in MECHANISMS)

E5: Final = Experiment(
    "bypass-e5",
    "BYPASS.KOM 6.3.1, figures 44 to 46",
    "Events from host to host and no other way",
    _runs,
    (
        Check(
            "E5.1",
            "AR: recall 0.95 with FLOODING and PLAN-B, 0.85 with GOSSIP, 0.8 with HYPERG",
            "text",
            tuple(Part(name, near(value, 0.05), recall(f"{name}-AR")) for name, value in RECALLS.items()),
        ),
        Check(
            "E5.2",
            "AR: precision of 0.6 to 0.8 over several hops, and a high one over one hop",
            "text",
            (
                *(Part(name, between(0.55, 0.85), precision(f"{name}-AR")) for name in MULTI_HOP),
                Part("BROADCAST", at_least(0.9), precision("BROADCAST-AR")),
            ),
        ),
        Check(
            "E5.3",
            "RND: recall 0.35 with FLOODING and PLAN-B, below 0.2 with GOSSIP and HYPERG, 0.01 with BROADCAST",
            "text",
            (
                *(Part(name, near(0.35, 0.05), recall(f"{name}-RND")) for name in AGGRESSIVE),
                *(Part(name, at_most(0.2), recall(f"{name}-RND")) for name in SPARING),
                Part("BROADCAST", at_most(0.02), recall("BROADCAST-RND")),
            ),
        ),
        Check(
            "E5.4",
            "Without geofencing, in RND, clients download six times as much as in AR",
            "text",
            (
                Part(
                    "mean over mechanisms of several hops",
                    near(6.0, 1.5),
                    mean([quotient(download(f"{name}-RND"), download(f"{name}-AR")) for name in MULTI_HOP]),
                    " times",
                ),
            ),
        ),
        Check(
            "E5.5",
            "Geofencing alone saves most of AR's download, and costs no recall",
            "inferred",
            (
                *(
                    Part(
                        f"{name}: download without it",
                        at_least(2.0),
                        quotient(download(f"{name}-open"), download(f"{name}-AR")),
                        " times",
                    )
                    for name in OPEN
                ),
                *(
                    Part(
                        f"{name}: recall with it minus without it",
                        at_least(-0.05),
                        difference(recall(f"{name}-AR"), recall(f"{name}-open")),
                    )
                    for name in OPEN
                ),
            ),
            note="the text compares AR with RND (E5.4), which differ in more than geofencing",
        ),
        Check(
            "E5.6",
            "AR: events take a few milliseconds",
            "text",
            tuple(Part(name, FEW_MILLISECONDS, delay(f"{name}-AR"), " ms") for name in MECHANISMS),
        ),
        Check(
            "E5.7",
            "RND overloads the network with HYPERG, FLOODING and PLAN-B: delays are significantly longer",
            "text",
            tuple(
                Part(name, at_least(5.0), quotient(delay(f"{name}-RND"), delay(f"{name}-AR")), " times AR's")
                for name in ("HYPERG", *AGGRESSIVE)
            ),
        ),
        Check(
            "E5.8",
            "FLOODING and PLAN-B upload significantly more than GOSSIP and HYPERG",
            "text",
            tuple(
                Part(
                    f"AR: {loud} against {quiet}",
                    at_least(1.5),
                    quotient(upload(f"{loud}-AR"), upload(f"{quiet}-AR")),
                    " times",
                )
                for loud in AGGRESSIVE
                for quiet in SPARING
            ),
        ),
        Check(
            "E5.9",
            "Recall is higher where there are more clients",
            "text",
            tuple(Part(f"AR, {name}: higher by", at_least(0.03), _crowded(f"{name}-AR")) for name in MULTI_HOP),
            note="by where clients are; half of what is due is due in the cells with most of it",
        ),
    ),
    (
        boxes_of({f"{name}\n{kind}": f"{name}-{kind}" for kind in WORKLOADS for name in MECHANISMS}),
        Drawing(
            "download", "Download by radio, by workload and mechanism", _ALL,
            _bars(download, "kbit/s", "Download of a client"),
        ),
        Drawing("upload", "Upload by radio, by workload and mechanism", _ALL, _bars(upload, "kbit/s", "Upload of a client")),
        Drawing("delay", "Delay, by workload and mechanism", _ALL, _bars(delay, "ms", "Mean delay of an event")),
        Drawing(
            "recall-map",
            "AR: recall by where clients are",
            tuple(f"{name}-AR" for name in MULTI_HOP),
            lambda outcomes: recall_maps(
                {name: cells for name in MULTI_HOP if (cells := outcomes[0][f"{name}-AR"].recall_map) is not None}
            ),
        ),
    ),
)  # fmt: skip
