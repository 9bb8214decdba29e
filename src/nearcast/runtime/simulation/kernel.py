"""The simulation kernel: virtual time, and what happens next.

Everything that happens is a callback at an instant; ties are broken by the order in which they were scheduled, so a run is a
function of its seed and its configuration.  A network model that keeps its own queue of events in compiled code takes part as
an *engine*: the kernel lets it run up to the next callback, and no further.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.model.time import MICROSECONDS, Instant, to_text
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.simulation.backlog import Backlog

NEVER: Final = 2**62
"""Later than anything happens, in microseconds or in nanoseconds."""

SLOT_BITS: Final = 11
"""A slot of the queue is 2**11 µs long: about two milliseconds."""

Entry = tuple[Instant, Instant, int, Callable[[Any], None], Any, bool]
"""When; when it was scheduled, and which in that order; what to call, and with what; whether it happens apart from all
that lags behind."""


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

        self.backlog = Backlog()
        """Of the one part of the world that may lag behind."""

        self.engines: Final[list[Engine]] = []
        self._running = False
        self._since: Instant = start
        self._number = 0
        """Of what happens now: when it was scheduled, and which it was in that order."""

        # One heap of everything that waits would take a quarter more time with 300 clients, half as much again with 10,000.
        # So only what is due before the horizon is kept in order; the rest lies unsorted in slots until their turn comes.
        self._near: list[Entry] = []
        self._done = 0
        """So many of these have been called."""

        self._horizon: Instant = start
        self._far: Final[dict[int, list[Entry]]] = {}
        self._slots: Final[list[int]] = []
        """The keys of ``_far``, a heap."""

        self._scheduled = 0
        self._elsewhere: Final[list[Callable[[], int]]] = []
        self._watchers: list[_Watcher] = []

    def now(self) -> Instant:
        return self.time

    def at(self, time: Instant, callback: Callable[[Any], None], argument: Any = None, *, apart: bool = False) -> None:
        """Call ``callback(argument)`` at that instant, or now if it has passed, after what is due then already.

        ``apart``: it touches none of what lags behind, or sees to it itself that this catches up (``backlog``).
        """
        if self.observers.watching:
            self.observers.refuse("schedule something")
        if time < self.time:
            time = self.time
        self._scheduled += 1
        entry = (time, self.time, self._scheduled, callback, argument, apart)
        if time < self._horizon:
            insort(self._near, entry, self._done)
            return
        slot = time >> SLOT_BITS
        try:
            self._far[slot].append(entry)
        except KeyError:
            self._far[slot] = [entry]
            heappush(self._slots, slot)

    def reserve(self, count: int) -> int:
        """The first of so many numbers in the order of scheduling: for what will be ``foreseen``."""
        if self.observers.watching:
            self.observers.refuse("schedule something")
        first = self._scheduled + 1
        self._scheduled += count
        return first

    def foreseen(self, entries: Iterable[Entry]) -> None:
        """Take what is certain already, as if each of it were scheduled only at the instant that it names, which may lie ahead.

        For who works out many things at a time: they come in the order in which they would have come one by one.
        """
        for entry in entries:
            if entry[0] < self._horizon:
                insort(self._near, entry, self._done)
                continue
            slot = entry[0] >> SLOT_BITS
            try:
                self._far[slot].append(entry)
            except KeyError:
                self._far[slot] = [entry]
                heappush(self._slots, slot)

    def count_as_waiting(self, count: Callable[[], int]) -> None:
        """Ask also this for how much waits: it has callbacks that stand for several things, which are not foreseen yet."""
        self._elsewhere.append(count)

    def add_engine(self, engine: Engine) -> None:
        self.engines.append(engine)

    @property
    def present(self) -> tuple[Instant, Instant, int]:
        """What happens now, in the order in which things happen: compare with the first three of an ``Entry``."""
        return self.time, self._since, self._number

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
        self.backlog.catch_up()
        waiting = (
            len(self._near) - self._done + sum(map(len, self._far.values())) + sum(count() for count in self._elsewhere)
        )
        return SimulationStatistics(self.time, self._scheduled - waiting, waiting)

    def _run(self, until: Instant) -> None:
        if self.engines:
            self._run_engines(until)
        backlog = self.backlog
        while self._due(until) < until:
            near = self._near
            while self._done < len(near) and near[self._done][0] < until:
                self.time, self._since, self._number, callback, argument, apart = near[self._done]
                self._done += 1
                if not apart:
                    backlog.catch_up()
                callback(argument)
        self.time, self._since, self._number = until, -1, -1
        backlog.catch_up()

    def _run_engines(self, until: Instant) -> None:
        engines = self.engines
        alone = len(engines) == 1
        engine = engines[0]
        while True:
            near, done = self._near, self._done
            # As ``_due``, of which most of the time only this is needed.
            due = near[done][0] if done < len(near) else self._due(until)
            due = due if due < until else until
            if not alone:
                engine = min(engines, key=_next)
            if engine.next < due:
                engine.step(due if alone else self._limit_of(engine, due))
            elif due < until:
                self.time, self._since, self._number, callback, argument, _ = self._near[self._done]
                self._done += 1
                callback(argument)
            else:
                return

    def _due(self, until: Instant) -> Instant:
        """When the next callback is due, or ``until`` if not before."""
        if self._done == len(self._near) and self._slots and self._slots[0] << SLOT_BITS < until:
            slot = heappop(self._slots)
            self._near, self._done, self._horizon = self._far.pop(slot), 0, (slot + 1) << SLOT_BITS
            self._near.sort()
        return min(self._near[self._done][0], until) if self._done < len(self._near) else until

    def _limit_of(self, engine: Engine, limit: Instant) -> Instant:
        """Not past the next event of another engine, either; at one instant, in the order in which they were added."""
        place = self.engines.index(engine)
        before, after = self.engines[:place], self.engines[place + 1 :]
        return min([limit, *(other.next for other in before), *(other.next + 1 for other in after)])


def _next(engine: Engine) -> Instant:
    return engine.next
