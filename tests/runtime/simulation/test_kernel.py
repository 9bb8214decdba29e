from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput, InvalidTime, ObserverActed
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import NEVER, Engine, Simulation


class Bells(Engine):
    """An engine with a queue of its own, of which some events are silent and at the others somebody is told."""

    def __init__(self, simulation: Simulation, ring: Callable[[Instant], None]) -> None:
        self.simulation = simulation
        self.ring = ring
        self.queue: list[tuple[Instant, bool]] = []
        self.limits: list[Instant] = []
        simulation.add_engine(self)

    def set(self, *instants: Instant, silent: bool = False) -> None:
        for instant in instants:
            heappush(self.queue, (instant, silent))
        self.next = self.queue[0][0]

    def step(self, limit: Instant) -> None:
        self.limits.append(limit)
        assert self.next < limit
        silent = True
        while silent and self.next < limit:
            instant, silent = heappop(self.queue)
            self.next = self.queue[0][0] if self.queue else NEVER
        if not silent:
            self.simulation.jump(instant)
            self.ring(instant)


# Order


@given(st.lists(st.integers(0, 20), max_size=50))
def test_callbacks_come_in_the_order_of_time_and_then_of_scheduling(instants: list[int]) -> None:
    simulation, seen = Simulation(1), list[tuple[int, int, int]]()
    for number, instant in enumerate(instants):

        def called(number: int, instant: int = instant) -> None:
            seen.append((simulation.now(), instant, number))

        simulation.at(instant, called, number)
    simulation.run(21)
    assert [(instant, number) for _, instant, number in seen] == sorted(
        zip(instants, range(len(instants)), strict=True)
    )
    assert all(now == instant for now, instant, _ in seen)


INSTANTS = st.integers(0, 10_000)  # several slots of the queue


@given(st.lists(st.tuples(INSTANTS, st.lists(st.integers(-5_000, 5_000), max_size=3)), max_size=20), st.lists(INSTANTS))
def test_what_is_called_may_schedule_for_any_time(tree: list[tuple[int, list[int]]], stops: list[int]) -> None:
    """In the order of time and then of scheduling, as if all that waits lay in one sorted list."""
    simulation, seen, expected = Simulation(1), list[tuple[int, int]](), list[tuple[int, int]]()
    waiting, scheduled = list[tuple[int, int]](), 0

    def schedule(instant: int, delays: list[int]) -> None:
        nonlocal scheduled
        scheduled += 1
        heappush(waiting, (max(instant, simulation.now()), scheduled))
        simulation.at(instant, called, (scheduled, delays))

    def called(what: tuple[int, list[int]]) -> None:
        number, delays = what
        seen.append((simulation.now(), number))
        expected.append(heappop(waiting))
        for delay in delays:
            schedule(simulation.now() + delay, [])

    for instant, delays in tree:
        schedule(instant, delays)
    for stop in [*sorted(stops), 20_000]:
        simulation.run(stop)
        assert simulation.statistics().waiting == len(waiting)
        assert not waiting or waiting[0][0] >= stop
    assert seen == expected


def test_what_is_scheduled_for_now_comes_after_what_is_due_now_already() -> None:
    simulation, seen = Simulation(1), list[str]()

    def first(_: None) -> None:
        seen.append("first")
        simulation.at(5, lambda _: seen.append("third"))
        simulation.at(2, lambda _: seen.append("fourth: its time has passed"))

    simulation.at(5, first)
    simulation.at(5, lambda _: seen.append("second"))
    simulation.run(6)
    assert seen == ["first", "second", "third", "fourth: its time has passed"]


def test_a_run_ends_before_its_end_and_the_next_one_goes_on() -> None:
    simulation, seen = Simulation(1, start=100), list[int]()
    for instant in (150, 199, 200, 250):
        simulation.at(instant, seen.append, instant)
    simulation.run(200)
    assert (seen, simulation.now()) == ([150, 199], 200)
    simulation.run(200)
    simulation.run(150)
    assert (seen, simulation.now()) == ([150, 199], 200)
    simulation.run(1_000)
    assert (seen, simulation.now()) == ([150, 199, 200, 250], 1_000)


@given(st.lists(st.integers(1, 99), max_size=20), st.lists(st.integers(1, 99), max_size=5))
def test_stopping_in_between_changes_nothing(instants: list[int], stops: list[int]) -> None:
    def seen(stops: list[int]) -> list[tuple[int, int]]:
        simulation, calls = Simulation(1), list[tuple[int, int]]()

        def called(depth: int) -> None:
            calls.append((simulation.now(), depth))
            if depth:
                simulation.at(simulation.now() + 7, called, depth - 1)

        for instant in instants:
            simulation.at(instant, called, 3)
        for stop in (*sorted(stops), 200):
            simulation.run(stop)
        return calls

    assert seen(stops) == seen([])


def test_statistics_count_what_was_called_and_what_waits() -> None:
    simulation = Simulation(1)
    for instant in (1, 2, 3):
        simulation.at(instant, id)  # type: ignore[arg-type]
    simulation.run(3)
    statistics = simulation.statistics()
    assert (statistics.now, statistics.callbacks, statistics.waiting) == (3, 2, 1)


def test_an_error_says_when_it_happened() -> None:
    simulation = Simulation(1, start=0)

    def fails(_: None) -> None:
        raise ZeroDivisionError

    simulation.at(90 * MICROSECONDS, fails)
    with pytest.raises(ZeroDivisionError) as caught:
        simulation.run(100 * MICROSECONDS)
    assert "1970-01-01T00:01:30Z" in caught.value.__notes__[0]


# Working ahead


@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 9_000)), max_size=30), st.integers(0, 9_000))
def test_what_is_foreseen_comes_as_if_it_had_been_scheduled_at_its_time(
    pairs: list[tuple[int, int]], known: int
) -> None:
    """Each would be scheduled at the first number, for so much later as the second says; it is known before, or then."""
    simulation, calls = Simulation(1), list[int]()
    first = simulation.reserve(len(pairs))
    for which, (start, wait) in enumerate(pairs):
        entry = (start + wait, start, first + which, calls.append, which, False)
        simulation.at(min(start, known), lambda entry: simulation.foreseen([entry]), entry)
    simulation.run(20_000)
    # By time, then by when they would have been scheduled, then by number.
    assert calls == sorted(range(len(pairs)), key=lambda which: (sum(pairs[which]), pairs[which][0], which))


def test_what_a_callback_stands_for_counts_as_waiting() -> None:
    simulation, waiting = Simulation(1), [5]
    simulation.count_as_waiting(lambda: waiting[0] - 1)
    simulation.at(10, lambda _: waiting.clear() or waiting.append(1))  # type: ignore[func-returns-value]
    assert simulation.statistics().waiting == 5
    simulation.run(20)
    assert simulation.statistics().waiting == 0


def test_an_observer_may_reserve_nothing() -> None:
    simulation = Simulation(1)
    simulation.observers.watching = True
    with pytest.raises(ObserverActed, match="schedule"):
        simulation.reserve(1)


# Engines

ENGINES = st.lists(st.lists(st.integers(0, 30), max_size=15), min_size=1, max_size=3)


@given(ENGINES, st.lists(st.integers(0, 30), max_size=15))
@example([[50], [40]], [])
def test_engines_and_callbacks_interleave_in_the_order_of_time(engines: list[list[int]], callbacks: list[int]) -> None:
    simulation, seen = Simulation(1), list[tuple[int, str]]()
    for number, instants in enumerate(engines):
        bells = Bells(simulation, lambda instant, number=number: seen.append((instant, f"engine {number}")))  # type: ignore[misc]
        if instants:
            bells.set(*instants)
            bells.set(*(instant // 2 for instant in instants), silent=True)
    for instant in callbacks:
        simulation.at(instant, lambda instant: seen.append((instant, "callback")), instant)
    simulation.run(51)
    everything = [(instant, "callback") for instant in callbacks]
    for number, instants in enumerate(engines):
        everything += [(instant, f"engine {number}") for instant in instants]
    # At one instant callbacks come first, then the engines in the order in which they were added.
    assert seen == sorted(everything)


def test_whom_an_engine_tells_may_schedule_what_comes_before_its_next_event() -> None:
    simulation, seen = Simulation(1), list[tuple[str, Instant]]()

    def ring(instant: Instant) -> None:
        seen.append(("bell", instant))
        simulation.at(instant + 1, lambda _: seen.append(("callback", simulation.now())))

    Bells(simulation, ring).set(10, 20)
    simulation.run(100)
    assert seen == [("bell", 10), ("callback", 11), ("bell", 20), ("callback", 21)]


def test_a_callback_may_give_an_engine_something_earlier_to_do() -> None:
    simulation, seen = Simulation(1), list[Instant]()
    bells = Bells(simulation, seen.append)
    bells.set(50)
    simulation.at(10, lambda _: bells.set(20))
    simulation.run(100)
    assert seen == [20, 50]


def test_what_one_engine_tells_may_wake_another() -> None:
    simulation, seen = Simulation(1), list[tuple[str, Instant]]()
    far = Bells(simulation, lambda instant: seen.append(("far", instant)))
    near = Bells(simulation, lambda instant: (seen.append(("near", instant)), far.set(instant + 5))[1])  # type: ignore[func-returns-value]
    far.set(80)
    near.set(10, 90)
    simulation.run(100)
    assert seen == [("near", 10), ("far", 15), ("far", 80), ("near", 90), ("far", 95)]


def test_an_engine_never_goes_further_than_the_next_callback_or_the_end() -> None:
    simulation = Simulation(1)
    bells = Bells(simulation, id)  # type: ignore[arg-type]
    bells.set(10, 30, 200)
    simulation.at(20, id)  # type: ignore[arg-type]
    simulation.run(100)
    assert bells.limits == [20, 100]
    assert simulation.now() == 100


# Whoever watches


def busy(simulation: Simulation, calls: list[tuple[Instant, float]]) -> None:
    """Something that depends on everything: order, time and random numbers."""
    random = simulation.random.stream("busy")

    def act(_: None) -> None:
        calls.append((simulation.now(), random.random()))
        simulation.at(simulation.now() + random.randrange(500_000), act)

    for _ in range(3):
        simulation.at(0, act)
    Bells(simulation, lambda instant: calls.append((instant, random.random()))).set(*range(1, 9_000_000, 777_777))


def test_a_run_that_is_watched_is_the_same_run() -> None:
    plain, watched, samples = list[tuple[Instant, float]](), list[tuple[Instant, float]](), list[Any]()
    simulation = Simulation(1)
    busy(simulation, plain)
    simulation.run(10 * MICROSECONDS)

    observers = Observers()
    observers.measure("calls", lambda: len(watched))
    simulation = Simulation(1, observers=observers)
    simulation.watch(1.0, lambda now: samples.append((now, observers.sample())))
    simulation.watch(0.3, id)  # type: ignore[arg-type]
    busy(simulation, watched)
    simulation.run(10 * MICROSECONDS)
    assert watched == plain
    # Each look sees what happened before that instant, and nothing else.
    assert samples == [
        (second * MICROSECONDS, {"calls": float(sum(time < second * MICROSECONDS for time, _ in plain))})
        for second in range(1, 11)
    ]
    assert simulation.statistics().callbacks == sum(1 for _ in plain) - 12


def test_looks_go_on_through_several_runs() -> None:
    simulation, looks = Simulation(1, start=5), list[Instant]()
    simulation.watch(10e-6, looks.append)
    for until in (12, 15, 16, 40):
        simulation.run(until)
        assert simulation.now() == until
    assert looks == [15, 25, 35]


def test_a_period_that_is_none_is_refused() -> None:
    for seconds in (0.0, -1.0, 1e-9):
        with pytest.raises(InvalidTime):
            Simulation(1).watch(seconds, id)  # type: ignore[arg-type]


def test_nobody_begins_to_watch_in_the_middle_of_a_run() -> None:
    simulation = Simulation(1)
    simulation.at(5, lambda _: simulation.watch(1.0, id))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="before it runs"):
        simulation.run(10)
    simulation.watch(1.0, id)  # type: ignore[arg-type]


def test_who_watches_may_not_act() -> None:
    simulation = Simulation(1)
    simulation.watch(1.0, lambda _: simulation.at(0, id))  # type: ignore[arg-type]
    with pytest.raises(ObserverActed, match="schedule something"):
        simulation.run(2 * MICROSECONDS)
    simulation.at(0, id)  # type: ignore[arg-type]  # and the door is open again


def test_who_watches_may_not_act_after_sampling_either() -> None:
    simulation = Simulation(1)
    simulation.watch(1.0, lambda _: simulation.observers.sample().clear())
    simulation.watch(1.0, lambda _: simulation.at(0, id))  # type: ignore[arg-type]
    with pytest.raises(ObserverActed):
        simulation.run(2 * MICROSECONDS)


def test_an_analyzer_or_a_metric_may_not_act() -> None:
    observers = Observers()
    simulation = Simulation(1, observers=observers)
    act = partial(simulation.at, 0, id)  # type: ignore[arg-type]
    observers.analyze("drops", lambda *_: act())
    observers.measure("load", lambda: float(act() is None))
    with pytest.raises(ObserverActed):
        observers.emitter("drops")(1)
    with pytest.raises(ObserverActed):
        observers.sample()
    assert simulation.statistics().waiting == 0


def test_who_watches_may_not_let_time_pass_and_so_open_the_door() -> None:
    simulation = Simulation(1)
    simulation.watch(1.0, lambda _: simulation.run(5 * MICROSECONDS))
    with pytest.raises(ObserverActed, match="let time pass"):
        simulation.run(2 * MICROSECONDS)


def test_what_happens_may_not_let_time_pass() -> None:
    simulation = Simulation(1)
    simulation.at(1, lambda _: simulation.run(5))
    with pytest.raises(InvalidInput, match="runs already"):
        simulation.run(10)
