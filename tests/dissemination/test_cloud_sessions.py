"""Sessions between clients and broker in every filter scheme: what is lost is made good, who is silent is not forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dissemination.cloud_town import NEAR, PROFILE, CloudTown, Options

from nearcast.dissemination.broker_state import SUBSCRIBERS
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.runtime.simulation.cellular_profile import Outage
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
SCHEMES = (
    of("RADIAL"),
    of("STE"),
    of("GRID", factor=3),
    of("EGRID"),
    of("EGRID", private=True),
    of("RGRID", cells="hexagon"),
    of("ATTRACT"),
    of("MULTI"),
)
in_every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=str)
SPORT = Subscription("sport", id="sport")


def town_of(scheme: MechanismSpec, outages: tuple[Outage, ...] = (), **more: object) -> CloudTown:
    """Two people 50 m apart, in the same cell and zone."""
    options = Options(scheme, profile=replace(PROFILE, outages=outages), **more)  # type: ignore[arg-type]
    return CloudTown([(30.0, 40.0), (80.0, 40.0)], options)


def hears(town: CloudTown, name: str = "e1", topic: str = "news", *, local: bool = True) -> bool:
    """Whether c1 hears what c0 says now, once."""
    town.applications["c0"].publish(name, topic, local=local)
    town.after(1.0)
    return town.applications["c1"].got.count(name) == 1


@in_every_scheme
def test_the_neighbour_hears_and_knows_nothing_of_schemes(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join_all(NEAR)
    town.after(3.0)
    assert hears(town)
    assert town.cloud.statistics().notifications == 1


@in_every_scheme
def test_a_subscription_that_was_lost_is_made_good(scheme: MechanismSpec) -> None:
    town = town_of(scheme, (Outage(0.0, 0.5, frozenset({"c1"})),))
    town.join_all(NEAR)
    town.after(15.0)  # who does not report is asked after its second sign of life
    assert hears(town)


@in_every_scheme
def test_an_unsubscription_that_was_lost_is_made_good_and_then_there_is_peace(scheme: MechanismSpec) -> None:
    town = town_of(scheme, (Outage(5.0, 6.0, frozenset({"c1"})),))
    town.join(0)
    near = town.join(1, NEAR, SPORT)
    town.after(5.5)
    near.held[1].cancel()
    town.after(20.0)
    assert not hears(town, "e1", "sport")
    assert town.cloud.statistics().notifications == 0
    town.after(30.0)
    assert town.sent("subscribe again")[0] == 1


@in_every_scheme
def test_a_client_that_was_forgotten_returns(scheme: MechanismSpec) -> None:
    town = town_of(scheme, (Outage(5.0, 60.0, frozenset({"c1"})),))
    town.join(0)
    town.join(1, NEAR, SPORT)
    town.after(55.0)
    assert town.cloud.statistics().forgotten >= 1
    town.after(20.0)
    assert hears(town)
    assert hears(town, "e2", "sport")


@in_every_scheme
def test_a_broker_that_has_failed_learns_everything_again(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join_all(NEAR)
    town.after(5.0)
    town.broker.fail()
    town.after(2.0)
    town.broker.join()
    town.after(16.0)
    assert hears(town)


@in_every_scheme
def test_who_stands_still_and_has_nothing_to_say_is_not_forgotten(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join_all(NEAR)
    town.after(120.0)
    assert town.cloud.statistics().forgotten == 0
    assert hears(town)
    # Who reports with every fix needs no other sign of life; in MULTI, they are in the channel of the market.
    assert bool(town.sent("alive")[0]) is (scheme.name not in ("RADIAL", "STE"))


@in_every_scheme
def test_who_leaves_is_forgotten_at_once_and_is_told_nothing_more(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join_all(NEAR, SPORT)
    town.after(5.0)
    town.hosts[1].leave()
    town.after(0.15)
    told = town.sent(host="broker")
    assert "c1" not in town.half().contexts
    town.applications["c0"].publish("e1")
    town.after(5.0)
    assert town.cloud.statistics().clients == 1
    assert town.sent(host="broker") == told


@in_every_scheme
def test_who_left_and_comes_back_hears_again(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join_all(NEAR)
    town.after(5.0)
    town.hosts[1].leave()
    town.after(1.0)
    town.join(1, NEAR)
    town.after(3.0)
    assert hears(town)


@in_every_scheme
def test_an_area_of_interest_that_became_smaller_or_larger_counts_from_then_on(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join(0)
    near = town.join(1, replace_radius(10.0))
    town.after(3.0)
    # Not ``local``: the events of those who keep their position private happen in the middle of a cell.
    assert not hears(town, "too far", local=False)
    near.subscribe(replace_radius(400.0))
    town.after(3.0)
    assert hears(town, "near enough", local=False)
    near.subscribe(replace_radius(60.0))
    town.after(3.0)
    assert hears(town, "still near", local=False)


@pytest.mark.parametrize("scheme", [of("EGRID", factor=20), of("EGRID", factor=20, private=True)], ids=str)
def test_who_lost_cells_because_its_area_became_smaller_gets_them_again_when_it_walks(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.join(0)
    near = town.join(1, replace_radius(400.0))
    town.after(3.0)
    near.subscribe(replace_radius(20.0))
    town.after(3.0)
    # Within what it was assigned at first, but out of what it needs now.
    town.put(0, -150.0, 40.0)
    town.put(1, -145.0, 40.0)
    town.after(3.0)
    assert hears(town)


@in_every_scheme
def test_events_without_a_place_are_filtered_by_content_alone(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.put(1, 600.0, -600.0)
    town.join_all(NEAR)
    town.after(3.0)
    town.applications["c0"].publish("everywhere", place=None, local=False)
    town.after(1.0)
    assert town.applications["c1"].got == ["everywhere"]


@in_every_scheme
def test_events_elsewhere_reach_those_who_are_there(scheme: MechanismSpec) -> None:
    town = town_of(scheme)
    town.put(0, -600.0, 600.0)
    town.join_all(NEAR)
    town.after(3.0)
    town.applications["c0"].publish("over there", place=town.world.plane.to_point(81.0, 41.0), local=False)
    town.after(1.0)
    assert town.applications["c1"].got == ["over there"]


def replace_radius(metres: float) -> Subscription:
    return Subscription("news", area=Circle(metres), id="interest")


def test_who_only_publishes_is_no_subscriber() -> None:
    """Else rules on the number of subscribers would count everybody."""
    town = town_of(MechanismSpec("RADIAL"))
    town.join(0)
    town.join(1, NEAR)
    town.after(1.0)
    assert hears(town)
    assert town.broker.host is not None
    assert town.cloud.statistics().clients == 2
    assert town.broker.host.state.get(SUBSCRIBERS) == 1.0
