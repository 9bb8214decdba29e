"""A crowd in the simulator: hosts at places, each with a crowd store, and what the definition of delivery says that they hear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import Done, Outcome
from nearcast.model.geometry import Point
from nearcast.model.time import EVER, MICROSECONDS, Instant, TimeFrame
from nearcast.runtime.host import Component
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

HERE: Final = Point(49.8728, 8.6512)
RANGE: Final = 113.2
"""So that two hosts anywhere in neighbouring cells of 40 m hear each other (THYME 6.2)."""


@dataclass
class Wish:
    """A subscription of the test."""

    formula: Formula
    frame: TimeFrame
    made: Instant
    ended: Instant | None = None


@dataclass
class Thing:
    """An object of the test."""

    metadata: Metadata
    withdrawn: Instant | None = None
    forgotten: Instant | None = None
    """When that had been acknowledged: until then, somebody may not have heard of it."""


@dataclass
class Heard:
    """All that applications were told."""

    notified: list[tuple[SubscriptionKey, ObjectKey]] = field(default_factory=list)
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)


class Crowd:
    """Hosts ``n0``, ``n1``, ... that join at the start; the radio is one without contention unless another network is given.

    ``remembering`` hosts that return after a failure have what was theirs.
    """

    def __init__(
        self,
        places: Sequence[tuple[float, float]],
        mechanism: MechanismSpec,
        *,
        seed: int = 1,
        network: type[DiscNetwork] = DiscNetwork,
        radius: float = RANGE,
        remembering: bool = False,
        notices: bool = False,
        further: Callable[[str], Sequence[Component]] = lambda _: (),
    ) -> None:
        self.simulation: Final = Simulation(seed)
        self.world: Final = World(self.simulation, Plane(HERE), len(places))
        self.network: Final[Network] = network(self.simulation, self.world.motion, radius, check_wire=True)
        self.mechanism: Final = mechanism
        self.stores: Final[dict[str, CrowdStore]] = {}
        self._memories: Final[dict[str, Memory]] = {}
        self._remembering: Final = remembering
        self._notices: Final = notices
        self._further: Final = further
        self.wishes: Final[dict[SubscriptionKey, Wish]] = {}
        self.things: Final[dict[ObjectKey, Thing]] = {}
        self.heard: Final = Heard()
        for node, (x, y) in enumerate(places):
            self.world.motion.put(node, x, y)
            self.world.add(f"n{node}", partial(self._components, f"n{node}"), [self.network]).join()

    def _components(self, name: str) -> Sequence[Component]:
        memory = self._memories.setdefault(name, Memory()) if self._remembering else None
        store = self.stores[name] = CrowdStore(self.mechanism, memory=memory, notices=self._notices)
        return [HostEngine(), store, *self._further(name)]

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def publish(self, host: str, name: str, *tags: str, content: bytes = b"content") -> Metadata:
        metadata = self.stores[host].publish(name, content, tags, done=self._ends("publish"))
        self.things[metadata.key] = Thing(metadata)
        return metadata

    def unpublish(self, host: str, name: str) -> None:
        thing, ends = self.things[ObjectKey(host, name)], self._ends("unpublish")

        def ended(outcome: Outcome) -> None:
            thing.forgotten = self.simulation.now() if outcome.ok else None
            ends(outcome)

        self.stores[host].unpublish(name, ended)
        thing.withdrawn = self.simulation.now()

    def subscribe(self, host: str, formula: str, frame: TimeFrame = EVER) -> SubscriptionKey:
        keys: list[SubscriptionKey] = []
        key = self.stores[host].subscribe(
            formula,
            lambda metadata: self.heard.notified.append((keys[0], metadata.key)),
            frame,
            self._ends("subscribe"),
        )
        keys.append(key)
        self.wishes[key] = Wish(Formula.parse(formula), frame, self.simulation.now())
        return key

    def unsubscribe(self, host: str, key: SubscriptionKey) -> None:
        self.stores[host].unsubscribe(key, self._ends("unsubscribe"))
        self.wishes[key].ended = self.simulation.now()

    def download(self, host: str, metadata: Metadata) -> None:
        self.stores[host].download(metadata, self._ends("download"))

    def _ends(self, operation: str) -> Done:
        return lambda outcome: self.heard.outcomes.append((operation, outcome))

    def expected(self) -> set[tuple[SubscriptionKey, ObjectKey]]:
        """Who hears of what, if nothing is lost and every operation has ended before the next one that it matters to."""
        return {
            (key, thing.metadata.key)
            for key, wish in self.wishes.items()
            for thing in self.things.values()
            if _meets(wish, thing)
        }


def _meets(wish: Wish, thing: Thing) -> bool:
    published = thing.metadata.published
    return (
        wish.frame.contains(published)
        and wish.formula.accepts(thing.metadata.tags)
        and (thing.withdrawn is None or wish.made < thing.withdrawn)
        and (wish.ended is None or published < wish.ended)
    )


def grid(columns: int, rows: int, spacing: float = 40.0) -> list[tuple[float, float]]:
    """One host in the middle of each cell."""
    return [(spacing * (x + 0.5), spacing * (y + 0.5)) for y in range(rows) for x in range(columns)]
