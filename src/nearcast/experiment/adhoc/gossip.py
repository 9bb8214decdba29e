"""BYPASS.KOM A.3: with what probability GOSSIP sends on (A6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from nearcast.experiment.adhoc.crowd import download, static
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Run
from nearcast.experiment.values import Value, delay, difference, quotient, recall

CHANCES: Final = (0.2, 0.4, 0.7, 1.0)
WORKLOADS: Final = ("AR", "LBS", "RND")
ELSEWHERE: Final = ("LBS", "RND")
RECALLS: Final = {0.4: 0.8, 0.7: 0.87, 1.0: 0.9}


def _name(chance: float, kind: str) -> str:
    return f"{kind}-{chance:g}"


def _runs(quick: bool) -> tuple[Run, ...]:
    return tuple(
        static(_name(chance, kind), {"kind": "GOSSIP", "p": chance}, quick=quick, kind=kind)
        for kind in WORKLOADS
        for chance in CHANCES
    )


def _over_p(value: Callable[[str], Value], y: str, title: str) -> Callable[[Sequence[Outcome]], Any]:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {kind: [(chance, value(_name(chance, kind))(outcomes[0])) for chance in CHANCES] for kind in WORKLOADS}
        return lines(series, x="p: with what probability a host sends on", y=y, title=title)

    return draw


_ALL: Final = tuple(_name(chance, kind) for kind in WORKLOADS for chance in CHANCES)

A6: Final = Experiment(
    "bypass-a6",
    "BYPASS.KOM, appendix A.3, figure 75",
    "With what probability GOSSIP sends on",
    _runs,
    (
        Check(
            "A6.1",
            "AR: recall 0.8 with p = 0.4, 0.87 with 0.7, 0.9 with 1.0",
            "text",
            tuple(Part(f"p = {chance:g}", near(value, 0.05), recall(_name(chance, "AR"))) for chance, value in RECALLS.items()),
        ),
        Check(
            "A6.2",
            "AR: p = 0.7 causes three times the traffic of p = 0.4",
            "text",
            (Part("download", near(3.0, 0.75), quotient(download("AR-0.7"), download("AR-0.4")), " times"),),
        ),
        Check(
            "A6.3",
            "LBS and RND: a recall of 0.4 at most, with p = 1.0",
            "text",
            tuple(Part(kind, near(0.4, 0.05), recall(_name(1.0, kind))) for kind in ELSEWHERE),
        ),
        Check(
            "A6.4",
            "GOSSIP is stable up to p = 0.7",
            "text",
            tuple(Part(f"AR, p = {chance:g}: delay", at_most(20.0), delay(_name(chance, "AR")), " ms") for chance in CHANCES if chance <= 0.7),
        ),
        Check(
            "A6.5",
            "With p = 1.0 the network is overloaded",
            "text",
            tuple(Part(f"{kind}: delay", at_least(20.0), delay(_name(1.0, kind)), " ms") for kind in WORKLOADS),
            note="overloaded as A.3 has it: a mean delay beyond 20 ms",
        ),
        Check(
            "A6.6",
            "AR: recall and traffic grow with p",
            "text",
            (
                *(Part(f"recall, {less:g} to {more:g}", at_least(0.0), difference(recall(_name(more, "AR")), recall(_name(less, "AR")))) for less, more in pairwise(CHANCES)),
                *(Part(f"traffic, {less:g} to {more:g}", at_least(1.1), quotient(download(_name(more, "AR")), download(_name(less, "AR"))), " times") for less, more in pairwise(CHANCES)),
            ),
        ),
    ),
    (
        boxes_of({f"{kind}\n{chance:g}": _name(chance, kind) for kind in WORKLOADS for chance in CHANCES}, "workload and p"),
        Drawing("recall", "Recall over p", _ALL, _over_p(recall, "recall", "Mean recall of events")),
        Drawing("download", "Download by radio over p", _ALL, _over_p(download, "kbit/s", "Download of a client")),
        Drawing("delay", "Delay over p", _ALL, _over_p(delay, "ms", "Mean delay of an event")),
    ),
)  # fmt: skip
