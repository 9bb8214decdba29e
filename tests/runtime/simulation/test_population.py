"""Who is up when, against what is known about curves, queues and renewal processes."""

import math
from collections.abc import Iterator
from itertools import takewhile
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.population import Action, Change, Population, PopulationStatistics, Schedule
from nearcast.runtime.simulation.schedules import (
    Arrivals,
    Explicit,
    Failures,
    JoinWithin,
    OnOff,
    Stays,
    TargetCurve,
    Together,
)
from nearcast.runtime.simulation.world import World

MINUTE = 60.0
DENSITY_TEST = TargetCurve(((8 * MINUTE, 100), (15 * MINUTE, 297), (18 * MINUTE, 297), (25 * MINUTE, 100)))
"""BYPASS 6.4.3."""


def changes(schedule: Schedule, hosts: int, seconds: float, *, seed: int = 1, start: int = 0) -> list[Change]:
    end = start + seconds * MICROSECONDS
    return list(takewhile(lambda change: change.time < end, schedule(Random(seed), start, hosts)))


def checked_counts(found: list[Change], hosts: int, *, up: int = 0) -> Iterator[tuple[float, int]]:
    """Seconds and number up after each change; every change is one, and they come in the order of time."""
    present = dict.fromkeys(range(up), True)
    before = -1
    for time, host, action in found:
        assert time >= before
        assert 0 <= host < hosts
        before = time
        assert present.get(host, False) is (action is not Action.JOIN)
        present[host] = action is Action.JOIN
        yield time / MICROSECONDS, sum(present.values())


def mean_up(found: list[Change], seconds: float, *, since: float = 0.0, up: int = 0) -> float:
    """The time average of the number up."""
    total, last, count = 0.0, since, up
    for time, _, action in found:
        at = min(max(time / MICROSECONDS, since), seconds)
        total, last = total + count * (at - last), at
        count += 1 if action is Action.JOIN else -1
    return (total + count * (seconds - last)) / (seconds - since)


def test_the_density_test_of_the_dissertation_is_followed() -> None:
    found = changes(DENSITY_TEST, 297, 30 * MINUTE)
    counts = list(checked_counts(found, 297))
    assert [up for _, up in counts[:100]] == list(range(1, 101))
    assert counts[99][0] == 0.0
    for seconds, up in counts[100:]:
        # To the nearest whole number, just before and just after the change.
        assert abs(up - DENSITY_TEST.at(seconds)) <= 0.5 + 1e-3
    assert max(up for _, up in counts) == 297
    assert counts[-1][1] == 100
    assert 8 * MINUTE < counts[100][0] < counts[296][0] < 15 * MINUTE
    assert 18 * MINUTE < counts[297][0] < counts[-1][0] < 25 * MINUTE


@st.composite
def curves(draw: st.DrawFn) -> TargetCurve:
    times = sorted(draw(st.sets(st.integers(-5, 60), min_size=1, max_size=6)))
    return TargetCurve(tuple((float(time), draw(st.floats(0.0, 30.0))) for time in times))


@given(curves(), st.integers(0, 2**32))
def test_any_curve_is_followed_within_one_host(curve: TargetCurve, seed: int) -> None:
    found = changes(curve, 30, 100.0, seed=seed)
    counts = [(0.0, 0), *checked_counts(found, 30)]
    for second in np.arange(0.0, 70.0, 0.37):
        up = next(count for seconds, count in reversed(counts) if seconds <= second)
        assert abs(up - curve.at(float(second))) <= 0.5 + 1e-4


def test_who_joins_and_who_goes_is_drawn() -> None:
    curve = TargetCurve(((0.0, 5.0), (10.0, 0.0)), Action.FAIL)
    first, second = changes(curve, 50, 20.0, seed=1), changes(curve, 50, 20.0, seed=2)
    assert {change.host for change in first} != {change.host for change in second}
    assert [change.action for change in first] == [Action.JOIN] * 5 + [Action.FAIL] * 5


def test_everybody_joins_within_the_first_seconds() -> None:
    hosts = 2_000
    found = changes(JoinWithin(30.0, delay=30.0), hosts, 100.0, start=7)
    assert [up for _, up in checked_counts(found, hosts)] == list(range(1, hosts + 1))
    seconds = np.array([(change.time - 7) / MICROSECONDS for change in found])
    assert seconds.min() >= 30.0
    assert seconds.max() <= 60.0
    # The mean of n uniform instants has a standard error of 30 / sqrt(12 n).
    assert seconds.mean() == pytest.approx(45.0, abs=5 * 30 / math.sqrt(12 * hosts))


def test_the_transient_failures_of_thyme() -> None:
    # THYME 6.4.2: on 120 s, off 60 s, change with probability 0.75, 40 of 100 nodes.
    hosts, seconds = 100, 50_000.0
    schedule = OnOff(Constant(120.0), Constant(60.0), 0.75, share=0.4)
    found = changes(schedule, hosts, seconds)
    assert len({change.host for change in found}) == 40
    assert min(change.time for change in found) == 120 * MICROSECONDS
    list(checked_counts(found, hosts, up=hosts))
    # Times up last 120 G, times down 60 G with G geometric of mean 4/3: two thirds of the time up.  By the renewal
    # reward theorem the share has a standard error of 0.157 / sqrt(cycles), and there are 40 nodes x 50,000 s / 240 s.
    share = (mean_up(found, seconds, up=hosts) - 60) / 40
    assert share == pytest.approx(2 / 3, abs=5 * 0.157 / math.sqrt(40 * seconds / 240))
    stays = {host: [c.time for c in found if c.host == host] for host in {change.host for change in found}}
    lengths = np.array([b - a for times in stays.values() for a, b in zip(times[1::2], times[2::2], strict=False)])
    rounds = lengths / (120 * MICROSECONDS)
    assert (rounds == np.round(rounds)).all()
    # A geometric variable: mean 1/p, deviation sqrt(1-p)/p.
    assert rounds.mean() == pytest.approx(4 / 3, abs=5 * (2 / 3) / math.sqrt(len(rounds)))
    assert np.mean(rounds == 1) == pytest.approx(0.75, abs=5 * math.sqrt(0.75 * 0.25 / len(rounds)))


def test_the_permanent_failures_of_thyme() -> None:
    # THYME 6.4.1: at a random time in 200-300 s.
    found = changes(Failures(0.3, Uniform(200.0, 300.0)), 100, 1_000.0)
    assert len({change.host for change in found}) == len(found) == 30
    assert {change.action for change in found} == {Action.FAIL}
    assert all(200 <= change.time / MICROSECONDS <= 300 for change in found)


@pytest.mark.parametrize("lifetime", [Constant(50.0), Exponential(50.0), Uniform(0.0, 100.0)])
def test_as_many_are_up_as_rate_times_lifetime(lifetime: Distribution) -> None:
    # Little's law.  M/G/∞ is Poisson with mean 20, and its autocovariance is at most 20 exp(-t / 50 s): as if there were one
    # independent sample every two lifetimes.
    seconds = 40_000.0
    found = changes(Arrivals(0.4, lifetime), 100, seconds)
    list(checked_counts(found, 100))
    independent = (seconds - 500) / (2 * lifetime.mean)
    assert mean_up(
        [c for c in found if c.time >= 500 * MICROSECONDS], seconds, since=500.0, up=up_at(found, 500.0)
    ) == (pytest.approx(20.0, abs=5 * math.sqrt(20.0 / independent)))


def up_at(found: list[Change], seconds: float) -> int:
    return sum(1 if c.action is Action.JOIN else -1 for c in found if c.time < seconds * MICROSECONDS)


def test_who_finds_all_hosts_up_is_turned_away() -> None:
    # Erlang's loss formula; it holds whatever the distribution of lifetimes.
    servers, load, seconds = 10, 12.0, 100_000.0
    found = changes(Arrivals(load / 20, Uniform(0.0, 40.0)), servers, seconds)
    joined = sum(change.action is Action.JOIN for change in found)
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    blocked = terms[-1] / sum(terms)
    arrived = seconds * load / 20
    assert blocked == pytest.approx(0.3019, abs=1e-3)
    assert joined / arrived == pytest.approx(1 - blocked, abs=5 / math.sqrt(arrived))


def test_schedules_go_together() -> None:
    both = Together((JoinWithin(10.0), Failures(0.5, Uniform(20.0, 30.0))))
    found = changes(both, 20, 100.0)
    assert [up for _, up in checked_counts(found, 20)] == [*range(1, 21), *range(19, 9, -1)]
    # What one draws does not depend on what the other draws.
    joins = [change for change in found if change.action is Action.JOIN]
    other = changes(Together((JoinWithin(10.0), Failures(0.9, Uniform(5.0, 9.0)))), 20, 100.0)
    assert joins == [change for change in other if change.action is Action.JOIN]


def test_stays_and_explicit_changes_happen_as_written() -> None:
    stays = Stays((((0.0, 5.0), (5.0, math.inf)), (), ((1.5, 2.0),)))
    assert changes(stays, 3, 100.0, start=10) == [
        (10, 0, Action.JOIN),
        (1_500_010, 2, Action.JOIN),
        (2_000_010, 2, Action.LEAVE),
        (5_000_010, 0, Action.LEAVE),
        (5_000_010, 0, Action.JOIN),
    ]
    explicit = Explicit(((3.0, 1, Action.FAIL), (1.0, 1, Action.JOIN)))
    assert changes(explicit, 2, 100.0) == [(1_000_000, 1, Action.JOIN), (3_000_000, 1, Action.FAIL)]


def test_a_population_changes_the_hosts_of_a_world() -> None:
    simulation = Simulation(1, start=1_000)
    world = World(simulation, Plane(Point(0.0, 0.0)), 3)
    hosts = [world.add(f"client-{index}", list, []) for index in range(3)]
    explicit = Explicit(
        (
            (1.0, 0, Action.JOIN),
            (1.0, 1, Action.JOIN),
            (2.0, 0, Action.JOIN),  # is up already
            (3.0, 2, Action.LEAVE),  # never came
            (4.0, 0, Action.FAIL),
            (5.0, 1, Action.LEAVE),
            (6.0, 0, Action.JOIN),
        )
    )
    population = Population(simulation, hosts, explicit, Random(1))
    simulation.run(1_000 + 4_500_000)
    assert [host.up for host in hosts] == [False, True, False]
    simulation.run(1_000 + 10_000_000)
    assert [host.up for host in hosts] == [True, False, False]
    assert population.statistics() == PopulationStatistics(up=1, joined=3, left=1, failed=1)


def test_an_endless_schedule_does_not_keep_a_run_from_ending() -> None:
    simulation = Simulation(1)
    world = World(simulation, Plane(Point(0.0, 0.0)), 5)
    hosts = [world.add(f"client-{index}", list, []) for index in range(5)]
    population = Population(simulation, hosts, Arrivals(1.0, Exponential(2.0)), Random(1))
    simulation.run(100 * MICROSECONDS)
    statistics = population.statistics()
    assert statistics.joined - statistics.left == statistics.up == sum(host.up for host in hosts)
    assert statistics.joined > 30
    assert simulation.statistics().waiting == 1


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: TargetCurve(()), "do not rise"),
        (lambda: TargetCurve(((0, 1), (0, 2))), "do not rise"),
        (lambda: TargetCurve(((0, -1),)), "fewer than 0"),
        (lambda: changes(TargetCurve(((0, 5),)), 4, 1.0), "there are 4; add some"),
        (lambda: OnOff(Constant(0.0), Constant(1.0)), "time up"),
        (lambda: OnOff(Constant(1.0), Constant(1.0), 0.0), "probability"),
        (lambda: OnOff(Constant(1.0), Constant(1.0), share=1.5), "share"),
        (lambda: Failures(0.5, Uniform(-1.0, 1.0)), "failure"),
        (lambda: Failures(-0.5, Constant(1.0)), "share"),
        (lambda: Arrivals(0.0, Constant(1.0)), "arrivals per second"),
        (lambda: changes(Arrivals(1.0, Constant(1.0)), 0, 1.0), "no host"),
        (lambda: JoinWithin(-1.0), "nobody can join"),
        (lambda: Stays((((3.0, 2.0),),)), "rising order"),
        (lambda: changes(Stays(((), ())), 1, 1.0), "stays of 2 hosts"),
        (lambda: changes(Explicit(((1.0, 7, Action.JOIN),)), 3, 9.0), "no host 7"),
        (lambda: Explicit(((-1.0, 0, Action.JOIN),)), "0 or more"),
    ],
)
def test_nonsense_is_refused(make: type, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        make()


def test_a_rush_on_a_full_house_takes_no_time() -> None:
    # A thousand million are turned away before the first of two goes.
    changes = Arrivals(1e6, Constant(1_000.0))(Random(1), 0, 2)
    first = [next(changes) for _ in range(4)]
    assert [change.action for change in first] == [Action.JOIN, Action.JOIN, Action.LEAVE, Action.JOIN]
    assert first[2].time == first[0].time + 1_000 * MICROSECONDS
