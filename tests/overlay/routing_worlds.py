"""Routers on a tree that is given, wires that reorder and lose, and who should get what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.predicate import And, Predicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reporting import Exact, Reporting
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.senders import Senders
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SENT, Network, Parcel
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

Edges = Iterable[tuple[str, str]]


class Wires(Network):
    """Any delay up to a second, any order, some loss."""

    def __init__(self, simulation: Simulation, *, check_wire: bool = True) -> None:
        super().__init__(simulation, "wired", local=False, overhead=0, check_wire=check_wire)
        self.loss = 0.0
        self.cut: frozenset[str] = frozenset()
        """Nothing reaches these, or comes from them."""

        self.longest = MICROSECONDS
        self.copies: dict[tuple[str, str, str], int] = {}
        """Of each message on each link."""

        self._random = simulation.random.stream("wires")
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def transmit(self, parcel: Parcel) -> Sending:
        assert parcel.receiver is not None
        if isinstance(parcel.message, Routed):
            link = (parcel.message.id, parcel.sender.address, parcel.receiver)
            self.copies[link] = self.copies.get(link, 0) + 1
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self._in_flight += 1
        lost = self._random.random() < self.loss or not self.cut.isdisjoint((parcel.sender.address, parcel.receiver))
        self.simulation.at(
            self.simulation.time + 1 + int(self._random.random() * self.longest), self._arrive, (parcel, lost)
        )
        return Sending.ACCEPTED

    def _arrive(self, sent: tuple[Parcel, bool]) -> None:
        parcel, lost = sent
        self._in_flight -= 1
        if lost:
            self.lose(parcel, "lost")
        else:
            self.arrive(parcel, self.links[parcel.receiver or ""])


class GivenTree:
    """A forest, as one of its routers sees it."""

    def __init__(self, me: Address, edges: Edges) -> None:
        self.me = me
        edges = sorted((min(edge), max(edge)) for edge in edges)
        self.identity = hash(tuple(edges)) >> 2
        adjacent: dict[str, list[str]] = {}
        for one, other in edges:
            adjacent.setdefault(one, []).append(other)
            adjacent.setdefault(other, []).append(one)
        self.neighbours = frozenset(adjacent.get(me, ()))
        self._hop: dict[str, str | None] = {me: None}
        waiting = [me]
        while waiting:
            at = waiting.pop()
            for to in adjacent.get(at, ()):
                if to not in self._hop:
                    self._hop[to] = to if at == me else self._hop[at]
                    waiting.append(to)
        self.routers = tuple(sorted(self._hop))

    def __contains__(self, router: object) -> bool:
        return router in self._hop

    def next_hop(self, router: Address) -> Address | None:
        return self._hop.get(router)


class Overlay:
    """Routers 0 to n - 1, and the truth about them."""

    def __init__(
        self,
        size: int,
        knowledge: Callable[[], Knowledge],
        reporting: Callable[[int], Reporting] = lambda _: Exact(),
        *,
        seed: int = 1,
        heartbeat: float = 5.0,
        settings: RoutingSettings | None = None,
        senders: Callable[[], Senders | None] = lambda: None,
        check_wire: bool = True,
    ) -> None:
        self.simulation = Simulation(seed)
        self.wires = Wires(self.simulation, check_wire=check_wire)
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), size)
        self.names = [f"r{number:03}" for number in range(size)]
        self.routers: list[Router] = []
        self.contexts: dict[Handle, Mapping[str, Any]] = {}
        """As they truly are."""

        self.delivered: dict[str, list[Handle]] = {}
        self.edges: list[tuple[str, str]] = []
        for number, name in enumerate(self.names):
            router = Router(knowledge(), reporting(number), settings, deliver=self._deliver, senders=senders())
            self.routers.append(router)
            self.world.add(name, lambda router=router: [router], [self.wires]).join()  # type: ignore[misc]
        if heartbeat:
            self._beat(heartbeat)

    def _beat(self, seconds: float) -> None:
        for name, router in zip(self.names, self.routers, strict=True):
            for neighbour in sorted(router._tree.neighbours):
                news, other = router.news(neighbour), self.routers[self.names.index(neighbour)]
                delay = 1 + int(self.simulation.random.stream("beats").random() * MICROSECONDS)
                self.simulation.at(
                    self.simulation.time + delay, lambda said: said[0].heard(said[1], said[2]), (other, name, news)
                )
        self.simulation.at(self.simulation.time + round(seconds * MICROSECONDS), lambda _: self._beat(seconds))

    def connect(self, edges: Iterable[tuple[int, int]]) -> None:
        self.edges = [(self.names[one], self.names[other]) for one, other in edges]
        before = {router: frozenset(router._tree.neighbours) for router in self.routers}
        for name, router in zip(self.names, self.routers, strict=True):
            tree = GivenTree(name, self.edges)
            router.tree_changed(tree)
            for gone in sorted(before[router] - tree.neighbours):
                router.left(gone)
            for new in sorted(tree.neighbours - before[router]):
                router.joined(new)

    def register(self, router: int, context: Mapping[str, Any]) -> Handle:
        handle = self.routers[router].register(context)
        self.contexts[handle] = context
        return handle

    def update(self, handle: Handle, context: Mapping[str, Any]) -> None:
        self.router_of(handle).update(handle, context)
        self.contexts[handle] = context

    def remove(self, handle: Handle) -> None:
        self.router_of(handle).remove(handle)
        del self.contexts[handle]

    def publish(self, router: int, to: Predicate | str) -> Event:
        event = Event(f"e{len(self.delivered)}", "news", self.simulation.time, to=to)
        self.delivered[event.id] = []
        self.routers[router].publish(event)
        return event

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.time + round(seconds * MICROSECONDS))

    def router_of(self, handle: Handle) -> Router:
        return self.routers[self.names.index(handle.partition("/")[0])]

    def reachable(self, router: int) -> frozenset[str]:
        return frozenset(GivenTree(self.names[router], self.edges).routers)

    def expected(self, router: int, event: Event) -> list[Handle]:
        """By the definition: one conjunct within one context."""
        reachable = self.reachable(router)
        return sorted(
            handle
            for handle, context in self.contexts.items()
            if handle.partition("/")[0] in reachable
            and any(evaluate(And(conjunct), context) is True for conjunct in event.conjuncts)
        )

    def reached(self, router: int, event: Event) -> frozenset[str]:
        """Routers that must get it at least: those on the ways to whom it is for (Def. 3.7)."""
        ways: set[str] = set()
        for handle in self.expected(router, event):
            at = self.names[router]
            to = handle.partition("/")[0]
            while at != to:
                hop = GivenTree(at, self.edges).next_hop(to)
                assert hop is not None
                at = hop
                ways.add(at)
        return frozenset(ways)

    def got(self, event: Event) -> list[Handle]:
        return sorted(self.delivered[event.id])

    def copies(self, event: Event) -> dict[str, int]:
        """By router that got some."""
        found: dict[str, int] = {}
        for (name, _, receiver), count in self.wires.copies.items():
            if name == event.id:
                found[receiver] = found.get(receiver, 0) + count
        return found

    def _deliver(self, event: Event, handles: frozenset[Handle]) -> None:
        self.delivered[event.id] += sorted(handles)
