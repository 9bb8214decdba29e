"""Transitions of many clients, some at a time: nobody waits for long, nothing is lost, and what is said later counts."""

from __future__ import annotations

from random import Random

import pytest
from tests.broker.scheme_world import GRID, RADIAL, SPARING, World, of
from tests.broker.test_schemes import judge, region, run_schemes, shake, strike

from nearcast.broker.schemes import gradual_broker
from nearcast.broker.schemes.gradual_broker import AT_ONCE
from nearcast.errors import TransitionFailed
from nearcast.transition.engine import TransitionEngine
from nearcast.transition.specification import MechanismSpec

STE, FINE = of("STE"), of("EGRID", factor=24)
PEOPLE = 30


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in each turn, and time for messages in between."""
    monkeypatch.setattr(gradual_broker, "STRETCH", 0)
    monkeypatch.setattr(gradual_broker, "PAUSE", 0.1)


def waiting(world: World) -> int:
    return world.schemes._broker.remaining


def served_by(world: World) -> dict[str, MechanismSpec]:
    """Where the broker has each of them, whatever it is about to do."""
    return {name: world.schemes._broker.exchange.scheme_of(name) for name in world.people}


def settled(world: World) -> dict[str, MechanismSpec]:
    world.run(15.0)
    assert waiting(world) == 0
    running = {name: person.schemes.running for name, person in world.people.items()}
    assert running == served_by(world)
    return served_by(world)


@pytest.fixture
def world() -> World:
    world = World(4, people=PEOPLE)
    world.run(3.0)
    world.chat(rate=25.0)
    return world


def test_clients_are_moved_some_at_a_time_and_newcomers_are_in_the_new_scheme_at_once(world: World) -> None:
    world.schemes.transition(STE)
    assert waiting(world) == world.schemes.status().waiting - 2 * AT_ONCE == PEOPLE - 2 * AT_ONCE
    assert world.schemes.status().groups == {RADIAL: PEOPLE - 2 * AT_ONCE, STE: 2 * AT_ONCE}
    assert world.schemes.status().scheme == STE
    assert {world.schemes.scheme_of(name) for name in world.people} == {STE}, "they are about to be"
    moved: list[int] = []
    world.schemes.when_moved(lambda: moved.append(waiting(world)))
    world.run(0.15)
    assert waiting(world) == PEOPLE - 3 * AT_ONCE
    assert moved == []
    assert settled(world) == dict.fromkeys(world.people, STE)
    assert moved == [0]
    assert world.schemes.status().transitions == 1
    assert judge(world) > 50


def test_an_order_that_comes_meanwhile_counts(world: World) -> None:
    world.schemes.transition(STE)
    one, other = [name for name, scheme in served_by(world).items() if scheme == RADIAL][-2:]
    world.schemes.transition(RADIAL, [one])  # where it is
    world.schemes.transition(SPARING, [other])
    assert settled(world) == {**dict.fromkeys(world.people, STE), one: RADIAL, other: SPARING}
    for scheme in (GRID, STE, RADIAL, FINE):
        world.schemes.transition(scheme)
        world.run(0.25)
        assert waiting(world)
    assert settled(world) == dict.fromkeys(world.people, FINE)
    assert world.schemes.status().overlaps == 0
    assert judge(world) > 50


def test_a_broker_that_is_killed_in_between_goes_on_with_all_of_them(world: World) -> None:
    for scheme in (STE, FINE, RADIAL):
        world.schemes.transition(scheme)
        world.run(0.15)
        assert waiting(world)
        world.kill()
        world.restart()
        assert set(served_by(world).values()) == {scheme}
        world.run(1.0)
    assert settled(world) == dict.fromkeys(world.people, RADIAL)
    assert judge(world) > 50


def test_who_is_in_a_region_or_named_is_told_only_that_it_stays(world: World) -> None:
    world.schemes.transition_in([region("west", -400, 0, 400, SPARING)], FINE)
    settled(world)
    world.schemes.transition(STE, ["c7"])
    world.run(1.0)
    inside = [name for name, scheme in served_by(world).items() if scheme == SPARING]
    assert len(inside) > 2 * AT_ONCE
    before = {name: plans(world, name) for name in inside}
    world.schemes._broker.transition(RADIAL)  # as a rule does it
    assert [name for name in world.people if world.schemes.scheme_of(name) == SPARING] == inside
    world.run(0.8)
    assert served_by(world)["c7"] == STE
    told = sorted(plans(world, name) - before[name] for name in inside)
    assert told[len(told) // 2] == 1, "but for those who were moved in the first step, or have left since"
    assert judge(world) > 50


def plans(world: World, name: str) -> int:
    told = world.people[name].schemes.statistics().plans
    assert told is not None
    return told.plans


def test_connections_break_and_the_broker_is_killed_meanwhile_without_loss() -> None:
    world, random = World(7, people=PEOPLE, pinned=3), Random("gradual")
    world.run(3.0)
    world.chat(rate=25.0)

    shake(world, random)
    strike(world, random)
    run_schemes(world, random, longest=3.0)
    assert judge(world) > 100
    assert (waiting(world), world.schemes.status().overlaps) == (0, 0)


def test_if_the_first_step_fails_all_is_as_before_and_if_another_does_the_rest_stay(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execute, failing = TransitionEngine.execute_partial, {STE}

    def fail(engine: TransitionEngine, proxy: str, spec: MechanismSpec, *more: object) -> int:
        if spec in failing:
            raise TransitionFailed(f"no {spec}")
        return execute(engine, proxy, spec, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(TransitionEngine, "execute_partial", fail)
    with pytest.raises(TransitionFailed):
        world.schemes.transition(STE)
    assert settled(world) == dict.fromkeys(world.people, RADIAL)
    world.schemes.transition(FINE)
    failing.add(FINE)
    world.run(0.2)
    assert "not everybody could be brought" in caplog.text
    assert set(settled(world).values()) == {RADIAL, FINE}
    failing.clear()
    world.schemes.transition(FINE)
    assert settled(world) == dict.fromkeys(world.people, FINE)
    assert judge(world) > 50


def test_few_clients_are_moved_in_one_go() -> None:
    world = World(4, people=AT_ONCE)
    world.run(3.0)
    world.schemes.transition(STE)
    assert served_by(world) == dict.fromkeys(world.people, STE)


def test_an_error_that_nobody_expects_ends_the_transition_and_nobody_waits_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.schemes.transition(STE)
    moved: list[int] = []
    world.schemes.when_moved(lambda: moved.append(waiting(world)))

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a scheme of another package")

    monkeypatch.setattr(TransitionEngine, "execute_partial", broken)
    world.run(1.0)
    assert moved == [0]
    assert "ZeroDivisionError" in caplog.text
    assert waiting(world) == 0


def test_whoever_was_silent_for_too_long_is_not_taken_up_again_by_a_later_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradual_broker, "PAUSE", 100.0)  # longer than old schemes go on
    world = World(4, people=3 * AT_ONCE)
    world.run(3.0)
    exchange, silent = world.schemes._broker.exchange, world.people["c0"]
    silent.disconnect()
    world.schemes.transition(STE)
    assert exchange.overlaps.serve("c0")
    world.run(99.0)
    assert waiting(world) == AT_ONCE
    assert not exchange.overlaps.serve("c0")
    world.run(1.001)
    assert waiting(world) == 0
    assert len(exchange.overlaps) == 1
    assert not exchange.overlaps.serve("c0")
