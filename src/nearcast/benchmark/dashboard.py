"""``nearcast bench dashboard``: what a broker does while ten pages look at it, and while nobody does.

One broker, the same people and the same work in every turn: everybody moves, then everybody publishes, and all of it has been delivered.  Turns with and
without viewers come in pairs, each pair in the other order than the one before; what counts is the median of the pairs' ratios, so that whatever else
the machine does meets both.

A second course has more to show: a few others are in thousands of cells of a filter scheme (with pages and without), and pages turn over sorted tables.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_laps import Lap, Progress
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_script import Script, script
from nearcast.benchmark.broker_useful import PAYLOAD, WithAreas
from nearcast.benchmark.dashboard_viewers import CELLS
from nearcast.benchmark.peers.server import free_port, generator_core, on_core
from nearcast.benchmark.report import OURSELVES, Measurement, Report, machine
from nearcast.errors import BenchmarkError

PAGES: Final = 10
METRIC: Final = "useful_deliveries_per_second"
UNWATCHED: Final = "nearcast-unwatched"
BUSY: Final = "nearcast-cells-and-tables"
BUSY_UNWATCHED: Final = "nearcast-cells-unwatched"


@dataclass(frozen=True, slots=True)
class Course:
    watched: str
    unwatched: str
    word: str
    """By which the viewers are told to come."""

    cells: bool
    """Others are in thousands of cells."""

    share: int
    """A turn has one in so many of the steps: where there are schemes, the broker looks at each event by itself."""


COURSES: Final = (
    Course(OURSELVES, UNWATCHED, "look", cells=False, share=1),
    Course(BUSY, BUSY_UNWATCHED, "ask", cells=True, share=4),
)


@dataclass(frozen=True, slots=True)
class Size:
    walkers: int
    steps: int
    """Of one turn."""

    pairs: int
    """Of turns, in each course."""


FULL: Final = Size(walkers=500, steps=30, pairs=9)
QUICK: Final = Size(walkers=200, steps=40, pairs=4)


class _Shown(Nearcast):
    """With a port of its own for the dashboard, so that pages know where it is."""

    def command(self) -> list[str]:
        self.http_port = free_port()
        command = super().command()
        command[command.index("--http-port") + 1] = str(self.http_port)
        settings = self.folder / "broker.toml"
        settings.write_text(CELLS)
        return [*command, "--config", str(settings)]


class _Walk(WithAreas):
    """The same steps in every turn."""

    def lap(self, seconds: float) -> Lap:
        self._step = 1
        return super().lap(seconds)


class _Viewers:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process: Final = process
        self.came: Final = Counter[str]()
        """What they were shown."""

    def come(self, word: str) -> None:
        self._say(word)

    def leave(self) -> None:
        self.came.update(self._say("away"))

    def _say(self, word: str) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchmarkError("the pages that were to look at the dashboard have failed")
        told: dict[str, int] = json.loads(answer)
        return told


@contextmanager
def _viewers(http_port: int, mqtt_port: int | None) -> Iterator[_Viewers]:
    """With a port for MQTT: and people in cells."""
    numbers = map(str, (http_port, PAGES, *(() if mqtt_port is None else (mqtt_port,))))
    command = [sys.executable, "-m", "nearcast.benchmark.dashboard_viewers", *numbers]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield _Viewers(process)
    finally:
        process.terminate()
        process.wait()
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()


def run(
    *, quick: bool = False, peers: bool = True, size: Size | None = None, progress: Progress = lambda _: None
) -> Report:
    """``peers``: there are none; the broker is compared with itself."""
    del peers
    size = size or (QUICK if quick else FULL)
    walk = script(size.walkers, 1 + size.steps)
    results: list[Measurement] = []
    ratios: dict[str, float] = {}
    for course in COURSES:
        laps, came = _turns(course, size, walk, progress)
        watched, unwatched = laps[True], laps[False]
        results.append(_measured(course.watched, watched, size, came))
        results.append(_measured(course.unwatched, unwatched, size, Counter()))
        both = list(zip(watched, unwatched, strict=True))
        # By the time of the core that the broker used: what others do on this machine counts less, but what is done
        # at fixed times counts more, the longer a turn takes because of them.
        pairs = {"": [one.rate / other.rate for one, other in both]}
        pairs[" (of a busy core)"] = [_per_core(one) / _per_core(other) for one, other in both]
        for of, each in pairs.items():
            ratios[f"{course.watched}/{course.unwatched} {METRIC}{of}"] = round(statistics.median(each), 4)
    where = machine() | {"one_core_each": generator_core() is not None}
    return Report("dashboard", where, tuple(results), (), ratios)


def _turns(course: Course, size: Size, walk: Script, progress: Progress) -> tuple[dict[bool, list[Lap]], Counter[str]]:
    """Of both kinds, with and without pages; and what these were shown."""
    laps: dict[bool, list[Lap]] = {False: [], True: []}
    with (
        on_core(generator_core()),
        _Shown() as server,
        _viewers(server.http_port, server.port if course.cells else None) as viewers,
        Crowd(server.port, PAYLOAD) as crowd,
    ):
        lane = _Walk(server, crowd, walk, max(1, size.steps // course.share))
        lane.lap(0.0)  # to warm up
        for pair in range(size.pairs):
            for watched in (False, True) if pair % 2 else (True, False):
                progress(f"pair {pair + 1} of {size.pairs}, {course.watched if watched else course.unwatched}")
                if watched:
                    viewers.come(course.word)
                laps[watched].append(lane.lap(0.0))
                if watched:
                    viewers.leave()
    return laps, viewers.came


def _per_core(lap: Lap) -> float:
    return lap.rate / max(lap.server_cores, 1e-3)


def _measured(system: str, laps: list[Lap], size: Size, came: Counter[str]) -> Measurement:
    rates = [lap.rate for lap in laps]
    more = _received(came, sum(lap.seconds for lap in laps))
    parameters = {
        "clients": size.walkers,
        "turns": len(laps),
        "seconds": round(sum(lap.seconds for lap in laps), 1),
        "spread": round((max(rates) - min(rates)) / statistics.median(rates), 3),
        "server_cores": round(statistics.median(lap.server_cores for lap in laps), 2),
        "generator_cores": round(statistics.median(lap.generator_cores for lap in laps), 2),
        "per_core_second": round(statistics.median(map(_per_core, laps))),
        "differing_answers": sum(lap.differing for lap in laps),
        "pages": PAGES if came else 0,
        **more,
    }
    return Measurement(system, METRIC, "1/s", statistics.median(rates), parameters)


def _received(came: Counter[str], seconds: float) -> dict[str, float]:
    """By each page, on average: that they did look is part of the result."""
    return {f"{name}_per_second_and_page": round(count / PAGES / seconds, 1) for name, count in came.items()}
