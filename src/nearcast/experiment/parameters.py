"""What a run was given, as names and values: for whoever reads its result without the code that made it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from nearcast.experiment.runs import Computed, Run


class RunParameters(msgspec.Struct, frozen=True):
    """A run and all that it was told, defaults included; those of a scenario have the names of its file (docs/scenarios.md)."""

    name: str
    kind: Literal["simulated", "computed"]
    parameters: dict[str, str]


def parameters_of(run: Run | Computed) -> RunParameters:
    if isinstance(run, Computed):
        called = f"{run.compute.__module__}.{run.compute.__qualname__}"
        return RunParameters(
            run.name, "computed", {"function": called, **{name: _text(value) for name, value in run.arguments}}
        )
    parameters = dict(_flat(tomllib.loads(run.scenario.to_toml()), ""))
    parameters["measured.phases"] = ", ".join(run.phases)
    if run.cuts:
        parameters["measured.cuts"] = ", ".join(f"{cut:g} s" for cut in run.cuts)
    parameters["measured.window"] = f"{run.window:g} s"
    parameters["measured.settling"] = f"{run.settling:g} s"
    return RunParameters(run.name, "simulated", parameters)


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            for number, each in enumerate(value, 1):
                yield from _flat(each, f"{name} {number}.")
        else:
            yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
