"""``[coexistence]`` in scenario files."""

from collections import Counter
from typing import Any

import pytest
from tests.scenario.two_points import TWO_POINTS

from nearcast.errors import InvalidScenario
from nearcast.planning.density import DensityRule
from nearcast.records.writer import RecordWriter
from nearcast.runtime.observers import Observers
from nearcast.scenario.assembly import AT_POINTS
from nearcast.scenario.reading import parse
from nearcast.scenario.simulation import RecordedRun
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
HERE = "[coexistence]\ninside = 'augment'\n"
MISTAKES = {
    "[coexistence]\nthreshold = 3": "coexistence.threshold: means nothing while mechanisms are the same everywhere",
    HERE + "threshold = 3\nhysteresis = 4": "coexistence.hysteresis: a point would stay crowded for ever; at most 3",
    HERE + "threshold = 3\ncoordination = 'self-healing'": "coexistence.coordination: .* hear of nothing",
    HERE + "[coexistence.otherwise]\nkind = 'UNICAST'": "coexistence.otherwise: 'UNICAST' sends to hosts that somebody",
    HERE + "[delivery]\nmechanism = 'offload'": "coexistence.inside: outside of attraction points events go by way of",
    HERE + "[radio]\nenabled = false": "coexistence.inside: 'augment' needs radio, which is switched off",
    HERE + "[world]\nkind = 'plain'\n[mobility]\nmodel = 'waypoint'": "coexistence.inside: needs attraction points",
    HERE + "[[transition]]\nat = '5 s'": "coexistence.inside: clients change one by one, and by 'transition' all",
    HERE
    + "threshold = 3\notherwise.kind = 'PLAN-B'\ncoordination = 'self-healing'\n"
    + "[adhoc]\nself_healing = false": "coexistence.coordination: .* switched off",
    HERE
    + "gateways_otherwise.kind = 'UNICAST'": "coexistence.gateways_otherwise: means nothing unless there are gateways",
    HERE + "otherwise.kind = 'PLAN-B'": "coexistence.otherwise: means nothing while all points .* set a threshold",
    HERE + "hysteresis = 2": "coexistence.hysteresis: means nothing while all points are taken for crowded",
    HERE + "dwell = '5 s'": "coexistence.dwell: means nothing while all points are taken for crowded",
    HERE + "measure = 'density'": "coexistence.measure: means nothing while all points are taken for crowded",
    HERE
    + "coordination = 'self-healing'": "coexistence.coordination: means nothing while all points .* set a threshold",
    HERE
    + "[transitions]\nat_points = true": "coexistence.inside: changes the scheme of clients at .* 'transitions.at_points' out",
    HERE + "[scheme]\nkind = 'GRID'": "coexistence.inside: .* with 'GRID' clients report none; choose 'RADIAL'",
    HERE + "[scheme]\nkind = 'ATTRACT'": "coexistence.inside: .* with 'ATTRACT' clients report none",
    HERE
    + "[[adhoc.transition]]\nmechanism.kind = 'FLOODING'": r"adhoc.transition\[1\]: would be for everybody, and outside",
    "[coexistence]\ninside = 'cloud'": "coexistence.inside: 'cloud' is not possible",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(text: str) -> None:
    with pytest.raises(InvalidScenario, match=MISTAKES[text]):
        parse(text)


def test_local_transports_may_change_where_there_are_some_at_points_only() -> None:
    change = "[[adhoc.transport_transition]]\nat = '5 s'\ntransport.kind = 'BLUETOOTH'\n"
    assert parse(HERE + change).adhoc.transport_transition
    with pytest.raises(InvalidScenario, match="'cloud' uses no local transport"):
        parse(change)


def test_all_of_it_can_be_said_and_read_again() -> None:
    text = (
        HERE
        + "threshold = 6\nhysteresis = 2\ndwell = '5 s'\nmeasure = 'density'\n[coexistence.otherwise]\nkind = 'PLAN-B'"
    )
    game = parse(text)
    assert game.coexistence.rule() == DensityRule(6, 2, 5.0, "density")
    assert game.coexistence.otherwise is not None
    assert game.coexistence.otherwise.spec() == of("PLAN-B")
    assert game == parse(game.to_toml())
    assert parse("").networks == {"cellular"}
    assert game.networks == {"cellular", "radio"}


TOWN = (
    """
[run]
duration = "30 s"
[clients]
number = 30
[world]
kind = "plain"
width = "400 m"
height = "400 m"
"""
    + TWO_POINTS
    + """
[coexistence]
"""
)
DENSE = "threshold = 3\notherwise.kind = 'PLAN-B'\n"


def ran(more: str) -> dict[str, Any]:
    rows: dict[str, list[tuple[Any, ...]]] = {"transitions": [], "notifications": []}
    observers = Observers()
    for table, kept in rows.items():
        observers.analyze(table, lambda *row, keep=kept.append: keep(row))
    run = RecordedRun(parse(TOWN + more), 1, observers, RecordWriter(None))
    run.begin()
    run.advance(30.0)
    sampled = dict(observers.sample())
    delivered = [
        (event, client) for _, event, client, _, outcome, *_ in rows["notifications"] if outcome == "delivered"
    ]
    return rows | {"delivered": delivered, "at points": sampled.get(AT_POINTS), "run": run}


@pytest.mark.parametrize("inside", ["augment", "offload"])
def test_who_is_at_a_point_hears_of_it_from_host_to_host(inside: str) -> None:
    found = ran(f"inside = '{inside}'")
    paths = Counter(row[3] for row in found["notifications"] if row[4] == "delivered")
    assert paths["wifi"] > 50
    assert paths["cloud"] > 50
    assert len(found["delivered"]) == len(set(found["delivered"]))
    assert found["at points"] > 3
    again = {row[4] for row in found["transitions"] if row[2] == "hybrid mode"}
    assert again == {"cloud", inside}


def test_gateways_are_at_points_and_nowhere_else() -> None:
    found = ran("inside = 'gateway'")
    paths = Counter(row[3] for row in found["notifications"] if row[4] == "delivered")
    assert paths["gateway"] > 20
    assert paths["cloud"] > 50
    assert len(found["delivered"]) == len(set(found["delivered"]))
    begun = [row for row in found["transitions"] if row[2] == "gw" and row[4] is not None]
    inside = [row for row in found["transitions"] if row[2] == "filter scheme" and "ATTRACT" in row[4]]
    assert {row[4] for row in begun} == {"BROADCAST"}
    assert all("enable_updates=True" in row[4] for row in inside)
    assert len(begun) == len([row for row in inside if row[1] != "broker"])


def test_gateways_are_told_whom_an_event_is_for_where_they_need_it() -> None:
    more = "threshold = 2\notherwise.kind = 'PLAN-B'\ngateways_otherwise.kind = 'UNICAST'\n"
    found = ran("inside = 'gateway'\n" + more + "[gateways]\nacknowledged = false")
    points = {(row[2].partition(" ")[0], row[3], row[4]) for row in found["transitions"] if " at " in row[2]}
    assert points == {
        ("lc", "PLAN-B", "GOSSIP"),
        ("lc", "GOSSIP", "PLAN-B"),
        ("gw", "UNICAST", "BROADCAST"),
        ("gw", "BROADCAST", "UNICAST"),
    }
    assert Counter(row[3] for row in found["notifications"])["gateway"] > 20


def test_what_points_run_depends_on_how_crowded_they_are() -> None:
    found = ran("inside = 'augment'\n" + DENSE)
    points = [row for row in found["transitions"] if row[2].startswith("lc at ")]
    assert {row[2] for row in points} == {"lc at park", "lc at square"}
    assert {(row[3], row[4]) for row in points} == {("PLAN-B", "GOSSIP"), ("GOSSIP", "PLAN-B")}
    calm = ran("inside = 'augment'\nhysteresis = 2\n" + DENSE)
    assert len([row for row in calm["transitions"] if row[2].startswith("lc at ")]) < len(points)
