import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import GRID, RADIAL

from nearcast.errors import InvalidPlan
from nearcast.runtime.messages import Codec, encoded, kind_of
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanDone, PlanId, PlanMessage, SetState
from nearcast.transition.specification import NULL, MechanismSpec, Scalar, shown

NAMES = st.text(min_size=1, max_size=5)
SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
SPECS = st.builds(MechanismSpec, NAMES, st.dictionaries(NAMES, SCALARS, max_size=3).map(lambda it: tuple(it.items())))
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Exchange, NAMES, SPECS), st.builds(SetState, NAMES, NAMES, SCALARS)
)
IDS = st.builds(PlanId, st.integers(1, 2**40), NAMES)
PLANS = st.builds(ExecutionPlan, IDS, st.lists(ACTIONS, min_size=1, max_size=4).map(tuple))


def test_the_order_of_parameters_does_not_matter() -> None:
    one, other = MechanismSpec("X", (("b", 1), ("a", 2))), MechanismSpec.of("X", a=2, b=1)
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == "X(a=2, b=1)"
    assert one != MechanismSpec.of("X", a=2)


def test_a_changed_parameter_makes_another_specification() -> None:
    assert GRID.changed("factor", 10) == MechanismSpec.of("GRID", factor=10)
    assert RADIAL.changed("on", True) == MechanismSpec.of("RADIAL", on=True)


def test_records_show_null_as_nothing() -> None:
    assert shown(NULL) is None
    assert shown(GRID) == "GRID(factor=5)"


@pytest.mark.parametrize(
    "parameters", [(("a", 1), ("a", 2)), (("a", float("nan")),), (("a", None),), (("a", [1]),), (("a", 2**63),)]
)
def test_parameters_that_cannot_be_are_refused(parameters: object) -> None:
    with pytest.raises(InvalidPlan, match="parameter"):
        MechanismSpec("X", parameters)  # type: ignore[arg-type]
    with pytest.raises(InvalidPlan, match="needs a name"):
        MechanismSpec("")


def test_a_plan_needs_an_action_and_a_clock() -> None:
    with pytest.raises(InvalidPlan, match="7@ada has no actions"):
        ExecutionPlan(PlanId(7, "ada"), ())
    with pytest.raises(InvalidPlan, match="starts at 1, but that of 'ada' is 0"):
        ExecutionPlan(PlanId(0, "ada"), (Exchange("p", GRID),))
    with pytest.raises(InvalidPlan, match="state 'x' of 'p'"):
        SetState("p", "x", float("inf"))


@given(IDS, IDS)
def test_plans_are_ordered_by_clock_then_by_initiator(one: PlanId, other: PlanId) -> None:
    assert (one < other) == ((one.clock, one.initiator) < (other.clock, other.initiator))
    assert (one == other) == (not one < other and not other < one)


@given(PLANS)
def test_a_plan_survives_the_wire(plan: ExecutionPlan) -> None:
    message = PlanMessage(plan)
    decoded = Codec(PlanMessage, PlanDone).decoded(encoded(message))
    assert decoded == message
    assert kind_of(decoded) == "plan"


def test_an_answer_survives_the_wire() -> None:
    done = PlanDone(PlanId(3, "ada"), ok=False, error="no", clock=4, outdated_by=PlanId(4, "bob"))
    assert Codec(PlanMessage, PlanDone).decoded(encoded(done)) == done
    assert kind_of(done) == "plan done"


def test_a_plan_on_the_wire_that_cannot_be_is_no_message() -> None:
    data = msgspec.msgpack.encode(["plan", [[1, "ada"], []]])
    with pytest.raises(msgspec.ValidationError, match="no actions"):
        Codec(PlanMessage).decoded(data)
    with pytest.raises(msgspec.ValidationError, match="needs a name"):
        Codec(PlanMessage).decoded(msgspec.msgpack.encode(["plan", [[1, "ada"], [["exchange", "p", ["", []]]]]]))
