import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidTime, ObserverActed
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.ports import Cancellable
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.timers import Life, SimulatedTimers


class Watch:
    """Timers, and when they fired."""

    def __init__(self, start: int = 0) -> None:
        self.simulation = Simulation(1, start=start)
        self.life = Life()
        self.timers = SimulatedTimers(self.simulation, self.life)
        self.fired: list[float] = []

    def note(self) -> None:
        self.fired.append((self.simulation.now() - self.simulation.start) / MICROSECONDS)

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.start + round(seconds * MICROSECONDS))

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        def due(_: None) -> None:
            act()

        self.simulation.at(self.simulation.start + round(seconds * MICROSECONDS), due)


def test_a_timer_fires_once() -> None:
    watch = Watch()
    watch.timers.after(1.5, watch.note)
    watch.run(10)
    assert watch.fired == [1.5]


def test_a_timer_of_no_delay_fires_after_whatever_happens_at_this_instant() -> None:
    watch, order = Watch(), list[str]()

    def first() -> None:
        watch.timers.after(0, lambda: order.append("third"))
        order.append("first")

    watch.at(1, first)
    watch.at(1, lambda: order.append("second"))
    watch.run(2)
    assert order == ["first", "second", "third"]


def test_a_periodic_timer_fires_first_after_one_period_or_when_it_was_told_to() -> None:
    watch = Watch()
    watch.timers.every(2, watch.note)
    watch.run(7)
    assert watch.fired == [2, 4, 6]
    watch = Watch()
    watch.timers.every(2, watch.note, first=0)
    watch.timers.every(2, watch.note, first=0.5)
    watch.run(5)
    assert watch.fired == [0, 0.5, 2, 2.5, 4, 4.5]


@given(st.floats(1e-6, 0.1), st.integers(0, 2**50))
def test_periods_do_not_drift(seconds: float, start: int) -> None:
    watch, count = Watch(start), 200
    watch.timers.every(seconds, watch.note, first=0)
    period = round(seconds * MICROSECONDS)
    watch.simulation.run(start + count * period)
    assert watch.fired == [number * period / MICROSECONDS for number in range(count)]


def test_cancelling_once_or_twice_or_late_is_fine() -> None:
    watch = Watch()
    once, again, over = (
        watch.timers.after(1, watch.note),
        watch.timers.every(1, watch.note),
        watch.timers.after(0.5, watch.note),
    )
    watch.at(0.9, once.cancel)
    watch.at(2.5, again.cancel)
    watch.at(2.6, again.cancel)
    watch.at(2.7, over.cancel)
    watch.run(10)
    assert watch.fired == [0.5, 1, 2]


def test_a_periodic_timer_may_cancel_itself() -> None:
    watch, timers = Watch(), list[Cancellable]()

    def fire() -> None:
        watch.note()
        if len(watch.fired) == 3:
            timers[0].cancel()

    timers.append(watch.timers.every(1, fire))
    watch.run(10)
    assert watch.fired == [1, 2, 3]


def test_cancelling_at_the_instant_at_which_it_is_due_is_early_enough() -> None:
    watch, timers = Watch(), list[Cancellable]()
    watch.at(1, lambda: [timer.cancel() for timer in timers])
    timers.append(watch.timers.after(1, watch.note))
    watch.run(2)
    assert watch.fired == []


def test_timers_end_with_the_life_of_their_host() -> None:
    watch = Watch()
    watch.timers.every(1, watch.note)
    watch.timers.after(2.7, watch.note)
    another = SimulatedTimers(watch.simulation, Life())
    another.after(4, watch.note)

    def die() -> None:
        watch.life.alive = False

    watch.at(2.5, die)
    watch.at(3, lambda: watch.timers.after(0.1, watch.note))  # what the dead ask for
    watch.run(10)
    assert watch.fired == [1, 2, 4]
    assert watch.simulation.statistics().waiting == 0


def test_delays_and_periods_that_cannot_be_are_refused() -> None:
    timers = Watch().timers
    for seconds in (-1.0, math.nan, math.inf, 1e12):
        with pytest.raises(InvalidTime, match="delay"):
            timers.after(seconds, print)
        with pytest.raises(InvalidTime, match="period"):
            timers.every(seconds, print)
        with pytest.raises(InvalidTime, match="delay"):
            timers.every(1, print, first=seconds)
    with pytest.raises(InvalidTime, match="period"):
        timers.every(0, print)


def test_a_period_is_at_least_a_microsecond_so_that_time_goes_on() -> None:
    watch = Watch()
    watch.timers.every(1e-9, watch.note)
    watch.run(5e-6)
    assert len(watch.fired) == 4


def test_observers_do_not_cancel() -> None:
    watch = Watch()
    timer = watch.timers.every(1.0, watch.note)
    watch.simulation.watch(2.0, lambda _: timer.cancel())
    with pytest.raises(ObserverActed, match="cancel a timer"):
        watch.simulation.run(5 * MICROSECONDS)
