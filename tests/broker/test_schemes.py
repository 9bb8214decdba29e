"""Filter schemes live: the broker's half and the clients', exchanged while everybody moves, reconnects, and the broker is killed."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.broker.scheme_world import EVERY_SCHEME, PLANE, PRIVATE, RADIAL, SPARING, World

from nearcast.filtering.attraction import Zone
from nearcast.model.geometry import Point, distance
from nearcast.planning.regional import Region
from nearcast.transition.specification import MechanismSpec

SEEDS = pytest.mark.parametrize("seed", range(2))


def judge(world: World) -> int:
    """Nothing lost, nothing twice; answers how many had to be found."""
    world.quiet = True
    world.run(10.0)
    for filtered in world.filtered:
        missed = filtered.due - set(filtered.found)
        assert not missed, f"{filtered.event.id} at {filtered.time / 1e6:.3f} s did not find {sorted(missed)}"
        assert len(set(filtered.found)) == len(filtered.found)
    expected = Counter((filtered.event.id, client) for filtered in world.filtered for client in filtered.found)
    received = {(event, name): times for name, each in world.people.items() for event, times in each.received.items()}
    assert received == {pair: times for pair, times in expected.items() if pair not in world.given_up}
    return sum(len(filtered.due) for filtered in world.filtered)


def run_schemes(world: World, random: Random, longest: float = 4.0) -> None:
    """All of them, one after the other; some only for some."""
    for scheme in random.sample(EVERY_SCHEME, len(EVERY_SCHEME)):
        if world.server is not None:
            known = sorted(name for name in world.people if world.schemes.follows(name))
            clients = None if random.random() < 0.7 else random.sample(known, len(known) // 3)
            world.schemes.transition(scheme, clients)
        world.run(random.uniform(0.05, longest))


def shake(world: World, random: Random) -> None:
    """One connection after the other breaks."""
    person = random.choice(list(world.people.values()))
    if person.connection is not None:
        person.disconnect()
        world.after(random.uniform(0.0, 3.0), lambda: person.connect(anew=random.random() < 0.2))
    if not world.quiet:
        world.after(random.uniform(0.05, 0.6), lambda: shake(world, random))


def strike(world: World, random: Random) -> None:
    """The broker is killed and restarted, again and again."""
    if not world.quiet:
        world.kill()
        world.after(random.uniform(0.0, 1.0), world.restart)
        world.after(random.uniform(2.0, 7.0), lambda: strike(world, random))


@SEEDS
def test_schemes_are_exchanged_every_few_seconds_and_every_event_arrives_once(seed: int) -> None:
    world = World(seed, people=40)
    world.run(3.0)
    world.chat(rate=25.0)
    run_schemes(world, Random(seed))
    world.schemes.transition(RADIAL)
    world.run(3.0)
    assert judge(world) > 500
    assert {person.schemes.running for person in world.people.values()} == {RADIAL}
    assert world.schemes.status().overlaps == 0


@SEEDS
def test_connections_that_break_in_the_middle_of_a_transition_lose_nothing(seed: int) -> None:
    world, random = World(seed, people=30, pinned=4), Random(f"breaks {seed}")
    located: list[str] = []
    world.schemes.located = lambda client, _position: located.append(client)
    world.run(3.0)
    world.chat(rate=25.0)

    shake(world, random)
    run_schemes(world, random)
    assert judge(world) > 200
    assert world.schemes.status().groups.get(PRIVATE) == 4
    assert {"c4", "c5"} <= set(located)
    assert not {"c0", "c1", "c2", "c3"} & set(located)  # of those in private, only cells are known


@SEEDS
def test_a_broker_that_is_killed_and_restarted_goes_on_without_loss(seed: int) -> None:
    world, random = World(seed, people=30, pinned=3), Random(f"kills {seed}")
    world.run(3.0)
    world.chat(rate=25.0)
    first = world.server
    world.after(2.0, lambda: strike(world, random))
    run_schemes(world, random)
    run_schemes(world, random, longest=1.0)
    assert world.server is not first
    assert judge(world) > 200
    status = world.schemes.status()
    assert (status.overlaps, status.waiting) == (0, 0)
    for name, person in world.people.items():
        assert world.schemes.scheme_of(name) == person.schemes.running


def region(name: str, x: float, y: float, radius: float, scheme: MechanismSpec) -> Region:
    return Region(Zone(name, PLANE.to_point(x, y), radius), scheme, f"plan of {name}")


@SEEDS
def test_whoever_comes_to_a_region_gets_its_scheme_and_whoever_leaves_it_that_of_everybody(seed: int) -> None:
    world, random = World(seed, people=40, pinned=3), Random(f"regions {seed}")
    world.run(3.0)
    world.chat(rate=25.0)
    world.schemes.transition(SPARING)
    market, castle = region("market", 120, 160, 150, RADIAL), region("castle", -200, -150, 130, EVERY_SCHEME[4])
    world.schemes.transition_in([market])
    world.run(random.uniform(0.0, 2.0))
    world.schemes.transition_in([castle])
    moves = []
    for _ in range(8):
        world.run(random.uniform(1.0, 6.0))
        moves += world.schemes.moves()
        world.kill()
        world.after(random.uniform(0.0, 1.0), world.restart)
        world.run(1.5)
    assert world.schemes.status().regions == (market, castle), "also after restarts"
    world.run(4.0)
    for name, person in world.people.items():
        if world.schemes.follows(name):
            here, running = person.fix().position, world.schemes.scheme_of(name)
            for each in (market, castle):
                zone = each.zone
                # Within what is walked between two words, or between two cells, it may not be known yet.
                if running == each.scheme:
                    assert zone.extended(200.0).covers(here)
                if zone.radius > 60.0 and Zone("core", zone.center, zone.radius - 60.0).covers(here):
                    assert running == each.scheme
    came = {move.plan for move in moves if move.plan is not None}
    assert came == {"plan of market", "plan of castle"}
    assert {move.after for move in moves if move.plan is None} == {SPARING}
    assert not {"c0", "c1", "c2"} & {move.client for move in moves}
    world.schemes.transition(RADIAL)
    assert world.schemes.status().regions == ()
    world.run(10.0)
    assert {world.schemes.scheme_of(name) for name in world.people} == {RADIAL, PRIVATE}
    assert judge(world) > 200


def test_where_somebody_is_exactly_is_known_from_its_first_word_in_a_scheme_that_asks_for_it() -> None:
    world = World(1, people=5)
    world.run(3.0)

    def known(name: str) -> Point | None:
        return world.schemes.exact_position(name)

    assert all(known(name) is not None for name in world.people)
    world.schemes.transition(SPARING)
    world.run(20.0)
    assert all(known(name) is None for name in world.people)
    world.schemes.transition(RADIAL)
    for name in world.people:
        assert world.schemes.scheme_of(name) == RADIAL
        assert world.schemes.position(name) is not None
        assert known(name) is None, "what is known was said when nobody cared whether it was up to date"
    world.run(3.0)
    for name, person in world.people.items():
        at = known(name)
        assert at is not None
        assert distance(at, person.fix().position) < 20.0
    world.schemes.transition(RADIAL, list(world.people))  # where all of them are
    assert all(known(name) is not None for name in world.people)


def test_whoever_stands_at_the_border_of_a_region_does_not_change_all_the_time() -> None:
    world = World(1, people=1)
    world.run(3.0)
    ((name, person),) = world.people.items()
    world.schemes.transition_in([Region(Zone("here", person.fix().position, 1_000.0), SPARING, "plan")])
    world.run(2.0)
    assert world.schemes.scheme_of(name) == SPARING
    # Now it is just outside, and then farther.
    for radius, expected in ((0.95, SPARING), (0.85, RADIAL)):
        x, y = PLANE.to_xy(person.fix().position)
        center = PLANE.to_point(x + 1_000.0, y)
        world.schemes.transition_in([Region(Zone("here", center, 1_000.0 * radius), SPARING, "plan")])
        world.run(0.1)
        assert world.schemes.scheme_of(name) == expected


def test_who_was_brought_to_a_scheme_by_name_is_left_there() -> None:
    world = World(2, people=20)
    world.run(3.0)
    world.schemes.transition(EVERY_SCHEME[4], ["c1"])
    nowhere = Region(Zone("nowhere", PLANE.to_point(5_000.0, 0.0), 10.0), SPARING, "plan")
    world.schemes.transition_in([nowhere])
    world.run(5.0)
    assert world.schemes.status().groups == {RADIAL: 19, EVERY_SCHEME[4]: 1}
