"""Scenarios of BYPASS.KOM 6.4, and numbers of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nearcast.experiment.adhoc.crowd import STANDARD
from nearcast.experiment.coexistence.channels import numbers
from nearcast.experiment.plans import CITIES, pace, workload
from nearcast.experiment.runs import DOCUMENTS_WAY, Run, scenario
from nearcast.experiment.values import Value
from nearcast.scenario.kinds import Toml

EXTENSION: Final = "125 m"
"""The radius of interest of all clients (6.4.2)."""

SPREADING: Final[Mapping[str, Toml]] = {
    "mechanism": {"kind": "GOSSIP", "p": 0.4},
    "geofence": False,
    "foreign": False,
}
"""As the documents have it: what is switched off outside needs no other fence, and messages of another mechanism are lost."""


def around_points(
    name: str,
    example: str,
    *,
    city: str,
    kind: str,
    seconds: float,
    quick: bool,
    rate: float,
    inside: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Run:
    """RADIAL outside of attraction points; at them, if ``inside`` is given, what the document has there."""
    made: dict[str, Any] = {
        "run.title": name,
        "run.duration": f"{seconds:g} s",
        "world": {"kind": CITIES[city]},
        "workload": workload(kind, rate),
        "scheme": {"kind": "RADIAL"},
        "transitions": {**DOCUMENTS_WAY, "extension": EXTENSION},
        "radio.standard": STANDARD,
        "adhoc": dict(SPREADING),
    }
    if inside is not None:
        made["coexistence"] = {"inside": inside}
    return Run(name, scenario(example, made | dict(changes or {})), numbers=numbers, **pace(quick))


def percent(run: str, name: str) -> Value:
    return lambda outcome: 100.0 * outcome[run].numbers[name]
