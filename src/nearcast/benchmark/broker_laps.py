"""Servers measured in turns: every round gives each of them the same work, and the median counts."""

from __future__ import annotations

import gc
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.report import Measurement, Missing
from nearcast.errors import BenchmarkError

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Lap:
    """What was done in how long, the cores that it kept busy, and how many answers were not the expected ones."""

    units: int
    seconds: float
    server_cores: float
    generator_cores: float
    differing: int = 0

    @property
    def rate(self) -> float:
        return self.units / self.seconds


class Watch:
    """Reads clocks of wall and cores when a lap begins and when it ends."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._cores = server.cpu_seconds(), time.process_time()
        self.started = time.perf_counter()

    def lap(self, units: int, differing: int = 0) -> Lap:
        seconds = time.perf_counter() - self.started
        server, generator = self._server.cpu_seconds() - self._cores[0], time.process_time() - self._cores[1]
        return Lap(units, seconds, server / seconds, generator / seconds, differing)


class Lane(ABC):
    """One server doing one thing again and again."""

    metric: str
    unit: str = "1/s"

    def __init__(self, server: Server, parameters: dict[str, Any]) -> None:
        self.server, self.parameters = server, parameters
        self.laps: list[Lap] = []

    @abstractmethod
    def lap(self, seconds: float) -> Lap:
        """The work of one turn: for about that long, or all of it where everybody must do exactly the same."""

    def measurement(self) -> Measurement:
        rates = [lap.rate for lap in self.laps]
        rate = statistics.median(rates)
        # Not free of what else runs here: a server that was kept waiting finds more to do at once, and one that joins
        # writes then needs less of its core for each message.  Only figures of an otherwise idle machine compare.
        per_core = statistics.median(lap.rate / max(lap.server_cores, 1e-3) for lap in self.laps)
        found = {
            **self.parameters,
            "runs": len(rates),
            "spread": round((max(rates) - min(rates)) / rate, 3) if rate else 0.0,
            "server_cores": round(statistics.median(lap.server_cores for lap in self.laps), 2),
            "generator_cores": round(statistics.median(lap.generator_cores for lap in self.laps), 2),
            "per_core_second": round(per_core),
            "differing_answers": sum(lap.differing for lap in self.laps),
        }
        return Measurement(self.server.name, self.metric, self.unit, rate, found)


@dataclass
class Findings:
    """What the courses have found so far."""

    results: list[Measurement] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    @contextmanager
    def surviving(self, system: str, what: str) -> Iterator[None]:
        """A foreign server that fails in the middle is reported; the others go on."""
        try:
            yield
        except (BenchmarkError, OSError) as error:
            self.missing.append(Missing(system, f"{what}: {error}"))


def race(lanes: Sequence[Lane], rounds: int, seconds: float, found: Findings, progress: Progress) -> None:
    """A short lap of each to warm up, then ``rounds`` times all of them one after the other."""
    running = list(lanes)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds + 1):
            for lane in list(running):
                stage = f"round {number} of {rounds}" if number else "warming up"
                progress(f"{lane.metric}: {lane.server.name}, {stage}")
                running.remove(lane)
                with found.surviving(lane.server.name, lane.metric):
                    lap = lane.lap(seconds if number else min(seconds, 0.3))
                    lane.laps += [lap] if number else []
                    running.append(lane)
    finally:
        if collecting:
            gc.enable()
    gc.collect()
    found.results += [lane.measurement() for lane in lanes if lane.laps]
