"""Routers on a topology that they keep themselves: after failures and losses nobody is missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.overlay.routers import Routers

from nearcast.model.event import Event
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.topology.link_state import KnownStates
from nearcast.overlay.topology.topology import Topology
from nearcast.runtime.host import Component

PLACES = [(x * 1_000.0, y * 1_000.0) for x in range(3) for y in range(3)]


class Routing(Routers):
    """Each router has one context, its own name, which it registers in every life."""

    def __init__(self, knowledge: Callable[[], Knowledge]) -> None:
        self.knowledge = knowledge
        self.routers: dict[str, Router] = {}
        self.topologies: dict[str, Topology] = {}
        self.got: list[tuple[str, str]] = []
        super().__init__(PLACES, check_wire=True)

    def _build(self, name: str, given: KnownStates | None) -> Sequence[Component]:
        topology = Topology(self.settings, self.places[name], given)
        router = Router(self.knowledge(), deliver=lambda event, _: self.got.append((event.id, name)))
        self.routers[name] = router
        self.topologies[name] = topology
        return [topology, router]

    def topology(self, name: str) -> Topology:
        return self.topologies[name]

    def come(self, *names: str) -> None:
        self.join(names or None)
        for name in names or self.names:
            self.routers[name].register({"name": name})

    def ask(self, sender: str, to: str) -> list[str]:
        """Who gets a message."""
        self.got.clear()
        event = Event(f"e{self.simulation.now()}", "news", self.simulation.now(), to=to)
        self.routers[sender].publish(event)
        self.run(10)
        assert {name for name, _ in self.got} <= {event.id}
        return sorted(name for _, name in self.got)

    def learn(self, sender: str) -> None:
        """Ask for nobody until that is known: from then on each router decides by what it was told, also one that speculates at first."""
        for _ in range(12):
            self.ask(sender, "name = 'nobody'")
        before = self.forwarded()
        assert self.ask(sender, "name = 'nobody'") == []
        assert self.forwarded() == before

    def forwarded(self) -> int:
        return sum(self.routers[name].statistics().forwarded for name in self.up)

    def each_hears(self, sender: str) -> None:
        assert self.ask(sender, "name LIKE 'r%'") == self.up
        self.learn(sender)
        for name in self.up:
            assert self.ask(sender, f"name = '{name}'") == [name]
        for name in set(self.names) - set(self.up):
            assert self.ask(sender, f"name = '{name}'") == []


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
def test_failures_and_returns_leave_nobody_out(knowledge: Callable[[], Knowledge]) -> None:
    routing = Routing(knowledge)
    routing.come()
    routing.rest(600)
    routing.each_hears("r00")
    for name in ("r04", "r01"):
        routing.world.hosts[name].fail()
    routing.rest(600)
    routing.each_hears("r08")
    routing.come("r04")
    routing.rest(600)
    routing.each_hears("r04")
    routing.each_hears("r00")
