"""What can be said of the channels of attraction points, from the recording of a run: who was in them, and what ran there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.metrics.columns import Flags, Floats, Wholes, column, instants, is_name, reals
from nearcast.metrics.delay import reached
from nearcast.metrics.maps import Tracks
from nearcast.metrics.pairs import Pairs, pairs
from nearcast.metrics.traffic import BROKER, carried
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame
from nearcast.records.reader import dataset, read
from nearcast.runtime.simulation.streets.graph import AttractionPoint
from nearcast.scenario.assembly import AT_POINTS
from nearcast.scenario.ground import Ground, ground_of
from nearcast.scenario.schema import Scenario

SETTLED: Final = 20.0
"""Seconds until clients that were at points when the run began are known to be there."""

LAST: Final = 2.0
BRIEF: Final = 10 * MICROSECONDS
"""A point that changes its mind and back within so long has oscillated."""

NEAR: Final = 15.0
"""Metres from a point's border: who leaves says so with its next fix, five seconds later, and is told 0.2 s after that."""


def numbers(scenario: Scenario, folder: Path) -> Mapping[str, float]:
    """All of them, by name."""
    ground = ground_of(scenario)
    transitions = read(folder, "transitions")
    found = _traffic(folder) | _delays(scenario, ground, folder)
    if scenario.coexistence.inside is not None:
        found |= _shares(scenario, folder) | _where(ground, transitions)
    if scenario.coexistence.threshold is not None:
        found |= _switches(scenario, transitions) | _agreement(scenario, transitions, read(folder, "clients"))
    return found


# Traffic


def _traffic(folder: Path) -> dict[str, float]:
    """Of all clients in the whole run: megabytes, and the share that is coordination."""
    table = carried(read(folder, "traffic"))
    rows = table.to_pylist()

    def megabytes(interface: str, *directions: str, of: str | None = None) -> float:
        return sum(
            int(row["bytes"]) / 1e6
            for row in rows
            if row["interface"] == interface and row["direction"] in directions and of in (None, row["class"])
        )

    both = ("upload", "download")
    cellular = megabytes("cellular", *both)
    coordination = megabytes("cellular", *both, of="coordination")
    return {
        "cellular upload": megabytes("cellular", "upload"),
        "cellular download": megabytes("cellular", "download"),
        "coordination": coordination,
        "coordination share": coordination / cellular if cellular else 0.0,
        "radio upload": megabytes("wifi", "upload"),
    }


# Delays


def _delays(scenario: Scenario, ground: Ground, folder: Path) -> dict[str, float]:
    """Mean milliseconds until events reached clients that should get them, by where both were.

    *Inside* is an event that happened at a point and a client at the same one; *at points* is a client at any, whatever the event.
    """
    start, seconds = scenario.run.start, scenario.run.duration
    frame = TimeFrame(_at(start, SETTLED), _at(start, seconds - LAST))
    events = dataset(folder, "events").to_table(
        columns=["time", "event", "publisher", "lat", "lon", "workload", "receivers"]
    )
    notifications = dataset(folder, "notifications").to_table(columns=["event", "client", "outcome", "delay"])
    positions = dataset(folder, "positions").to_table(columns=["time", "client", "lat", "lon"])
    found = pairs(events, notifications, frame=frame)
    client, event = _points_of(ground, found, positions)
    got = np.zeros(len(found.event), np.bool_)
    got[reached(found)] = True
    inside, at_points = (client >= 0) & (client == event), client >= 0
    due = found.counted & found.due
    values = {
        "delay": got,
        "delay inside": got & inside,
        "delay at points": got & at_points,
        "delay outside": got & ~at_points,
    }
    means = {name: float(found.delay[kept].mean()) / 1000.0 for name, kept in values.items() if kept.any()}
    recalls = {
        name: float(got[kept].sum() / kept.sum())
        for name, kept in (("recall inside", due & inside), ("recall outside", due & ~at_points))
        if kept.any()
    }
    return means | recalls | {"due inside": float((due & inside).sum() / max(1, due.sum()))}


def _points_of(ground: Ground, found: Pairs, positions: Any) -> tuple[Wholes, Wholes]:
    """Of each pair, at which point the client was when the event was published, and the event; -1: at none."""
    tracks = Tracks.of(positions, found.clients)
    client = _numbers(ground, *tracks.at(found.client, found.times[found.event]))
    event = _numbers(ground, reals(found.events, "lat"), reals(found.events, "lon"))
    return client, event[found.event]


def _numbers(ground: Ground, lat: Floats, lon: Floats, margin: float = 0.0) -> Wholes:
    """Which point each place is at; of several, the last."""
    x, y = ground.plane.metres(lat, lon)
    number = np.full(len(x), -1)
    for place, point in enumerate(ground.points):
        number[_within(point, x, y, margin)] = place
    return number


def _within(point: AttractionPoint, x: Floats, y: Floats, margin: float) -> Flags:
    inside: Flags = np.hypot(x - point.x, y - point.y) <= point.radius + margin
    return inside


# Who is in channels, and where mechanisms are exchanged


def _shares(scenario: Scenario, folder: Path) -> dict[str, float]:
    metrics = read(folder, "metrics")
    windows = Windows(scenario.run.start, _at(scenario.run.start, scenario.run.duration), MICROSECONDS)

    def sampled(name: str) -> dict[int, float]:
        rows = metrics.filter(is_name(column(metrics, "metric"), name))
        index = windows.index(instants(rows, "time"))
        return dict(zip(index.tolist(), reals(rows, "value").tolist(), strict=True))

    up, there = sampled("clients up"), sampled(AT_POINTS)
    shares = [there[second] / up[second] for second in there if second >= SETTLED and up.get(second)]
    return {"share at points": float(np.mean(shares)) if shares else 0.0}


def _where(ground: Ground, transitions: Any) -> dict[str, float]:
    """Which share of the exchanges of ad hoc mechanisms took place at points, or at their borders."""
    rows = transitions.filter(
        is_name(column(transitions, "proxy"), LOCAL) & ~is_name(column(transitions, "host"), BROKER)
    )
    lat, lon = reals(rows, "lat"), reals(rows, "lon")
    here = _numbers(ground, lat, lon, NEAR)
    return {
        "exchanges": float(len(here)),
        "exchanges at points": float((here >= 0).mean()) if len(here) else 1.0,
    }


def _switches(scenario: Scenario, transitions: Any) -> dict[str, float]:
    """How often points changed their mind; how often for a moment only; and how many never became crowded."""
    by_point = _minds(transitions)
    minutes = scenario.run.duration / 60.0
    switched = sum(map(len, by_point.values()))
    brief = sum(later - earlier < BRIEF for times in by_point.values() for earlier, later in _steps(times))
    points = len(ground_of(scenario).points)
    return {
        "switches a minute": switched / minutes,
        "brief": brief / switched if switched else 0.0,
        "points that switch": float(len(by_point)),
        "points never crowded": float(points - len(by_point)),
    }


def _minds(transitions: Any) -> dict[str, list[tuple[Instant, str | None]]]:
    """By point, when it changed its mind, and to which mechanism."""
    prefix = f"{LOCAL} at "
    rows = zip(
        instants(transitions, "time").tolist(),
        column(transitions, "proxy").to_pylist(),
        column(transitions, "target").to_pylist(),
        strict=True,
    )
    found: dict[str, list[tuple[Instant, str | None]]] = {}
    for time, proxy, target in sorted(rows, key=lambda row: row[0]):
        if proxy.startswith(prefix):
            found.setdefault(proxy.removeprefix(prefix), []).append((time, target))
    return found


def _steps(times: list[tuple[Instant, str | None]]) -> list[tuple[Instant, Instant]]:
    return [(earlier[0], later[0]) for earlier, later in pairwise(times)]


def _agreement(scenario: Scenario, transitions: Any, clients: Any) -> dict[str, float]:
    """Of the clients that run an ad hoc mechanism, the share that runs what the broker wants at their point, second by second.

    Where a client was is taken from where it last exchanged its mechanism, which is at the border of its point.
    """
    ground = ground_of(scenario)
    names = [point.name for point in ground.points]
    minds = _minds(transitions)
    otherwise = scenario.coexistence.otherwise
    first = None if otherwise is None else str(otherwise.spec())
    rows = transitions.filter(
        is_name(column(transitions, "proxy"), LOCAL) & ~is_name(column(transitions, "host"), BROKER)
    )
    point = _numbers(ground, reals(rows, "lat"), reals(rows, "lon"), NEAR)
    steps: list[tuple[Instant, str, str | None, int]] = list(
        zip(
            instants(rows, "time").tolist(),
            column(rows, "host").to_pylist(),
            column(rows, "target").to_pylist(),
            point.tolist(),
            strict=True,
        )
    )
    states = zip(
        instants(clients, "time").tolist(),
        column(clients, "client").to_pylist(),
        column(clients, "state").to_pylist(),
        strict=True,
    )
    steps += [(time, client, None, -1) for time, client, state in states if state in ("left", "failed")]
    steps.sort(key=lambda step: step[0])
    running: dict[str, tuple[str, int]] = {}
    agreeing = asked = place = 0
    for second in range(int(SETTLED), int(scenario.run.duration)):
        now = _at(scenario.run.start, second)
        while place < len(steps) and steps[place][0] <= now:
            _, host, target, where = steps[place]
            place += 1
            running.pop(host, None)
            if target is not None and where >= 0:
                running[host] = target, where
        wanted = {name: _last(changes, now, first) for name, changes in minds.items()}
        for target, where in running.values():
            asked += 1
            agreeing += target == wanted.get(names[where], first)
    return {"agreeing": agreeing / asked if asked else 1.0}


def _last(changes: list[tuple[Instant, str | None]], now: Instant, first: str | None) -> str | None:
    mind = first
    for time, target in changes:
        if time > now:
            break
        mind = target
    return mind


def _at(start: Instant, seconds: float) -> Instant:
    return start + round(seconds * MICROSECONDS)
