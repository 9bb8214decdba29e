"""A town of routers with archives, people who walk through it, and what the definition of delivery says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.overlay.routing_worlds import GivenTree, Wires

from nearcast.model.area import Area, Box
from nearcast.model.delivery import relevant_moments
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.context_host import Application, ContextHost
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.temporal.entity import Entity
from nearcast.overlay.temporal.mailbox import Mailbox
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.overlay.temporal.trusted_node import TrustedNode
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SENT, Parcel
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

START = 1_767_225_600 * MICROSECONDS
STREET = 0.01
"""Degrees: node n serves the n-th square from west to east."""


def square(number: int, count: int = 1) -> Box:
    return Box(number * STREET, 0.0, (number + count) * STREET, STREET)


def inside(number: int, part: float = 0.5) -> Point:
    return Point(STREET / 2, (number + part) * STREET)


class Streets(Wires):
    """Between routers anything may overtake; what a device says to one node, and that to it, keeps its order, as on any access network."""

    def transmit(self, parcel: Parcel) -> Sending:
        ends = (parcel.sender.address, parcel.receiver or "")
        if not any(end.startswith("phone") for end in ends):
            return super().transmit(parcel)
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self._in_flight += 1
        lost = self._random.random() < self.loss
        delay = 1 + self.longest * (1 + sum(map(ord, "".join(ends))) % 7) // 8
        self.simulation.at(self.simulation.time + delay, self._arrive, (parcel, lost))
        return Sending.ACCEPTED


class Person:
    """With one device; everything it does is told to the history, too."""

    def __init__(self, town: Town, name: str, trusted: str, mailbox: str | None, *, changing: bool) -> None:
        self.town, self.name = town, name
        self.got: list[str] = []
        self.contexts: dict[str, Mapping[str, Any]] = {}
        self.position: Point | None = None
        self.known = False
        self.device = ContextHost(
            None, "wired", companion=Entity(name, trusted, mailbox, changing=changing, refresh=5.0)
        )
        self.application: Application = self.device.application(lambda event: self.got.append(event.id))
        town.world.add(f"phone of {name}", lambda: [self.device], [town.wires]).join()

    def go(self, node: str | None, position: Point | None) -> None:
        """To another access network, or to none."""
        self.device.move_to(None)
        self.position = position
        self._whole(node is not None)
        for name, context in self.contexts.items():
            self._register(name, context)
        if node is not None:
            self.device.move_to(node)

    def walk(self, position: Point | None) -> None:
        """Within an access network."""
        self.position = position
        if self.known:
            self.town.history.moved(self.name, self.town.now, position)
        for name, context in self.contexts.items():
            self._register(name, context)

    def register(self, name: str, context: Mapping[str, Any]) -> None:
        self.contexts[name] = context
        if not self.known and self.device._node is not None:
            self._whole(True)
        elif self.known:
            self.town.history.registered(self.name, self.town.now, name, context)
        self._register(name, context)

    def deregister(self, name: str) -> None:
        del self.contexts[name]
        if self.known:
            self.town.history.deregistered(self.name, self.town.now, name)
            if not self.contexts:  # a client without contexts is one with an implicit one; there is none here
                self._whole(False)
        self.application.deregister(name)

    def _register(self, name: str, context: Mapping[str, Any]) -> None:
        own = {} if self.position is None else {"position": self.position}
        self.application.register(name, {**own, **context})

    def _whole(self, here: bool) -> None:
        """He is (no longer) known anywhere."""
        history, now = self.town.history, self.town.now
        here = here and bool(self.contexts)
        if self.known and not here:
            history.disconnected(self.name, now)
        elif here:
            history.connected(self.name, now)
            history.moved(self.name, now, self.position)
            for name, context in self.contexts.items():
                history.registered(self.name, now, name, context)
        self.known = here


class Town:
    """Routers r000, ... on a tree; all of them serve a square of the street, some are trusted nodes, the last one has mailboxes."""

    def __init__(
        self,
        size: int,
        edges: Sequence[tuple[int, int]],
        settings: TemporalSettings | None = None,
        *,
        trusted: Iterable[int] = (0,),
        without_access: Iterable[int] = (),
        seed: int = 1,
        longest: int = 100_000,
        check_wire: bool = False,
    ) -> None:
        self.simulation = Simulation(seed, start=START)
        self.wires = Streets(self.simulation, check_wire=check_wire)
        self.wires.longest = longest
        self.world = World(self.simulation, Plane(Point(0.0, 0.0)), 200)
        self.settings = settings or TemporalSettings(settling=5.0)
        self.history = History()
        self.names = [f"r{number:03}" for number in range(size)]
        self.routers: dict[str, Router] = {}
        self.temporal: dict[str, TemporalRouter] = {}
        self.trusted: dict[str, TrustedNode] = {}
        self.people: dict[str, Person] = {}
        self.mailbox = Mailbox(self.settings)
        for number, name in enumerate(self.names):
            area = None if number in without_access else square(number)
            parts = self._parts(name, area, number in trusted, number == size - 1)
            self.world.add(name, lambda parts=parts: parts, [self.wires]).join()  # type: ignore[misc]
        self.connect(edges)
        self._beat()

    def _parts(self, name: str, area: Area | None, trusted: bool, last: bool) -> list[Component]:
        self.routers[name] = Router(Reference())
        self.temporal[name] = TemporalRouter(self.settings, area)
        parts: list[Component] = [self.routers[name]]
        if area is not None:
            parts.append(ContextNode("wired", lease=20.0))
        parts.append(self.temporal[name])
        if trusted:
            self.trusted[name] = TrustedNode(self.settings)
            parts.append(self.trusted[name])
        if last:
            parts.append(self.mailbox)
        return parts

    def connect(self, edges: Iterable[tuple[int, int]]) -> None:
        pairs = [(self.names[one], self.names[other]) for one, other in edges]
        for name, router in self.routers.items():
            before, tree = frozenset(router._tree.neighbours), GivenTree(name, pairs)
            router.tree_changed(tree)
            for gone in sorted(before - tree.neighbours):
                router.left(gone)
            for new in sorted(tree.neighbours - before):
                router.joined(new)

    def _beat(self, _: object = None) -> None:
        for name, router in self.routers.items():
            for neighbour in sorted(router._tree.neighbours):
                self.routers[neighbour].heard(name, router.news(neighbour))
        self.simulation.at(self.simulation.time + 5 * MICROSECONDS, self._beat)

    @property
    def now(self) -> Instant:
        return self.simulation.time

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.time + round(seconds * MICROSECONDS))

    def person(
        self,
        name: str,
        trusted: int = 0,
        *,
        contexts: Sequence[str] = ("me",),
        mailbox: bool = True,
        changing: bool = True,
    ) -> Person:
        """Somebody who has had identities for these contexts, and is nowhere."""
        person = self.people[name] = Person(
            self, name, self.names[trusted], self.names[-1] if mailbox else None, changing=changing
        )
        for context in contexts:
            person.register(context, {"setup": True})
        person.go(self.names[0], None)
        self.run(12)
        for context in contexts:
            person.deregister(context)
        person.go(None, None)
        self.run(1)
        return person

    def publish(self, router: int, event: Event) -> None:
        self.routers[self.names[router]].publish(event)

    def event(
        self, to: Predicate | str, when: TemporalPredicate | None = None, *, reach: Area | None = None, name: str = ""
    ) -> Event:
        return Event(name or f"e{self.now}", "news", self.now, to=to, when=when, reach=reach, payload=b"...")

    def expected(self, event: Event, as_of: Instant | None = None) -> list[str]:
        """By the definition."""
        until = self.now if as_of is None else as_of
        return sorted(
            name
            for name in self.people
            if any(True for _ in relevant_moments(self.history, event, self.history.client(name), until))
        )

    def receivers(self, event: Event) -> list[str]:
        """As often as they got it."""
        return sorted(name for name, person in self.people.items() for got in person.got if got == event.id)
