"""The reference, with each update spread at once: when it will reach whom follows from the tree and the delays of its wires.

With 10,000 people that report every 20 m, three quarters of a million updates would be handed from router to router in each
second, and nothing is decided on any of these hops.  So they are not simulated: an update keeps for each router the instant at
which it comes there, and a message that comes to a router asks what has come before it.  Messages go hop by hop, from router to
router, as ever.  Nothing may be lost or cut, and the tree stays as it is; then the result is that of ``Reference``, which
a test compares it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import kernel
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.knowledge import Knowledge, KnowledgeStatistics, Surroundings
from nearcast.overlay.routing.messages import ContextEntry, Handle
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed, asked
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.wired import Wire

Instants = npt.NDArray[np.int64]


@kernel
def spread(
    first: Instants, neighbours: Instants, origin: int, delays: Instants, waiting: Instants, at: Instants
) -> None:
    """Fill in when what begins at the origin at ``at[origin]`` comes to each router; the others' are negative before."""
    waiting[0] = origin
    done, known = 0, 1
    while done < known:
        router = waiting[done]
        for place in range(first[router], first[router + 1]):
            other = neighbours[place]
            if at[other] < 0:
                at[other] = at[router] + delays[known]
                waiting[known] = other
                known += 1
        done += 1


@dataclass(slots=True, eq=False)
class _Version:
    number: int | None
    """Of its context; none: a removal."""

    at: Instants | None
    """When it comes to each router; none: it is everywhere."""


class Spreading:
    """All updates of one network, and who knows which of them already."""

    def __init__(self, simulation: Simulation, wire: Wire, contexts: SharedContexts) -> None:
        self.contexts: Final = contexts
        self.everywhere: Final[dict[int, int]] = {}
        """By number of a context: how many are known like that to all routers, and nothing newer is under way."""

        self._simulation: Final = simulation
        self._wire: Final = wire
        self._random: Final = simulation.random.stream("spreading")
        self._versions: Final[dict[Handle, list[_Version]]] = {}
        """The newest last."""

        self._under_way: Final[dict[int, dict[Handle, None]]] = {}
        """By number of a context: those of whom something is under way, and that have, had or will have it."""

        self._neighbours: Final[dict[Address, tuple[Address, ...]]] = {}
        self._ways: tuple[Instants, Instants] | None = None
        self._index: dict[Address, int] = {}

    def join(self, router: Address, tree: TreeView) -> None:
        self._neighbours[router] = tuple(sorted(tree.neighbours))
        self._ways = None

    def index(self, router: Address) -> int:
        self._tree()
        return self._index[router]

    @property
    def hops(self) -> int:
        """That each update makes."""
        return len(self._neighbours) - 1

    def tell(self, origin: Address, handle: Handle, context: Context | None) -> None:
        first, neighbours = self._tree()
        count = len(self._index)
        number = None if context is None else self.contexts.take(self.contexts.group(origin), context)
        at = np.full(count, -1, np.int64)
        start = self._index[origin]
        at[start] = self._simulation.time
        delays = np.array(self._wire.delay.samples(self._random, count), np.float64)
        spread(first, neighbours, start, np.rint(delays * MICROSECONDS).astype(np.int64), np.empty(count, np.int64), at)
        versions = self._versions.setdefault(handle, [])
        if len(versions) == 1 and versions[0].at is None:
            self._no_longer_everywhere(handle, versions[0])
        version = _Version(number, at)
        versions.append(version)
        if number is not None:
            self._under_way.setdefault(number, {})[handle] = None
        self._simulation.at(int(at.max()), self._arrived, (handle, version))

    def known(self, number: int, router: int) -> bool:
        """Whether that router knows somebody like that now."""
        if number in self.everywhere:
            return True
        now = self._simulation.time
        return any(self._newest(handle, router, now) == number for handle in self._under_way.get(number, ()))

    def _newest(self, handle: Handle, router: int, now: Instant) -> int | None:
        for version in reversed(self._versions[handle]):
            if version.at is None or version.at[router] <= now:
                return version.number
        return None

    def _arrived(self, update: tuple[Handle, _Version]) -> None:
        """It is everywhere now: what was before it is nowhere."""
        handle, version = update
        versions = self._versions.get(handle, [])
        if version not in versions:
            return  # a newer one was faster
        version.at = None
        place = versions.index(version)
        for older in versions[:place]:
            self._forget(handle, older)
        del versions[:place]
        if len(versions) > 1:
            return
        if version.number is None:
            del self._versions[handle]
        else:
            self._leave(handle, version.number)
            self.everywhere[version.number] = self.everywhere.get(version.number, 0) + 1

    def _no_longer_everywhere(self, handle: Handle, version: _Version) -> None:
        number = version.number
        assert number is not None, "removals are forgotten when they are everywhere"
        self.everywhere[number] -= 1
        if not self.everywhere[number]:
            del self.everywhere[number]
        self._under_way.setdefault(number, {})[handle] = None

    def _forget(self, handle: Handle, version: _Version) -> None:
        if version.number is not None:
            if all(other is version or other.number != version.number for other in self._versions[handle]):
                self._leave(handle, version.number)
            self.contexts.release(version.number)

    def _leave(self, handle: Handle, number: int) -> None:
        handles = self._under_way.get(number)
        if handles is not None:
            handles.pop(handle, None)
            if not handles:
                del self._under_way[number]

    def _tree(self) -> tuple[Instants, Instants]:
        if self._ways is None:
            names = sorted(self._neighbours)
            self._index = {name: number for number, name in enumerate(names)}
            places: list[int] = [0]
            neighbours: list[int] = []
            for name in names:
                neighbours += [self._index[other] for other in self._neighbours[name]]
                places.append(len(neighbours))
            self._ways = np.array(places, np.int64), np.array(neighbours, np.int64)
        return self._ways


class SpreadAtOnce(Knowledge):
    """What one router knows of it."""

    kinds: ClassVar[tuple[type[Message], ...]] = (ContextEntry,)

    def __init__(self, spreading: Spreading) -> None:
        self._spreading: Final = spreading
        self._tree: TreeView = NoTree()
        self._side: Final[dict[int, Address | None]] = {}
        self._updates = 0
        self._index = -1
        self._me: Address = ""

    def start(self, surroundings: Surroundings) -> None:
        self._me = surroundings.me

    def local(self, handle: Handle, context: Context | None) -> None:
        self._updates += self._spreading.hops
        self._spreading.tell(self._me, handle, context)

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        spreading, side = self._spreading, self._side
        group_of, everywhere = spreading.contexts.group_of, spreading.everywhere
        if self._index < 0:
            self._index = spreading.index(self._me)
        found: set[Address] = set()
        for number in spreading.contexts.met(asked(message)):
            group = group_of.get(number)
            if group is None:
                continue  # it is no more
            hop = side[group] if group in side else self._side_of(group)
            # Who gets it already need not be looked for.
            if hop is None or hop == came_from or hop in found:
                continue
            if number in everywhere or spreading.known(number, self._index):
                found.add(hop)
        return sorted(found)

    def _side_of(self, group: int) -> Address | None:
        hop = self._side[group] = self._tree.next_hop(self._spreading.contexts.name_of(group))
        return hop

    def tree_changed(self, tree: TreeView) -> None:
        self._tree = tree
        self._side.clear()
        self._spreading.join(self._me, tree)

    def heard(self, neighbour: Address, message: Message) -> None:
        """Nothing is said."""

    def joined(self, neighbour: Address) -> None:
        """It will know what everybody knows."""

    def left(self, neighbour: Address) -> None:  # noqa: ARG002 - nobody leaves
        raise AssertionError("where updates are spread at once, the tree stays as it is")

    def news(self, neighbour: Address) -> bytes:  # noqa: ARG002 - nothing is lost
        return b""

    def heard_news(self, neighbour: Address, news: bytes) -> None:
        """Nothing is lost."""

    def statistics(self) -> KnowledgeStatistics:
        rows = len(self._spreading.contexts)
        return KnowledgeStatistics(entries=rows, rows=rows, updates_sent=self._updates, resent=0)
