"""From a scenario to a recording: build the world, let it run, and write down all that happens."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.records.tables import TABLES
from nearcast.records.writer import RecordWriter
from nearcast.runtime.links import SENT
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.motion import positions
from nearcast.runtime.simulation.plane import Floats
from nearcast.scenario.assembly import BROKER, Assembly
from nearcast.scenario.operations import LogWriter
from nearcast.scenario.schema import Scenario
from nearcast.scenario.truth import Truth
from nearcast.scenario.writing import digest

DIRECTLY: Final = frozenset({"positions", "traffic", "energy", "metrics"})
"""Tables that are not made of single happenings; they are written from here."""

Progress = Callable[[float, float], None]
"""``progress(simulated seconds so far, of so many)``, about once for each simulated second."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What came of a run.  All of it but ``speed`` depends on scenario and seed alone."""

    title: str
    scenario: str
    """SHA-256 of the effective scenario."""

    seed: int
    simulated_seconds: float
    counts: dict[str, int]
    tables: dict[str, dict[str, Any]]
    """Rows and SHA-256 of the content of each table."""

    records: str | None
    """The folder with the recording."""

    speed: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def simulate(
    scenario: Scenario,
    seed: int,
    *,
    out: Path | None = None,
    overwrite: bool = False,
    log: Path | None = None,
    observers: Observers | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Run the scenario; record to ``out``, or only count and hash.

    ``log`` is where to write what applications do, as a log of operations that can be replayed.  ``observers`` may bring
    analyzers and metrics; they see all that happens and change nothing.
    """
    observers = observers or Observers()
    about: dict[str, str | int | float] = {"title": scenario.run.title, "scenario": digest(scenario), "seed": seed}
    with RecordWriter(out, overwrite=overwrite, about=about) as writer, ExitStack() as stack:
        operations = None if log is None else stack.enter_context(LogWriter(log))
        run = RecordedRun(scenario, seed, observers, writer, operations)
        started = time.perf_counter()
        with rare_collections():
            run.begin(progress)
            run.advance(scenario.run.duration)
            run.finish()
        seconds = time.perf_counter() - started
    statistics = run.assembly.simulation.statistics()
    duration = scenario.run.duration
    return RunSummary(
        title=scenario.run.title,
        scenario=digest(scenario),
        seed=seed,
        simulated_seconds=duration,
        counts=run.counts(),
        tables={name: {"rows": summary.rows, "sha256": summary.sha256} for name, summary in writer.summary().items()},
        records=None if out is None else str(out),
        speed={
            "wall_seconds": round(seconds, 3),
            "simulated_seconds_per_second": round(duration / seconds, 3),
            "callbacks_per_second": round(statistics.callbacks / seconds),
        },
    )


@contextmanager
def rare_collections() -> Iterator[None]:
    """Hosts live as long as the run and messages are no cycles: looking for garbage every 700 objects finds none.

    An eighth of the time of a run, measured with 297 clients.  What is there already, all modules among it, is not looked
    at: that would take a tenth of a second each time.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def headings(vx: Floats, vy: Floats) -> Floats:
    """Degrees clockwise from north, below 360 (``Leg.course``, for arrays)."""
    degrees = np.degrees(np.arctan2(vx, vy)) % 360.0
    return np.where(degrees < 360.0, degrees, 0.0)  # -1e-20 % 360.0 is 360.0


class RecordedRun:
    """One run and its recorder: ``begin``, ``advance`` to the end, ``finish``."""

    def __init__(
        self, scenario: Scenario, seed: int, observers: Observers, writer: RecordWriter, log: LogWriter | None = None
    ) -> None:
        self._scenario = scenario
        self._writer = writer
        self._observers = observers
        for table in TABLES:
            if table.name not in DIRECTLY:
                observers.record(table.name, writer.appender(table.name), writer.rows_appender(table.name))
        observers.record("clients", self._client)
        observers.record("interests", self._interest)
        self._write_client, self._write_event = writer.appender("clients"), observers.emitter("events")
        self.assembly = Assembly(scenario, seed, observers, self._published, None if log is None else log.write)
        world = self.assembly.world
        self._truth = Truth(world.motion, world.plane, self.assembly.names)
        self._names = np.array(self.assembly.names, dtype=object)
        self._x, self._y = np.zeros(len(world.motion.table)), np.zeros(len(world.motion.table))

    def begin(self, progress: Progress | None = None) -> None:
        """Let people move and clients join, and look at them from now on."""
        settings, simulation = self._scenario.run, self.assembly.simulation
        start, duration = simulation.start, settings.duration
        self.assembly.measure(self._observers)
        self.assembly.begin()
        simulation.watch(settings.position_samples, self._sample_positions)
        simulation.watch(settings.metric_samples, self._sample_metrics)
        if progress is not None:
            simulation.watch(1.0, lambda now: progress((now - start) / MICROSECONDS, duration))
        self._sample_positions(start)

    def advance(self, seconds: float) -> None:
        """So much further, in simulated time."""
        simulation = self.assembly.simulation
        simulation.run(simulation.now() + round(seconds * MICROSECONDS))

    def finish(self) -> None:
        """Write down what is known only at the end."""
        simulation = self.assembly.simulation
        frame = simulation.start, simulation.now()
        traffic, energy = self._writer.appender("traffic"), self._writer.appender("energy")
        for network in self.assembly.networks:
            for row in network.traffic():
                traffic(*frame, row.interface, row.direction, row.kind, row.host, row.messages, row.bytes)
            for link, cost in network.spent():
                joules = cost.sent, cost.received, cost.listening
                energy(*frame, network.interface, link.host, link.listened, *joules)

    def counts(self) -> dict[str, int]:
        """The most telling of the statistics."""
        rows = {name: summary.rows for name, summary in self._writer.summary().items()}
        counts = {"clients": len(self.assembly.names)}
        counts |= {name: rows[name] for name in ("events", "notifications", "messages", "drops")}
        for network in self.assembly.networks:
            sent = sum(row.bytes for row in network.traffic() if row.direction == SENT)
            counts[f"{network.interface}_bytes_sent"] = sent
            counts[f"{network.interface}_in_flight"] = network.in_flight
        return counts

    # The recorder

    def _client(self, time: Instant, client: str, state: str) -> None:
        # The broker is a host but no client.
        if client != BROKER:
            if state in ("left", "failed"):
                self._truth.gone(client)
            self._write_client(time, client, state)

    def _interest(self, client: str, name: str, subscription: Subscription | None) -> None:
        self._truth.interest(client, name, subscription)

    def _published(self, event: Event, workload: str) -> None:
        place = event.place
        self._write_event(
            event.published,
            event.id,
            event.publisher,
            event.topic,
            place.lat if place else None,
            place.lon if place else None,
            None,
            len(event.payload),
            workload,
            self._truth.receivers(event),
        )

    def _sample_positions(self, now: Instant) -> None:
        motion, count = self.assembly.world.motion, len(self._names)
        positions(motion.table, now, self._x, self._y)
        lat, lon = self.assembly.world.plane.degrees(self._x[:count], self._y[:count])
        legs = motion.table[:count]
        moving = now < legs["until"]
        vx, vy = np.where(moving, legs["vx"], 0.0), np.where(moving, legs["vy"], 0.0)
        speed = np.hypot(vx, vy)
        heading = np.ma.masked_array(headings(vx, vy), mask=speed == 0.0)
        times = np.full(count, now)
        columns = {"time": times, "client": self._names, "lat": lat, "lon": lon, "speed": speed, "heading": heading}
        self._writer.append_columns("positions", columns)

    def _sample_metrics(self, now: Instant) -> None:
        for name, value in self._observers.sample().items():
            if math.isfinite(value):
                self._writer.append("metrics", now, name, value)
