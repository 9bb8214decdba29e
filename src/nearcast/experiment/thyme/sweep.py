"""What THYME's evaluation does not name, and what TH1 depends on: periods, tags, and how far a hop goes (6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG, run_of
from nearcast.experiment.thyme.posts import GROWTH
from nearcast.experiment.thyme.venue import SIZES
from nearcast.experiment.values import Value, number, quotient

NODES: Final = SIZES[-1]
PERIODS: Final = (5.0, 15.0, 30.0)
"""Seconds between two full tables of DSDV: that of ns-3 is 15."""

BEACONS: Final = (1.0, 2.0, 5.0)
"""Seconds between two beacons: GPSR was evaluated with 1 to 3."""

GROWTHS: Final = (0.6, 0.7, 0.8, 0.9)
"""The number of different tags as a power of their uses: that of tweets is 0.8."""

USUAL_PERIOD: Final = 15.0
USUAL_BEACON: Final = 2.0
SLOW: Final = 1_000_000
"""Bits per second of broadcasts in ns-3, where nobody chooses."""

AT_ONCE: Final = f"{PL_SG}-at-once"
"""What ns-3's DSDV tells at once is told at once: also that a route is known anew, within a millisecond (``SendTriggeredUpdate`` after each message
that came), and not only with the next full table.  Routing control is then five sixths of all, where the paper has a quarter: so this is no run
of TH1."""

AROUND: Final = "DCS-around"
"""Each hop goes to one of the eight cells around, as in the paper."""


def _name(mechanism: str, kind: str, value: float) -> str:
    return f"{mechanism}-{kind}-{value:g}"


def _runs(quick: bool) -> tuple[Computed, ...]:
    """What is usual is not said: then it is the same run as in TH1."""
    periods = (
        run_of(_name(PL_SG, "period", it), quick, NODES, PL_SG, **({} if it == USUAL_PERIOD else {"route_period": it}))
        for it in PERIODS
    )
    beacons = (
        run_of(_name(DCS, "beacon", it), quick, NODES, DCS, **({} if it == USUAL_BEACON else {"beacon": it}))
        for it in BEACONS
    )
    growths = (
        run_of(_name(mechanism, "growth", it), quick, NODES, mechanism, **({} if it == GROWTH else {"growth": it}))
        for mechanism in (PL_SG, DCS)
        for it in GROWTHS
    )
    slow = (run_of(f"{it}-slow", quick, NODES, it, broadcast_rate=SLOW, **_cells_around(it)) for it in MECHANISMS)
    at_once = run_of(AT_ONCE, quick, NODES, PL_SG, route_renewals=True, route_gathering=0.001)
    return (*periods, *beacons, *growths, *slow, at_once, run_of(AROUND, quick, NODES, DCS, **_cells_around(DCS)))


def _cells_around(mechanism: str) -> dict[str, bool]:
    return {"skip": False} if mechanism == DCS else {}


def _ratio(one: str, other: str) -> Value:
    return quotient(number(one, "bytes sent"), number(other, "bytes sent"))


def _by_growth(outcomes: Sequence[Outcome]) -> Any:
    def sent(mechanism: str, growth: float) -> float:
        return outcomes[0][_name(mechanism, "growth", growth)].numbers["bytes sent"]

    series = {it: [(growth, sent(it, growth)) for growth in GROWTHS] for it in (PL_SG, DCS)}
    return lines(series, x="growth of the tags", y="bytes", title="Bytes at the physical layer")


def _by_period(outcomes: Sequence[Outcome]) -> Any:
    def ratio(period: float, beacon: float) -> float | None:
        return _ratio(_name(PL_SG, "period", period), _name(DCS, "beacon", beacon))(outcomes[0])

    series = {f"beacons every {it:g} s": [(period, ratio(period, it)) for period in PERIODS] for it in BEACONS}
    return lines(series, x="seconds between tables of DSDV", y="times", title="PL/SG against DCS, bytes sent")


SWEEP: Final = Experiment(
    name="thyme-sweep",
    document="nearcast",
    title="Traffic of THYME's crowd over what the paper does not name",
    runs=lambda _quick: (),
    computed=_runs,
    seeds=1,
    checks=(
        Check(
            "TH1.5",
            "PL/SG sends more than DCS whatever the periods of DSDV and of beacons",
            "inferred",
            tuple(
                Part(
                    f"DSDV {period:g} s, beacons {beacon:g} s",
                    at_least(1.0),
                    _ratio(_name(PL_SG, "period", period), _name(DCS, "beacon", beacon)),
                    " times",
                )
                for period in PERIODS
                for beacon in BEACONS
            ),
            note="the paper names neither",
        ),
        Check(
            "TH1.6",
            "PL/SG sends more than DCS whatever the growth of the tags",
            "inferred",
            tuple(
                Part(f"{it:g}", at_least(1.0), _ratio(_name(PL_SG, "growth", it), _name(DCS, "growth", it)), " times")
                for it in GROWTHS
            ),
            note="the paper does not say how many different tags the tweets had",
        ),
        Check(
            "TH1.7",
            "DCS sends less if messages skip cells",
            "inferred",
            (Part("as in the paper, against ours", at_least(1.2), _ratio(AROUND, _name(DCS, "beacon", USUAL_BEACON)), " times"),),
        ),
        Check(
            "TH1.8",
            "with broadcasts at 1 Mbit/s, more than 94 % of the notifications still come",
            "inferred",
            tuple(Part(it, at_least(0.94), number(f"{it}-slow", "notification success")) for it in MECHANISMS),
            note="so does ns-3 unless told otherwise; the paper does not say whether it told",
        ),
        Check(
            "TH1.9",
            "where DSDV tells at once what ns-3's tells at once, PL/SG sends more than twice as much as DCS",
            "inferred",
            (Part("bytes at the physical layer", at_least(2.0), _ratio(AT_ONCE, _name(DCS, "beacon", USUAL_BEACON)), " times"),),
            note="the paper's share of routing control, a quarter, speaks against it",
        ),
    ),
    drawings=(
        Drawing(
            "growth",
            "Bytes sent, by the growth of the tags",
            tuple(_name(mechanism, "growth", it) for mechanism in (PL_SG, DCS) for it in GROWTHS),
            _by_growth,
        ),
        Drawing(
            "periods",
            "PL/SG against DCS, by the periods of both",
            (*(_name(PL_SG, "period", it) for it in PERIODS), *(_name(DCS, "beacon", it) for it in BEACONS)),
            _by_period,
        ),
    ),
)  # fmt: skip
