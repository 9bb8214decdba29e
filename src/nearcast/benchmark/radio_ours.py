"""nearcast's radio at the work of the benchmark: frames handed in and reported one by one, as the simulator does it."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Final

import numpy as np

from nearcast.benchmark.radio_scenario import RadioAnswer, RadioScenario
from nearcast.benchmark.report import OURSELVES
from nearcast.runtime.simulation.motion import Legs, standing
from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine

# Of a saturated source: enough that its queue never runs empty.
_FRAMES_WAITING: Final = 8


class OurRadio:
    name: Final = OURSELVES
    version: Final = version(OURSELVES)

    def run(self, scenario: RadioScenario, seed: int = 1) -> RadioAnswer:
        engine = RadioEngine(scenario.profile, legs(scenario), seed)
        run = _Run(engine, scenario)
        started = time.perf_counter()
        run.whole()
        spent = time.perf_counter() - started
        senders, receivers = np.nonzero(run.received)
        return RadioAnswer(senders, receivers, run.received[senders, receivers], spent)


class SourcesInTheKernel:
    """Periodic sources that the engine itself runs: what happens is counted, nothing comes back to Python."""

    name: Final = OURSELVES
    version: Final = version(OURSELVES)

    def run(self, scenario: RadioScenario, seed: int = 1) -> RadioAnswer:
        engine = RadioEngine(scenario.profile, legs(scenario), seed)
        for node, (first, period) in enumerate(_periods(scenario)):
            engine.add_source(node, first, period, scenario.payload)
        started = time.perf_counter()
        while engine.advance(scenario.nanoseconds) < scenario.nanoseconds:
            pass
        spent = time.perf_counter() - started
        nobody = np.zeros(1, np.int64)
        return RadioAnswer(nobody, nobody, np.array([engine.statistics().delivered]), spent)


def _periods(scenario: RadioScenario) -> list[tuple[int, int]]:
    """First sending and period of each node; the scenario must be strictly periodic."""
    order = np.argsort(scenario.senders, kind="stable")
    times = scenario.times[order]
    first = np.searchsorted(scenario.senders[order], np.arange(len(scenario)))
    return list(zip(times[first].tolist(), (times[first + 1] - times[first]).tolist(), strict=True))


def legs(scenario: RadioScenario) -> Legs:
    table = standing(len(scenario))
    table["x"], table["y"] = scenario.x, scenario.y
    return table


class _Run:
    def __init__(self, engine: RadioEngine, scenario: RadioScenario) -> None:
        self.engine = engine
        self.scenario = scenario
        self.received = np.zeros((len(scenario), len(scenario)), np.int64)
        self._towards = dict(scenario.saturated)

    def whole(self) -> None:
        payload, engine = self.scenario.payload, self.engine
        for sender, receiver in self.scenario.saturated:
            for _ in range(_FRAMES_WAITING):
                engine.send(sender, receiver, payload, 0, 0)
        sendings = zip(self.scenario.times.tolist(), self.scenario.senders.tolist(), strict=True)
        for key, (instant, sender) in enumerate(sendings):
            self._advance(instant)
            engine.send(sender, BROADCAST, payload, key, instant)
        self._advance(self.scenario.nanoseconds)

    def _advance(self, until: int) -> None:
        engine, reached = self.engine, -1
        while reached < until:
            reached = engine.advance(until)
            delivered, completed, _ = engine.reports()
            for _key, receiver, sender in delivered:
                self.received[sender, receiver] += 1
            for _key, sender, _outcome in completed:
                if sender in self._towards:
                    engine.send(sender, self._towards[sender], self.scenario.payload, 0, reached)
