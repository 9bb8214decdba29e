"""Regions with schemes of their own, when something else changes, fails, or forgets where people are."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from tests.broker.scheme_world import GRID, PLANE, RADIAL, SPARING, World, of
from tests.broker.test_schemes import judge, region

from nearcast.broker.schemes.regions import regions_bytes
from nearcast.dissemination.broker_state import SUBSCRIBERS
from nearcast.dissemination.handed_broker import HandedBroker
from nearcast.errors import TransitionFailed
from nearcast.filtering.attraction import Zone
from nearcast.planning.regional import Region
from nearcast.planning.ruled import RuledSchemes, SchemeRule
from nearcast.runtime.ports import Address
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec

STE, FORGETFUL, FINE_AND_FORGETFUL = of("STE"), of("RGRID", factor=6), of("RGRID", factor=20)


def everywhere(scheme: MechanismSpec) -> Region:
    return region("everywhere", 0.0, 0.0, 5_000.0, scheme)


def schemes_of(world: World) -> dict[str, MechanismSpec]:
    return {name: world.schemes.scheme_of(name) for name in world.people}


@pytest.mark.parametrize(
    ("inside", "elsewhere", "ruled"),
    [
        (RADIAL, of("EGRID", factor=12), of("EGRID", factor=24)),
        (RADIAL, of("EGRID", factor=12), FORGETFUL),
        (FINE_AND_FORGETFUL, FORGETFUL, of("EGRID", factor=24)),
    ],
)
def test_a_rule_changes_only_what_holds_outside_of_regions(
    inside: MechanismSpec, elsewhere: MechanismSpec, ruled: MechanismSpec
) -> None:
    world = World(3, people=30)
    world.run(3.0)
    world.chat(rate=25.0)
    world.schemes.transition_in([region("west", -400, 0, 400, inside)], elsewhere)
    world.run(15.0)
    before = schemes_of(world)
    assert set(before.values()) == {inside, elsewhere}
    world.schemes._broker.transition(ruled)  # as a rule does it
    assert schemes_of(world) == {name: inside if scheme == inside else ruled for name, scheme in before.items()}
    assert [each.zone.name for each in world.schemes.status().regions] == ["west"]
    world.run(15.0)
    assert set(schemes_of(world).values()) == {inside, ruled}
    assert judge(world) > 100
    same = [world.schemes.scheme_of(name) == person.schemes.running for name, person in world.people.items()]
    assert sum(same) > 25, "some may be at the border just now"


def test_who_is_in_a_region_stays_in_its_scheme_when_a_rule_begins_to_hold() -> None:
    world, fine = World(3, people=1), of("EGRID", factor=24)
    world.run(3.0)
    world.schemes.transition_in([everywhere(RADIAL)], of("EGRID", factor=12))
    rules = RuledSchemes([SchemeRule(Condition(SUBSCRIBERS, Direction.ABOVE, 0.5), fine)], of("EGRID", factor=12))
    rules.start(world.schemes._host)
    world.run(5.0)
    assert world.schemes.status().scheme == fine
    assert schemes_of(world) == {"c0": RADIAL}
    assert world.people["c0"].schemes.running == RADIAL


def test_an_order_for_everybody_ends_regions_unless_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(3, people=4)
    world.run(3.0)
    here = everywhere(SPARING)
    world.schemes.transition_in([here])
    with monkeypatch.context() as patched:
        patched.setattr(world.schemes._broker.exchange, "transition", refuse)
        with pytest.raises(TransitionFailed):
            world.schemes.transition(GRID)
    assert world.schemes.status().regions == (here,)
    world.schemes.transition(GRID)
    assert world.schemes.status().regions == ()
    assert set(schemes_of(world).values()) == {GRID}


def test_a_plan_that_names_a_client_holds_wherever_it_is_until_a_later_plan_is_for_it() -> None:
    world, fine = World(6, people=12, pinned=1), of("EGRID", factor=24)
    world.run(3.0)
    world.chat(rate=25.0)
    nowhere = region("nowhere", 5_000.0, 0.0, 10.0, SPARING)
    world.schemes.transition_in([everywhere(STE), nowhere])
    # c1 outside of the region that has its scheme, c2 in the scheme that it is in anyway.
    world.schemes.transition(SPARING, ["c1"])
    world.schemes.transition(STE, ["c2", "c0"])
    named = {"c1": SPARING, "c2": STE}

    def expect(of_the_others: MechanismSpec) -> None:
        for _ in range(2):
            world.run(5.0)
            followers = {name: scheme for name, scheme in schemes_of(world).items() if world.schemes.follows(name)}
            assert followers == {name: named.get(name, of_the_others) for name in followers}
            world.kill()
            world.restart()

    expect(STE)
    world.schemes.transition_in([everywhere(RADIAL)])
    expect(RADIAL)
    world.schemes._broker.transition(GRID)  # as a rule does it
    expect(RADIAL)
    world.schemes.transition(fine, ["c1"])
    named["c1"] = fine
    expect(RADIAL)
    world.schemes.transition_in([everywhere(STE)], GRID)
    named.clear()
    expect(STE)
    world.schemes.transition(SPARING, ["c3"])
    world.schemes.transition(RADIAL)
    expect(RADIAL)
    assert judge(world) > 20


def test_who_was_named_keeps_its_scheme_if_a_plan_for_everybody_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(3, people=4)
    world.run(3.0)
    world.schemes.transition(SPARING, ["c1"])
    with monkeypatch.context() as patched:
        patched.setattr(world.schemes._broker.exchange, "transition", refuse)
        with pytest.raises(TransitionFailed):
            world.schemes.transition(GRID)
        with pytest.raises(TransitionFailed):
            world.schemes.transition_in([], GRID)
    world.schemes.transition_in([everywhere(STE)])
    world.run(3.0)
    assert schemes_of(world) == {"c0": STE, "c1": SPARING, "c2": STE, "c3": STE}


def test_a_client_that_begins_anew_is_not_named_any_more() -> None:
    world = World(3, people=2)
    world.run(3.0)
    world.schemes.transition(SPARING, ["c1"])
    world.schemes.transition_in([everywhere(STE)])
    world.run(2.0)
    world.people["c1"].disconnect()
    world.people["c1"].connect(anew=True)
    world.run(3.0)
    assert schemes_of(world) == {"c0": STE, "c1": STE}


def refuse(scheme: MechanismSpec, _clients: Iterable[Address] | None = None) -> None:
    raise TransitionFailed(f"no {scheme}")


@pytest.mark.parametrize("seed", range(2))
def test_regions_work_where_schemes_forget_positions(seed: int) -> None:
    world, random = World(seed, people=40), Random(f"forgetful {seed}")
    world.run(3.0)
    world.chat(rate=25.0)
    west = region("west", -200, 0, 400, FINE_AND_FORGETFUL)
    world.schemes.transition_in([west], FORGETFUL)
    # Where they are was known until then.
    assert set(schemes_of(world).values()) == {FORGETFUL, FINE_AND_FORGETFUL}
    for _ in range(5):
        world.run(random.uniform(5.0, 15.0))
        for name, person in world.people.items():
            here, running = person.fix().position, world.schemes.scheme_of(name)
            # It says where it is when it leaves its cell, and changes back a little outside of the region.
            if running == FINE_AND_FORGETFUL:
                assert west.zone.extended(150.0).covers(here)
            elif Zone("core", west.zone.center, west.zone.radius - 220.0).covers(here):
                pytest.fail(f"{name} is in the region, and in {running}")
    moves = world.schemes.moves()
    assert {(move.after, move.plan) for move in moves} == {(FORGETFUL, None), (FINE_AND_FORGETFUL, "plan of west")}
    assert judge(world) > 100


def test_reports_from_a_region_whose_scheme_cannot_be_had_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    world = World(4, people=5)
    world.run(3.0)
    world.kill()
    world.disk.regions = regions_bytes([everywhere(of("NOSUCH"))])
    world.restart()
    world.run(10.0)
    assert set(schemes_of(world).values()) == {RADIAL}
    assert all(world.schemes.position(name) is not None for name in world.people)
    warnings = [record for record in caplog.records if "cannot be had" in record.getMessage()]
    assert len(warnings) == 1, "not with every report"


def test_regions_that_cannot_be_read_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = World(4, people=1)
    world.run(3.0)
    for unreadable in (b"\xc1", b"\x91\x01", regions_bytes([everywhere(RADIAL)]).replace(b"everywhere", b"\xff" * 10)):
        caplog.clear()
        world.kill()
        world.disk.regions = unreadable
        world.restart()
        assert world.schemes.status().regions == ()
        assert "regions cannot be read" in caplog.text


def test_a_plan_of_which_a_part_fails_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(5, people=40)
    world.run(3.0)
    world.chat(rate=25.0)
    world.schemes.transition_in([region("park", 260, 200, 200, SPARING)])
    world.run(3.0)
    world.schemes.moves()
    before, regions = schemes_of(world), world.schemes.status().regions
    market, castle = region("market", 120, 160, 300, STE), region("castle", -200, -150, 300, FINE_AND_FORGETFUL)
    transition, failing = HandedBroker.transition, {STE}

    def fail(
        broker: HandedBroker,
        scheme: MechanismSpec,
        clients: Iterable[Address] | None = None,
        *,
        region: str | None = None,
    ) -> None:
        if scheme in failing:
            raise TransitionFailed(f"no {scheme}")
        transition(broker, scheme, clients, region=region)

    monkeypatch.setattr(HandedBroker, "transition", fail)
    for elsewhere in (None, FORGETFUL):
        with pytest.raises(TransitionFailed):
            world.schemes.transition_in([castle, market], elsewhere)
        assert world.schemes.status().regions == regions
        assert world.schemes.status().scheme == RADIAL
        assert schemes_of(world) == before
        assert world.schemes.moves() == []
    failing.clear()
    world.schemes.transition_in([castle, market], FORGETFUL)
    assert world.schemes.status().regions == (castle, market)
    world.run(3.0)
    assert judge(world) > 20


def test_a_region_that_is_too_large_changes_nothing() -> None:
    world = World(4, people=1)
    world.run(3.0)
    with pytest.raises(ValueError, match="must be finite"):
        world.schemes.transition_in([Region(Zone("all", PLANE.to_point(0.0, 0.0), 1.7e308), SPARING, "plan")])
    assert world.schemes.status().regions == ()
    world.run(3.0)
    assert schemes_of(world) == {"c0": RADIAL}
