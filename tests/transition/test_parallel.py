"""Several mechanisms at a time: partial and total transitions between them."""

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import BROKEN, ENVELOPE, GRID, RADIAL, Engine, Grid, Located, Radial

from nearcast.errors import TransitionFailed
from nearcast.transition.custom import Transition
from nearcast.transition.proxy import ParallelStatistics
from nearcast.transition.specification import NULL, MechanismSpec


def world_of(*members: str) -> Engine:
    world = Engine(RADIAL, parallel=True)
    for place, member in enumerate(members):
        world.parallel.add(member).report(member, place)
    world.log.clear()
    world.rows.clear()
    return world


def places(world: Engine) -> dict[str, dict[str, int]]:
    """Of each mechanism that runs, what it knows."""
    found: dict[str, dict[str, int]] = {}
    for spec, it in world.parallel.instances.items():
        assert isinstance(it, Located)
        found[str(spec)] = dict(it.places)
    return found


def test_newcomers_become_members_of_the_default_and_strangers_are_served_by_it() -> None:
    world = world_of("a", "b")
    proxy = world.parallel
    assert proxy.members_of(RADIAL) == ("a", "b")
    assert list(proxy.members) == ["a", "b"]
    assert proxy.spec_for("a") == proxy.spec_for("stranger") == proxy.default == RADIAL
    assert proxy.instance_for("stranger") is proxy.instance_for("a") is proxy.instances[RADIAL]
    assert proxy.members_of(GRID) == ()


def test_a_partial_transition_runs_both_and_moves_only_the_state_of_its_members() -> None:
    world = world_of("a", "b", "c")
    assert world.engine.execute_partial("scheme", GRID, ["b"], plan="1@broker") == 1
    assert places(world) == {"RADIAL": {"a": 0, "c": 2}, "GRID(factor=5)": {"b": 1}}
    assert world.parallel.members_of(RADIAL) == ("a", "c")
    assert world.parallel.members_of(GRID) == ("b",)
    assert world.parallel.statistics() == ParallelStatistics({"RADIAL": 2, "GRID(factor=5)": 1}, "RADIAL")
    assert world.log == ["start Grid", "Radial gives b", "bootstrap Grid"]
    assert [(row[3], row[4], row[7]) for row in world.rows] == [("RADIAL", "GRID(factor=5)", "1@broker")]
    assert world.parallel.add("b") is world.parallel.instances[GRID], "it stays where it is"


def test_members_join_a_mechanism_that_runs_already() -> None:
    world = world_of("a", "b", "c")
    world.engine.execute_partial("scheme", GRID, ["b"])
    grid = world.parallel.instances[GRID]
    world.log.clear()
    assert world.engine.execute_partial("scheme", GRID, ["c", "b"]) == 1
    assert world.parallel.instances[GRID] is grid
    assert places(world) == {"RADIAL": {"a": 0}, "GRID(factor=5)": {"b": 1, "c": 2}}
    assert world.log == ["Radial gives c", "Grid gets c"]


def test_a_mechanism_without_members_ends_unless_it_is_the_default() -> None:
    world = world_of("a", "b")
    world.engine.execute_partial("scheme", GRID, ["a", "b"])
    assert list(world.parallel.instances) == [RADIAL, GRID]
    world.log.clear()
    world.engine.execute_partial("scheme", RADIAL, ["a", "b"])
    assert list(world.parallel.instances) == [RADIAL]
    assert world.log == ["stop Grid", "Radial gets a b"]
    assert places(world) == {"RADIAL": {"a": 0, "b": 1}}


def test_a_member_that_leaves_takes_an_empty_mechanism_with_it() -> None:
    world = world_of("a", "b")
    world.engine.execute_partial("scheme", GRID, ["a"])
    world.parallel.remove("a")
    world.parallel.remove("a")
    assert list(world.parallel.instances) == [RADIAL]
    world.parallel.remove("b")
    assert list(world.parallel.instances) == [RADIAL]
    assert not world.parallel.members


def test_members_of_several_mechanisms_move_together() -> None:
    world = world_of("a", "b", "c")
    world.engine.execute_partial("scheme", GRID, ["b"])
    world.rows.clear()
    assert world.engine.execute_partial("scheme", ENVELOPE, ["b", "a", "stranger"]) == 3
    assert places(world) == {"RADIAL": {"c": 2}, "ENVELOPE(alpha=1.5)": {"b": 1, "a": 0}}
    assert [row[3] for row in world.rows] == ["GRID(factor=5)", "RADIAL"]


def test_nobody_to_move_means_nothing_to_do() -> None:
    world = world_of("a")
    assert world.engine.execute_partial("scheme", RADIAL, ["a", "stranger"]) == 0
    assert world.engine.execute_partial("scheme", GRID, []) == 0
    assert (world.log, world.rows) == ([], [])


def test_a_total_transition_takes_all_members_and_the_default() -> None:
    world = world_of("a", "b", "c")
    world.parallel.instance_for("stranger").report("stranger", 9)
    world.engine.execute_partial("scheme", GRID, ["b"])
    world.log.clear()
    assert world.engine.execute_total("scheme", ENVELOPE)
    assert places(world) == {"ENVELOPE(alpha=1.5)": {"a": 0, "c": 2, "stranger": 9, "b": 1}}
    assert world.parallel.default == ENVELOPE
    assert world.parallel.members_of(ENVELOPE) == ("a", "c", "b")
    assert world.log == ["start Envelope", "stop Radial", "stop Grid", "bootstrap Envelope"]
    assert not world.engine.execute_total("scheme", ENVELOPE)


def test_a_total_transition_to_one_that_runs_for_some_takes_the_others_there() -> None:
    world = world_of("a", "b")
    world.engine.execute_partial("scheme", GRID, ["b"])
    grid = world.parallel.instances[GRID]
    assert world.engine.execute("scheme", GRID), "the same, by its other name"
    assert world.parallel.instances == {GRID: grid}
    assert places(world) == {"GRID(factor=5)": {"b": 1, "a": 0}}


def test_to_null_and_back_the_members_stay_members() -> None:
    world = world_of("a", "b")
    world.engine.execute_total("scheme", NULL)
    assert world.parallel.instance_for("a").known() == ()
    world.engine.execute_total("scheme", RADIAL)
    assert world.parallel.members_of(RADIAL) == ("a", "b")


def test_a_self_transition_gives_the_mechanism_another_key() -> None:
    world = world_of("a", "b")
    world.engine.execute_partial("scheme", GRID, ["b"])
    finer = MechanismSpec.of("GRID", factor=10)
    assert world.engine.execute_self("scheme", "factor", 10)
    assert list(world.parallel.instances) == [RADIAL, finer]
    assert world.parallel.spec_for("b") == finer
    assert world.parallel.members_of(finer) == ("b",)
    assert world.parallel.default == RADIAL


def test_a_self_transition_reaches_all_that_declare_the_parameter_or_none() -> None:
    world = world_of("a", "b", "c")
    cells = [MechanismSpec.of("GRID", factor=factor) for factor in (2, 4)]
    world.engine.execute_partial("scheme", cells[0], ["a"])
    world.engine.execute_partial("scheme", cells[1], ["b"])
    with pytest.raises(TransitionFailed, match="two mechanisms would be the same"):
        world.engine.execute_self("scheme", "factor", 4)
    with pytest.raises(TransitionFailed, match="declares no parameter 'alpha'"):
        world.engine.execute_self("scheme", "alpha", 1.0)
    assert list(world.parallel.instances) == [RADIAL, *cells]


def test_a_self_transition_that_one_of_several_refuses_changes_none() -> None:
    class Stubborn(Grid):
        def set_factor(self, factor: int) -> None:
            raise ValueError("not me")

    world = world_of("a", "b")
    first, second = GRID, MechanismSpec.of("GRID", factor=6, kind="other")
    made: list[Grid] = [Grid([], 5), Stubborn([], 6)]
    world.engine._slots["scheme"].make = lambda spec: made[0 if spec == first else 1]
    world.engine.execute_partial("scheme", first, ["a"])
    world.engine.execute_partial("scheme", second, ["b"])
    with pytest.raises(TransitionFailed, match="not me"):
        world.engine.execute_self("scheme", "factor", 7)
    assert made[0].factor == 5
    assert list(world.parallel.instances) == [RADIAL, first, second]


class Fragile(Transition[Located, Located]):
    """Moves entries one by one, and fails at those that are marked."""

    source = Radial
    target = Grid

    def __init__(self) -> None:
        self.fails_at: str | None = None

    def transfer(self, source: Located, target: Located, members: Collection[str] | None) -> None:
        for member in list(source.places) if members is None else members:
            if member == self.fails_at:
                raise ValueError(f"{member} cannot be moved")
            if member in source.places:
                target.report(member, source.places[member])


def test_a_failure_half_way_leaves_a_running_target_as_it_was() -> None:
    world, fragile = world_of("a", "b", "c"), Fragile()
    world.engine.register("scheme", fragile)
    world.engine.execute_partial("scheme", GRID, ["a"])
    before, fragile.fails_at = places(world), "c"
    with pytest.raises(TransitionFailed, match="c cannot be moved"):
        world.engine.execute_partial("scheme", GRID, ["b", "c"])
    assert places(world) == before
    assert world.parallel.members_of(GRID) == ("a",)


def test_what_is_shared_comes_from_the_default() -> None:
    world = world_of("a", "b")
    world.engine.execute_partial("scheme", GRID, ["b"])
    default: Any = world.parallel.instances[RADIAL]
    default.listeners.append(print)
    world.engine.execute_total("scheme", ENVELOPE)
    new: Any = world.parallel.instances[ENVELOPE]
    assert new.listeners == [print]


SPECS = {"RADIAL": RADIAL, "GRID": GRID, "ENVELOPE": ENVELOPE, "BROKEN": BROKEN}
MEMBERS = "abcdef"
steps = st.lists(
    st.tuples(
        st.sampled_from(["partial", "total", "self", "add", "remove"]),
        st.sampled_from(sorted(SPECS)),
        st.lists(st.sampled_from(MEMBERS), max_size=4),
        st.sampled_from([None, *MEMBERS]),
    ),
    max_size=25,
)


@given(steps)
def test_no_sequence_of_transitions_and_failures_loses_or_duplicates_the_state_of_a_member(
    steps: list[tuple[str, str, list[str], str | None]],
) -> None:
    world = world_of()
    proxy, engine, fragile = world.parallel, world.engine, Fragile()
    engine.register("scheme", fragile)
    expected: dict[str, int] = {}
    for number, (what, name, members, fails_at) in enumerate(steps):
        fragile.fails_at = fails_at
        before, keys = places(world), dict(proxy.instances)
        try:
            match what:
                case "partial":
                    engine.execute_partial("scheme", SPECS[name], [member for member in members if member in expected])
                case "total":
                    engine.execute_total("scheme", SPECS[name])
                case "self":
                    engine.execute_self("scheme", "alpha", 1.0 + number)
                case "add":
                    for member in members:
                        proxy.add(member).report(member, number)
                        expected[member] = number
                case "remove":
                    for member in members:
                        it: Any = proxy.instance_for(member)
                        it.places.pop(member, None)
                        proxy.remove(member)
                        expected.pop(member, None)
        except TransitionFailed:
            assert places(world) == before, "a failure changed something"
            assert dict(proxy.instances) == keys
        found = places(world)
        assert sorted((member, place) for entries in found.values() for member, place in entries.items()) == sorted(
            expected.items()
        )
        for member, place in expected.items():
            it = proxy.instance_for(member)
            assert it.places[member] == place
        assert all(proxy.members_of(spec) or spec == proxy.default for spec in proxy.instances)
        assert sorted(member for spec in proxy.instances for member in proxy.members_of(spec)) == sorted(expected)
        assert not engine.switching
