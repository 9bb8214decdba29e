"""BYPASS.KOM 6.2.4 and A.2: clients change to ATTRACT at attraction points and back to RADIAL, one by one (E4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.agreement import agreement
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.drawings import boxes_of, schemes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.bands import compared
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.figures.maps import recall_maps, transition_maps
from nearcast.experiment.measures import Cells
from nearcast.experiment.plans import CITIES, RADIAL, static, workload
from nearcast.experiment.runs import DOCUMENTS_WAY, Run
from nearcast.experiment.values import Value, difference, distance, kilobits, precision, quotient, recall

EXTENSION: Final = "125 m"
"""The radius of interest of all clients (6.2.4 takes the largest, 6.4.2 the average)."""

EXTENSIONS: Final = {"": "0 m", "-extended": EXTENSION}
STATED: Final = {"DA": 0.9, "MA": 0.88}
QUICK_SECONDS: Final = 75.0


def _runs(quick: bool) -> tuple[Run, ...]:
    runs = []
    for city, world in CITIES.items():
        changes: dict[str, Any] = {"world": {"kind": world}, "workload": workload("AR", 0.5 if quick else 1.0)}
        seconds = QUICK_SECONDS if quick else None
        for suffix, extension in EXTENSIONS.items():
            partly = {**DOCUMENTS_WAY, "at_points": True, "extension": extension}
            runs += [
                static(
                    f"{city}-partial{suffix}",
                    RADIAL,
                    quick=quick,
                    seconds=seconds,
                    changes={**changes, "transitions": partly},
                    maps=True,
                ),
                static(
                    f"{city}-multi{suffix}",
                    {"kind": "MULTI", "extension": extension},
                    quick=quick,
                    seconds=seconds,
                    changes=changes,
                    maps=True,
                ),
            ]
    return tuple(runs)


def _every(what: Any) -> tuple[Part, ...]:
    return tuple(part for city in CITIES for suffix in EXTENSIONS for part in what(city, suffix))


def _name(city: str, suffix: str) -> str:
    return f"{city}{', extended' if suffix else ''}"


def _same(city: str, suffix: str) -> tuple[Part, ...]:
    partial, multi = f"{city}-partial{suffix}", f"{city}-multi{suffix}"
    return (
        Part(f"{_name(city, suffix)}: recall, off by", at_most(0.01), distance(recall(partial), recall(multi))),
        Part(
            f"{_name(city, suffix)}: precision, off by", at_most(0.01), distance(precision(partial), precision(multi))
        ),
        Part(f"{_name(city, suffix)}: share of notifications that both have", at_least(0.98), _agree(partial, multi)),
    )


def _agree(one: str, other: str) -> Value:
    return lambda outcome: agreement(outcome[one].folder, outcome[other].folder)


def _costs(city: str, suffix: str) -> tuple[Part, ...]:
    partial, multi = (kilobits(f"{city}-{way}{suffix}", "download", "upload") for way in ("partial", "multi"))
    return (Part(_name(city, suffix), at_most(1.02), quotient(partial, multi)),)


def _recall_maps(outcomes: Sequence[Outcome]) -> Any:
    names = {
        "DA": "DA-partial",
        "DA, extended": "DA-partial-extended",
        "MA": "MA-partial",
        "MA, extended": "MA-partial-extended",
    }
    return recall_maps({shown: _present(outcomes[0][run].recall_map) for shown, run in names.items()})


def _transition_maps(outcomes: Sequence[Outcome]) -> Any:
    return transition_maps({city: _present(outcomes[0][f"{city}-partial"].transition_map) for city in CITIES})


def _present(cells: Cells | None) -> Cells:
    assert cells is not None, "the run was to be measured with maps"
    return cells


def _traffic(outcomes: Sequence[Outcome]) -> Any:
    groups = {
        _name(city, suffix): {
            way: kilobits(f"{city}-{way}{suffix}", "download", "upload")(outcomes[0]) for way in ("partial", "multi")
        }
        for city in CITIES
        for suffix in EXTENSIONS
    }
    return bars(groups, label="kbit/s", title="Cellular traffic of a client")


_PARTIAL: Final = tuple(f"{city}-partial{suffix}" for city in CITIES for suffix in EXTENSIONS)
_ALL: Final = (*_PARTIAL, *(f"{city}-multi{suffix}" for city in CITIES for suffix in EXTENSIONS))

E4: Final = Experiment(
    "bypass-e4",
    "BYPASS.KOM 6.2.4 and A.2, figures 40 to 43, 71 and 72",
    "Transitions of single clients at attraction points, against the scheme MULTI",
    _runs,
    (
        Check("E4.1", "Partial transitions and MULTI behave identically", "text", _every(_same)),
        Check("E4.2", "Partial transitions cause virtually no extra traffic", "text", _every(_costs)),
        Check(
            "E4.3",
            "Recall is about 0.9 (DA) and 0.88 (MA) without an extension of the channels",
            "text",
            tuple(Part(city, near(STATED[city], 0.05), recall(f"{city}-partial")) for city in CITIES),
            note="the cities are ours: their attraction points are not in the text",
        ),
        Check(
            "E4.4",
            "Recall is about 0.99 with the extension",
            "text",
            tuple(Part(city, near(0.99, 0.01), recall(f"{city}-partial-extended")) for city in CITIES),
        ),
        Check(
            "E4.5",
            "With the extension, precision falls and traffic rises",
            "text",
            tuple(
                part
                for city in CITIES
                for part in (
                    Part(
                        f"{city}: fall of precision",
                        at_least(0.01),
                        difference(precision(f"{city}-partial"), precision(f"{city}-partial-extended")),
                    ),
                    Part(
                        f"{city}: traffic, times",
                        at_least(1.01),
                        quotient(
                            kilobits(f"{city}-partial-extended", "download", "upload"),
                            kilobits(f"{city}-partial", "download", "upload"),
                        ),
                    ),
                )
            ),
        ),
    ),
    (
        Drawing(
            "recall-map", "Recall by where clients were, cells of 20 m, partial transitions", _PARTIAL, _recall_maps
        ),
        Drawing(
            "transition-map",
            "Where clients changed their scheme, cells of 10 m",
            ("DA-partial", "MA-partial"),
            _transition_maps,
        ),
        boxes_of(
            {
                f"{city} {way}\n{'extended' if suffix else 'as is'}": f"{city}-{way}{suffix}"
                for city in CITIES
                for suffix in EXTENSIONS
                for way in ("partial", "multi")
            }
        ),
        Drawing("traffic", "Cellular traffic, both directions", _ALL, _traffic),
        schemes_of("DA-partial"),
        Drawing(
            "same",
            "Mean recall over time (DA)",
            ("DA-partial", "DA-multi"),
            lambda outcomes: compared(
                {"partial transitions": outcomes[0]["DA-partial"], "MULTI": outcomes[0]["DA-multi"]},
                "recall",
                "Partial transitions and MULTI",
            ),
        ),
    ),
)
