"""Routers that keep messages for whoever will be there, with all that belongs to them, on the tree of setup S4 (6.4.1).

Wires take the same time for each hop, so that a way can be compared with a round trip, and lose nothing.  Devices are next to their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from nearcast.experiment.contextcast.history import Setup, setup
from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.context_host import Application, ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.temporal.entity import Entity
from nearcast.overlay.temporal.future import Future
from nearcast.overlay.temporal.messages import Keep
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.overlay.temporal.trusted_node import TrustedNode
from nearcast.overlay.topology.spanning_tree import Tree
from nearcast.runtime.host import Component
from nearcast.runtime.links import RECEIVED
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.distributions import Constant
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.wired import Wire, WiredNetwork
from nearcast.runtime.simulation.world import World

HOP: Final = 0.02
"""Seconds between neighbours."""

TO_NODE: Final = 0.001
START: Final = 1_767_225_600 * MICROSECONDS
_AREA_EDGES: Final = (0.05, 0.06)
_TRUSTED: Final = 3
_LONG: Final = 3_600 * MICROSECONDS
_KEEP: Final = str(Keep.__struct_config__.tag)


class Device:
    """Of somebody who stays at one node, and is in a context that a message asks for when told so."""

    def __init__(self, overlay: Overlay, name: str, node: Address, trusted: Address) -> None:
        self.node: Final = node
        self.got: Final[dict[str, Instant]] = {}
        self._overlay: Final = overlay
        host = ContextHost(node, "access", companion=Entity(name, trusted))
        self._application: Final[Application] = host.application(self._hear)
        overlay.world.add(name, lambda: [host], [overlay.access]).join()
        self.meet(-1)

    def meet(self, trial: int) -> None:
        self._application.register("me", {"trial": trial})

    def _hear(self, event: Event) -> None:
        self.got[event.id] = self._overlay.simulation.time


class Overlay:
    def __init__(self, seed: int, routers: int, nodes: int, devices: int) -> None:
        """``devices`` at each of so many nodes."""
        self.setup: Final[Setup] = setup(seed, routers, _AREA_EDGES)
        random = Random(f"waiting {seed}")
        observers = Observers()
        observers.analyze("messages", self._message)
        self.simulation: Final = Simulation(seed, start=START, observers=observers)
        self.world: Final = World(self.simulation, Plane(Point(48.78, 9.18)), routers + nodes * devices)
        self.wires: Final = WiredNetwork(self.simulation, Wire(delay=Constant(HOP)))
        self.access: Final = WiredNetwork(self.simulation, Wire(delay=Constant(TO_NODE)), interface="access")
        self.arrived: Final[dict[Address, Instant]] = {}
        """At nodes: the last message that is to be kept."""

        self.registered: Final[dict[Address, Instant]] = {}
        """At nodes: the last change of a context."""

        self.futures: Final[dict[Address, Future]] = {}
        trusted = random.sample(self.setup.names, _TRUSTED)
        areas = dict(zip((self.setup.names[number] for number in self.setup.access), self.setup.areas, strict=True))
        self.routers: Final[dict[Address, Router]] = {}
        for name in self.setup.names:
            parts = self._parts(name, areas.get(name), name in trusted)
            self.world.add(name, lambda parts=parts: parts, [self.wires, self.access]).join()  # type: ignore[misc]
        for name, router in self.routers.items():
            tree = Tree(self.setup.spanning, name)
            router.tree_changed(tree)
            for neighbour in sorted(tree.neighbours):
                router.joined(neighbour)
        self.devices: Final = {
            node: [
                Device(self, f"device {number} of {node}", node, random.choice(trusted)) for number in range(devices)
            ]
            for node in random.sample(sorted(areas), nodes)
        }
        self.run(60)

    def _parts(self, name: Address, area: Sequence[float] | None, trusted: bool) -> list[Component]:
        self.routers[name] = Router(Reference())
        self.futures[name] = Future()
        parts: list[Component] = [self.routers[name]]
        if area is None:
            parts.append(TemporalRouter())
        else:
            node = ContextNode("access", lease=1e9)
            node.recorders.append(lambda _vid, _at, _context: self._registered(name))
            # Degrees instead of a plane: how large areas are makes no difference here.
            parts += [node, TemporalRouter(area=Box(*(float(side) for side in area)))]
        if trusted:
            parts.append(TrustedNode())
        return [*parts, self.futures[name]]

    def _registered(self, node: Address) -> None:
        self.registered[node] = self.simulation.time

    def _message(self, *row: Any) -> None:
        _sent, time, _interface, kind, _sender, receiver, _size, outcome, _copies = row
        if kind == _KEEP and outcome == RECEIVED:
            self.arrived[receiver] = time

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.time + round(seconds * MICROSECONDS))

    def publish(self, trial: int, source: Address) -> str:
        """For whoever comes from now on."""
        now = self.simulation.time
        when = TemporalPredicate("overlaps", now, now + _LONG)
        event = Event(f"trial {trial}", "future", now, to=f"trial = {trial}", when=when)
        self.routers[source].publish(event)
        return event.id

    def holding(self, message: str) -> set[Address]:
        return {name for name, future in self.futures.items() if message in future}
