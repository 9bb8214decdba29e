"""Where recordings lie, what was measured in them, and whether both are still what a run would bring.

::

    DIR/lcn/quick/seed-1/transfer/          the recording
    DIR/lcn/quick/seed-1/transfer.json      how it was made, and its measures
    DIR/lcn/quick/report.json, .html    the verdicts
    DIR/lcn/quick/figures/recall.png, .svg, .csv

Runs of the documents' lengths lie under ``full`` instead of ``quick``.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.experiment.measures import Measures
from nearcast.experiment.runs import Computed, Run
from nearcast.files import write_whole
from nearcast.records.summary import read_summary

_MEASURING: Final = frozenset({"metrics", "experiment"})
_APART: Final = frozenset({"cli", "benchmark", "pipeline", "dashboard"})
"""Rooms on which no result depends; all others may be part of a simulation, also those that are still to be built."""

_SHOWING: Final = frozenset({("experiment", "figures"), ("experiment", "site")})
"""What only shows results: it may change, and they are still the same."""


class Making(msgspec.Struct, frozen=True):
    """What a result depends on."""

    scenario: str
    seed: int
    version: str
    simulated_by: str
    """SHA-256 of the code: between two releases the version alone would take yesterday's result for today's."""

    measured_by: str
    asked: str
    """What was to be measured."""


class Result(msgspec.Struct, frozen=True):
    """The file beside a recording."""

    made: Making
    seconds: float
    """Of a processor, that simulation and measuring took."""

    measures: Measures
    finished: str = ""
    """When: ISO 8601, UTC."""


def making(run: Run | Computed, seed: int) -> Making:
    asked = ""
    if isinstance(run, Run):
        more = None if run.numbers is None else f"{run.numbers.__module__}.{run.numbers.__qualname__}"
        asked = repr((run.phases, run.cuts, run.transitions, run.window, run.settling, run.maps, run.proxy, more))
    return Making(run.digest, seed, version("nearcast"), _digest(measuring=False), _digest(measuring=True), asked)


def result_file(folder: Path, seed: int, run: str) -> Path:
    return folder / f"seed-{seed}" / f"{run}.json"


def recording(folder: Path, seed: int, run: str) -> Path:
    return folder / f"seed-{seed}" / run


def kept_result(folder: Path, seed: int, run: Run | Computed) -> Result | None:
    """What an earlier run brought, if running it again would bring the same."""
    found = _read(result_file(folder, seed, run.name))
    if found is None or found.made != making(run, seed):
        return None
    if isinstance(run, Computed):
        return found
    if not _recorded(folder, found.made, run.name):
        return None
    # Folders may be moved.
    measures = msgspec.structs.replace(found.measures, folder=str(recording(folder, seed, run.name)))
    return msgspec.structs.replace(found, measures=measures)


def kept_recording(folder: Path, seed: int, run: Run) -> bool:
    """Whether the recording at least can be measured again."""
    found = _read(result_file(folder, seed, run.name))
    if found is None:
        return False
    wanted = making(run, seed)
    wanted = msgspec.structs.replace(wanted, measured_by=found.made.measured_by, asked=found.made.asked)
    return found.made == wanted and _recorded(folder, found.made, run.name)


def keep(folder: Path, run: Run | Computed, result: Result) -> None:
    write_json(result_file(folder, result.made.seed, run.name), result)


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def _read(path: Path) -> Result | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except (OSError, msgspec.MsgspecError):
        return None  # never run, or written by another version: it will be run


def _recorded(folder: Path, made: Making, run: str) -> bool:
    try:
        about = read_summary(recording(folder, made.seed, run)).about
    except InvalidRecord:
        return False
    return (about.get("scenario"), about.get("seed")) == (made.scenario, made.seed)


def _part_of(module: Path) -> str:
    """What the code of a module does for a result."""
    if module.parts[0] in _APART or module.parts[:2] in _SHOWING:
        return "nothing"
    return "measuring" if module.parts[0] in _MEASURING else "simulation"


@cache
def _digest(*, measuring: bool) -> str:
    root = Path(str(files("nearcast")))
    content = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if _part_of(name) == ("measuring" if measuring else "simulation"):
            content.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()
