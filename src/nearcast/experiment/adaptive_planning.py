"""Planning: a broker that learns which filter scheme is the cheapest one, beside every static choice and fixed rules.

All runs have the same day (``day.toml``) and the same seeds, and are judged by one cost: all bytes that clients send and receive,
plans and their answers included, and so many bytes for each match operation.  What the policy believes to cost plays no part in it.

Three sets of fixed rules.  ``rules-rate`` has the thresholds of an operator who knows the candidates, areas and sizes of messages, but
not the day: with 300 clients that are spread evenly and events of 128 B, EGRID-10 is cheaper than EGRID-5 from about 0.15 events per
second on, and positions are cheaper than cells from about 0.5 on.  ``rules-crowd`` is LCN 2016's: the more subscribers, the coarser, with
thresholds as in the example ``lcn``.  ``rules-hindsight`` knows the day: the better of two thresholds that were tried.

Policy, hindsight and the day itself were made with seeds from 1000 on; reported are those from 1 on.  The day was made for learning to
matter: its quiet times last several times as long as it takes to earn a switch, and a chat now and then is all that happens in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Accepted, Check, Outcome, Part, at_least, at_most
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.measures import Measures
from nearcast.experiment.plans import Scheme
from nearcast.experiment.runs import Run, scenario
from nearcast.experiment.values import Value, difference, quotient
from nearcast.metrics.distribution import grand_mean
from nearcast.scenario.loads import Publications
from nearcast.scenario.population_section import Curve

TARGET: Final = 0.95
"""Recall, as in the example."""

MATCH_WEIGHT: Final = 1.0
"""Bytes for each match operation, as in the example."""

QUICKER: Final = 5
"""Quick runs have so many times fewer clients, each of which publishes so many times more often: all costs become smaller by the same
factor, and none of the times changes."""


def _egrid(factor: int) -> Scheme:
    return {"kind": "EGRID", "factor": factor, "margin": "11 m"}


def _radial(metres: int) -> Scheme:
    return {"kind": "RADIAL", "update": "distance", "distance": f"{metres} m"}


STATIC: Final[Mapping[str, Scheme]] = {
    "RADIAL": {"kind": "RADIAL"},
    "RADIAL-10m": _radial(10),
    "RADIAL-30m": _radial(30),
    "STE": {"kind": "STE"},
    "EGRID-2": _egrid(2),
    "EGRID-5": _egrid(5),
    "EGRID-10": _egrid(10),
}
"""The candidates, each for the whole day."""

TOO_COARSE: Final = "RADIAL-30m"
"""Misses too much, so its cost is that of another service: it is there for the policy to leave it alone."""

RULES: Final[Mapping[str, tuple[Scheme, list[dict[str, Any]]]]] = {
    "rules-rate": (
        _egrid(5),
        [
            {"when": "events per second", "above": 0.15, "back_at": 0.1, "scheme": _egrid(10)},
            {"when": "events per second", "above": 0.5, "back_at": 0.3, "scheme": _radial(10)},
        ],
    ),
    "rules-hindsight": (
        _egrid(5),
        [{"when": "events per second", "above": 0.12, "back_at": 0.02, "scheme": _radial(10)}],
    ),
    "rules-crowd": (
        _radial(10),
        [
            {"when": "subscribers", "above": 120, "back_at": 110, "scheme": _egrid(10)},
            {"when": "subscribers", "above": 220, "back_at": 210, "scheme": _egrid(5)},
        ],
    ),
}
"""What runs at first, and the rules."""

ADAPTIVE: Final = "adaptive"


def _runs(quick: bool) -> tuple[Run, ...]:
    static = [_run(name, {"scheme": dict(scheme)}, quick) for name, scheme in STATIC.items()]
    ruled = [
        _run(name, {"scheme": dict(start), "rule": [_fewer(rule, quick) for rule in rules]}, quick)
        for name, (start, rules) in RULES.items()
    ]
    return (*static, *ruled, _run(ADAPTIVE, {}, quick))


def _run(name: str, changes: dict[str, Any], quick: bool) -> Run:
    none = {} if name == ADAPTIVE else {"planning": {"kind": "none"}}
    return Run(name, scenario("day", {"run.title": f"A day in an hour: {name}", **none, **changes, **_crowd(quick)}))


def _crowd(quick: bool) -> dict[str, Any]:
    if not quick:
        return {}
    usual = scenario("day", {})
    assert isinstance(usual.population, Curve)
    points = [[f"{seconds:g} s", clients // QUICKER] for seconds, clients in usual.population.points]
    rates = {
        f"workload.{number}.rate": f"{load.rate * QUICKER!r}/s"
        for number, load in enumerate(usual.workload, 1)
        if isinstance(load, Publications)
    }
    return {"clients.number": usual.clients.number // QUICKER, "population.points": points, **rates}


def _fewer(rule: dict[str, Any], quick: bool) -> dict[str, Any]:
    if not quick or rule["when"] != "subscribers":
        return rule
    return rule | {key: rule[key] // QUICKER for key in ("above", "back_at")}


def cost_of(measures: Measures) -> float:
    """Megabytes of the whole day."""
    whole = measures.whole
    carried = sum(rate.bytes for rate in whole.rates.values())
    return (carried + MATCH_WEIGHT * (whole.operations_done or 0.0) * whole.delivery.events) / 1e6


def _cost(run: str) -> Value:
    return lambda outcome: cost_of(outcome[run])


def _recall(run: str) -> Value:
    return lambda outcome: outcome[run].whole.delivery.recall


def _relative(runs: Sequence[str]) -> tuple[Part, ...]:
    cheaper: Accepted = at_most(1.0)
    return tuple(Part(f"to {run}", cheaper, quotient(_cost(ADAPTIVE), _cost(run))) for run in runs)


def _costs(outcomes: Sequence[Outcome]) -> Any:
    names = [*STATIC, *RULES, ADAPTIVE]
    groups = {name: {"cost": grand_mean([cost_of(outcome[name]) for outcome in outcomes]).mean} for name in names}
    return bars(groups, label="MB", title="Traffic of all clients and matching, for one day")


ADAPTIVE_PLANNING: Final = Experiment(
    "adaptive",
    "nearcast",
    "A broker that learns which filter scheme is the cheapest one",
    _runs,
    (
        Check(
            "P1",
            "Learning is cheaper than every static scheme that finds enough",
            "inferred",
            _relative([name for name in STATIC if name != TOO_COARSE]),
            note="cost as a share of that of the other",
        ),
        Check("P2", "Learning is cheaper than fixed rules", "inferred", _relative(list(RULES))),
        Check(
            "P3",
            "Learning keeps the recall that it was asked for",
            "inferred",
            (
                Part("recall", at_least(TARGET), _recall(ADAPTIVE)),
                Part(
                    "minus that of RADIAL-10m", at_least(-0.005), difference(_recall(ADAPTIVE), _recall("RADIAL-10m"))
                ),
                Part(f"recall of {TOO_COARSE}, which is not run", at_most(TARGET), _recall(TOO_COARSE)),
            ),
        ),
    ),
    (Drawing("costs", "Cost of a day, mean over seeds", (*STATIC, *RULES, ADAPTIVE), _costs),),
    seeds=3,
)
