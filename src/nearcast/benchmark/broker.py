"""``nearcast bench broker``: the broker and its peers under load, each on a core of its own.

The load generator has the other core; what both used is in the parameters of each result, so that one can see which
of the two a figure is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from nearcast.benchmark.broker_courses import CELL, COURSES, FULL, QUICK, SERVERS, Course, Size
from nearcast.benchmark.broker_fences import NOTIFICATIONS, UPDATES
from nearcast.benchmark.broker_idle import allow_files
from nearcast.benchmark.broker_laps import Findings, Progress
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_streams import FAN_OUT, FAN_OUT_SHALLOW
from nearcast.benchmark.peers.server import Server, generator_core, on_core
from nearcast.benchmark.report import OURSELVES, Measurement, Missing, Report, machine, ratios

_BUSY: Final = 0.5

Wanted = Callable[[Measurement], bool]


def run(
    courses: Sequence[str] = (),
    *,
    quick: bool = False,
    peers: bool = True,
    size: Size | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Measure all courses, or those named.  ``quick`` takes smaller crowds, fewer and shorter turns."""
    reasons = absent(peers=peers)
    found = Findings(missing=[Missing(kind.name, reason) for kind, reason in reasons.items()])
    present = frozenset(SERVERS) - set(reasons)
    course = Course(present, size or (QUICK if quick else FULL), found, progress)
    allow_files()
    load = round(os.getloadavg()[0], 2)
    if load > _BUSY:
        progress(f"others are using this machine (load {load}): expect smaller figures, and fast servers to lose most")
    with on_core(generator_core()):
        for name in courses or COURSES:
            COURSES[name](course)
    results = tuple(found.results)
    described = machine()
    described["versions"] |= {kind.name: kind.version() for kind in present if kind is not Nearcast}
    described |= {"one_core_each": generator_core() is not None, "load_before": load}
    return Report("broker", described, results, tuple(found.missing), compared(results))


def absent(*, peers: bool) -> dict[type[Server], str]:
    """Which servers are not measured, and why."""
    if not peers:
        return {kind: "left out on request" for kind in SERVERS if kind is not Nearcast}
    return {kind: reason for kind in SERVERS if (reason := kind.available()) is not None}


def compared(results: tuple[Measurement, ...]) -> dict[str, float]:
    """Under the contract's names what the targets are about; with an addition everything else."""
    found: dict[str, float] = {}
    for addition, wanted in _comparisons(results):
        chosen = tuple(row for row in results if wanted(row))
        found |= {
            f"{name}{addition}": ratio for name, ratio in ratios(chosen, {}).items() if f"{name}{addition}" not in found
        }
    return found


def _comparisons(results: tuple[Measurement, ...]) -> Iterator[tuple[str, Wanted]]:
    yield "", lambda row: row.metric == "idle_connection_bytes"
    for shape, addition in ((FAN_OUT, ""), (FAN_OUT_SHALLOW, f" ({FAN_OUT_SHALLOW.window} in flight)")):
        yield addition, partial(_fans_out, shape.window)
    yield "", lambda row: row.metric == "one_to_one_messages_per_second" and row.parameters["qos"] == 0
    yield " (QoS 1)", lambda row: row.metric == "one_to_one_messages_per_second" and row.parameters["qos"] == 1
    yield "", lambda row: row.metric == "p99_milliseconds" and row.parameters["course"] == "one-to-one"
    yield " (fan-out)", lambda row: row.metric == "p99_milliseconds" and row.parameters["course"] == "fan-out"
    for many in dict.fromkeys(row.parameters["fences"] for row in results if row.metric in (UPDATES, NOTIFICATIONS)):
        yield f" ({many:,} fences)", partial(_fenced, many)
    yield from _useful(results)
    yield from _durable(results)


def _fenced(many: int, row: Measurement) -> bool:
    return row.metric in (UPDATES, NOTIFICATIONS) and row.parameters["fences"] == many


def _fans_out(window: int, row: Measurement) -> bool:
    return row.metric == "fanout_deliveries_per_second" and row.parameters["in_flight"] == window


def _useful(results: tuple[Measurement, ...]) -> Iterator[tuple[str, Wanted]]:
    rows = [row for row in results if row.metric == "useful_deliveries_per_second"]
    ours = [row for row in rows if row.system == OURSELVES]
    cells = [row for row in rows if "cell" in row.parameters]
    yield "", lambda row: row in ours or (row in cells and row.parameters["cell"] == CELL)
    best = max(cells, key=lambda row: row.value, default=None)
    yield " (best cell size)", lambda row: row in ours or row is best
    yield "", lambda row: row in ours or (row in rows and row.parameters.get("form") == "service beside Redis")
    yield (
        " (script inside Redis)",
        lambda row: row in ours or (row in rows and row.parameters.get("form") == "script inside Redis"),
    )


def _durable(results: tuple[Measurement, ...]) -> Iterator[tuple[str, Wanted]]:
    rows = [row for row in results if row.metric == "durable_publishes_per_second"]
    settings = dict.fromkeys((row.parameters["publishers"], row.parameters["in_flight"]) for row in rows)
    for number, (publishers, in_flight) in enumerate(settings):
        like = {"publishers": publishers, "in_flight": in_flight}
        addition = f" ({publishers} x {in_flight} in flight)" if number else ""
        yield addition, partial(_contains, rows, like)


def _contains(rows: list[Measurement], like: dict[str, int], row: Measurement) -> bool:
    return row in rows and like.items() <= row.parameters.items()
