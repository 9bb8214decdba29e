"""Timers on an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.delays import delay, period
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Cancellable, Clock, Timers

Guard = Callable[..., None]
"""``guard(callback, *arguments)`` calls back; whatever that raises ends the host, and is reported."""


@dataclass(frozen=True, slots=True)
class TimersStatistics:
    waiting: int
    fired: int
    skipped: int
    """Periods that passed while the machine was busy or asleep."""


class _Timer(Cancellable):
    __slots__ = ("callback", "due", "handle", "observers", "period", "waiting")

    def __init__(
        self,
        waiting: dict[_Timer, None],
        observers: Observers,
        callback: Callable[[], None],
        due: Instant,
        length: int,
    ) -> None:
        self.waiting = waiting
        self.observers = observers
        self.callback = callback
        self.due = due
        self.period = length
        self.handle: asyncio.Handle | None = None

    def cancel(self) -> None:
        if self.observers.watching:
            self.observers.refuse("cancel a timer")
        self.end()

    def end(self) -> None:
        self.waiting.pop(self, None)
        if self.handle is not None:
            self.handle.cancel()


class LiveTimers(Timers):
    """The timers of one life of a host, on the running event loop."""

    def __init__(self, clock: Clock, guard: Guard, observers: Observers) -> None:
        self._clock: Final = clock
        self._guard: Final = guard
        self._observers: Final = observers
        self._loop: Final = asyncio.get_running_loop()
        self._waiting: Final[dict[_Timer, None]] = {}
        self._ended = False
        self._fired = 0
        self._skipped = 0

    def after(self, seconds: float, callback: Callable[[], None]) -> Cancellable:
        return self._set(delay(seconds), 0, callback)

    def every(self, seconds: float, callback: Callable[[], None], *, first: float | None = None) -> Cancellable:
        length = period(seconds)
        return self._set(length if first is None else delay(first), length, callback)

    def end(self) -> None:
        """The host has left or failed: no callback comes any more, whoever still asks for one."""
        self._ended = True
        for timer in list(self._waiting):
            timer.end()

    def statistics(self) -> TimersStatistics:
        return TimersStatistics(len(self._waiting), self._fired, self._skipped)

    def _set(self, wait: int, length: int, callback: Callable[[], None]) -> Cancellable:
        if self._observers.watching:
            self._observers.refuse("schedule something")
        timer = _Timer(self._waiting, self._observers, callback, self._clock.now() + wait, length)
        if not self._ended:
            self._waiting[timer] = None
            self._arm(timer)
        return timer

    def _arm(self, timer: _Timer) -> None:
        wait = timer.due - self._clock.now()
        # What is due already comes in the order in which it was asked for; the loop's timers do not promise that.
        timer.handle = (
            self._loop.call_soon(self._fire, timer)
            if wait <= 0
            else self._loop.call_later(wait / MICROSECONDS, self._fire, timer)
        )

    def _fire(self, timer: _Timer) -> None:
        late = self._clock.now() - timer.due
        if late < 0:
            # The loop may be early by the resolution of its clock, but "after a second" is never before that second.
            self._arm(timer)
            return
        self._fired += 1
        if timer.period:
            # Who was late goes on with the next period that is still to come: a machine that slept for an hour
            # would otherwise send an hour's beacons at once.
            passed = late // timer.period
            self._skipped += passed
            timer.due += (passed + 1) * timer.period
            self._arm(timer)
        else:
            del self._waiting[timer]
        self._guard(timer.callback)
