"""``nearcast bench dashboard``: what a broker does while ten pages look at it, while they turn over its tables besides, and while nobody looks.

One broker, the same people and the same work in every turn: everybody moves, then everybody publishes, and all of it has been delivered.  A few others
are in thousands of cells of a filter scheme, which pages show.  Turns of all kinds come together, each time in the other order than before; what counts
is the median of the ratios of turns that came together, so that whatever else the machine does meets all of them.
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
from nearcast.benchmark.broker_script import script
from nearcast.benchmark.broker_useful import PAYLOAD, WithAreas
from nearcast.benchmark.dashboard_viewers import CELLS
from nearcast.benchmark.peers.server import free_port, generator_core, on_core
from nearcast.benchmark.report import OURSELVES, Measurement, Report, machine
from nearcast.errors import BenchmarkError

PAGES: Final = 10
METRIC: Final = "useful_deliveries_per_second"
UNWATCHED: Final = "nearcast-unwatched"
ASKED: Final = "nearcast-asked"
"""Pages look, and ask for sorted tables."""

KINDS: Final = {UNWATCHED: None, OURSELVES: "look", ASKED: "ask"}
"""What the viewers are told."""


_SAID: Final = {
    UNWATCHED: "no pages are open",
    OURSELVES: f"{PAGES} pages are open",
    ASKED: f"{PAGES} pages are open and ask for tables",
}


@dataclass(frozen=True, slots=True)
class Size:
    walkers: int
    steps: int
    """Of one turn."""

    pairs: int
    """Of each kind."""


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
        self.came: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        """What was shown in all turns of a kind."""

    def come(self, kind: str) -> None:
        word = KINDS[kind]
        if word is not None:
            self._say(word)

    def leave(self, kind: str) -> None:
        if KINDS[kind] is not None:
            self.came[kind].update(self._say("away"))

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
def _viewers(http_port: int, mqtt_port: int) -> Iterator[_Viewers]:
    numbers = map(str, (http_port, mqtt_port, PAGES))
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
    laps: dict[str, list[Lap]] = {kind: [] for kind in KINDS}
    with (
        on_core(generator_core()),
        _Shown() as server,
        _viewers(server.http_port, server.port) as viewers,
        Crowd(server.port, PAYLOAD) as crowd,
    ):
        lane = _Walk(server, crowd, walk, size.steps)
        lane.lap(0.0)  # to warm up
        for pair in range(size.pairs):
            for kind in KINDS if pair % 2 else reversed(KINDS):
                progress(f"turn {pair + 1} of {size.pairs}, {_SAID[kind]}")
                viewers.come(kind)
                laps[kind].append(lane.lap(0.0))
                viewers.leave(kind)
    results = [_measured(kind, laps[kind], size, viewers.came[kind]) for kind in (OURSELVES, UNWATCHED, ASKED)]
    ratios: dict[str, float] = {}
    for kind in (OURSELVES, ASKED):
        both = list(zip(laps[kind], laps[UNWATCHED], strict=True))
        # By the time of the core that the broker used: what others do on this machine counts less, but what is done
        # at fixed times counts more, the longer a turn takes because of them.
        pairs = {"": [one.rate / other.rate for one, other in both]}
        pairs[" (of a busy core)"] = [_per_core(one) / _per_core(other) for one, other in both]
        for of, each in pairs.items():
            ratios[f"{kind}/{UNWATCHED} {METRIC}{of}"] = round(statistics.median(each), 4)
    where = machine() | {"one_core_each": generator_core() is not None}
    return Report("dashboard", where, tuple(results), (), ratios)


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
