"""The crowd of the AR game without infrastructure, as the experiments of ad hoc mechanisms have it in common (BYPASS.KOM 6.3.1).

The radio is 802.11g.  The text names no rate; with 802.11b, whose broadcasts go out at 1 Mbit/s, 297 people who publish once a
second fill the air at the hot spots whatever spreads their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.experiment.plans import duration, transition_times, workload
from nearcast.experiment.runs import WINDOW, Run, scenario
from nearcast.experiment.values import Value, kilobits
from nearcast.scenario.kinds import Toml

Mechanism: TypeAlias = Mapping[str, Toml]

STANDARD: Final = "802.11g"
CLIENTS: Final = 297
MECHANISMS: Final[Mapping[str, Mechanism]] = {
    "FLOODING": {"kind": "FLOODING"},
    "PLAN-B": {"kind": "PLAN-B"},
    "GOSSIP": {"kind": "GOSSIP", "p": 0.4},
    "HYPERG": {"kind": "HYPERG"},
    "BROADCAST": {"kind": "BROADCAST"},
}
MULTI_HOP: Final = ("FLOODING", "PLAN-B", "GOSSIP", "HYPERG")
AGGRESSIVE: Final = ("FLOODING", "PLAN-B")
SPARING: Final = ("GOSSIP", "HYPERG")

TIMETABLE: Final = ("GOSSIP", "PLAN-B", "HYPERG", "FLOODING", "BROADCAST")
"""Table 8: what runs at first, and what from T1, T2, T3 and T4 on."""

TARGETS: Final = dict(zip(("T1", "T2", "T3", "T4"), TIMETABLE[1:], strict=True))

SECONDS: Final = 120.0
"""Of a run in which nothing changes.  The documents' are 25 min long; but people start as if they had been on their way for ever, so
that more time only makes the mean more certain, and FLOODING of what concerns people elsewhere is many times slower than real time."""

QUICK_SECONDS: Final = 5.0
QUICK_SECONDS_ELSEWHERE: Final = 4.0
"""Of events that spread through the whole city."""

SETTLING: Final = 10.0
QUICK_SETTLING: Final = 1.0
"""Seconds until everybody knows its neighbours, and about as many events arrive as go out."""


def static(
    name: str,
    mechanism: Mechanism,
    *,
    quick: bool,
    kind: str = "AR",
    spreads: bool = False,
    maps: bool = False,
    changes: Mapping[str, Toml] | None = None,
) -> Run:
    """One mechanism all the time; ``spreads``: through the whole city, as what concerns people elsewhere does."""
    seconds = SECONDS
    if quick:
        seconds = QUICK_SECONDS_ELSEWHERE if spreads or kind != "AR" else QUICK_SECONDS
    return Run(
        name,
        scenario("adhoc", _changes(name, seconds, mechanism, kind) | dict(changes or {})),
        window=1.0 if quick else WINDOW,
        settling=QUICK_SETTLING if quick else SETTLING,
        proxy=LOCAL,
        maps=maps,
    )


def planned(
    name: str,
    *,
    quick: Sequence[float] = (),
    changes: Mapping[str, Toml] | None = None,
    initiators: int | None = None,
) -> Run:
    """Table 8's timetable: the broker tells everybody by plan, or it spreads from so many clients.

    ``quick``: the seconds at which it does, and at which the run ends, if not those of the documents.
    """
    *times, ends = quick or (*transition_times(False), duration(False))
    table: list[Toml] = [
        {"at": f"{at:g} s", "mechanism": dict(MECHANISMS[target])} | ({"initiators": initiators} if initiators else {})
        for at, target in zip(times, TIMETABLE[1:], strict=True)
    ]
    told = _changes(name, ends, MECHANISMS[TIMETABLE[0]], "AR")
    return Run(
        name,
        scenario("adhoc", told | {"adhoc.transition": table, "adhoc.foreign": False} | dict(changes or {})),
        phases=TIMETABLE,
        transitions=True,
        proxy=LOCAL,
        window=2.0 if quick else WINDOW,
        settling=2.0 if quick else SETTLING,
    )


def download(run: str, phase: str = "all") -> Value:
    """kbit/s by radio of a mean client, hellos included."""
    return kilobits(run, "ad hoc download", phase=phase)


def upload(run: str, phase: str = "all") -> Value:
    return kilobits(run, "ad hoc upload", phase=phase)


def _changes(name: str, seconds: float, mechanism: Mechanism, kind: str) -> dict[str, Toml]:
    return {
        "run.title": name,
        "run.duration": f"{seconds:g} s",
        "radio.standard": STANDARD,
        "adhoc.mechanism": dict(mechanism),
        "workload": workload(kind, 1.0),
    }
