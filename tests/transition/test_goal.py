import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import TransitionFailed
from nearcast.transition.goal import NEVER, Goal
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanId, SetState
from nearcast.transition.specification import MechanismSpec

PROXIES = ("p", "q")
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Exchange, st.sampled_from(PROXIES), st.sampled_from("AB").map(MechanismSpec)),
    st.builds(SetState, st.sampled_from(PROXIES), st.sampled_from("xy"), st.integers(0, 3)),
)
CONTENTS = st.lists(st.lists(ACTIONS, min_size=1, max_size=3).map(tuple), max_size=6)
INITIATORS = st.sampled_from(["ada", "bob"])


def plans_of(contents: list[tuple[Action, ...]], initiator: str = "ada") -> list[ExecutionPlan]:
    return [ExecutionPlan(PlanId(clock, initiator), actions) for clock, actions in enumerate(contents, 1)]


def result_of(plans: list[ExecutionPlan]) -> dict[str, tuple[str | None, dict[str, object]]]:
    """What somebody has who carries all out in their order: the closed form to compare with."""
    found: dict[str, tuple[str | None, dict[str, object]]] = {proxy: (None, {}) for proxy in PROXIES}
    for plan in plans:
        for action in plan.actions:
            if isinstance(action, Exchange):
                found[action.proxy] = (action.target.name, {})
            else:
                found[action.proxy][1][action.state] = action.value
    return found


@given(CONTENTS, st.randoms(use_true_random=False), INITIATORS)
def test_in_whatever_order_and_however_often_plans_arrive_the_goal_is_the_same(
    contents: list[tuple[Action, ...]], random: object, initiator: str
) -> None:
    plans = plans_of(contents, initiator)
    arrived = [*plans, *plans]
    random.shuffle(arrived)  # type: ignore[attr-defined]
    goal = Goal()
    for plan in arrived:
        goal.accept_plan(plan)
    assert result_of(list(goal.plans())) == result_of(plans)
    for proxy in PROXIES:
        said = [plan.id for plan in goal.plans() if any(action.proxy == proxy for action in plan.actions)]
        assert goal.newest(proxy) == max(said, default=NEVER)
    assert goal.clock == max((plan.id.clock for plan in goal.plans()), default=0)


@given(CONTENTS)
def test_the_plans_of_a_goal_make_the_same_goal(contents: list[tuple[Action, ...]]) -> None:
    goal, again = Goal(), Goal()
    for plan in plans_of(contents):
        goal.accept_plan(plan)
    for plan in goal.plans():
        again.accept_plan(plan)
    assert again.plans() == goal.plans()


def test_at_one_clock_the_greater_name_wins() -> None:
    goal = Goal()
    for initiator in ("bob", "ada"):
        goal.accept_plan(ExecutionPlan(PlanId(1, initiator), (Exchange("p", MechanismSpec(initiator)),)))
    [plan] = goal.plans()
    assert plan.id == PlanId(1, "bob")
    assert goal.outdated_by(PlanId(1, "ada"), 0, Exchange("p", MechanismSpec("A"))) == PlanId(1, "bob")
    assert goal.outdated_by(PlanId(1, "bob"), 0, Exchange("p", MechanismSpec("A"))) == PlanId(1, "bob"), "it is known"
    assert goal.outdated_by(PlanId(2, "ada"), 0, Exchange("p", MechanismSpec("A"))) is None


@pytest.mark.parametrize("action", [Exchange("p", MechanismSpec("B")), SetState("p", "x", 2)])
def test_what_failed_is_not_noted(action: Action) -> None:
    goal = Goal()
    goal.accept_plan(ExecutionPlan(PlanId(1, "ada"), (Exchange("p", MechanismSpec("A")), SetState("p", "x", 1))))
    before = goal.plans()
    with pytest.raises(TransitionFailed), goal.accepting(PlanId(2, "ada"), 0, action):
        raise TransitionFailed("no")
    assert goal.plans() == before


def test_an_exchange_is_noted_before_and_a_state_after_it_was_carried_out() -> None:
    goal = Goal()
    with goal.accepting(PlanId(1, "ada"), 0, Exchange("p", MechanismSpec("A"))):
        assert goal.newest("p") == PlanId(1, "ada")
    with goal.accepting(PlanId(2, "ada"), 0, SetState("p", "x", 1)):
        assert goal.newest("p") == PlanId(1, "ada")
    assert goal.newest("p") == PlanId(2, "ada")
