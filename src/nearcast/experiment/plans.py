"""Scenarios that the experiments have in common, and how long they take: as the documents have it, or quickly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypedDict

from nearcast.experiment.runs import DOCUMENTS_WAY, SETTLING, WINDOW, Run, scenario
from nearcast.scenario.kinds import Toml

MINUTES: Final = (8.0, 12.0, 17.0, 22.0)
"""When BYPASS.KOM's four transitions take place (Tables 5 and 6)."""

LENGTH: Final = 25.0
QUICKER: Final = 12.0
"""Quick runs are shorter by this factor, so that each phase keeps its share of the run."""

QUICK_WINDOW: Final = 5.0
QUICK_SETTLING: Final = 6.0
WITHOUT_LOSS: Final[Mapping[str, Toml]] = {}
"""``[transitions]`` as they are unless told otherwise."""

CITIES: Final = {"DA": "organic", "MA": "grid"}
"""BYPASS.KOM's Darmstadt and Mannheim, as the built-in cities have them."""

Scheme: TypeAlias = Mapping[str, Toml]


class Pace(TypedDict):
    """Seconds, of ``Run``."""

    window: float
    settling: float


RADIAL: Final[Scheme] = {"kind": "RADIAL"}
STE: Final[Scheme] = {"kind": "STE", "alpha": 1.5}


def grid(factor: int) -> Scheme:
    return {"kind": "GRID", "factor": factor}


def egrid(factor: int) -> Scheme:
    return {"kind": "EGRID", "factor": factor}


def transition_times(quick: bool) -> tuple[float, ...]:
    """Seconds after the start."""
    return tuple(60.0 * minute / (QUICKER if quick else 1.0) for minute in MINUTES)


def duration(quick: bool) -> float:
    return 60.0 * LENGTH / (QUICKER if quick else 1.0)


def planned(
    name: str,
    schemes: Mapping[str, Scheme],
    *,
    quick: bool,
    transitions: Mapping[str, Toml] = DOCUMENTS_WAY,
    changes: Mapping[str, Toml] | None = None,
) -> Run:
    """BYPASS.KOM's timetable: five schemes, each for its time, under the names of the phases."""
    times, kinds = transition_times(quick), list(schemes.values())
    table = [{"at": f"{at:g} s", "scheme": dict(kind)} for at, kind in zip(times, kinds[1:], strict=True)]
    return Run(
        name,
        scenario(
            "ar-darmstadt",
            {
                "run.title": f"{' to '.join(schemes)}",
                "run.duration": f"{duration(quick):g} s",
                "scheme": dict(kinds[0]),
                "transition": table,
                "transitions": dict(transitions),
                **(changes or {}),
            },
        ),
        phases=tuple(schemes),
        transitions=True,
        **pace(quick),
    )


def static(
    name: str,
    scheme: Scheme,
    *,
    quick: bool,
    seconds: float | None = None,
    phases: Sequence[str] = ("all",),
    changes: Mapping[str, Toml] | None = None,
    maps: bool = False,
) -> Run:
    """One scheme all the time; with several phases, cut where the timetable has its transitions."""
    return Run(
        name,
        scenario(
            "ar-darmstadt",
            {
                "run.title": name,
                "run.duration": f"{seconds or duration(quick):g} s",
                "scheme": dict(scheme),
                # They also say what becomes of events whose publisher is in another cell by now.
                "transitions": dict(DOCUMENTS_WAY),
                **(changes or {}),
            },
        ),
        phases=tuple(phases),
        cuts=transition_times(quick) if len(phases) > 1 else (),
        maps=maps,
        **pace(quick),
    )


def workload(kind: str, rate: float) -> list[Toml]:
    return [{"kind": kind, "rate": f"{rate:g}/s"}]


def pace(quick: bool) -> Pace:
    """How finely runs are looked at."""
    if quick:
        return {"window": QUICK_WINDOW, "settling": QUICK_SETTLING}
    return {"window": WINDOW, "settling": SETTLING}
