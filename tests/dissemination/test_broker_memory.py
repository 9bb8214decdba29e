"""What a broker keeps when it fails (``Memory``): without it, clients would have to tell it which scheme everybody runs."""

from __future__ import annotations

from dataclasses import replace

from tests.dissemination.cloud_town import NEAR, RADIAL, CloudTown

from nearcast.dissemination.cloud_broker import CloudBroker, Memory
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.runtime.host import Component
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

EGRID = MechanismSpec("EGRID")
GRID = MechanismSpec("GRID")


class RememberingTown(CloudTown):
    """Three people next to each other; the broker's memory survives it."""

    def __init__(self) -> None:
        self.memory = Memory()
        super().__init__([(0.0, 0.0), (10.0, 0.0), (20.0, 0.0)])

    def restart_broker(self) -> None:
        self.broker.fail()
        self.after(0.3)
        self.broker.join()

    def scheme_on(self, node: int) -> MechanismSpec:
        host = self.hosts[node].host
        assert host is not None
        proxy = host.component(HostEngine).engine.proxy(PROXY)
        assert isinstance(proxy, Proxy)
        return proxy.spec

    def _broker(self) -> list[Component]:
        settings = replace(self.options.broker, scheme=self.options.scheme)
        return [HostEngine(), TransitionCoordinator(), CloudBroker(self.options.territory, settings, self.memory)]


def test_after_a_restart_newcomers_come_to_what_everybody_was_told_last() -> None:
    town = RememberingTown()
    town.join(0, NEAR)
    town.after(3.0)
    town.cloud.transition(EGRID)
    town.after(3.0)
    town.hosts[0].leave()  # nobody is left who could tell the broker
    town.after(1.0)
    town.restart_broker()
    assert town.cloud.scheme == EGRID
    town.join(1, NEAR)
    town.after(3.0)
    assert town.scheme_on(1) == town.cloud.scheme_of("c1") == EGRID


def test_a_plan_right_after_a_restart_is_newer_than_those_that_were_for_some_clients_only() -> None:
    """Nobody has shown his clock yet: a plan that reused one would be refused by whoever followed the first of that clock."""
    town = RememberingTown()
    town.join_all(NEAR)
    town.after(3.0)
    town.cloud.transition(EGRID)
    town.after(3.0)
    for scheme in (GRID, MechanismSpec.of("GRID", factor=7)):
        town.cloud.transition(scheme, ["c0"])
        town.after(3.0)
    town.restart_broker()
    town.cloud.transition(RADIAL)
    town.after(30.0)
    assert [town.scheme_on(node) for node in range(3)] == [RADIAL] * 3
    assert [town.cloud.scheme_of(f"c{node}") for node in range(3)] == [RADIAL] * 3
