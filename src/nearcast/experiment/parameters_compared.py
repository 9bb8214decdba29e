"""BYPASS.KOM, appendix A.1: what the parameters of filter schemes do (A2 to A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.parts import ONE
from nearcast.experiment.plans import RADIAL, STE, Scheme, egrid, grid
from nearcast.experiment.runs import DOCUMENTS_WAY, Run, scenario
from nearcast.experiment.schemes_compared import DOCUMENT, short_static
from nearcast.experiment.uniform import egrid_precision, grid_recall
from nearcast.experiment.values import Value, distance, kilobits, precision, recall

ALPHAS: Final = (0.5, 1.0, 1.5, 2.0, 2.5)
FACTORS: Final = (2, 5, 10, 20)
INTERVALS: Final = (1, 3, 5, 7, 9)
INTERVAL_SCHEMES: Final[Mapping[str, Scheme]] = {
    "RADIAL": RADIAL,
    "STE": STE,
    "GRID": grid(5),
    "EGRID": egrid(10),
}
SIDE, RADIUS = 1300.0, 125.0


# A2: how far STE looks ahead


def _alpha(alpha: float) -> str:
    return f"alpha-{alpha:g}"


def _a2_runs(quick: bool) -> tuple[Run, ...]:
    return tuple(short_static(_alpha(alpha), {"kind": "STE", "alpha": alpha}, quick) for alpha in ALPHAS)


def _least_step(values: Sequence[Value]) -> Value:
    """The smallest step from one to the next: never below 0 if they only grow."""

    def value(outcome: Outcome) -> float | None:
        found = [each(outcome) for each in values]
        known = [each for each in found if each is not None]
        return min(b - a for a, b in pairwise(known)) if len(known) == len(found) else None

    return value


A2: Final = Experiment(
    "bypass-a2",
    DOCUMENT + ", figure 66",
    "How far STE looks ahead",
    _a2_runs,
    (
        Check(
            "A2.1",
            "STE has a recall of 1.0 from alpha 1.5 on",
            "text",
            tuple(Part(f"alpha {alpha:g}", ONE, recall(_alpha(alpha))) for alpha in ALPHAS if alpha >= 1.5),
        ),
        Check(
            "A2.2",
            "Recall of STE for each alpha below 1.5",
            "figure",
            (
                Part(
                    "smallest step of recall",
                    at_least(-0.002),
                    _least_step([recall(_alpha(alpha)) for alpha in ALPHAS]),
                ),
                Part(
                    "smallest fall of precision",
                    at_least(-0.002),
                    _least_step([precision(_alpha(alpha)) for alpha in reversed(ALPHAS)]),
                ),
            ),
            not_checkable="the values are only in figure 66, which we do not have",
            note="with a larger alpha, recall must not fall and precision must not rise",
        ),
        Check(
            "A2.3",
            "STE with alpha 1.5 has a precision near 0.75",
            "text",
            (Part("alpha 1.5", near(0.75, 0.05), precision(_alpha(1.5))),),
        ),
    ),
    (boxes_of({f"{alpha:g}": _alpha(alpha) for alpha in ALPHAS}, "alpha: minutes that STE looks ahead"),),
)


# A3: grid factors


def _evenly(name: str, scheme: Scheme, quick: bool) -> Run:
    """People who stand everywhere alike; many of them, because they stay where they are: more time would not help."""
    changes: dict[str, Any] = {
        "run.title": name,
        "run.duration": "20 s" if quick else "60 s",
        "world": {"kind": "plain", "width": f"{SIDE:g} m", "height": f"{SIDE:g} m"},
        "mobility": {"model": "standing"},
        "clients.number": 1000,
        "scheme": dict(scheme),
        "transitions": dict(DOCUMENTS_WAY),
        "workload": [{"kind": "AR", "rate": "0.1/s", "radius": f"{RADIUS:g} m"}],
    }
    return Run(name, scenario("rnd-waypoint", changes), window=5.0, settling=6.0)


def _a3_runs(quick: bool) -> tuple[Run, ...]:
    grids = [short_static(f"GRID-{factor}", grid(factor), quick) for factor in FACTORS]
    egrids = [short_static(f"EGRID-{factor}", egrid(factor), quick) for factor in FACTORS]
    even = [_evenly(f"even-EGRID-{factor}", egrid(factor), quick) for factor in FACTORS[1:]]
    return (*grids, *egrids, _evenly("even-GRID-5", grid(5), quick), *even)


def _off_the_areas(factor: int) -> Value:
    return distance(precision(f"even-EGRID-{factor}"), lambda _: egrid_precision(SIDE, RADIUS, factor))


A3: Final = Experiment(
    "bypass-a3",
    DOCUMENT + ", figures 67 and 68",
    "Grid factors from 2 (cells of 650 m) to 20 (65 m)",
    _a3_runs,
    (
        Check(
            "A3.1",
            "GRID needs a grid factor of 2 for a recall above 0.85",
            "text",
            (
                Part("factor 2", at_least(0.85), recall("GRID-2")),
                *(Part(f"factor {factor}", at_most(0.85), recall(f"GRID-{factor}")) for factor in FACTORS[1:]),
            ),
        ),
        Check(
            "A3.2",
            "EGRID has a recall of 1.0 always",
            "text",
            tuple(Part(f"factor {factor}", ONE, recall(f"EGRID-{factor}")) for factor in FACTORS),
            note="no margin: positions are up to 5 s old",
        ),
        Check(
            "A3.3",
            "The precision of EGRID grows with the grid factor",
            "text",
            (Part("smallest step", at_least(0.02), _least_step([precision(f"EGRID-{factor}") for factor in FACTORS])),),
        ),
        Check(
            "A3.4",
            "GRID with factor 5 has a recall of 0.70 if people are spread evenly",
            "inferred",
            (
                Part("recall", near(0.70, 0.03), recall("even-GRID-5")),
                Part(
                    "off the area of cells",
                    at_most(0.03),
                    distance(recall("even-GRID-5"), lambda _: grid_recall(SIDE, RADIUS, 5)),
                ),
            ),
        ),
        Check(
            "A3.5",
            "EGRID has the precision that areas and borders give (0.22, 0.37 and 0.53) if people are spread evenly",
            "inferred",
            tuple(Part(f"factor {factor}, off by", at_most(0.02), _off_the_areas(factor)) for factor in FACTORS[1:]),
            note="the ceiling of 2/pi in the text should be pi/4",
        ),
    ),
    (
        boxes_of(
            {f"{kind}\n{factor}": f"{kind}-{factor}" for kind in ("GRID", "EGRID") for factor in FACTORS},
            "scheme and grid factor",
        ),
    ),
)


# A4: how often clients learn where they are


def _a4_runs(quick: bool) -> tuple[Run, ...]:
    return tuple(
        short_static(f"{name}-{interval}s", scheme, quick, **{"clients.location_interval": f"{interval} s"})
        for name, scheme in INTERVAL_SCHEMES.items()
        for interval in INTERVALS
    )


def _range(values: Sequence[Value]) -> Value:
    def value(outcome: Outcome) -> float | None:
        found = [each(outcome) for each in values]
        known = [each for each in found if each is not None]
        return max(known) - min(known) if len(known) == len(found) else None

    return value


def _recalls(scheme: str) -> list[Value]:
    return [recall(f"{scheme}-{interval}s") for interval in INTERVALS]


def _context(scheme: str, *directions: str) -> Value:
    """kbit/s of the context protocol, at the interval at which it is largest."""
    kinds = [f"{direction} context" for direction in directions]

    def value(outcome: Outcome) -> float | None:
        found = [kilobits(f"{scheme}-{interval}s", *kinds, phase="all")(outcome) for interval in INTERVALS]
        return max(each for each in found if each is not None)

    return value


A4: Final = Experiment(
    "bypass-a4",
    DOCUMENT + ", figures 69 and 70",
    "Location intervals from 1 to 9 s",
    _a4_runs,
    (
        Check(
            "A4.1",
            "The recall of RADIAL falls from about 1 at 1 s to 0.95 at 9 s",
            "text",
            (
                Part("1 s", at_least(0.985), recall("RADIAL-1s")),
                Part("9 s", near(0.95, 0.015), recall("RADIAL-9s")),
                Part("smallest fall from one to the next", at_least(-0.002), _least_step(_recalls("RADIAL")[::-1])),
            ),
        ),
        Check(
            "A4.2",
            "STE has a mean recall of 1.0",
            "text",
            tuple(Part(f"{interval} s", ONE, recall(f"STE-{interval}s")) for interval in INTERVALS),
        ),
        Check(
            "A4.3",
            "GRID and EGRID are robust",
            "text",
            tuple(
                Part(f"{scheme}: largest minus smallest recall", at_most(0.02), _range(_recalls(scheme)))
                for scheme in ("GRID", "EGRID")
            ),
        ),
        Check(
            "A4.4",
            "Context traffic stays below 0.5 kbit/s",
            "text",
            tuple(
                Part(f"{scheme}, both directions", at_most(0.5), _context(scheme, "upload", "download"), " kbit/s")
                for scheme in INTERVAL_SCHEMES
            ),
            note="message sizes are not in the text: ours include 28 B of headers",
        ),
        Check(
            "A4.5",
            "RADIAL and STE need no context traffic from broker to clients",
            "text",
            tuple(Part(scheme, at_most(0.0), _context(scheme, "download"), " kbit/s") for scheme in ("RADIAL", "STE")),
        ),
    ),
    (
        boxes_of(
            {
                f"{scheme}\n{interval} s": f"{scheme}-{interval}s"
                for scheme in ("RADIAL", "STE")
                for interval in INTERVALS
            },
            "scheme and location interval",
        ),
    ),
)
