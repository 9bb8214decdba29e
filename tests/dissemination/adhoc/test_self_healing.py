"""Exchanges that spread with the events: hosts end up with one mechanism, the newest, whoever began and whatever overtook what."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dissemination.adhoc.village import Village, chain, nowhere, of

from nearcast.dissemination.adhoc.carrier import AdHocSettings
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId
from nearcast.transition.specification import NULL, MechanismSpec

HOSTS = 7
GOSSIP = of("GOSSIP")
TARGETS = [of("PLAN-B"), of("HYPERG"), of("FLOODING"), of("BROADCAST"), of("GOSSIP", p=0.7)]
TREES = st.tuples(*[st.integers(0, child - 1) for child in range(1, HOSTS)]).map(
    lambda parents: [(parent, child) for child, parent in enumerate(parents, 1)]
)
MORE = st.lists(st.tuples(st.integers(0, HOSTS - 1), st.integers(0, HOSTS - 1)), max_size=5)
INITIATIVES = st.lists(
    st.tuples(st.integers(0, HOSTS - 1), st.sampled_from(TARGETS), st.integers(0, 300)), min_size=1, max_size=6
)


def plan(village: Village, node: int) -> PlanId:
    _, clock, initiator = village.adhoc(node)._healing.outgoing()
    return PlanId(clock, initiator)


def talk(village: Village, seconds: float, since: dict[int, PlanId]) -> None:
    """Everybody publishes now and then; meanwhile nobody goes back to an older plan."""
    for step in range(round(seconds * 10)):
        for node in range(HOSTS):
            village.publish(node, f"{node} at {village.simulation.now()} {step}")
        village.after(0.1)
        for node in range(HOSTS):
            assert plan(village, node) >= since.get(node, PlanId(0, ""))
            since[node] = plan(village, node)


@given(TREES, MORE, INITIATIVES, st.integers(0, 99))
@settings(max_examples=40)
def test_a_connected_network_agrees_on_the_newest_of_several_initiators_in_whatever_order_messages_come(
    edges: list[tuple[int, int]],
    more: list[tuple[int, int]],
    initiatives: list[tuple[int, MechanismSpec, int]],
    seed: int,
) -> None:
    village = Village(nowhere(HOSTS), GOSSIP, edges=[*edges, *more], seed=seed)
    random = Random(seed)
    # Up to half a second on the way: newer messages overtake older ones, and those of other plans.
    village.network.delay = lambda: random.randrange(1_000, 500_000)
    since: dict[int, PlanId] = {}
    newest, said = PlanId(0, ""), GOSSIP
    for node, target, milliseconds in initiatives:
        began = village.adhoc(node).initiate(target)
        newest, said = max((newest, said), (began, target), key=lambda it: it[0])
        talk(village, milliseconds / 1_000, since)
    # One hop for each message at worst, if nobody sends on.
    talk(village, 0.6 * HOSTS, since)
    assert {village.adhoc(node).running for node in range(HOSTS)} == {said}
    assert {plan(village, node) for node in range(HOSTS)} == {newest}


def test_who_hears_of_a_newer_plan_follows_and_the_records_show_where_it_began() -> None:
    village = Village(nowhere(3), GOSSIP, edges=chain(3))
    village.adhoc(0).initiate(of("BROADCAST"))
    village.publish(0, "e")
    village.after(1.0)
    assert [village.adhoc(node).running for node in range(3)] == [of("BROADCAST"), of("BROADCAST"), GOSSIP]
    rows = [(host, target, plan) for _, host, proxy, source, target, *_, plan in village.rows["transitions"] if source]
    assert rows == [("h0", "BROADCAST", "1@h0"), ("h1", "BROADCAST", None)]
    village.publish(1, "f")
    village.after(1.0)
    assert village.adhoc(2).running == of("BROADCAST")


def test_hellos_spread_it_without_any_event() -> None:
    village = Village(nowhere(5), GOSSIP, edges=chain(5))
    village.adhoc(0).initiate(of("HYPERG"))
    village.after(1.0)
    assert {village.adhoc(node).running for node in range(5)} == {of("HYPERG")}


def test_switched_off_it_spreads_to_nobody() -> None:
    quiet = AdHocSettings(GOSSIP, self_healing=False)
    village = Village(nowhere(2), GOSSIP, edges=chain(2), settings=quiet)
    village.adhoc(0).initiate(of("FLOODING"))
    village.publish(0, "e")
    village.after(1.0)
    assert village.adhoc(1).running == GOSSIP
    assert village.reached("e") == {1}
    assert village.adhoc(1).statistics().foreign == 1


def executed(village: Village, node: int, clock: int, target: MechanismSpec) -> bool:
    agent = village.host(node).component(TransitionAgent)
    return agent.execute(ExecutionPlan(PlanId(clock, "broker"), (Exchange("lc", target),))).ok


def test_plans_of_a_coordinator_and_self_healing_know_of_each_other() -> None:
    village = Village(nowhere(3), GOSSIP, edges=chain(3), agents=True)
    assert executed(village, 0, 5, of("FLOODING"))
    village.publish(0, "e")
    village.after(1.0)
    assert {village.adhoc(node).running for node in range(3)} == {of("FLOODING")}
    # The plan itself comes late, and an older one later still: both are known, or outdated.
    assert executed(village, 1, 5, of("FLOODING"))
    assert executed(village, 2, 4, of("PLAN-B"))
    assert {village.adhoc(node).running for node in range(3)} == {of("FLOODING")}
    # An initiator on the spot is newer than what it has heard.
    assert village.adhoc(2).initiate(of("PLAN-B")) == PlanId(6, "h2")


def test_a_plan_that_a_host_cannot_follow_leaves_it_as_it_is() -> None:
    village = Village(nowhere(2), GOSSIP, edges=chain(2))
    healing = village.adhoc(1)._healing
    assert not healing.incoming(of("TELEPATHY"), 3, "h9")
    assert not healing.incoming(of("GOSSIP", p=7.0), 3, "h9")
    assert village.adhoc(1).running == GOSSIP
    assert village.adhoc(1).statistics().healing.failed == 2
    village.publish(0, "e")
    village.after(1.0)
    assert village.reached("e") == {1}


def test_who_was_told_to_run_nothing_is_not_drawn_in_by_those_who_pass_by() -> None:
    village = Village(nowhere(3), GOSSIP, edges=chain(3))
    village.exchange(1, NULL)
    village.adhoc(0).initiate(of("FLOODING"))
    village.publish(0, "e")
    village.publish(1, "mine")
    village.after(1.0)
    assert village.adhoc(1).running == NULL
    assert village.senders("mine") == []
    assert village.senders("e") == [0]
    assert village.reached("e") == set()
    assert village.adhoc(1).statistics().ignored == 1
    assert village.adhoc(1).statistics().published == 0


PLACES = ("park", "square")


def told_at(village: Village, node: int, clock: int, place: str, target: MechanismSpec) -> None:
    agent = village.host(node).component(TransitionAgent)
    plan_id = PlanId.for_place(clock, "broker", place)
    assert agent.execute(ExecutionPlan(plan_id, (Exchange("lc", target),))).ok


@given(
    TREES,
    MORE,
    st.tuples(*[st.sampled_from(PLACES)] * HOSTS),
    st.lists(st.tuples(st.integers(0, HOSTS - 1), st.sampled_from(TARGETS)), min_size=1, max_size=5),
)
@settings(max_examples=15)
def test_a_plan_for_a_place_spreads_to_who_is_there_and_to_nobody_else_within_earshot(
    edges: list[tuple[int, int]],
    more: list[tuple[int, int]],
    places: tuple[str, ...],
    orders: list[tuple[int, MechanismSpec]],
) -> None:
    village = Village(nowhere(HOSTS), GOSSIP, edges=[*edges, *more], agents=True)
    for node, place in enumerate(places):
        told_at(village, node, 1, place, GOSSIP)
    newest = dict.fromkeys(range(HOSTS), (1, GOSSIP))
    for clock, (node, target) in enumerate(orders, 2):
        told_at(village, node, clock, places[node], target)
        newest[node] = clock, target
    talk(village, 0.2 * HOSTS, {})
    for component in _together(places, [*edges, *more]):
        _, said = max((newest[node] for node in component), key=lambda it: it[0])
        assert {village.adhoc(node).running for node in component} == {said}
    # What is for everybody is followed wherever one is.
    told_at(village, 0, 99, "", of("FLOODING"))
    talk(village, 0.2 * HOSTS, {})
    assert {village.adhoc(node).running for node in range(HOSTS)} == {of("FLOODING")}


def _together(places: tuple[str, ...], edges: list[tuple[int, int]]) -> list[set[int]]:
    """Hosts at one place that hear each other, or of each other over others there."""
    found = [{node} for node in range(HOSTS)]
    for one, other in [edge for edge in edges if places[edge[0]] == places[edge[1]]] * HOSTS:
        joined = [each for each in found if one in each or other in each]
        found = [each for each in found if each not in joined] + [set.union(*joined)]
    return found


ORDERS = st.lists(st.sampled_from([NULL, of("GOSSIP"), of("PLAN-B")]), min_size=1, max_size=6)
HEARD = st.lists(st.tuples(st.integers(1, 20), st.sampled_from(TARGETS)), max_size=6)


@given(ORDERS, HEARD, st.randoms(use_true_random=False))
def test_a_host_that_was_told_to_stop_stops_whatever_it_has_heard_meanwhile(
    orders: list[MechanismSpec], marks: list[tuple[int, MechanismSpec]], random: Random
) -> None:
    """Orders of one coordinator overtake each other, and marks of plans that others got come in between: the last order decides."""
    village = Village(nowhere(1), NULL, agents=True)
    told = [(3 * number, target) for number, target in enumerate(orders, 1)]
    arriving = [("told", *each) for each in told] + [("heard", 3 * clock + 1, target) for clock, target in marks]
    random.shuffle(arriving)
    adhoc, newest = village.adhoc(0), 0
    for how, clock, target in arriving:
        if how == "told":
            assert executed(village, 0, clock, target)
            newest = max(newest, clock)
        elif adhoc.running != NULL:  # who runs nothing is deaf
            adhoc._healing.incoming(target, clock, "broker")
        last = dict(told).get(newest, NULL)
        assert (adhoc.running == NULL) == (last == NULL)
        if last != NULL:
            assert plan(village, 0) >= PlanId(newest, "broker"), "never back to an older plan"


@pytest.mark.parametrize("cut", [2, 4])
def test_a_partition_heals_on_contact_and_the_newer_side_wins(cut: int) -> None:
    village = Village(nowhere(HOSTS), of("FLOODING"), edges=chain(HOSTS))
    whole = village.network.hears
    village.network.hears = lambda one, other: whole(one, other) and (one < cut) == (other < cut)
    since: dict[int, PlanId] = {}
    for target in (of("GOSSIP", p=0.9), of("PLAN-B")):
        village.adhoc(0).initiate(target)
        talk(village, 1.0, since)
    village.adhoc(HOSTS - 1).initiate(of("GOSSIP", p=0.5))
    talk(village, 1.0, since)
    sides = [str(village.adhoc(node).running) for node in range(HOSTS)]
    assert sides == ["PLAN-B"] * cut + ["GOSSIP(p=0.5)"] * (HOSTS - cut)
    village.network.hears = whole
    talk(village, 2.0, since)
    assert {str(village.adhoc(node).running) for node in range(HOSTS)} == {"PLAN-B"}
