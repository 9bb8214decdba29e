"""The adaptive policy on synthetic loads: no clock, no network."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.planning.estimates import Expectation, Load, Observation, Ratio
from nearcast.planning.learning import Learner, LearnerSettings
from nearcast.transition.specification import MechanismSpec

SPECS = [MechanismSpec(name) for name in ("A", "B", "C", "D")]
WINDOW, SAMPLE = 2.0, 60
GUESS = Expectation(share=0.2, context_bytes=5.0, context_messages=0.1, operations=1.0, switching_bytes=300.0)
SETTINGS = LearnerSettings(alive_bytes=0.0)


@dataclass(frozen=True)
class Truth:
    """What a scheme really costs."""

    share: float
    context: float
    operations: float = 1.0
    recall: float = 1.0

    def cost(self, load: Load) -> float:
        events = self.share * load.clients * load.event_bytes + self.operations * load.events
        return events / load.seconds + self.context * load.clients

    def seen(self, load: Load, pairs: float = 20.0) -> Observation:
        size = load.event_bytes / load.events if load.events else 0.0
        told = self.share * SAMPLE * load.events
        return Observation(
            offered_bytes=SAMPLE * load.event_bytes,
            told_bytes=told * size,
            told=told,
            events=load.events,
            operations=self.operations * load.events,
            client_seconds=SAMPLE * load.seconds,
            context_bytes=self.context * SAMPLE * load.seconds,
            context_messages=self.context / 80.0 * SAMPLE * load.seconds,
            due=pairs,
            found=pairs * self.recall,
        )


class World:
    """A learner among candidates of which the truth is known; writes down what runs after each window."""

    def __init__(self, truths: list[Truth], settings: LearnerSettings = SETTINGS) -> None:
        self.truths = dict(zip(SPECS, truths, strict=False))
        self.learner = Learner(dict.fromkeys(self.truths, GUESS), SPECS[0], settings)
        self.ran: list[MechanismSpec] = []
        self.paid = 0.0

    def window(self, load: Load, *, seen: bool = True) -> MechanismSpec:
        self.paid += self.truths[self.learner.running].cost(load) * load.seconds
        told = {spec: truth.seen(load) for spec, truth in self.truths.items()} if seen else {}
        self.learner.observe(load, told)
        chosen = self.learner.choose()
        if chosen != self.learner.running:
            self.learner.switched(chosen)
            self.paid += GUESS.switching_bytes * load.clients
        self.ran.append(chosen)
        return chosen


TRUTHS = st.builds(Truth, st.floats(0.01, 1.0), st.floats(0.1, 30.0), st.floats(1.0, 300.0))
LOADS = st.builds(
    lambda clients, events, size: Load(WINDOW, clients, events, events * size),
    st.integers(10, 500),
    st.integers(0, 50),
    st.integers(100, 5_000),
)
QUIET = Load(WINDOW, 300, 0, 0)
BUSY = Load(WINDOW, 300, 10, 2_300)
PRECISE, COARSE = Truth(0.05, 16.0), Truth(0.5, 1.0)


@given(st.lists(TRUTHS, min_size=2, max_size=4), LOADS)
def test_with_a_steady_load_the_cheapest_one_runs_soon(truths: list[Truth], load: Load) -> None:
    world = World(truths)
    for _ in range(300):
        world.window(load)
    costs = {spec: truth.cost(load) for spec, truth in world.truths.items()}
    # Whoever is not the cheapest is so little dearer that a switch would not have paid in the time, or less than what is left
    # of the guess, which counts as four messages among 600 s x 60 clients.
    not_worth_it = 2.0 * GUESS.switching_bytes * load.clients / (300 * WINDOW)
    assert costs[world.ran[-1]] <= 1.1 * min(costs.values()) + not_worth_it
    # It does not go back and forth; but where little is at stake, the switch that pays may come late.
    assert sum(before != after for before, after in pairwise(world.ran[-100:])) <= 1


@given(st.lists(TRUTHS, min_size=2, max_size=4), st.lists(LOADS, min_size=5, max_size=60), st.floats(0.0, 60.0))
def test_between_two_switches_the_dwell_time_passes(truths: list[Truth], loads: list[Load], dwell: float) -> None:
    world = World(truths, replace(SETTINGS, dwell=dwell))
    for load in loads:
        world.window(load)
    changed = [number for number in range(1, len(loads)) if world.ran[number] != world.ran[number - 1]]
    assert all((later - earlier) * WINDOW >= dwell for earlier, later in pairwise(changed))


def test_a_load_that_comes_and_goes_is_followed_and_costs_less_than_to_stay() -> None:
    world, stays = World([PRECISE, COARSE]), {SPECS[0]: 0.0, SPECS[1]: 0.0}
    for load in [QUIET] * 150 + [BUSY] * 60 + [QUIET] * 150 + [BUSY] * 60 + [QUIET] * 150:
        world.window(load)
        for spec, truth in world.truths.items():
            stays[spec] += truth.cost(load) * load.seconds
    assert [world.ran[at] for at in (140, 200, 350, 400, 560)] == [SPECS[1], SPECS[0], SPECS[1], SPECS[0], SPECS[1]]
    assert world.learner.statistics().switches == 5
    assert world.paid < 0.85 * min(stays.values())


def test_the_more_is_at_stake_the_sooner_it_switches() -> None:
    def windows_until_precise(events: int) -> int:
        world = World([COARSE, PRECISE])
        load = Load(WINDOW, 300, events, events * 230)
        return next(number for number in range(1000) if world.window(load) == SPECS[1])

    waits = [windows_until_precise(events) for events in (1, 2, 5, 50)]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > waits[-1] == 0


def test_a_surprise_makes_coarse_schemes_dearer_and_is_forgotten_again() -> None:
    world = World([COARSE, PRECISE])
    for _ in range(20):
        world.window(QUIET)
    world.window(Load(WINDOW, 300, 2, 8_000))
    assert world.ran[-1] == SPECS[1]

    def price() -> float:
        return world.learner.statistics().estimates[SPECS[0]].surprise

    late = (COARSE.share - PRECISE.share) * 300 * 8_000
    # Of 140 pairs of event and client, 20 are guesses that say the same of both.
    assert price() == pytest.approx(120 / 140 * late / (300 + 21 * WINDOW), rel=0.05)
    assert world.learner.statistics().estimates[SPECS[1]].surprise == 0.0
    before = price()
    for _ in range(900):
        world.window(QUIET, seen=False)
    assert price() < 0.3 * before


@given(st.floats(0.5, 0.9), st.lists(LOADS, min_size=1, max_size=40))
def test_a_candidate_that_was_seen_to_miss_too_much_is_not_run(recall: float, loads: list[Load]) -> None:
    """However cheap it is; 20 windows of 20 pairs outweigh the guess, which counts as 100 pairs."""
    world = World([PRECISE, Truth(0.01, 0.1, recall=recall)])
    for _ in range(20):  # known, before there is a reason to switch
        world.learner.observe(Load(WINDOW, 0, 0, 0), {spec: truth.seen(QUIET) for spec, truth in world.truths.items()})
    for load in loads:
        assert world.window(load) == SPECS[0]


def test_the_running_one_is_given_up_when_it_misses_too_much() -> None:
    world = World([Truth(0.01, 0.1, recall=0.8), PRECISE])
    for _ in range(40):
        world.window(QUIET)
    assert world.ran[-1] == SPECS[1]


def test_if_all_miss_too_much_the_one_that_misses_least_runs() -> None:
    world = World([Truth(0.1, 1.0, recall=0.5), Truth(0.1, 1.0, recall=0.8), Truth(0.1, 1.0, recall=0.6)])
    for _ in range(100):
        world.window(BUSY)
    assert world.ran[-1] == SPECS[1]


def test_what_cannot_be_seen_to_fail_is_not_tried_before_it_was_seen_to_do_well() -> None:
    doubtful = replace(GUESS, presumed=False)
    world = World([PRECISE, Truth(0.01, 0.1)])
    world.learner = Learner({SPECS[0]: GUESS, SPECS[1]: doubtful}, SPECS[0], SETTINGS)
    for _ in range(100):
        assert world.window(QUIET, seen=False) == SPECS[0]
    for _ in range(100):
        world.window(QUIET)
    assert world.ran[-1] == SPECS[1]


@given(st.floats(0.0, 1e6), st.floats(0.1, 1e3))
def test_a_ratio_follows_what_is_seen_and_returns_to_its_guess(numerator: float, denominator: float) -> None:
    ratio = Ratio(3.0, 0.01, 60.0)
    assert ratio.mean == pytest.approx(3.0)
    ratio.observe(numerator, denominator, 10.0)
    assert ratio.mean == pytest.approx(numerator / denominator, rel=0.2, abs=1.0)
    assert ratio.optimistic <= ratio.mean
    ratio.fade(60.0 * 30)
    assert ratio.mean == pytest.approx(3.0, rel=1e-3)
