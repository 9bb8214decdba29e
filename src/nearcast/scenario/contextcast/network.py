"""A simulated network of routers on a tree that is given, and what they have sent.

Nobody fails here, and nothing is lost unless the wires are told so: what costs updates and messages is measured, not what mends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.router import Router
from nearcast.overlay.topology.link_state import LinkStates
from nearcast.overlay.topology.models import Layout, on_plane
from nearcast.overlay.topology.spanning_tree import tree_at
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.wired import Wire, WiredNetwork
from nearcast.runtime.simulation.world import World
from nearcast.scenario.contextcast.ground import Ground
from nearcast.scenario.contextcast.strategies import Strategy

Delivered = Callable[[Event, frozenset[Handle]], None]


@dataclass(frozen=True, slots=True)
class Load:
    """What all routers together have done."""

    updates: int = 0
    """Copies of what routers say of contexts, each over one link."""

    messages: int = 0
    """Copies of messages, each over one link."""

    false_positives: int = 0
    delivered: int = 0
    """Messages, by router that had somebody for them."""

    invalidations: int = 0
    prunes: int = 0

    @property
    def total(self) -> int:
        return self.updates + self.messages + self.invalidations

    def __sub__(self, before: Load) -> Load:
        return Load(*(getattr(self, each.name) - getattr(before, each.name) for each in fields(Load)))

    def __add__(self, other: Load) -> Load:
        return Load(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Load)))


class RouterNetwork:
    """Routers with numbers, each with a reporting of its own if it serves an access network."""

    def __init__(
        self,
        seed: int,
        layout: Layout,
        strategy: Strategy,
        ground: Ground | None = None,
        *,
        wire: Wire | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.ground: Final = ground or Ground()
        self.simulation: Final = Simulation(seed, observers=observers)
        wire = wire or Wire()
        self.wires: Final = WiredNetwork(self.simulation, wire)
        self._listeners: Final[list[Delivered]] = []
        self._world: Final = World(self.simulation, Plane(self.ground.point(0, 0)), layout.nodes)
        places, given = on_plane(layout, self.ground.point, self.ground.edge)
        self.names: Final = tuple(places)
        make = strategy.maker(self.simulation, wire)
        self.routers: Final[list[Router]] = []
        for name in self.names:
            router = make(self._deliver)
            self.routers.append(router)
            self._world.add(name, _only(router), [self.wires]).join()
        states = LinkStates(given)
        self.trees: Final = [tree_at(name, states) for name in self.names]
        for router, tree in zip(self.routers, self.trees, strict=True):
            router.tree_changed(tree)
        for router, tree in zip(self.routers, self.trees, strict=True):
            for neighbour in sorted(tree.neighbours):
                router.joined(neighbour)
        self._number: Final = {name: number for number, name in enumerate(self.names)}
        self._events = 0

    def register(self, router: int, context: Context) -> Handle:
        return self.routers[router].register(context)

    def update(self, handle: Handle, context: Context) -> None:
        self.routers[self.router_of(handle)].update(handle, context)

    def remove(self, handle: Handle) -> None:
        self.routers[self.router_of(handle)].remove(handle)

    def publish(self, router: int, event: Event) -> None:
        self.routers[router].publish(event)

    def router_of(self, handle: Handle) -> int:
        return self._number[handle.partition("/")[0]]

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.simulation.time / MICROSECONDS

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.time + round(seconds * MICROSECONDS))

    def load(self) -> Load:
        """Since the beginning."""
        every = [router.statistics() for router in self.routers]
        return Load(
            updates=sum(each.knowledge.updates_sent for each in every),
            messages=sum(each.forwarded for each in every),
            false_positives=sum(each.false_positives for each in every),
            delivered=sum(each.delivered for each in every),
            invalidations=sum(each.knowledge.invalidations_sent for each in every),
            prunes=sum(each.knowledge.prunes for each in every),
        )

    def listen(self, delivered: Delivered) -> None:
        """Be told of each message that comes to a router where it is for somebody."""
        self._listeners.append(delivered)

    def _deliver(self, event: Event, handles: frozenset[Handle]) -> None:
        for delivered in self._listeners:
            delivered(event, handles)


def _only(router: Router) -> Callable[[], list[Router]]:
    return lambda: [router]
