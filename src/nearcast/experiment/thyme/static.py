"""TH1 and TH2: nodes that stand still and never fail (THYME 6.3)."""

from __future__ import annotations

from typing import Final

from nearcast.experiment.checks import Check, Part, at_least, between
from nearcast.experiment.experiment import Draw, Drawing, Experiment
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG, run_of
from nearcast.experiment.thyme.reporting import JUDGED, drawn, worst
from nearcast.experiment.thyme.venue import SIZES
from nearcast.experiment.values import Value, number, quotient

LARGEST: Final = SIZES[-1]
_ALL: Final = tuple(f"{mechanism}-{nodes}" for mechanism in MECHANISMS for nodes in SIZES)


def _runs(quick: bool) -> tuple[Computed, ...]:
    return tuple(run_of(f"{it}-{nodes}", quick, nodes, it) for it in MECHANISMS for nodes in SIZES)


def _ratio(name: str, nodes: int = LARGEST) -> Value:
    return quotient(number(f"{PL_SG}-{nodes}", name), number(f"{DCS}-{nodes}", name))


def _lines(name: str, title: str, unit: str) -> Draw:
    return drawn(SIZES, MECHANISMS, name, x="nodes", y=unit, title=title)


TH1: Final = Experiment(
    name="thyme-th1",
    document="THYME 6.3",
    title="Traffic of a crowd that stands still",
    runs=lambda _quick: (),
    computed=_runs,
    seeds=3,
    checks=(
        Check(
            "TH1.1",
            "with 196 nodes, PL/SG sends more than twice as much as DCS",
            "text",
            (Part("bytes at the physical layer", at_least(2.0), _ratio("bytes sent"), " times"),),
        ),
        Check(
            "TH1.2",
            "a quarter of what PL/SG sends is routing control",
            "text",
            (Part("share", between(0.15, 0.35), number(f"{PL_SG}-{LARGEST}", "control share")),),
        ),
        Check(
            "TH1.3",
            "DCS forwards more than PL/SG",
            "text",
            (
                Part(
                    "bytes, DCS against PL/SG",
                    at_least(1.0),
                    quotient(number(f"{DCS}-{LARGEST}", "bytes forwarded"), number(f"{PL_SG}-{LARGEST}", "bytes forwarded")),
                    " times",
                ),
            ),
            note="floods are not counted: the reason that the paper gives would not hold with them",
        ),
        Check(
            "TH1.4",
            "PL/SG retransmits far more",
            "text",
            (Part("data frames, PL/SG against DCS", at_least(2.0), _ratio("retransmissions"), " times"),),
            note="far more is taken to be twice",
        ),
    ),
    drawings=(
        Drawing("sent", "Bytes sent, by crowd", _ALL, _lines("bytes sent", "Bytes at the physical layer", "bytes")),
        Drawing("forwarded", "Bytes forwarded, by crowd", _ALL, _lines("bytes forwarded", "Forwarded", "bytes")),
        Drawing("control", "Routing control, by crowd", _ALL, _lines("control bytes", "Routing control", "bytes")),
        Drawing("again", "Retransmissions, by crowd", _ALL, _lines("retransmissions", "Retransmissions", "frames")),
    ),
)  # fmt: skip

TH2: Final = Experiment(
    name="thyme-th2",
    document="THYME 6.3",
    title="Success and latency in a crowd that stands still",
    runs=lambda _quick: (),
    computed=_runs,
    seeds=3,
    checks=(
        Check(
            "TH2.1",
            "more than 94 % of every operation succeeds, in both",
            "text",
            tuple(
                Part(
                    f"{it}: {kind}, the worst of all crowds",
                    at_least(0.94),
                    worst([f"{it}-{nodes}" for nodes in SIZES], kind),
                )
                for it in MECHANISMS
                for kind in JUDGED
            ),
            note="an operation of which a crowd has none is not judged",
        ),
        Check(
            "TH2.2",
            "notifications take less time in PL/SG, downloads slightly less in DCS",
            "text",
            (
                Part(
                    "notification, DCS against PL/SG",
                    at_least(1.0),
                    quotient(number(f"{DCS}-{LARGEST}", "notification latency"), number(f"{PL_SG}-{LARGEST}", "notification latency")),
                    " times",
                ),
                Part("download, PL/SG against DCS", at_least(1.0), _ratio("download latency"), " times"),
            ),
        ),
    ),
    drawings=(
        Drawing("notified", "Due notifications that came", _ALL, _lines("notification success", "Notifications", "share")),
        Drawing("latency", "Latency of notifications", _ALL, _lines("notification latency", "Notifications", "seconds")),
        Drawing("download", "Latency of downloads", _ALL, _lines("download latency", "Downloads", "seconds")),
    ),
)  # fmt: skip
