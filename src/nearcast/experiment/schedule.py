"""Who ran which mechanism when: what the table ``transitions`` says of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from nearcast.experiment.measures import Timeline
from nearcast.metrics.columns import column, instants
from nearcast.metrics.traffic import BROKER
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.scenario.schema import Scenario

PROXY: Final = "filter scheme"
SHOWN: Final = 40
"""Timelines of so many clients: more than a figure can show would only make the results larger."""


@dataclass(frozen=True, slots=True)
class Change:
    """The broker changed its scheme, or some were told to spread events another way; seconds after the start of the run."""

    at: float
    source: str | None
    target: str | None
    plan: str | None


def broker_changes(transitions: Any, start: Instant) -> list[Change]:
    """Each once, in the order of time."""
    changes = {
        (row["plan"], row["target"]): Change(
            (row["instant"] - start) / MICROSECONDS, row["source"], row["target"], row["plan"]
        )
        for row in reversed(_rows(transitions))
        if row["host"] == BROKER and row["source"] is not None  # without one, it only started
    }
    return sorted(changes.values(), key=lambda change: change.at)


def told_changes(scenario: Scenario) -> list[Change]:
    """When another way to spread events is to begin, by the timetable: that is not the broker's own."""
    told = [str(scenario.adhoc.mechanism.spec()), *(str(each.mechanism.spec()) for each in scenario.adhoc.transition)]
    times = [each.at for each in scenario.adhoc.transition]
    return [Change(at, source, target, None) for at, (source, target) in zip(times, pairwise(told), strict=True)]


def timelines(transitions: Any, clients: Any, start: Instant, proxy: str = PROXY) -> list[Timeline]:
    """Of the first clients, in the order of their names."""
    found: dict[str, list[_Step]] = {}
    for step in _steps(transitions, clients, proxy):
        found.setdefault(step.client, []).append(step)
    return [
        Timeline(
            client,
            [(step.instant - start) / MICROSECONDS for step in found[client]],
            [step.mechanism for step in found[client]],
        )
        for client in sorted(found)[:SHOWN]
    ]


def mechanisms(transitions: Any, clients: Any, windows: Windows, proxy: str = PROXY) -> dict[str, list[int]]:
    """How many clients ran which mechanism at the end of each window."""
    running: dict[str, str | None] = {}
    steps = _steps(transitions, clients, proxy)
    names = list(dict.fromkeys(step.mechanism for step in steps if step.mechanism is not None))
    counts: dict[str, list[int]] = {name: [] for name in names}
    place = 0
    for start in windows.starts.tolist():
        while place < len(steps) and steps[place].instant < start + windows.length:
            running[steps[place].client] = steps[place].mechanism
            place += 1
        now = Counter(running.values())
        for name in names:
            counts[name].append(now[name])
    return counts


@dataclass(frozen=True, slots=True)
class _Step:
    """A client runs that mechanism from now on; None: it has gone."""

    instant: Instant
    client: str
    mechanism: str | None


def _steps(transitions: Any, clients: Any, proxy: str) -> list[_Step]:
    rows = _rows(transitions, proxy)
    steps = [_Step(row["instant"], row["host"], row["target"]) for row in rows if row["host"] != BROKER]
    states = zip(
        instants(clients, "time").tolist(),
        column(clients, "client").to_pylist(),
        column(clients, "state").to_pylist(),
        strict=True,
    )
    steps += [_Step(instant, client, None) for instant, client, state in states if state in ("left", "failed")]
    return sorted(steps, key=lambda step: step.instant)


def _rows(transitions: Any, proxy: str = PROXY) -> list[dict[str, Any]]:
    """Exchanges of that mechanism in the order of time."""
    columns = {name: column(transitions, name).to_pylist() for name in ("host", "proxy", "source", "target", "plan")}
    columns["instant"] = instants(transitions, "time").tolist()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return sorted((row for row in rows if row["proxy"] == proxy), key=lambda row: row["instant"])
