"""Rules in scripted situations, on virtual time."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import GRID, RADIAL
from tests.transition.town import Town

from nearcast.errors import InvalidPlan, TransitionFailed
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.runtime.state import Information, StateInformation
from nearcast.transition.plan import Exchange, SetState
from nearcast.transition.rules import Condition, Direction, Rule, RuleEngine
from nearcast.transition.specification import MechanismSpec

DENSITY = Information("density", float)
LOAD = Information("load", float)
ABOVE, BELOW = Direction.ABOVE, Direction.BELOW

# BYPASS.KOM 4.7: the plan for dense places, and the one for others.
DENSE = (
    Exchange("direct dissemination", MechanismSpec("GOSSIP")),
    SetState("direct dissemination", "p", 0.4),
    Exchange("gateway dissemination", MechanismSpec("BROADCAST")),
)
SPARSE = (
    Exchange("direct dissemination", MechanismSpec("PLAN-B")),
    Exchange("gateway dissemination", MechanismSpec("UNICAST")),
)


def density_rule(delta: float, back_at: float | None = None, dwell: float = 0.0) -> Rule:
    return Rule("density", (Condition(DENSITY, ABOVE, delta, back_at),), DENSE, SPARSE, dwell)


class Scene:
    """A host whose state is a script; writes down when which rule did what."""

    def __init__(self, *rules: Rule, interval: float = 1.0) -> None:
        self.simulation = Simulation(1)
        self.state = StateInformation()
        self.values: dict[str, float | None] = {}
        self.state.provide(DENSITY, lambda: self.values.get("density"))
        self.state.provide(LOAD, lambda: self.values.get("load"))
        self.did: list[tuple[float, tuple[Any, ...]]] = []
        self.failing = 0
        timers = SimulatedTimers(self.simulation, Life())
        self.engine = RuleEngine(self.state, self.simulation, timers, rules, self.act, interval)
        self.engine.start()

    def act(self, rule: Rule, actions: tuple[Any, ...]) -> None:
        if self.failing:
            self.failing -= 1
            raise TransitionFailed("not now")
        self.did.append((self.simulation.now() / MICROSECONDS, actions))

    def during(self, seconds: float, **values: float | None) -> None:
        """These values hold for so long."""
        self.values.update(values)
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))


def scripted(rule: Rule, values: list[float]) -> list[tuple[float, tuple[Any, ...]]]:
    """One value for each second, looked at in its middle."""
    scene = Scene(rule)
    scene.during(0.5)
    for value in values:
        scene.during(1, density=value)
    return scene.did


def test_the_density_rule_of_the_documents_switches_at_every_crossing() -> None:
    did = scripted(density_rule(10), [8, 10, 11, 9, 10, 12, 12, 10])
    # rho > delta and before <= delta; rho <= delta and before > delta (BYPASS.KOM 4.7).
    assert did == [(3, DENSE), (4, SPARSE), (6, DENSE), (8, SPARSE)]


def test_with_hysteresis_small_changes_do_not_count() -> None:
    did = scripted(density_rule(10, back_at=8), [8, 10, 11, 9, 10, 12, 12, 10, 8, 9, 10, 10.5])
    assert did == [(3, DENSE), (9, SPARSE), (12, DENSE)]


@given(st.lists(st.floats(0, 20), max_size=20), st.floats(0, 10), st.floats(0, 10))
def test_hysteresis_never_switches_more_often_than_the_bare_threshold(
    values: list[float], back_at: float, between: float
) -> None:
    bare, wide = scripted(density_rule(10), values), scripted(density_rule(10, back_at), values)
    narrow = scripted(density_rule(10, back_at + (10 - back_at) * between / 10), values)
    assert len(wide) <= len(narrow) <= len(bare)
    assert all(actions == (DENSE, SPARSE)[place % 2] for place, (_, actions) in enumerate(wide))


@given(st.lists(st.floats(0, 20), max_size=20), st.integers(0, 7))
def test_between_two_switches_the_dwell_time_passes(values: list[float], dwell: int) -> None:
    did = scripted(density_rule(10, dwell=dwell), values)
    times = [time for time, _ in did]
    assert all(later - time >= dwell for time, later in pairwise(times))


def test_a_crossing_that_came_too_soon_is_acted_upon_if_it_lasts() -> None:
    assert scripted(density_rule(10, dwell=4), [11, 9, 9, 9, 9, 9]) == [(1, DENSE), (5, SPARSE)]
    assert scripted(density_rule(10, dwell=4), [11, 9, 11, 11, 11, 11]) == [(1, DENSE)]


def test_below_is_the_mirror_image_of_above() -> None:
    rule = Rule("density", (Condition(DENSITY, BELOW, 5, back_at=7),), SPARSE, DENSE)
    assert scripted(rule, [5, 4, 6, 7, 6, 5, 4]) == [(2, SPARSE), (4, DENSE), (7, SPARSE)]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_what_is_not_known_leads_to_nothing(nothing: float | None) -> None:
    scene = Scene(density_rule(10))
    scene.during(3.5, density=nothing)
    assert not scene.did
    scene.during(1, density=11)
    scene.during(5, density=nothing)
    assert scene.did == [(4, DENSE)], "and back it goes only when it is known to be over"
    assert scene.engine.statistics().unknown == 8
    assert scene.engine.active("density")


def test_all_conditions_must_hold_and_be_known() -> None:
    both = (Condition(DENSITY, ABOVE, 10), Condition(LOAD, BELOW, 0.5))
    scene = Scene(Rule("both", both, DENSE, SPARSE))
    scene.during(2.5, density=11)
    scene.during(2, load=0.7)
    scene.during(2, load=0.3)
    scene.during(2, density=3)
    assert scene.did == [(5, DENSE), (7, SPARSE)]


def test_an_announcement_is_looked_at_at_once_and_only_by_the_rules_that_it_concerns() -> None:
    scene = Scene(density_rule(10), Rule("load", (Condition(LOAD, ABOVE, 1),), SPARSE), interval=100.0)
    scene.during(0.25, load=2.0)
    scene.state.announce(DENSITY, 11.0)
    assert scene.did == [(0.25, DENSE)]
    scene.state.announce(LOAD, 2.0)
    assert scene.did[1:] == [(0.25, SPARSE)]


def test_a_rule_may_do_something_in_one_direction_only() -> None:
    rule = Rule("density", (Condition(DENSITY, ABOVE, 10),), DENSE)
    assert scripted(rule, [11, 3, 11]) == [(1, DENSE), (3, DENSE)]


def test_what_failed_is_tried_again() -> None:
    scene = Scene(density_rule(10, dwell=60))
    scene.failing = 2
    scene.during(5.5, density=11)
    assert scene.did == [(3, DENSE)]
    assert scene.engine.statistics().failed == 2
    assert scene.engine.statistics().switched == 1


def test_an_action_that_announces_something_does_not_run_in_circles() -> None:
    scene = Scene()
    calls: list[str] = []

    def act(rule: Rule, _: tuple[Any, ...]) -> None:
        calls.append(rule.name)
        if len(calls) < 5:
            scene.state.announce(DENSITY, 12.0)

    timers = SimulatedTimers(scene.simulation, Life())
    engine = RuleEngine(scene.state, scene.simulation, timers, [density_rule(10)], act)
    engine.start()
    scene.state.announce(DENSITY, 11.0)
    assert calls == ["density"]


def test_when_stopped_nothing_is_looked_at_any_more() -> None:
    scene = Scene(density_rule(10))
    scene.engine.stop()
    scene.during(5, density=11)
    scene.state.announce(DENSITY, 11.0)
    assert not scene.did
    assert scene.engine.statistics().evaluated == 0


def test_a_rule_at_the_broker_has_all_clients_exchange_their_mechanism_and_back() -> None:
    town = Town(3)
    broker = town.world.hosts["broker"].host
    assert broker is not None
    density = 0.0
    broker.state.provide(DENSITY, lambda: density)

    def act(_: Rule, actions: tuple[Any, ...]) -> None:
        town.coordinator().execute(actions, town.clients, group="clients")

    finer = (Exchange("scheme", GRID), SetState("scheme", "factor", 20))
    rule = Rule("dense", (Condition(DENSITY, ABOVE, 10, back_at=8),), finer, (Exchange("scheme", RADIAL),), dwell=6.0)
    RuleEngine(broker.state, broker.clock, broker.timers, [rule], act).start()
    seen = []
    for density in (0.0, 11.0, 9.0, 7.0, 11.0, 11.0):  # noqa: B007 - the provider reads it
        town.after(3)
        seen.append(set(town.schemes()))
    # The last crossing comes three seconds after the switch before, and has to wait for three more.
    assert seen == [{"RADIAL"}, {"GRID(factor=20)"}, {"GRID(factor=20)"}, {"RADIAL"}, {"RADIAL"}, {"GRID(factor=20)"}]


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="'density' above 10 cannot end at 11"):
        Condition(DENSITY, ABOVE, 10, back_at=11)
    with pytest.raises(InvalidPlan, match="below 10 cannot end at 9"):
        Condition(DENSITY, BELOW, 10, back_at=9)
    with pytest.raises(InvalidPlan, match="cannot end"):
        Condition(DENSITY, ABOVE, float("nan"))
    with pytest.raises(InvalidPlan, match="needs a condition"):
        Rule("nothing", (), DENSE)
    with pytest.raises(InvalidPlan, match="something to do"):
        Rule("idle", (Condition(DENSITY, ABOVE, 10),), ())
    with pytest.raises(InvalidPlan, match="cannot wait -1"):
        density_rule(10, dwell=-1)
    with pytest.raises(InvalidPlan, match="a rule 'density' already"):
        Scene(density_rule(10), density_rule(11))
