"""Plans that bring a filter scheme, an ad hoc mechanism and a hybrid mode at once (BYPASS.KOM 5.3.2): nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import few, many, stories
from tests.dissemination.transitions.coexisting import FLOODING, PLAN_B, RADIAL, Around, CoexistingTown
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import DOCUMENTS, Fault, Options, Outcome, run
from tests.effort import campaign

from nearcast.dissemination.hybrid import PROXY as HYBRID
from nearcast.dissemination.publisher import LocationRequest
from nearcast.errors import InvalidPlan
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.planning.at_points import TransitionsAtPoints
from nearcast.transition.specification import NULL

TOWN = Story(5, clients=40, seconds=35.0, side=500.0, speed=8.0)


@st.composite
def walks(draw: st.DrawFn) -> Story:
    return replace(draw(stories(seconds=35.0)), side=500.0, speed=8.0, clients=16)


@st.composite
def ways(draw: st.DrawFn, mode: str) -> Around:
    """With and without a rule, central or not; a threshold that is often crossed."""
    threshold = draw(st.sampled_from((None, 0.0, 1.0)))
    otherwise = draw(st.sampled_from((None, PLAN_B)))
    healing = threshold is not None and otherwise is not None and draw(st.booleans())
    return Around(mode, draw(st.sampled_from((0.0, 60.0))), threshold, 0.0, healing, otherwise)


def at_points(story: Story, around: Around) -> Outcome:
    """The same filter schemes at the same places, and nothing from host to host."""
    zones = story.zones()
    options = replace(around.options, more_at_broker=lambda: [TransitionsAtPoints(zones, around.scheme, RADIAL)])
    return run(story, RADIAL, (), options)


def check_augmented(story: Story, around: Around) -> CoexistingTown:
    town, plain = CoexistingTown(story, around), at_points(story, around)
    found = town.run()
    assert found.copies == plain.copies, "the cloud does what it does without ad hoc mechanisms"
    assert not found.duplicates()
    assert not [pair for pair in plain.delivered if pair not in found.delivered], "lost"
    return town


@few(4)
@given(walks(), ways("augment"))
def test_beside_the_cloud_nothing_is_lost_or_doubled(story: Story, around: Around) -> None:
    check_augmented(story, around)


@campaign
@many(60)
@given(walks(), ways("augment"))
def test_beside_the_cloud_nothing_is_lost_or_doubled_on_many_walks(story: Story, around: Around) -> None:
    check_augmented(story, around)


@few(4)
@given(walks(), ways("offload"))
def test_in_place_of_the_cloud_every_event_goes_one_way_and_nothing_is_doubled(story: Story, around: Around) -> None:
    town = CoexistingTown(story, around)
    found = town.run()
    assert not found.duplicates()
    published = {said.id for said in story.publications}
    local = {said.id for said in story.publications if said.kind == "local"}
    assert town.by_cloud() | town.by_radio() == published, "neither of the ways had it"
    assert not town.by_cloud() & town.by_radio(), "both had it"
    assert town.by_radio() <= local


def test_who_comes_to_a_point_changes_all_three_and_back() -> None:
    town = check_augmented(TOWN, Around())
    rows = [row for row in town.outcome.rows["transitions"] if row[1] != "broker" and row[7] is not None]
    by_plan: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for _, host, proxy, _, target, _, _, plan in rows:
        by_plan.setdefault((host, plan), []).append((proxy, None if target is None else target.partition("(")[0]))
    kinds = {tuple(each) for each in by_plan.values()}
    assert kinds == {
        (("filter scheme", "ATTRACT"), ("lc", "FLOODING"), (HYBRID, "augment")),
        (("filter scheme", "RADIAL"), ("lc", None), (HYBRID, "cloud")),
    }
    assert len(by_plan) > 10
    statistics = town.coexistence.statistics()
    assert statistics.plans == len(by_plan)
    assert statistics.plans_for_points == 0
    assert town.by_radio()


@pytest.mark.parametrize("options", [Options(), DOCUMENTS], ids=["ours", "documents"])
@pytest.mark.parametrize("healing", [False, True], ids=["central", "self-healing"])
def test_in_the_end_hosts_run_what_is_right_where_they_are(healing: bool, options: Options) -> None:
    story = replace(TOWN, rate=8.0)
    town = CoexistingTown(story, Around("offload", threshold=1.0, healing=healing, otherwise=PLAN_B, options=options))
    found = town.run()
    inside = {name for name, scheme in found.schemes.items() if scheme.name == "ATTRACT"}
    assert len(inside) > 2
    assert {name for name in town.names if town.adhoc(name).running != NULL} == inside, "outside nobody runs any"
    statistics = town.coexistence.statistics()
    assert statistics.rules.switched > 2
    assert (statistics.plans_for_points == 0) == healing
    assert {str(town.adhoc(name).running) for name in inside} <= {str(FLOODING), str(PLAN_B)}
    settled = told_since_points_switched(town, inside) if healing else inside
    assert len(settled) > 2
    for name in settled:
        crowded = town.coexistence._points.crowded(town.coexistence._points.points_of(name))
        assert town.adhoc(name).running == (FLOODING if crowded else PLAN_B)


def told_since_points_switched(town: CoexistingTown, inside: Collection[str]) -> set[str]:
    """With self-healing the others change when they hear of it, and here they are seldom near enough to hear anybody."""
    switched, told = dict.fromkeys(("castle", "market", "park", "station"), 0), dict.fromkeys(inside, 0)
    for time, host, proxy, *_ in town.outcome.rows["transitions"]:
        if host == "broker" and proxy.startswith("lc at "):
            switched[proxy.removeprefix("lc at ")] = time
        elif host in told and proxy == "lc":
            told[host] = time
    points_of = town.coexistence._points.points_of
    return {name for name in inside if all(switched[point] < told[name] for point in points_of(name))}


@dataclass(frozen=True)
class Crowd(Story):
    """Three are in the park alone, one at the market alone; the last one is where they overlap.  All hear each other."""

    def place(self, client: int) -> tuple[float, float]:
        return [(150.0, 140.0), (155.0, 145.0), (150.0, 150.0), (40.0, 80.0), (105.0, 115.0)][client]

    def interests(self, _client: int) -> list[tuple[Subscription, LocationRequest | None]]:
        return [(Subscription("news/#", area=Circle(125.0), id="near"), LocationRequest(self.interval))]

    def changes_of_mind(self, _client: int) -> list[tuple[float, Subscription | None]]:
        return []


@pytest.mark.parametrize("healing", [False, True], ids=["central", "self-healing"])
def test_who_comes_to_where_points_overlap_brings_nothing_to_the_one_that_is_not_crowded(healing: bool) -> None:
    story = Crowd(3, clients=5, seconds=30.0, side=500.0, speed=0.0)
    around = Around(threshold=2.0, healing=healing, otherwise=PLAN_B)
    town = CoexistingTown(story, around, [Fault(14.0, "c4", "join")])
    points_of = town.coexistence._points.points_of
    town.simulation.run(13_000_000)
    together = dict.fromkeys(("c0", "c1", "c2"), FLOODING)
    assert {name: town.adhoc(name).running for name in town.names[:4]} == together | {"c3": PLAN_B}
    town.run()
    assert [points_of(name) for name in ("c2", "c3", "c4")] == [("park",), ("market",), ("market", "park")]
    assert {name: town.adhoc(name).running for name in town.names} == together | {"c3": PLAN_B, "c4": FLOODING}


def test_who_leaves_the_town_is_counted_no_longer() -> None:
    town = CoexistingTown(replace(TOWN, speed=0.0), Around(threshold=1.0))
    town.run()
    before = town.coexistence.statistics().at_points
    inside = [name for name in town.names if town.coexistence._points.points_of(name)]
    assert before == len(inside) > 1
    town.world.hosts[inside[0]].leave()
    town.simulation.run(town.simulation.now() + 1_000_000)
    assert town.coexistence.statistics().at_points == before - 1


def test_self_healing_needs_something_to_hear_with() -> None:
    with pytest.raises(InvalidPlan, match="would never hear"):
        Around(threshold=3.0, healing=True).settings()
