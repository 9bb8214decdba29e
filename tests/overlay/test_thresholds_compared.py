"""Thresholds side by side on the same work: farther away more coarsely, or tuning themselves; and nobody is missed by any of them (7.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.routing_changes import restless
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidValue
from nearcast.model.area import Box
from nearcast.model.geometry import Point
from nearcast.model.values import Range
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import ByDistance, ByHops, Fixed, SelfTuning, Threshold
from nearcast.overlay.routing.aggregated import Aggregated, AggregatedSettings
from nearcast.overlay.values.coarse import coarse
from nearcast.overlay.values.domains import Domains

SIZE = 7
APART = 0.1  # degrees between routers of a chain, along a parallel


def place_of(router: int) -> Point:
    return Point(49.0, 8.0 + router * APART)


def by_distance(router: int) -> ByDistance:
    return ByDistance(place_of(router), reach=20_000.0, near=0.8, far=0.4)


THRESHOLDS: dict[str, Callable[[int], Threshold]] = {
    "near": lambda _: Fixed(0.8),
    "far": lambda _: Fixed(0.4),
    "hops": lambda _: ByHops((0.8, 0.8, 0.4)),
    "distance": by_distance,
    "tuned": lambda _: SelfTuning(0.6, 0.4, 0.9, step=0.1),
}


@dataclass(frozen=True)
class Load:
    updates: int
    messages: int
    in_vain: int

    @property
    def total(self) -> int:
        return self.updates + self.messages


@cache
def load(threshold: str, updates: int, messages: int, rounds: int = 30) -> Load:
    """Of a chain of routers with people who walk around; nobody is missed meanwhile."""
    routers = count()
    domains = {"speed": Range(0, 100), "position": Box(8.0, 48.9, 8.0 + SIZE * APART, 49.1)}

    def knowledge() -> Aggregated:
        aggregation = Aggregation(threshold=THRESHOLDS[threshold](next(routers)))
        # Nothing is dissolved: that would be another answer to the same question.
        return Aggregated(aggregation, AggregatedSettings(window=5.0, in_vain=1e9), Domains(domains))

    overlay = Overlay(SIZE, knowledge, heartbeat=20.0, check_wire=False)
    overlay.wires.longest = 1_000
    overlay.connect((number, number + 1) for number in range(SIZE - 1))
    random = Random(3)

    def somebody_at(router: int) -> dict[str, object]:
        here = place_of(router)
        return {
            "speed": random.randrange(100),
            "position": Point(here.lat, here.lon + random.uniform(-0.5, 0.5) * APART),
        }

    people = {overlay.register(router, somebody_at(router)): router for router in range(SIZE) for _ in range(7)}
    overlay.run(10)
    before = told(overlay)
    for _ in range(rounds):
        for handle in random.sample(list(people), updates):
            overlay.update(handle, somebody_at(people[handle]))
        overlay.run(1)
        for _ in range(messages):
            at, sender = place_of(random.randrange(SIZE)).lon, random.randrange(SIZE)
            box = f"BBOX({at - APART / 2}, 48.9, {at + APART / 2}, 49.1)"
            event = overlay.publish(sender, f"speed = {random.randrange(100)} AND S_WITHIN(position, {box})")
            overlay.run(0.1)
            assert overlay.got(event) == overlay.expected(sender, event)
    statistics = [router.statistics() for router in overlay.routers]
    return Load(
        told(overlay) - before,
        sum(each.forwarded for each in statistics),
        sum(each.false_positives for each in statistics),
    )


def told(overlay: Overlay) -> int:
    return sum(router.statistics().knowledge.updates_sent for router in overlay.routers)


@pytest.mark.parametrize("threshold", ["hops", "distance"])
def test_what_is_far_away_costs_fewer_updates_and_what_is_near_is_known_well(threshold: str) -> None:
    between = load(threshold, 3, 3)
    assert load("far", 3, 3).updates < between.updates < 0.9 * load("near", 3, 3).updates
    assert load("near", 3, 3).in_vain < between.in_vain < load("far", 3, 3).in_vain


@pytest.mark.slow
def test_a_threshold_that_tunes_itself_comes_near_the_better_one_whatever_the_work_is() -> None:
    """Many updates and few messages, and the other way round: no fixed one is good at both."""
    busy, asked = (10, 1, 15), (1, 10, 60)
    assert load("far", *busy).total < load("near", *busy).total
    assert load("near", *asked).total < load("far", *asked).total
    assert load("tuned", *busy).total < 0.9 * load("near", *busy).total
    assert load("tuned", *asked).total < 0.8 * load("far", *asked).total


@pytest.mark.parametrize("threshold", ["hops", "tuned"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8)
def test_while_contexts_and_trees_change_and_words_are_lost_nobody_is_missed(seed: int, threshold: str) -> None:
    def knowledge() -> Aggregated:
        aggregation = Aggregation(threshold=THRESHOLDS[threshold](0))
        return Aggregated(aggregation, AggregatedSettings(window=2.0), Domains({"a": Range(0, 3), "b": Range(0, 3)}))

    restless(knowledge, seed, loss=0.1, trees=True)


def test_each_level_has_its_threshold_and_the_last_is_for_all_beyond() -> None:
    levels = ByHops((0.9, 0.7, 0.5))
    assert [levels.of(coarse({}), hops) for hops in (-1, 0, 1, 2, 3, 10**9)] == [0.9, 0.9, 0.7, 0.5, 0.5, 0.5]
    for wrong in ((), (0.5, 1.5)):
        with pytest.raises(InvalidValue):
            ByHops(wrong)
