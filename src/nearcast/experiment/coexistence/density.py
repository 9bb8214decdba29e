"""BYPASS.KOM 6.4.3: what runs at an attraction point depends on how crowded it is (E11)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.coexistence.plans import around_points, percent
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.plans import CITIES
from nearcast.experiment.runs import Run
from nearcast.experiment.values import (
    Value,
    concordance,
    difference,
    distance,
    least,
    most,
    number,
    precision,
    quotient,
    recall,
    span,
)
from nearcast.scenario.kinds import Toml

THRESHOLDS: Final = (4, 6, 8, 10)
"""Clients.  The text names 8 and 10; 6 and 4 are ours: the third of the document is unknown, and so are its points' radii."""

HEALING: Final = (6, 10)
HYSTERESIS: Final = 2
"""Clients."""

A_FEW: Final = 3.0
"""At most so many are meant where the text says that there is one."""

QUICKER: Final = 15.0
LENGTH: Final = 1500.0
CURVE: Final = ((8.0, 100), (15.0, 297), (18.0, 297), (25.0, 100))
"""Minutes, and how many are active (6.4.3)."""

RATE: Final = {True: 0.5, False: 1.0}


def _runs(quick: bool) -> tuple[Run, ...]:
    faster = QUICKER if quick else 1.0
    curve: list[Toml] = [[f"{60.0 * minute / faster:g} s", active] for minute, active in CURVE]

    def run(name: str, city: str, threshold: int, **more: Toml) -> Run:
        coexistence: dict[str, Toml] = {
            "inside": "gateway",
            "threshold": threshold,
            "otherwise": {"kind": "PLAN-B"},
            "gateways_otherwise": {"kind": "UNICAST"},
            **more,
        }
        return around_points(
            name,
            "churn",
            city=city,
            kind="AR",
            seconds=LENGTH / faster,
            quick=quick,
            rate=RATE[quick],
            changes={
                "population": {"kind": "curve", "points": curve},
                "coexistence": coexistence,
                "gateways": {"acknowledged": False},
            },
        )

    made = []
    for city in CITIES:
        made += [run(_central(city, threshold), city, threshold) for threshold in THRESHOLDS]
        for threshold in HEALING:
            made.append(run(_healing(city, threshold), city, threshold, coordination="self-healing"))
            made.append(run(_calm(city, threshold), city, threshold, hysteresis=HYSTERESIS))
    return tuple(made)


def _central(city: str, threshold: int) -> str:
    return f"{city}-central-{threshold}"


def _healing(city: str, threshold: int) -> str:
    return f"{city}-healing-{threshold}"


def _calm(city: str, threshold: int) -> str:
    return f"{city}-hysteresis-{threshold}"


_CITIES_CENTRAL: Final = {city: [_central(city, threshold) for threshold in THRESHOLDS] for city in CITIES}
_COMPARED: Final = tuple(product(CITIES, HEALING))
_ALL: Final = (
    *(run for runs in _CITIES_CENTRAL.values() for run in runs),
    *(name(city, threshold) for city, threshold in _COMPARED for name in (_healing, _calm)),
)


def _recall_inside(run: str) -> Value:
    return number(run, "recall inside")


def _delay_inside(run: str) -> Value:
    return number(run, "delay inside")


def _by_threshold(what: str, label: str, title: str) -> Drawing:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        found = outcomes[0]
        series = {
            f"{city}, central": [(at, found[_central(city, at)].numbers[what]) for at in THRESHOLDS] for city in CITIES
        }
        for city in CITIES:
            series[f"{city}, hysteresis {HYSTERESIS}"] = [(at, found[_calm(city, at)].numbers[what]) for at in HEALING]
            series[f"{city}, self-healing"] = [(at, found[_healing(city, at)].numbers[what]) for at in HEALING]
        return lines(series, x="threshold, clients", y=label, title=title)

    return Drawing(what.replace(" ", "-"), title, _ALL, draw)


E11: Final = Experiment(
    "bypass-e11",
    "BYPASS.KOM 6.4.3, figures 59 to 64",
    "Mechanisms by how crowded attraction points are, while people come and go",
    _runs,
    (
        Check(
            "E11.1",
            "Recall and precision are stable, whatever the threshold",
            "text",
            (
                *(
                    Part(f"{city}: {name}, apart by", at_most(0.05), span([of(run) for run in _CITIES_CENTRAL[city]]))
                    for city in CITIES
                    for name, of in (("recall", recall), ("precision", precision), ("recall inside", _recall_inside))
                ),
                *(
                    Part(
                        f"{city}: delay inside, apart by",
                        at_most(0.05),
                        quotient(*(of([_delay_inside(run) for run in _CITIES_CENTRAL[city]]) for of in (span, least))),
                        " of the least",
                    )
                    for city in CITIES
                ),
            ),
            note="the cloud carries most of it whatever runs at points; inside is who stands at the same point as the event",
        ),
        Check(
            "E11.2",
            "Transitions take place only inside attraction points",
            "text",
            tuple(
                Part(city, at_least(99.0), percent(_central(city, 10), "exchanges at points"), " %") for city in CITIES
            ),
            note="or within 15 m: who has left says so with its next fix",
        ),
        Check(
            "E11.3",
            "About 35 % of the clients are in channels (DA)",
            "text",
            (Part("DA", near(35.0, 5.0), percent(_central("DA", 10), "share at points"), " %"),),
            note="the cities are ours, and nothing was fitted to this",
        ),
        Check(
            "E11.4",
            "At a threshold of 10 points oscillate",
            "text",
            tuple(
                Part(
                    f"{city}: switches that last less than 10 s",
                    at_least(25.0),
                    percent(_central(city, 10), "brief"),
                    " %",
                )
                for city in CITIES
            ),
            note="where points oscillate depends on how many people they have",
        ),
        Check(
            "E11.5",
            "Hysteresis would help",
            "text",
            tuple(
                Part(
                    f"{city}, {threshold}: switches with hysteresis {HYSTERESIS}",
                    at_most(0.75),
                    quotient(
                        number(_calm(city, threshold), "switches a minute"),
                        number(_central(city, threshold), "switches a minute"),
                    ),
                    " times",
                )
                for city, threshold in _COMPARED
            ),
        ),
        Check(
            "E11.6",
            "There is a point in MA that never exceeds 8",
            "text",
            (Part("MA, points", between(1.0, A_FEW), number(_central("MA", 8), "points never crowded")),),
            note="the points and their radii are ours",
        ),
        Check(
            "E11.7",
            "What self-healing costs does not depend on the threshold",
            "text",
            tuple(
                Part(
                    f"{city}: coordination at {HEALING[0]} against {HEALING[1]}",
                    near(1.0, 0.05),
                    quotient(*(number(_healing(city, threshold), "coordination") for threshold in HEALING)),
                    " times",
                )
                for city in CITIES
            ),
        ),
        Check(
            "E11.8",
            "Central coordination costs more the more often points switch",
            "text",
            (
                *(
                    Part(
                        f"{city}, {threshold}: central against self-healing",
                        at_least(1.01),
                        quotient(
                            number(_central(city, threshold), "coordination"),
                            number(_healing(city, threshold), "coordination"),
                        ),
                        " times",
                    )
                    for city, threshold in _COMPARED
                ),
                *(
                    Part(
                        f"{city}: of two thresholds, the one with more switches costs more",
                        at_least(1.0),
                        concordance(
                            [
                                (number(run, "switches a minute"), number(run, "coordination"))
                                for run in _CITIES_CENTRAL[city]
                            ]
                        ),
                        " of the cases",
                    )
                    for city in CITIES
                ),
            ),
            note="what a switch costs depends on how many stand at the point",
        ),
        Check(
            "E11.9",
            "Self-healing leaves recall and precision as they are",
            "text",
            (
                *(
                    Part(
                        f"{city}, {threshold}: {name}, off by",
                        at_most(0.01),
                        distance(of(_healing(city, threshold)), of(_central(city, threshold))),
                    )
                    for city, threshold in _COMPARED
                    for name, of in (("recall", recall), ("precision", precision), ("recall inside", _recall_inside))
                ),
                *(
                    Part(
                        f"{city}, {threshold}: delay inside",
                        near(1.0, 0.05),
                        quotient(*(_delay_inside(of(city, threshold)) for of in (_healing, _central))),
                        " times",
                    )
                    for city, threshold in _COMPARED
                ),
            ),
            note="the cloud carries most of it whatever runs at points; inside is who stands at the same point as the event",
        ),
        Check(
            "E11.10",
            "Coordination is less than 0.1 % of the cellular traffic",
            "inferred",
            (Part("most of all runs", at_most(0.001), most([number(run, "coordination share") for run in _ALL])),),
        ),
        Check(
            "E11.11",
            "With self-healing as many clients run what their point should have",
            "inferred",
            tuple(
                Part(
                    f"{city}, {threshold}: share of the clients, lower by",
                    at_most(0.05),
                    difference(
                        number(_central(city, threshold), "agreeing"), number(_healing(city, threshold), "agreeing")
                    ),
                )
                for city, threshold in _COMPARED
            ),
            note="who is inside when its point changes its mind learns it from neighbours",
        ),
    ),
    (
        _by_threshold("switches a minute", "switches a minute", "How often points change their mind"),
        _by_threshold("coordination", "megabytes", "Coordination, all clients"),
        _by_threshold("agreeing", "share", "Clients that run what their point should have"),
        boxes_of({name.replace("-", "\n"): name for name in _CITIES_CENTRAL["DA"]}, "DA, central"),
    ),
)
