"""The simulation kernel: virtual time, and what happens next.

Everything that happens is a callback at an instant; ties are broken by the order in which they were scheduled, so a run is a
function of its seed and its configuration.  A network model that keeps its own queue of events in compiled code takes part as
an *engine*: the kernel lets it run up to the next callback, and no further.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.model.time import MICROSECONDS, Instant, to_text
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock
from nearcast.runtime.random import RandomStreams

NEVER: Final = 2**62


@dataclass(frozen=True, slots=True)
class SimulationStatistics:
    now: Instant
    callbacks: int
    waiting: int


@dataclass(slots=True)
class _Watcher:
    due: Instant
    period: int
    look: Callable[[Instant], None]


class Engine(ABC):
    """A part of the world that keeps its own queue of events."""

    next: Instant = NEVER
    """When its next event is due; the engine keeps it up to date."""

    @abstractmethod
    def step(self, limit: Instant) -> None:
        """Go on to the next instant at which somebody is to be told, at most to ``limit`` (exclusive), and tell them.

        Calls ``Simulation.jump`` before each telling.
        """


class Simulation(Clock):
    """Virtual clock, scheduler and random streams of one run."""

    def __init__(self, seed: int, *, start: Instant = 0, observers: Observers | None = None) -> None:
        self.random: Final = RandomStreams(seed)
        self.start: Final = start
        self.observers: Final = observers or Observers()
        self.time: Instant = start
        """What ``now()`` says; for inner loops, where a call costs as much as what it is for."""

        self._running = False
        self._heap: list[tuple[Instant, int, Callable[[Any], None], Any]] = []
        self._scheduled = 0
        self._engines: list[Engine] = []
        self._watchers: list[_Watcher] = []

    def now(self) -> Instant:
        return self.time

    def at(self, time: Instant, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call ``callback(argument)`` at that instant, or now if it has passed, after what is due then already."""
        if self.observers.watching:
            self.observers.refuse("schedule something")
        self._scheduled += 1
        now = self.time
        heappush(self._heap, (time if time > now else now, self._scheduled, callback, argument))

    def add_engine(self, engine: Engine) -> None:
        self._engines.append(engine)

    def jump(self, time: Instant) -> None:
        """Set the clock: for engines, which tell of things that happen between two callbacks."""
        self.time = time

    def watch(self, seconds: float, look: Callable[[Instant], None]) -> None:
        """Call ``look(now)`` every so many seconds of virtual time, after whatever happened before that instant.

        It does not go through the queue and may not act: a run that is watched is the same run.
        """
        if self._running:
            raise InvalidInput("whoever watches a simulation must be there before it runs, or between two runs")
        period = round(seconds * MICROSECONDS)
        if period <= 0:
            raise InvalidTime(f"{seconds!r} seconds is no period to look at a simulation")
        self._watchers.append(_Watcher(self.time + period, period, look))

    def run(self, until: Instant) -> None:
        """Let everything before ``until`` happen; the clock then shows ``until``."""
        if self.observers.watching:
            self.observers.refuse("let time pass")
        if self._running:
            raise InvalidInput("the simulation runs already; what happens in it cannot let time pass")
        self._running = True
        try:
            while self.time < until:
                self._run(min((watcher.due for watcher in self._watchers if watcher.due < until), default=until))
                self._look()
        except Exception as error:
            error.add_note(f"in the simulation at {to_text(self.time)}, after {self._scheduled:,} callbacks")
            raise
        finally:
            self._running = False

    def _look(self) -> None:
        self.observers.watching = True
        try:
            for watcher in self._watchers:
                if watcher.due == self.time:
                    watcher.due += watcher.period
                    watcher.look(self.time)
        finally:
            self.observers.watching = False

    def statistics(self) -> SimulationStatistics:
        return SimulationStatistics(self.time, self._scheduled - len(self._heap), len(self._heap))

    def _run(self, until: Instant) -> None:
        heap, engines = self._heap, self._engines
        if not engines:
            while heap and heap[0][0] < until:
                self.time, _, callback, argument = heappop(heap)
                callback(argument)
            self.time = until
            return
        while True:
            due = heap[0][0] if heap else until
            limit = min(due, until)
            engine = min(engines, key=_next)
            if engine.next < limit:
                engine.step(limit if len(engines) == 1 else self._limit_of(engine, limit))
            elif due < until:
                self.time, _, callback, argument = heappop(heap)
                callback(argument)
            else:
                break
        self.time = until

    def _limit_of(self, engine: Engine, limit: Instant) -> Instant:
        """Not past the next event of another engine, either; at one instant, in the order in which they were added."""
        place = self._engines.index(engine)
        before, after = self._engines[:place], self._engines[place + 1 :]
        return min([limit, *(other.next for other in before), *(other.next + 1 for other in after)])


def _next(engine: Engine) -> Instant:
    return engine.next
