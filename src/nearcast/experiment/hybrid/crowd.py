"""The crowd of the AR game with both ways, as the experiments of hybrid modes and of gateways have it in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nearcast.experiment.adhoc.crowd import SECONDS, SETTLING, STANDARD
from nearcast.experiment.gatewaying import gateway_numbers
from nearcast.experiment.plans import RADIAL, workload
from nearcast.experiment.runs import WINDOW, Run, scenario
from nearcast.experiment.values import Value, kilobits
from nearcast.scenario.schema import Scenario

QUICK_SECONDS: Final = 13.0
"""Without what does not count, five: one report of everybody's position."""

QUICK_SETTLING: Final = 6.0
"""Seconds: everybody has had a fix, and is in the channel that it belongs to."""

DOCUMENTS_GATEWAYS: Final[Mapping[str, Any]] = {"acknowledged": False}
"""``[gateways]`` as the documents have them: whom a gateway does not reach, nobody tells."""


def run_of(name: str, mode: str, *, quick: bool, kind: str = "AR", changes: Mapping[str, Any]) -> Run:
    """One mode all the time."""
    return Run(
        name,
        scenario(
            "ar-darmstadt",
            {
                "run.title": name,
                "run.duration": f"{QUICK_SECONDS if quick else SECONDS:g} s",
                "delivery.mechanism": mode,
                "radio.standard": STANDARD,
                "scheme": dict(RADIAL),
                "adhoc.mechanism": {"kind": "GOSSIP", "p": 0.4},
                "workload": workload(kind, 1.0),
                **changes,
            },
        ),
        window=2.0 if quick else WINDOW,
        settling=QUICK_SETTLING if quick else SETTLING,
        numbers=_quick_numbers if quick else _numbers,
    )


def cellular_download(run: str) -> Value:
    """kbit/s of a mean client."""
    return kilobits(run, "download", phase="all")


def _numbers(_scenario: Scenario, folder: Path) -> Mapping[str, float]:
    return gateway_numbers(folder, SETTLING)


def _quick_numbers(_scenario: Scenario, folder: Path) -> Mapping[str, float]:
    return gateway_numbers(folder, QUICK_SETTLING)
