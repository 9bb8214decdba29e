"""Routers on simulated wires, for tests of the overlay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.topology.link_state import KnownStates
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.overlay.topology.spanning_tree import Tree
from nearcast.overlay.topology.topology import Topology
from nearcast.runtime.host import Component
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.wired import Wire, WiredNetwork
from nearcast.runtime.simulation.world import World

ORIGIN = Point(48.78, 9.18)


class Listener:
    """Writes down what it is told; sends its own name as news."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.told: list[tuple[str, str]] = []
        self.neighbours: set[Address] = set()
        self.greeted: dict[Address, bytes] = {}
        topology.listen(self)

    def tree_changed(self, tree: Tree) -> None:
        self.told.append(("tree", format(tree.identity, "x")))

    def joined(self, neighbour: Address) -> None:
        assert neighbour not in self.neighbours
        self.neighbours.add(neighbour)
        self.told.append(("joined", neighbour))

    def left(self, neighbour: Address) -> None:
        self.neighbours.remove(neighbour)
        self.greeted.pop(neighbour, None)
        self.told.append(("left", neighbour))

    def news(self, neighbour: Address) -> bytes:
        return f"to {neighbour}".encode()

    def heard(self, neighbour: Address, news: bytes) -> None:
        assert neighbour in self.neighbours
        self.greeted[neighbour] = news


class Routers:
    """Named r00, r01, ... at places on a plane; everybody knows some contacts."""

    def __init__(
        self,
        places: Sequence[tuple[float, float]],
        settings: TopologySettings | None = None,
        wire: Wire | None = None,
        *,
        seed: int = 1,
        given: KnownStates | None = None,
        observers: Observers | None = None,
        check_wire: bool = False,
    ) -> None:
        self.simulation = Simulation(seed, observers=observers)
        plane = Plane(ORIGIN)
        self.world = World(self.simulation, plane, len(places))
        self.network = WiredNetwork(self.simulation, wire, check_wire=check_wire)
        self.settings = settings or TopologySettings(contacts=("r00", "r01"))
        self.names = [f"r{number:02}" for number in range(len(places))]
        self.places = {name: plane.to_point(*place) for name, place in zip(self.names, places, strict=True)}
        self.listeners: dict[str, Listener] = {}
        for name in self.names:
            self.world.add(name, lambda name=name: self._build(name, given), [self.network])  # type: ignore[misc]

    def _build(self, name: str, given: KnownStates | None) -> Sequence[Component]:
        topology = Topology(self.settings, self.places[name], given)
        self.listeners[name] = Listener(topology)
        return [topology]

    def join(self, names: Iterable[str] | None = None) -> None:
        for name in self.names if names is None else names:
            self.world.hosts[name].join()

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    @property
    def up(self) -> list[str]:
        return [name for name in self.names if self.world.hosts[name].up]

    def topology(self, name: str) -> Topology:
        return self.listeners[name].topology

    def trees(self) -> dict[str, Tree]:
        return {name: self.topology(name).tree for name in self.up}

    def settled(self) -> bool:
        """All have one and the same tree, of all that are up."""
        trees = self.trees()
        return len({tree.identity for tree in trees.values()}) <= 1 and all(
            tree.routers == tuple(self.up) for tree in trees.values()
        )

    def settle(self, seconds: float) -> float:
        """Run until all agree; how long that took."""
        start = self.simulation.now()
        while not self.settled():
            assert self.simulation.now() - start < seconds * MICROSECONDS, {
                name: tree.routers for name, tree in self.trees().items()
            }
            self.run(0.5)
        return (self.simulation.now() - start) / MICROSECONDS

    def rest(self, seconds: float) -> None:
        """Run until all agree and nothing changes any more, for longer than anybody waits before it tries again."""
        start = self.simulation.now()
        while True:
            self.settle(seconds)
            epochs = [self.topology(name).epoch for name in self.up]
            self.run(1.5 * self.settings.retry_every)
            if self.settled() and epochs == [self.topology(name).epoch for name in self.up]:
                return
            assert self.simulation.now() - start < seconds * MICROSECONDS, epochs

    def check(self) -> None:
        """What must hold once everything is quiet, whatever happened before."""
        assert self.settled(), {name: tree.routers for name, tree in self.trees().items()}
        trees = self.trees()
        for name, tree in trees.items():
            assert len(tree.spanning.edges) == len(self.up) - 1
            assert tree.root == self.up[0]
            # The tree is one: whoever follows it arrives, hop by hop, and each hop is a link of the mesh.
            for other in self.up:
                at, hops = name, 0
                while at != other:
                    step = trees[at].next_hop(other)
                    assert step is not None
                    assert step in trees[at].neighbours
                    assert step in self.topology(at).links
                    at, hops = step, hops + 1
                    assert hops < len(self.up)
            assert tree.next_hop(name) is None
            assert self.listeners[name].neighbours == tree.neighbours
            self.check_degree(name)

    def check_degree(self, name: str) -> None:
        assert len(self.topology(name).links) <= self.settings.most_links
