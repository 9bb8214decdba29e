"""Clients that cannot, or say what nobody understands: the broker goes on, for them and for the others."""

from tests.dissemination.cloud_town import NEAR, RADIAL, CloudTown

from nearcast.dissemination.cloud_client import CloudClient
from nearcast.dissemination.cloud_messages import PROXY, AllSubscriptions
from nearcast.runtime.host import Host
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.plan import PlanId
from nearcast.transition.specification import MechanismSpec

GRID, NONSENSE = MechanismSpec("GRID"), MechanismSpec("NONSENSE")


def town_of_two() -> tuple[CloudTown, Host]:
    town = CloudTown([(0.0, 0.0), (10.0, 0.0)])
    town.join_all(NEAR)
    town.after(3.0)
    host = town.hosts[0].host
    assert host is not None
    return town, host


def test_a_client_that_cannot_follow_a_plan_is_told_so_twice_at_most_and_served_by_the_scheme_that_it_has() -> None:
    town, host = town_of_two()
    host.component(TransitionAgent).pin(PROXY)  # stands for whatever may fail there
    town.cloud.transition(GRID)
    town.after(120.0)
    assert town.sent("plan")[0] <= 3
    assert town.cloud.statistics().overlaps == 1


def test_a_scheme_that_the_broker_does_not_have_harms_nobody() -> None:
    town, host = town_of_two()
    endpoint = host.component(CloudClient)._endpoint
    running = AllSubscriptions((), NONSENSE, PlanId(9, "x"), None, None, scheme="NONSENSE", clock=9)
    pinned = AllSubscriptions((), RADIAL, PlanId(0, ""), None, NONSENSE)
    for message in (running, pinned):
        endpoint.send("broker", message)
        town.after(1.0)
    assert town.cloud.statistics().refused == 2
    assert town.cloud.scheme_of("c0") == RADIAL
