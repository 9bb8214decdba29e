"""Timers on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.runtime.delays import delay, period
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Cancellable, Timers
from nearcast.runtime.simulation.kernel import Simulation


class Life:
    """One stretch of a host's life, from joining to leaving or failing; what it asked for ends with it."""

    __slots__ = ("alive", "host")

    def __init__(self, host: Address | None = None) -> None:
        self.alive = True
        self.host: Final = host
        """Its name; none: of no host that a world knows."""


class _Timer(Cancellable):
    __slots__ = ("callback", "due", "observers", "period")

    def __init__(self, callback: Callable[[], None], observers: Observers, due: int, period: int) -> None:
        self.callback: Callable[[], None] | None = callback
        self.observers = observers
        self.due = due
        self.period = period

    def cancel(self) -> None:
        if self.observers.watching:
            self.observers.refuse("cancel a timer")
        self.callback = None


class SimulatedTimers(Timers):
    """The timers of one life of a host."""

    def __init__(self, simulation: Simulation, life: Life) -> None:
        self._simulation: Final = simulation
        self._life: Final = life

    def after(self, seconds: float, callback: Callable[[], None]) -> Cancellable:
        return self._set(delay(seconds), 0, callback)

    def every(self, seconds: float, callback: Callable[[], None], *, first: float | None = None) -> Cancellable:
        length = period(seconds)
        return self._set(length if first is None else delay(first), length, callback)

    def _set(self, wait: int, length: int, callback: Callable[[], None]) -> Cancellable:
        simulation = self._simulation
        due = simulation.time + wait
        timer = _Timer(callback, simulation.observers, due, length)
        simulation.at(due, self._fire, timer, apart=self._life.host is not None)
        return timer

    def _fire(self, timer: _Timer) -> None:
        callback = timer.callback
        if callback is None or not self._life.alive:
            return
        if self._life.host is not None:
            self._simulation.backlog.catch_up_for(self._life.host)
        if timer.period:
            timer.due += timer.period
            self._simulation.at(timer.due, self._fire, timer, apart=self._life.host is not None)
        callback()
