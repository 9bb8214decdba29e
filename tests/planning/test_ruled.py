"""Rules that choose filter schemes: alone with a scripted broker, and in a small simulated run."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.dissemination.broker_state import MATCH_RATE, SUBSCRIBERS
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker, Memory
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.errors import TransitionFailed
from nearcast.filtering.attraction import Zones
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.planning.ruled import SETTLING, RuledSchemes, SchemeRule
from nearcast.planning.timetable import Timetable, TimetableEntry
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec

LPS, RGRID, GRID = MechanismSpec("LPS"), MechanismSpec("RGRID"), MechanismSpec("GRID")
TERRITORY = Territory(GeoBox(49.8, 8.6, 49.9, 8.7), Zones([]))


class ScriptedBroker(CloudBroker):
    """Says how many subscribers it has, and writes down what it is told to run."""

    def __init__(self, memory: Memory | None = None) -> None:
        super().__init__(TERRITORY, BrokerSettings(LPS), memory)
        self.values = {SUBSCRIBERS: 0.0, MATCH_RATE: 0.0}
        self.running = [LPS]
        self.failing = 0

    def start(self, host: Host) -> None:
        for information in self.values:
            host.state.provide(information, lambda information=information: self.values[information])  # type: ignore[misc]

    def transition(self, scheme: MechanismSpec, _clients: Iterable[Address] | None = None) -> None:
        if self.failing:
            self.failing -= 1
            raise TransitionFailed("not now")
        if scheme != self.running[-1]:
            self.running.append(scheme)


class Scene:
    def __init__(self, *rules: SchemeRule, memory: Memory | None = None) -> None:
        self.simulation = Simulation(1)
        self.broker, self.rules = ScriptedBroker(memory), RuledSchemes(rules, LPS)
        world = World(self.simulation, Plane(Point(49.85, 8.65)), 1)
        world.add("broker", lambda: [self.broker, self.rules], []).join()

    def during(self, seconds: float, subscribers: float, matches: float = 0.0) -> MechanismSpec:
        """What runs after so many seconds with these values."""
        self.broker.values = {SUBSCRIBERS: subscribers, MATCH_RATE: matches}
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))
        return self.broker.running[-1]


def above(threshold: float, scheme: MechanismSpec, back_at: float | None = None, **more: Any) -> SchemeRule:
    information = more.pop("of", SUBSCRIBERS)
    return SchemeRule(Condition(information, Direction.ABOVE, threshold, back_at), scheme, **more)


LADDER = (above(120, RGRID, 110), above(220, GRID, 210))


def test_a_growing_and_shrinking_crowd_climbs_the_ladder_of_lcn_2016_and_descends_it() -> None:
    scene = Scene(*LADDER)
    for subscribers in (50, 115, 121, 115, 215, 221, 215, 209, 115, 109):
        scene.during(1.5, subscribers)
    assert scene.broker.running == [LPS, RGRID, GRID, RGRID, LPS]
    assert scene.rules.statistics().switched == 4


@given(st.lists(st.integers(0, 300), min_size=1, max_size=12))
def test_where_the_crowd_is_now_decides_however_it_came_there(crowds: list[int]) -> None:
    scene = Scene(above(120, RGRID), above(220, GRID))
    for subscribers in crowds:
        runs = scene.during(1.5, subscribers)
        assert runs == (GRID if subscribers > 220 else RGRID if subscribers > 120 else LPS)


def test_of_rules_on_different_things_the_last_that_holds_decides() -> None:
    scene = Scene(above(100, RGRID), above(1000, GRID, of=MATCH_RATE))
    assert scene.during(1.5, 150, 5000) == GRID
    assert scene.during(1.5, 50, 5000) == GRID
    assert scene.during(1.5, 150, 10) == RGRID
    assert scene.during(1.5, 50, 10) == LPS


def test_within_the_dwell_time_a_rule_does_not_change_its_mind() -> None:
    scene = Scene(above(100, RGRID, dwell=10.0))
    assert scene.during(1.5, 150) == RGRID
    assert scene.during(8.0, 50) == RGRID
    assert scene.during(3.0, 50) == LPS


def test_a_failed_transition_is_tried_again() -> None:
    scene = Scene(above(100, RGRID))
    scene.broker.failing = 2
    assert scene.during(2.5, 150) == LPS
    assert scene.during(1.0, 150) == RGRID
    assert scene.rules.statistics().failed == 2


@pytest.mark.parametrize("start", [LPS, GRID])
def test_before_a_rule_begins_to_hold_nothing_is_done(start: MechanismSpec) -> None:
    scene = Scene(*LADDER)
    scene.broker.running = [start]
    assert scene.during(5.0, 50) == start


def test_a_rule_that_ended_while_the_broker_was_away_is_noticed_when_it_knows_its_situation_again() -> None:
    last = Memory((ExecutionPlan(PlanId(3, "broker"), (Exchange(PROXY, GRID),)),), clock=3)
    scene = Scene(SchemeRule(Condition(SUBSCRIBERS, Direction.ABOVE, 100.0), GRID), memory=last)
    scene.broker.running = [GRID]
    assert scene.during(SETTLING - 1.0, 2.0) == GRID
    assert scene.during(2.0, 2.0) == LPS


def test_a_broker_that_returns_leaves_out_what_is_over_in_its_timetable() -> None:
    simulation, broker = Simulation(1), ScriptedBroker()
    entries = [TimetableEntry(10.0, RGRID), TimetableEntry(30.0, GRID)]
    host = World(simulation, Plane(Point(49.85, 8.65)), 1).add("broker", lambda: [broker, Timetable(entries, 0)], [])
    simulation.run(20 * MICROSECONDS)
    host.join()
    simulation.run(29 * MICROSECONDS)
    assert broker.running == [LPS]
    simulation.run(31 * MICROSECONDS)
    assert broker.running == [LPS, GRID]
