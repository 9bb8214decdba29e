"""Timers of live hosts, tested on an event loop in virtual time."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clocks import START
from tests.runtime.live.virtual import VirtualLoop, in_virtual_time

from nearcast.errors import InvalidTime, ObserverActed
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.live.timers import LiveTimers, TimersStatistics
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Cancellable

DELAYS = st.integers(0, 10 * MICROSECONDS).map(lambda microseconds: microseconds / MICROSECONDS)
PERIODS = st.integers(1_000, 10 * MICROSECONDS)


def call(callback: Callable[[], None]) -> None:
    callback()


class Bench:
    """Timers on a virtual loop, and what they did."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.clock = loop.clock()
        self.observers = Observers()
        self.timers = LiveTimers(self.clock, call, self.observers)
        self.fired: list[tuple[str, Instant]] = []

    def note(self, name: str = "") -> Callable[[], None]:
        return lambda: self.fired.append((name, self.clock.now() - START))


def test_nothing_is_called_before_the_call_that_asked_for_it_returns() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        for name in "abc":
            bench.timers.after(0, bench.note(name))
        assert not bench.fired
        await asyncio.sleep(0)
        # And those of one instant come in the order in which they were asked for.
        assert bench.fired == [("a", 0), ("b", 0), ("c", 0)]

    in_virtual_time(story)


@given(st.lists(DELAYS, min_size=1))
def test_each_comes_once_and_at_its_time(delays: list[float]) -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        for number, delay in enumerate(delays):
            bench.timers.after(delay, bench.note(str(number)))
        await asyncio.sleep(11)
        due = [(str(number), round(delay * MICROSECONDS)) for number, delay in enumerate(delays)]
        assert sorted(bench.fired) == sorted(due)
        assert [at for _, at in bench.fired] == sorted(at for _, at in due)
        assert bench.timers.statistics() == TimersStatistics(waiting=0, fired=len(delays), skipped=0)

    in_virtual_time(story)


@given(PERIODS, st.none() | DELAYS, st.floats(0, 0.99), st.integers(1, 30))
def test_periods_do_not_drift_however_long_the_callbacks_work(
    period: int, first: float | None, share: float, times: int
) -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        started = period if first is None else round(first * MICROSECONDS)

        def work() -> None:
            bench.note()()
            loop.work(share * period / MICROSECONDS)

        bench.timers.every(period / MICROSECONDS, work, first=first)
        await asyncio.sleep((started + (times - 0.5) * period) / MICROSECONDS)
        # Less than a period's work delays nothing.
        assert [at for _, at in bench.fired[:times]] == [started + number * period for number in range(times)]

    in_virtual_time(story)


@given(PERIODS, st.integers(1, 50))
def test_periods_that_were_slept_through_are_skipped_and_counted(period: int, slept: int) -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        bench.timers.every(period / MICROSECONDS, bench.note())
        loop.work((slept + 0.5) * period / MICROSECONDS)
        await asyncio.sleep(1.2 * period / MICROSECONDS)
        late = round((slept + 0.5) * period)
        assert [at for _, at in bench.fired] == [pytest.approx(late, abs=1), (slept + 1) * period]
        assert bench.timers.statistics() == TimersStatistics(waiting=1, fired=2, skipped=slept - 1)

    in_virtual_time(story)


def test_no_timer_is_early_even_if_the_loop_is() -> None:
    async def story(loop: VirtualLoop) -> None:
        # The loop calls back whatever is due within the resolution of its clock.
        loop._clock_resolution = 0.01  # type: ignore[attr-defined]
        bench = Bench(loop)
        bench.timers.after(1.0, bench.note("once"))
        bench.timers.every(0.25, bench.note("again"))
        loop.work(0.995)
        while len(bench.fired) < 3:
            await asyncio.sleep(0)
            loop.work(0.0005)
        again = [at for name, at in bench.fired if name == "again"]
        assert [at for name, at in bench.fired if name == "once"] == [pytest.approx(1_000_000, abs=600)]
        assert again == [pytest.approx(995_000, abs=600), pytest.approx(1_000_000, abs=600)]
        assert all(at >= 1_000_000 for _, at in bench.fired[1:])

    in_virtual_time(story)


def test_a_cancelled_timer_never_comes() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        once = bench.timers.after(1, bench.note("once"))
        again = bench.timers.every(1, bench.note("again"))
        at_once = bench.timers.after(0, bench.note("at once"))
        for timer in (once, again, at_once, once):
            timer.cancel()
        await asyncio.sleep(5)
        assert not bench.fired
        assert bench.timers.statistics().waiting == 0

    in_virtual_time(story)


def test_a_periodic_timer_may_cancel_itself() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        timer: list[Cancellable] = []

        def twice() -> None:
            bench.note()()
            if len(bench.fired) == 2:
                timer[0].cancel()

        timer.append(bench.timers.every(1, twice, first=0))
        await asyncio.sleep(5)
        assert [at for _, at in bench.fired] == [0, MICROSECONDS]

    in_virtual_time(story)


def test_timers_end_with_their_host() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        bench.timers.after(1, bench.note())
        bench.timers.every(1, bench.note())
        bench.timers.after(0, bench.timers.end)
        bench.timers.after(0, bench.note())
        await asyncio.sleep(0)
        bench.timers.after(0, bench.note())
        bench.timers.every(1, bench.note()).cancel()
        await asyncio.sleep(5)
        assert not bench.fired
        assert bench.timers.statistics() == TimersStatistics(waiting=0, fired=1, skipped=0)

    in_virtual_time(story)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 2e11])
def test_impossible_delays_are_refused(seconds: float) -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        with pytest.raises(InvalidTime, match="delay"):
            bench.timers.after(seconds, bench.note())
        with pytest.raises(InvalidTime, match="period"):
            bench.timers.every(seconds, bench.note())
        with pytest.raises(InvalidTime, match="period"):
            bench.timers.every(0, bench.note())
        assert bench.timers.statistics().waiting == 0

    in_virtual_time(story)


def test_observers_may_not_cancel_timers() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)
        timer = bench.timers.after(1.0, bench.note())
        bench.observers.measure("curious", lambda: float(timer.cancel() is None))
        with pytest.raises(ObserverActed, match="cancel a timer"):
            bench.observers.sample()
        assert bench.timers.statistics().waiting == 1
        timer.cancel()

    in_virtual_time(story)


def test_observers_may_not_set_timers() -> None:
    async def story(loop: VirtualLoop) -> None:
        bench = Bench(loop)

        def curious() -> float:
            bench.timers.after(0, bench.note())
            return 1.0

        bench.observers.measure("curious", curious)
        with pytest.raises(ObserverActed, match="schedule"):
            bench.observers.sample()
        assert bench.timers.statistics().waiting == 0

    in_virtual_time(story)
