"""What a host does with the plans that it is told."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import BROKEN, ENVELOPE, GRID, RADIAL
from tests.transition.town import Town

from nearcast.transition.agent import REMEMBERED
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanDone, PlanId, SetState
from nearcast.transition.specification import MechanismSpec


def plan(clock: int, *actions: Action, initiator: str = "broker") -> ExecutionPlan:
    return ExecutionPlan(PlanId(clock, initiator), actions)


def test_actions_are_executed_in_their_order_and_concern_only_their_proxy() -> None:
    town = Town(1)
    done = town.agent("c0").execute(plan(1, Exchange("scheme", ENVELOPE), SetState("scheme", "alpha", 2.5)))
    assert done == PlanDone(PlanId(1, "broker"), ok=True, clock=1)
    assert town.scheme("c0") == "ENVELOPE(alpha=2.5)"
    assert town.scheme("c0", "other") == "null"
    assert [row[7] for row in town.transitions[-2:]] == ["1@broker", "1@broker"]


def test_a_repeated_plan_is_answered_again_but_not_executed_again() -> None:
    town = Town(1)
    agent, first = town.agent("c0"), plan(1, Exchange("scheme", GRID))
    answer = agent.execute(first)
    rows = len(town.transitions)
    agent.execute(plan(2, Exchange("scheme", RADIAL)))
    assert agent.execute(first) == answer
    assert town.scheme("c0") == "RADIAL"
    assert len(town.transitions) == rows + 1
    assert agent.statistics().repeated == 1


def test_an_older_plan_never_wins_and_its_initiator_is_told() -> None:
    town = Town(1)
    agent = town.agent("c0")
    agent.execute(plan(5, Exchange("scheme", GRID)))
    done = agent.execute(plan(4, Exchange("scheme", ENVELOPE), Exchange("other", RADIAL)))
    assert done == PlanDone(PlanId(4, "broker"), ok=True, clock=5, outdated_by=PlanId(5, "broker"))
    assert town.scheme("c0") == str(GRID)
    assert town.scheme("c0", "other") == "RADIAL", "of that proxy, it is the newest"
    assert agent.statistics().outdated == 1


def test_what_was_executed_before_a_failure_stays_and_the_rest_is_left_out() -> None:
    town = Town(1)
    agent = town.agent("c0")
    failing = plan(1, Exchange("scheme", GRID), Exchange("other", BROKEN), SetState("scheme", "factor", 9))
    done = agent.execute(failing)
    assert not done.ok
    assert done.error is not None
    assert done.error.startswith("action 2 of 3: 'other' on 'c0' goes on as before")
    assert town.scheme("c0") == str(GRID)
    assert agent.execute(failing) == done, "it does not try again by itself"
    assert agent.goal.newest("other").clock == 0, "what failed is not passed on"
    assert agent.execute(plan(2, Exchange("other", RADIAL))).ok
    assert (agent.statistics().failed, agent.statistics().executed) == (1, 2)


def test_a_proxy_that_the_host_does_not_have_is_a_failure() -> None:
    done = Town(1).agent("c0").execute(plan(1, Exchange("gateway", GRID)))
    assert done.error == "action 1 of 1: host 'c0' has no proxy 'gateway' (it has: scheme, other)"


def test_a_state_that_arrived_before_the_exchange_that_it_was_for_is_set_after_it() -> None:
    town = Town(1)
    agent = town.agent("c0")
    agent.execute(plan(1, Exchange("scheme", ENVELOPE)))
    agent.execute(plan(3, SetState("scheme", "alpha", 3.0)))
    agent.execute(plan(2, Exchange("scheme", MechanismSpec.of("ENVELOPE", alpha=2.0))))
    assert town.scheme("c0") == "ENVELOPE(alpha=3.0)"


def test_another_plan_of_an_id_that_was_used_is_refused() -> None:
    town = Town(1)
    agent = town.agent("c0")
    agent.execute(plan(1, Exchange("scheme", GRID), Exchange("other", GRID)))
    assert agent.execute(plan(1, Exchange("scheme", GRID))).ok, "a part of it is brought up"
    done = agent.execute(plan(1, Exchange("scheme", RADIAL)))
    assert not done.ok
    assert done.error is not None
    assert "there was another plan 1@broker" in done.error
    assert town.scheme("c0") == str(GRID)


def test_only_the_newest_plans_are_remembered_and_older_ones_still_do_no_harm() -> None:
    town = Town(1)
    agent, first = town.agent("c0"), plan(1, Exchange("scheme", GRID))
    agent.execute(first)
    for clock in range(2, REMEMBERED + 3):
        agent.execute(plan(clock, SetState("scheme", "factor", clock)))
    assert len(agent._results) == REMEMBERED
    agent.execute(first)
    assert town.scheme("c0") == f"GRID(factor={REMEMBERED + 2})"


# Every mechanism here has the parameter, so no order of arrival makes an action fail.
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.integers(10, 15).map(lambda factor: Exchange("scheme", MechanismSpec.of("GRID", factor=factor))),
    st.builds(SetState, st.just("scheme"), st.just("factor"), st.integers(1, 9)),
)


@given(st.lists(ACTIONS, min_size=1, max_size=5), st.sampled_from(["ada", "dora"]), st.integers(0, 2**32))
def test_plans_of_several_initiators_lead_to_the_same_mechanism_in_whatever_order_they_arrive(
    actions: list[Action], second: str, seed: int
) -> None:
    plans = [plan(clock, action, initiator=("carl", second)[clock % 2]) for clock, action in enumerate(actions, 1)]
    start = plan(1, Exchange("scheme", GRID), initiator="aaa")
    town = Town(2)
    for each in (start, *plans):
        town.agent("c0").execute(each)
    shuffled = [*plans, *plans]
    Random(seed).shuffle(shuffled)
    for each in (start, *shuffled):
        town.agent("c1").execute(each)
    assert town.scheme("c1") == town.scheme("c0")
    assert town.agent("c1").goal.plans() == town.agent("c0").goal.plans()


def test_whoever_asked_is_told_of_every_action_on_its_proxy() -> None:
    town = Town(1)
    agent, told = town.agent("c0"), list[int]()
    agent.after("scheme", lambda: told.append(agent.goal.newest("scheme").clock))
    for clock, target in ((1, GRID), (2, RADIAL)):
        assert agent.execute(plan(clock, Exchange("scheme", target))).ok
    assert told == [1, 2]


def test_a_pinned_proxy_stays_as_it_is_and_the_coordinator_learns_why() -> None:
    town = Town(1)
    agent = town.agent("c0")
    agent.pin("scheme")
    done = agent.execute(plan(1, Exchange("scheme", GRID)))
    assert not done.ok
    assert "pinned" in str(done.error)
    assert agent.goal.newest("scheme").clock == 0
