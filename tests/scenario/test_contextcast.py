"""Simulated networks of routers: people who walk, cycles of updates and messages, and who is missed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from nearcast.model.event import Event
from nearcast.model.history import POSITION
from nearcast.model.predicate import And, Comparison, Spatial
from nearcast.overlay.routing.messages import Handle
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.runtime.simulation.distributions import Constant
from nearcast.runtime.simulation.wired import Wire
from nearcast.scenario.contextcast.attributes import AdaptiveModel, Hierarchy, Model, Tastes
from nearcast.scenario.contextcast.cycles import Cycles, CycleSettings
from nearcast.scenario.contextcast.network import Load, RouterNetwork
from nearcast.scenario.contextcast.setups import GROUND, ground_of, s1, s2, s3
from nearcast.scenario.contextcast.strategies import Propagation, Strategy
from nearcast.scenario.contextcast.walking import Walking, WalkingSettings

STEADY = Wire(delay=Constant(0.02))
ACROSS = 4
ROUTERS = 40


def walking(strategy: Strategy, reported: float | None, people: int = 60, **more: Any) -> Walking:
    layout, areas = s1(3, ROUTERS, ACROSS)
    network = RouterNetwork(3, layout, strategy, ground_of(ACROSS), wire=STEADY)
    return Walking(network, areas, WalkingSettings(people=people, reported=reported, audited=1.0, period=3.0, **more))


def recorded(world: Walking, seconds: float) -> tuple[Load, dict[str, set[Handle]]]:
    delivered: dict[str, set[Handle]] = {}

    def deliver(event: Event, handles: frozenset[Handle]) -> None:
        delivered.setdefault(event.id, set()).update(handles)

    world.network.listen(deliver)
    world.network.run(seconds)
    return world.network.load(), delivered


@pytest.mark.parametrize("reported", [None, 30.0])
def test_updates_that_are_spread_at_once_do_what_updates_from_hop_to_hop_do(reported: float | None) -> None:
    at_once = recorded(walking(Strategy(coarse=reported is None), reported), 60.0)
    hop_by_hop = recorded(walking(Strategy(coarse=reported is None, hop_by_hop=True), reported), 60.0)
    assert at_once[1] == hop_by_hop[1]
    assert at_once[0].messages == hop_by_hop[0].messages
    assert at_once[0].delivered == hop_by_hop[0].delivered
    assert at_once[0].false_positives == hop_by_hop[0].false_positives
    # What is on its way at the end is counted at its beginning by one, and hop by hop by the other.
    assert 0 <= at_once[0].updates - hop_by_hop[0].updates <= 20 * (ROUTERS - 1)


def test_within_an_area_nothing_is_said_and_to_cross_a_border_costs_two_updates() -> None:
    world = walking(Strategy(coarse=True), None)
    squares = {walker.number: walker.square for walker in world.walkers}
    said, load = world.reports, world.network.load()
    crossings = 0
    routers = world._areas.routers
    for _ in range(120):
        world.network.run(1.0)
        for walker in world.walkers:
            before = squares[walker.number]
            if walker.square != before:
                crossings += (before in routers) + (walker.square in routers)
                squares[walker.number] = walker.square
    assert crossings > 5
    assert world.reports - said == crossings
    assert (world.network.load() - load).updates == crossings * (ROUTERS - 1)


@pytest.mark.parametrize("anew", [False, True])
def test_nobody_who_is_registered_is_farther_away_than_reported(anew: bool) -> None:
    world = walking(Strategy(), 40.0, anew=anew)
    far = 0.0
    for _ in range(100):
        world.network.run(0.7)
        now = world.network.simulation.time
        for walker in world.walkers:
            if walker.handle is not None:
                x, y = walker.leg.at(now)
                far = max(far, math.hypot(x - walker.reported[0], y - walker.reported[1]))
    assert 39.0 < far <= 40.1


def test_service_areas_miss_nobody_and_reports_by_distance_do() -> None:
    for reported, misses in ((None, False), (300.0, True)):
        world = walking(Strategy(coarse=reported is None), reported, people=150)
        world.network.run(60.0)
        assert world.audit.due > 500
        assert (world.audit.missed > 0) is misses


def cycles(propagation: Propagation, model: str, **more: Any) -> Cycles:
    made: Model
    if model == "s2":
        layout, areas, made = s2(5, 25)
        senders: tuple[int, ...] = tuple(range(25))
    else:
        layout, areas, made, senders = s3(5, 25)
    settings = AdaptiveSettings(window=10.0, propagate_above=1.3)
    strategy = Strategy(propagation, coarse=True, threshold=0.5, adaptive=settings, domains=made.domains(), **more)
    network = RouterNetwork(5, layout, strategy, GROUND)
    rates = CycleSettings(clients=80, updates=2.0, messages=6.5, senders=senders, audited=1.0)
    world = Cycles(network, layout, areas, made, rates)
    network.run(10.0)
    return world


@pytest.mark.parametrize("propagation", Propagation)
@pytest.mark.parametrize("model", ["s2", "s3"])
def test_no_propagation_misses_anybody(propagation: Propagation, model: str) -> None:
    world = cycles(propagation, model)
    world.run(50)
    world.network.run(15.0)
    assert world.audit.messages == pytest.approx(50 * 6.5, rel=0.1)
    assert world.audit.due > 100
    assert world.audit.missed == 0


def test_an_update_costs_as_many_hops_as_there_are_links_or_twice_that() -> None:
    world = cycles(Propagation.REFERENCE, "s2")
    before = world.network.load()
    world.run(100)
    updates = (world.network.load() - before).updates / 24
    # 30 % replace somebody, and one attribute of four or so is the place: these cost two.
    assert 1.3 * 200 < updates < 1.7 * 200


def test_contexts_and_messages_are_as_the_document_describes_them() -> None:
    random = Random(1)
    model = AdaptiveModel(random, GROUND, (Tastes(10, 1, 15), Tastes(math.inf, 16, 30)))
    area = GROUND.rectangle(0, 0, 500, 500)
    sizes = [len(model.context(random, area)) - 1 for _ in range(300)]
    assert (min(sizes), max(sizes)) == (6, 12)
    for cycle, names in ((0, range(1, 16)), (10, range(16, 31))):
        asked = [model.message(random, 7, cycle) for _ in range(400)]
        literals = [list(each.terms) if isinstance(each, And) else [each] for each in asked]
        comparisons = [[term for term in each if isinstance(term, Comparison)] for each in literals]
        assert {len(each) for each in comparisons} == {1, 2, 3}
        used = [term.left.name for each in comparisons for term in each]  # type: ignore[union-attr]
        assert set(used) <= {f"a{number:02}" for number in names}
        counts = sorted((used.count(name) for name in set(used)), reverse=True)
        assert counts[0] > 3 * counts[min(6, len(counts) - 1)], "senders have favourites"
        targets = sum(any(isinstance(term, Spatial) for term in each) for each in literals)
        assert 150 < targets < 250


def test_hierarchies_have_the_height_that_was_drawn_and_favour_depth() -> None:
    for seed in range(20):
        hierarchy = Hierarchy(Random(seed), "h")
        height = len(hierarchy.deepest.segments)
        assert 2 <= height <= 5
        depths = [len(hierarchy.value(Random(number)).segments) for number in range(200)]
        assert min(depths) >= 1
        assert max(depths) <= height


def test_a_network_is_the_same_for_the_same_seed() -> None:
    loads = []
    for _ in range(2):
        world = cycles(Propagation.ADAPTIVE, "s3")
        world.run(15)
        loads.append(world.network.load())
    assert loads[0] == loads[1]


def test_a_changed_place_is_that_of_a_near_access_network() -> None:
    layout, areas, model = s2(5, 25)
    world = cycles(Propagation.REFERENCE, "s2")
    at = list(world._at)
    world.run(60)
    moved = [(before, now) for before, now in zip(at, world._at, strict=True) if before != now]
    assert moved
    for client, context in enumerate(world._contexts):
        assert context[POSITION] == areas[world._at[client]]
    assert model.quantities.keys() == {f"q{number}" for number in range(7)}
    near = world._near[min(areas)]
    away = np.hypot(*(layout.places[near] - layout.places[min(areas)]).T)
    assert len(near) == 10
    assert (np.diff(away) >= 0).all()
