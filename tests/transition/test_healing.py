"""Exchanges that spread with ordinary messages."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import BROKEN, ENVELOPE, GRID, RADIAL, Engine

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.goal import Goal
from nearcast.transition.healing import SelfHealing
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId, SetState
from nearcast.transition.specification import MechanismSpec

HOSTS = 6


class Host:
    def __init__(self) -> None:
        self.world = Engine(RADIAL)
        self.healing = SelfHealing(self.world.engine, "scheme")

    @property
    def spec(self) -> MechanismSpec:
        return self.world.proxy.spec

    def hears(self, other: "Host") -> bool:
        return self.healing.incoming(*other.healing.outgoing())


def targets(count: int) -> list[MechanismSpec]:
    return [MechanismSpec.of("GRID", factor=1 + number) for number in range(count)]


def rounds(hosts: list[Host], edges: list[tuple[int, int]]) -> None:
    """Everybody hears its neighbours, as often as any news needs to cross the whole network."""
    for _ in hosts:
        for one, other in edges:
            hosts[one].hears(hosts[other])
            hosts[other].hears(hosts[one])


# A random tree connects all; further edges do no harm.
TREES = st.tuples(*[st.integers(0, child - 1) for child in range(1, HOSTS)]).map(
    lambda parents: [(parent, child) for child, parent in enumerate(parents, 1)]
)
INITIATIVES = st.lists(
    st.tuples(st.integers(0, HOSTS - 1), st.lists(st.integers(0, HOSTS - 2), max_size=4)), max_size=8
)


def test_who_hears_of_a_newer_plan_follows() -> None:
    one, other = Host(), Host()
    assert one.healing.initiate(GRID, "one") == PlanId(1, "one")
    assert one.healing.outgoing() == (GRID, 1, "one")
    assert other.hears(one)
    assert other.spec == GRID
    assert other.healing.outgoing() == (GRID, 1, "one")
    assert not other.hears(one)
    assert not one.hears(other)
    assert other.world.rows[-1][7] is None, "the records tell self-healing from plans by that"
    assert one.world.rows[-1][7] == "1@one"
    statistics = other.healing.statistics()
    assert (statistics.clock, statistics.conflicts, statistics.healed) == (1, 1, 1)


def test_an_older_clock_never_wins() -> None:
    one, other = Host(), Host()
    one.healing.initiate(GRID, "one")
    one.healing.initiate(ENVELOPE, "one")
    other.healing.initiate(RADIAL, "other")
    assert not one.hears(other)
    assert one.spec == ENVELOPE
    assert one.healing.statistics().conflicts == 1
    assert one.healing.statistics().healed == 0


def test_of_one_plan_the_first_word_counts() -> None:
    host = Host()
    assert host.healing.incoming(GRID, 1, "ada")
    assert not host.healing.incoming(ENVELOPE, 1, "ada")
    assert host.spec == GRID


def test_the_same_mechanism_by_a_newer_plan_only_moves_the_clock() -> None:
    one, other = Host(), Host()
    one.healing.initiate(GRID, "one")
    one.healing.initiate(RADIAL, "one")
    rows = len(other.world.rows)
    assert not other.hears(one)
    assert len(other.world.rows) == rows
    assert other.healing.outgoing() == (RADIAL, 2, "one")


@given(TREES, INITIATIVES, st.randoms(use_true_random=False))
def test_on_connected_contacts_all_converge_to_the_newest_of_several_initiators(
    edges: list[tuple[int, int]], initiatives: list[tuple[int, list[int]]], random: object
) -> None:
    hosts = [Host() for _ in range(HOSTS)]
    newest, said = PlanId(0, ""), RADIAL
    for (initiator, contacts), spec in zip(initiatives, targets(len(initiatives)), strict=True):
        plan = hosts[initiator].healing.initiate(spec, f"h{initiator}")
        newest, said = max((newest, said), (plan, spec), key=lambda it: it[0])
        for contact in contacts:  # in between, a few meet
            one, other = edges[contact]
            clock = hosts[one].healing.statistics().clock
            hosts[one].hears(hosts[other])
            assert hosts[one].healing.statistics().clock >= clock
    random.shuffle(edges)  # type: ignore[attr-defined]
    rounds(hosts, edges)
    assert {host.spec for host in hosts} == {said}
    assert {host.healing.outgoing() for host in hosts} == {(said, newest.clock, newest.initiator)}


@given(st.integers(1, HOSTS - 1), st.integers(1, 3), st.integers(1, 3))
def test_a_partition_heals_on_contact(cut: int, left_plans: int, right_plans: int) -> None:
    hosts = [Host() for _ in range(HOSTS)]
    line = [(number, number + 1) for number in range(HOSTS - 1)]
    bridge = (cut - 1, cut)
    for spec in targets(left_plans):
        hosts[0].healing.initiate(spec, "left")
    for spec in targets(right_plans):
        hosts[-1].healing.initiate(spec.changed("factor", 50), "right")
    rounds(hosts, [edge for edge in line if edge != bridge])
    left, right = {host.spec for host in hosts[:cut]}, {host.spec for host in hosts[cut:]}
    assert len(left) == len(right) == 1
    assert left != right
    rounds(hosts, line)
    # More plans, a higher clock; at the same clock, "right" is the greater name.
    assert {host.spec for host in hosts} == (left if left_plans > right_plans else right)


def test_a_host_that_cannot_follow_goes_on_and_does_not_pass_it_on() -> None:
    host = Host()
    assert not host.healing.incoming(BROKEN, 3, "ada")
    assert host.spec == RADIAL
    assert host.healing.outgoing() == (RADIAL, 0, "")
    assert host.healing.statistics().failed == 1
    with pytest.raises(TransitionFailed):
        host.healing.initiate(BROKEN, "ada")
    assert host.healing.outgoing() == (RADIAL, 0, "")


def test_while_the_new_mechanism_bootstraps_messages_show_it_with_its_plan() -> None:
    host, shown = Host(), list[tuple[MechanismSpec, int, str]]()
    slot = host.world.engine._slots["scheme"]
    make: Callable[[MechanismSpec], object] = slot.make

    def made(spec: MechanismSpec) -> object:
        it = make(spec)
        setattr(it, "bootstrap", lambda: shown.append(host.healing.outgoing()))  # noqa: B010 - one instance only
        return it

    slot.make = made
    host.healing.incoming(GRID, 4, "ada")
    assert shown == [(GRID, 4, "ada")]


def test_plans_and_self_healing_share_a_goal() -> None:
    world, goal = Engine(RADIAL), Goal()
    healing = SelfHealing(world.engine, "scheme", goal)
    goal.accept_plan(ExecutionPlan(PlanId(5, "broker"), (Exchange("scheme", RADIAL),)))
    assert not healing.incoming(GRID, 4, "ada")
    assert healing.incoming(GRID, 6, "ada")
    assert goal.outdated_by(PlanId(6, "ada"), 3, Exchange("scheme", GRID)) == PlanId(6, "ada"), (
        "the plan itself comes late"
    )
    goal.accept(PlanId(7, "broker"), 0, SetState("scheme", "factor", 9))
    assert healing.outgoing()[1:] == (7, "broker")


def test_a_proxy_with_several_mechanisms_cannot_be_healed() -> None:
    with pytest.raises(InvalidInput, match="a message can name only one"):
        SelfHealing(Engine(RADIAL, parallel=True).engine, "scheme")
