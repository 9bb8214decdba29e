"""One run of THYME's evaluation: a crowd on the radio that does what the workload says (6.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from nearcast.crowdstore.formula import quoted
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import Outcome
from nearcast.experiment.thyme.book import Asked, Book, Thing, Wish, ends
from nearcast.experiment.thyme.moving import Walks
from nearcast.experiment.thyme.radio import PROFILE, CountingRadio
from nearcast.experiment.thyme.venue import XY, area
from nearcast.experiment.thyme.workload import Kind, Operation
from nearcast.model.geometry import Point
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame
from nearcast.runtime.host import Component
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.radio.profile import RadioProfile
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

STADE_DE_FRANCE: Final = Plane(Point(48.9245, 2.3601))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Seconds: hosts join one by one in ``joins`` after ``start``, then there are operations, then nothing for ``end``."""

    start: float = 30.0
    joins: float = 30.0
    operations: float = 600.0
    end: float = 60.0

    @property
    def first(self) -> float:
        return self.start + self.joins

    @property
    def total(self) -> float:
        return self.first + self.operations + self.end


class Crowd:
    """Hosts ``n0``, ``n1``, ...; what they know outlives a time in which they are off."""

    def __init__(
        self, seed: int, mechanism: MechanismSpec, where: Sequence[XY], what: Sequence[Operation], times: Timeline,
        loss: float = 0.0, broadcast_loss: float | None = None, profile: RadioProfile = PROFILE,
    ) -> None:  # fmt: skip
        self.book: Final = Book()
        self.times: Final = times
        self.simulation: Final = Simulation(seed)
        self.world: Final = World(self.simulation, STADE_DE_FRANCE, len(where))
        self.radio: Final = CountingRadio(self.simulation, profile, self.world.motion, loss, broadcast_loss)
        self.hosts: Final[list[SimulatedHost]] = []
        self._mechanism: Final = mechanism
        self._where: Final = list(where)
        self._memories: Final = [Memory() for _ in where]
        self._stores: Final[dict[int, CrowdStore]] = {}
        self._subscribed: Final[dict[tuple[int, str], tuple[SubscriptionKey, Wish]]] = {}
        random = Random(f"{seed} joins")
        for node, (x, y) in enumerate(where):
            self.world.motion.put(node, x, y)
            host = self.world.add(f"n{node}", partial(self._components, node), [self.radio])
            self.hosts.append(host)
            self.at(times.start + times.joins * random.random(), host.join)
        for operation in what:
            self.at(times.first + operation.at, partial(self._do, operation))

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        self.simulation.at(round(seconds * MICROSECONDS), lambda _argument: act())

    def move(self, nodes: Sequence[int], fastest: float, *, populated: bool) -> None:
        """Let these walk about from now on."""
        walks = Walks(area(len(self.hosts)), self._where, fastest, populated=populated)
        for node in nodes:
            random = self.simulation.random.stream("walk", str(node))
            self.world.motion.move(node, partial(walks.life, node), random)

    def fail(self, node: int) -> None:
        """Switch it off."""
        if self.hosts[node].up:
            self.hosts[node].fail()
            self.book.goes(self.hosts[node].name, self.simulation.now())

    def restart(self, node: int) -> None:
        """Switch it on, with all that it had."""
        self.hosts[node].join()
        self.book.returns(self.hosts[node].name, self.simulation.now())

    def run(self) -> dict[str, float]:
        self.simulation.run(round(self.times.total * MICROSECONDS))
        up = [host.name for host in self.hosts if host.up]
        return self.book.numbers(up) | self.radio.numbers()

    def _components(self, node: int) -> Sequence[Component]:
        store = self._stores[node] = CrowdStore(self._mechanism, memory=self._memories[node])
        return [HostEngine(), store]

    def _do(self, operation: Operation) -> None:
        node, name = operation.node, operation.name
        if not self.hosts[node].up:
            return  # nobody asks for anything
        store, host, now = self._stores[node], self.hosts[node].name, self.simulation.now()
        match operation.kind:
            case Kind.PUBLISH:
                metadata = store.publish(name, operation.content, operation.tags, done=self._ends(node, "publish"))
                self.book.things[metadata.key] = Thing(metadata)
            case Kind.UNPUBLISH:
                thing = self.book.things.get(ObjectKey(host, name))
                if thing is not None:
                    thing.withdrawn = now
                    store.unpublish(name, self._ends(node, "unpublish"))
            case Kind.SUBSCRIBE:
                (tag,) = operation.tags
                frame = EVER if operation.past else TimeFrame(now, None)
                wish = Wish(host, tag, frame.since, now)
                key = store.subscribe(
                    quoted(tag), partial(self._heard, node, name, wish), frame, self._ends(node, "subscribe")
                )
                self.book.wishes.append(wish)
                self._subscribed[node, name] = key, wish
            case Kind.UNSUBSCRIBE:
                found = self._subscribed.get((node, name))
                if found is not None:
                    found[1].ended = now
                    store.unsubscribe(found[0], self._ends(node, "unsubscribe"))

    def _heard(self, node: int, name: str, wish: Wish, metadata: Metadata) -> None:
        wish.heard[metadata.key] = self.simulation.now()
        # Not from inside the notification, as an application would not.
        self.simulation.at(self.simulation.now(), lambda _argument: self._wants(node, name, metadata))

    def _wants(self, node: int, name: str, metadata: Metadata) -> None:
        """Whoever hears of something wants it, and all the rest of the past as well."""
        if not self.hosts[node].up:
            return
        store, subscribed = self._stores[node], self._subscribed[node, name]
        store.more(subscribed[0])
        if self._memories[node].held.get(metadata.key) is None and metadata.key.owner != self.hosts[node].name:
            store.download(metadata, self._ends(node, "download"))

    def _ends(self, node: int, kind: str) -> _Ends:
        return _Ends(self, self.book.begin(self.hosts[node].name, kind, self.simulation.now()))


@dataclass(frozen=True, slots=True)
class _Ends:
    crowd: Crowd
    entry: Asked

    def __call__(self, outcome: Outcome) -> None:
        ends(self.entry, self.crowd.simulation.now(), outcome)
