"""Measuring several systems side by side: in turns, so that a noisy moment hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nearcast.benchmark.report import Measurement


@dataclass(eq=False)
class Course:
    """One thing to be measured again and again: ``step(i)`` does some work and says how many units it was.

    ``ready(i)``, if given, is called before each step, outside of the measured time.
    """

    system: str
    metric: str
    unit: str
    step: Callable[[Any], int]
    parameters: dict[str, Any] = field(default_factory=dict)
    ready: Callable[[int], Any] = lambda index: index
    rates: list[float] = field(default_factory=list)
    done: int = 0

    def run(self, seconds: float) -> None:
        """Units per second over about that many seconds; at least one step."""
        units, spent = 0, 0.0
        while not units or spent < seconds:
            request = self.ready(self.done)
            started = time.perf_counter()
            units += self.step(request)
            spent += time.perf_counter() - started
            self.done += 1
        self.rates.append(units / spent)

    def measurement(self) -> Measurement:
        rate = statistics.median(self.rates)
        value = 1e6 / rate if self.unit == "us" else rate
        spread = {"runs": len(self.rates), "spread": round((max(self.rates) - min(self.rates)) / rate, 3)}
        return Measurement(self.system, self.metric, self.unit, value, {**self.parameters, **spread})


def take_turns(courses: Iterable[Course], rounds: int, seconds: float, progress: Callable[[str], None]) -> None:
    """A short lap of each to warm up, then ``rounds`` times all of them one after the other."""
    courses = list(courses)
    for course in courses:
        course.run(0.0)
        course.rates.clear()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for course in courses:
                course.run(seconds)
    finally:
        if collecting:
            gc.enable()
    gc.collect()
