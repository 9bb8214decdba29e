"""``nearcast bench dashboard``: what a broker does while ten pages look at it, and while nobody does.

One broker, the same people and the same work in every turn: everybody moves, then everybody publishes, and all of it has been delivered.  Turns with and
without viewers come in pairs, each pair in the other order than the one before; what counts is the median of the pairs' ratios, so that whatever else
the machine does meets both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_laps import Lap, Progress
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_script import script
from nearcast.benchmark.broker_useful import PAYLOAD, WithAreas
from nearcast.benchmark.peers.server import free_port, generator_core, on_core
from nearcast.benchmark.report import OURSELVES, Measurement, Report, machine
from nearcast.errors import BenchmarkError

PAGES: Final = 10
METRIC: Final = "useful_deliveries_per_second"
UNWATCHED: Final = "nearcast-unwatched"


@dataclass(frozen=True, slots=True)
class Size:
    walkers: int
    steps: int
    """Of one turn."""

    pairs: int


FULL: Final = Size(walkers=500, steps=30, pairs=9)
QUICK: Final = Size(walkers=200, steps=40, pairs=4)


class _Shown(Nearcast):
    """With a port of its own for the dashboard, so that pages know where it is."""

    def command(self) -> list[str]:
        self.http_port = free_port()
        command = super().command()
        command[command.index("--http-port") + 1] = str(self.http_port)
        return command


class _Walk(WithAreas):
    """The same steps in every turn."""

    def lap(self, seconds: float) -> Lap:
        self._step = 1
        return super().lap(seconds)


class _Viewers:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process: Final = process
        self.came: dict[str, int] = {}

    def look(self) -> None:
        self._say("look")

    def away(self) -> None:
        for name, value in self._say("away").items():
            self.came[name] = self.came.get(name, 0) + value

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
def _viewers(port: int) -> Iterator[_Viewers]:
    command = [sys.executable, "-m", "nearcast.benchmark.dashboard_viewers", str(port), str(PAGES)]
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
    laps: dict[bool, list[Lap]] = {False: [], True: []}
    with (
        on_core(generator_core()),
        _Shown() as server,
        _viewers(server.http_port) as viewers,
        Crowd(server.port, PAYLOAD) as crowd,
    ):
        lane = _Walk(server, crowd, walk, size.steps)
        lane.lap(0.0)  # to warm up
        for pair in range(size.pairs):
            for watched in (False, True) if pair % 2 else (True, False):
                progress(f"pair {pair + 1} of {size.pairs}, {PAGES if watched else 'no'} pages are open")
                if watched:
                    viewers.look()
                laps[watched].append(lane.lap(0.0))
                if watched:
                    viewers.away()
    pairs = [with_.rate / without.rate for with_, without in zip(laps[True], laps[False], strict=True)]
    # By the time of the core that the broker used: what others do on this machine counts less, but what is done
    # at fixed times counts more, the longer a turn takes because of them.
    busy = [_per_core(with_) / _per_core(without) for with_, without in zip(laps[True], laps[False], strict=True)]
    seconds = sum(lap.seconds for lap in laps[True])
    results = (
        _measured(OURSELVES, laps[True], size, {"pages": PAGES, **_received(viewers.came, seconds)}),
        _measured(UNWATCHED, laps[False], size, {"pages": 0}),
    )
    ratios = {
        f"{OURSELVES}/{UNWATCHED} {METRIC}": round(statistics.median(pairs), 4),
        f"{OURSELVES}/{UNWATCHED} {METRIC} (of a busy core)": round(statistics.median(busy), 4),
    }
    return Report("dashboard", machine() | {"one_core_each": generator_core() is not None}, results, (), ratios)


def _per_core(lap: Lap) -> float:
    return lap.rate / max(lap.server_cores, 1e-3)


def _measured(system: str, laps: list[Lap], size: Size, more: dict[str, Any]) -> Measurement:
    rates = [lap.rate for lap in laps]
    parameters = {
        "clients": size.walkers,
        "turns": len(laps),
        "seconds": round(sum(lap.seconds for lap in laps), 1),
        "spread": round((max(rates) - min(rates)) / statistics.median(rates), 3),
        "server_cores": round(statistics.median(lap.server_cores for lap in laps), 2),
        "generator_cores": round(statistics.median(lap.generator_cores for lap in laps), 2),
        "per_core_second": round(statistics.median(map(_per_core, laps))),
        "differing_answers": sum(lap.differing for lap in laps),
        **more,
    }
    return Measurement(system, METRIC, "1/s", statistics.median(rates), parameters)


def _received(came: dict[str, int], seconds: float) -> dict[str, float]:
    """By each page, on average: that they did look is part of the result."""
    return {f"{name}_per_second_and_page": round(count / PAGES / seconds, 1) for name, count in came.items()}
