"""BYPASS.KOM A.3: ad hoc mechanisms while more and more clients come (A5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.experiment.adhoc.crowd import AGGRESSIVE, MECHANISMS, MULTI_HOP, SPARING, STANDARD, download
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.measures import Series
from nearcast.experiment.plans import duration
from nearcast.experiment.runs import Run, scenario
from nearcast.experiment.values import delay, difference, precision, quotient, recall

FIRST, LAST = 10, 300
"""How many clients there are at the start and at the end."""

PHASES: Final = ("few", "more", "many")
CUTS: Final = (0.4, 0.8)
"""Shares of the run: few are up to 126, many from 242 on."""

QUICK_SECONDS: Final = 30.0
BELOW: Final = at_most(20.0)


def _runs(quick: bool) -> tuple[Run, ...]:
    seconds = QUICK_SECONDS if quick else duration(quick)

    def run(name: str) -> Run:
        changes: dict[str, Any] = {
            "run.title": f"{name}, more and more clients",
            "run.duration": f"{seconds:g} s",
            "clients.number": LAST,
            "population": {"kind": "curve", "points": [["0 s", FIRST], [f"{seconds:g} s", LAST]]},
            "radio.standard": STANDARD,
            "adhoc.mechanism": dict(MECHANISMS[name]),
        }
        return Run(
            name,
            scenario("adhoc", changes),
            PHASES,
            cuts=tuple(share * seconds for share in CUTS),
            window=3.0 if quick else 20.0,
            settling=2.0,
            proxy=LOCAL,
        )

    return tuple(run(name) for name in MECHANISMS)


def _over_clients(
    values: Callable[[Series], Sequence[float | None]], y: str, title: str
) -> Callable[[Sequence[Outcome]], Any]:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        found = {}
        for name in MECHANISMS:
            series = outcomes[0][name].series
            found[name] = [
                (clients, value)
                for clients, value in zip(series.clients, values(series), strict=True)
                if value is not None
            ]
        return lines(found, x="clients", y=y, title=title)

    return draw


def _downloads(series: Series) -> list[float | None]:
    rates = [values for name, values in series.rates.items() if name.startswith("ad hoc download")]
    return [sum(at_once) for at_once in zip(*rates, strict=True)]


def _milliseconds(series: Series) -> list[float | None]:
    return [None if value is None else 1000.0 * value for value in series.delay]


_ALL: Final = tuple(MECHANISMS)

A5: Final = Experiment(
    "bypass-a5",
    "BYPASS.KOM, appendix A.3, figures 73 and 74",
    "Ad hoc mechanisms while more and more clients come",
    _runs,
    (
        Check(
            "A5.1",
            "GOSSIP and HYPERG cause a third of the traffic of PLAN-B and a fifth of that of FLOODING",
            "text",
            (
                *(Part(f"{name}, of PLAN-B", between(0.25, 0.42), quotient(download(name, "many"), download("PLAN-B", "many")), " times") for name in SPARING),
                *(Part(f"{name}, of FLOODING", between(0.15, 0.25), quotient(download(name, "many"), download("FLOODING", "many")), " times") for name in SPARING),
            ),
            note="download by radio with 242 to 300 clients, hellos included",
        ),
        Check(
            "A5.2",
            "GOSSIP and HYPERG cause less than PLAN-B, and PLAN-B less than FLOODING",
            "text",
            (
                *(Part(f"{name}, of PLAN-B", at_most(0.99), quotient(download(name, "many"), download("PLAN-B", "many")), " times") for name in SPARING),
                Part("PLAN-B, of FLOODING", at_most(0.99), quotient(download("PLAN-B", "many"), download("FLOODING", "many")), " times"),
            ),
        ),
        Check(
            "A5.3",
            "Traffic of BROADCAST is negligible in comparison",
            "text",
            (Part("of PLAN-B", at_most(0.1), quotient(download("BROADCAST", "many"), download("PLAN-B", "many")), " times"),),
        ),
        Check(
            "A5.4",
            "Delay stays below 20 ms for all mechanisms but FLOODING",
            "text",
            tuple(Part(name, BELOW, delay(name, "many"), " ms") for name in MECHANISMS if name != "FLOODING"),
        ),
        Check(
            "A5.5",
            "FLOODING overloads the network: its delay exceeds 20 ms",
            "text",
            (Part("FLOODING", at_least(20.0), delay("FLOODING", "many"), " ms"),),
        ),
        Check(
            "A5.6",
            "Recall of 0.9 with PLAN-B and FLOODING, of 0.8 to 0.9 with GOSSIP and HYPERG, of 0.6 with BROADCAST",
            "text",
            (
                *(Part(name, near(0.9, 0.05), recall(name, "many")) for name in AGGRESSIVE),
                *(Part(name, between(0.75, 0.95), recall(name, "many")) for name in SPARING),
                Part("BROADCAST", near(0.6, 0.05), recall("BROADCAST", "many")),
            ),
        ),
        Check(
            "A5.7",
            "Precision falls with more clients over several hops, and does not over one",
            "text",
            (
                *(Part(f"{name}, falls by", at_least(0.02), difference(precision(name, "few"), precision(name, "many"))) for name in MULTI_HOP),
                Part("BROADCAST, falls by", at_most(0.02), difference(precision("BROADCAST", "few"), precision("BROADCAST", "many"))),
            ),
        ),
    ),
    (
        Drawing("download", "Download by radio of a mean client", _ALL, _over_clients(_downloads, "kbit/s", "Download of a client")),
        Drawing("delay", "Mean delay", _ALL, _over_clients(_milliseconds, "ms", "Mean delay of an event")),
        Drawing("recall", "Recall", _ALL, _over_clients(lambda series: series.recall.mean, "recall", "Mean recall of clients")),
        Drawing("precision", "Precision", _ALL, _over_clients(lambda series: series.precision.mean, "precision", "Mean precision of clients")),
    ),
)  # fmt: skip
