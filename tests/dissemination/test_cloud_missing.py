"""Events that come before the broker knows where a subscriber is: three strategies in small simulated worlds."""

from __future__ import annotations

import pytest
from tests.dissemination.cloud_town import NEAR, CloudTown, Options

from nearcast.dissemination.cloud_broker import BrokerSettings
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
RADIAL = of("RADIAL")
in_schemes = pytest.mark.parametrize("scheme", [RADIAL, of("EGRID"), of("ATTRACT"), of("MULTI")], ids=str)


def town_with(strategy: str, scheme: MechanismSpec = RADIAL, *, wait_at_most: float = 2.0) -> CloudTown:
    """c1 is near c0, c2 is far; of both the broker knows the subscription, and not the position."""
    settings = BrokerSettings(scheme, forget_after=20.0, missing_context=strategy, wait_at_most=wait_at_most)  # type: ignore[arg-type]
    slow_first_fix = Options(scheme, broker=settings, fix_every=1000.0)
    return CloudTown([(30.0, 40.0), (80.0, 40.0), (-600.0, -600.0)], slow_first_fix)


def subscribe_without_context(town: CloudTown, *subscriptions: Subscription) -> None:
    town.join(0)
    for node in (1, 2):
        town.join(node, *subscriptions)
    # Subscriptions are sent before the first fix is known; what is said of that is lost here.
    town.cloud.schemes.take = lambda client, message: None  # type: ignore[method-assign]
    town.after(0.5)
    del town.cloud.schemes.take
    contexts = town.half().contexts
    assert [town.half().knows_place(client) for client in ("c1", "c2")] == [False, False]
    assert all(contexts[client].subscriptions for client in ("c1", "c2"))


def report(town: CloudTown) -> None:
    for node in (1, 2):
        half = town.client_half(node)
        half.bootstrap()
    town.after(0.5)


@in_schemes
def test_ignoring_loses_the_event(scheme: MechanismSpec) -> None:
    town = town_with("ignore", scheme)
    subscribe_without_context(town, NEAR)
    town.applications["c0"].publish("e1")
    town.after(0.5)
    report(town)
    assert town.reached() == set()
    assert town.cloud.statistics().notifications == 0


@in_schemes
def test_delivering_without_context_reaches_everybody_and_each_checks_for_itself(scheme: MechanismSpec) -> None:
    town = town_with("deliver", scheme)
    subscribe_without_context(town, NEAR)
    town.applications["c0"].publish("e1")
    town.applications["c0"].publish("other", "sport")
    town.after(0.5)
    outcomes = {(row[2], row[4]) for row in town.rows["notifications"]}
    assert outcomes == {("c1", "delivered"), ("c2", "unwanted")}
    report(town)
    town.applications["c0"].publish("e2")
    town.after(0.5)
    assert {client for event, client in town.reached() if event == "e2"} == {"c1"}


@in_schemes
def test_waiting_delivers_as_soon_as_the_context_is_there_and_to_the_right_ones(scheme: MechanismSpec) -> None:
    town = town_with("wait", scheme)
    subscribe_without_context(town, NEAR)
    town.applications["c0"].publish("e1")
    town.after(0.5)
    assert town.reached() == set()
    assert town.cloud.statistics().waiting == 2
    report(town)
    assert town.reached() == {("e1", "c1")}
    [(_, _, _, _, outcome, delay, _)] = town.rows["notifications"]
    assert (outcome, delay) == ("delivered", 700_000)  # half a second later than it might have been
    statistics = town.cloud.statistics()
    assert (statistics.waiting, statistics.given_up, statistics.notifications) == (0, 0, 1)


def test_waiting_has_an_end() -> None:
    town = town_with("wait", wait_at_most=1.0)
    subscribe_without_context(town, NEAR)
    town.applications["c0"].publish("e1")
    town.after(1.5)
    report(town)
    assert town.reached() == set()
    statistics = town.cloud.statistics()
    assert (statistics.waiting, statistics.given_up) == (0, 2)


@pytest.mark.parametrize("strategy", ["deliver", "wait"])
def test_who_gets_it_by_another_subscription_gets_it_once(strategy: str) -> None:
    town = town_with(strategy)
    subscribe_without_context(town, NEAR, Subscription("#", id="everything"))
    town.applications["c0"].publish("e1")
    town.applications["c0"].publish("placeless", place=None, local=False)
    town.after(0.5)
    report(town)
    assert len(town.rows["notifications"]) == 4
    assert all(row[4] == "delivered" for row in town.rows["notifications"])


@pytest.mark.parametrize("strategy", ["deliver", "wait"])
def test_who_is_known_to_be_between_the_points_is_not_missing(strategy: str) -> None:
    town = town_with(strategy, of("ATTRACT", catch_all=False))
    town.join(0)
    town.join(2, NEAR)
    town.after(1.0)
    town.applications["c0"].publish("e1")
    town.after(1.0)
    assert (town.reached(), town.cloud.statistics().waiting) == (set(), 0)


def test_who_leaves_is_not_waited_for() -> None:
    town = town_with("wait")
    subscribe_without_context(town, NEAR)
    town.applications["c0"].publish("e1")
    town.after(0.5)
    town.hosts[1].leave()
    town.after(0.2)
    assert town.cloud.statistics().waiting == 1
