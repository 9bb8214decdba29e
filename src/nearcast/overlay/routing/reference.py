"""The reference: each context reaches each router, and no message takes a way in vain (Alg. 3.1, 3.2).

Where a context lies is not recorded but follows from its origin: when the tree changes, entries change sides by themselves.
Links may lose and reorder what is said.  Versions take care of the order; for what is lost, neighbours compare digests of
what they know with every heartbeat, and tell each other what differs, origin by origin.

A removal is remembered for a while only, so what was lost may come back after it; then the origin itself, to which it comes
as well, removes it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.matching.entries import GroupTable, Judge, Questions, surely
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.knowledge import Knowledge, KnowledgeStatistics, Surroundings
from nearcast.overlay.routing.known import Known
from nearcast.overlay.routing.messages import ContextEntry, Entries, OriginDigests, context_in, entry_of
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed, asked
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

_NOWHERE: Final = -1
_CLOCKS_APART: Final = 86_400 * MICROSECONDS
"""Nobody changes a context more often than the clock ticks: a version far beyond it is a lie, above which its origin could say nothing."""

_AT_ONCE: Final = 100
"""Entries in one message, at most."""

_TOO_LONG: Final = 6
"""Heartbeats in a row that differ: something was lost, although other news never ends."""


class Reference(Knowledge):
    """``judge``: what counts as a match; ``possibly`` where contexts were made coarse on the way (``reporting``).

    ``shared``: contexts of all routers of this process, instead; it judges for all of them.
    """

    kinds = (ContextEntry, Entries, OriginDigests)

    def __init__(
        self,
        settings: RoutingSettings | None = None,
        judge: Judge = surely,
        shared: SharedContexts | None = None,
    ) -> None:
        self._settings: Final = settings or RoutingSettings()
        self._known: Final = Known(self._settings.tombstone)
        self._contexts: Final = SharedContexts(judge, remember=0) if shared is None else shared
        self.judge = self._contexts.judge
        self._table: Final[GroupTable[Handle]] = GroupTable(shared=self._contexts)
        self._noted: Final = shared is not None
        self._tree: TreeView = NoTree()
        self._neighbours: tuple[Address, ...] = ()
        self._origins: Final[dict[Address, int]] = {}
        """Those of which something was heard, by the number of their group."""

        self._side: Final[dict[int, int]] = {}
        """By group: behind which neighbour its origin lies."""

        self._unreachable_since: Final[dict[Address, Instant]] = {}
        self._differs: Final[dict[Address, tuple[int, int, int]]] = {}
        """By neighbour whose digest is another: that, the own one, and for how many heartbeats in a row they have differed."""

        self._digest_now: int | None = None
        self._updates = 0
        self._resent = 0
        self._around: Surroundings

    def start(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        surroundings.timers.every(self._settings.unreachable / 2, self._forget_unreachable)

    def statistics(self) -> KnowledgeStatistics:
        return KnowledgeStatistics(
            entries=len(self._known), rows=self._table.rows, updates_sent=self._updates, resent=self._resent
        )

    # Contexts

    def local(self, handle: Handle, context: Context | None) -> None:
        before = self._known.get(handle)
        entry = entry_of(handle, 1 if before is None else before.version + 1, self._around.me, context)
        self._take(entry, None)

    def heard(self, neighbour: Address, message: Message) -> None:
        match message:
            case ContextEntry():
                self._take(message, neighbour)
            case Entries():
                for entry in message.entries:
                    self._take(entry, neighbour)
            case OriginDigests() if message.tree == self._tree.identity:
                self._answer(neighbour, message.digests)

    def _take(self, entry: ContextEntry, came_from: Address | None) -> None:
        me = self._around.me
        if "context" not in entry.__dict__ and not entry.handle.startswith(f"{entry.origin}/"):
            raise InvalidInput(f"context {entry.handle!r} is none of router {entry.origin!r}")
        if entry.version > self._around.now() + _CLOCKS_APART:
            raise InvalidInput(f"context {entry.handle!r} cannot have changed {entry.version} times")
        context = context_in(entry)  # before anything changes: what cannot be read was not said
        if came_from is not None and entry.origin == me:
            self._correct(entry)
            return
        before = self._known.get(entry.handle)
        if not self._known.take(entry, self._around.now()):
            return
        self._digest_now = None
        if entry.origin != me:
            if entry.origin not in self._tree:
                self._unreachable_since.setdefault(entry.origin, self._around.now())
            if context is None:
                self._table.remove(entry.handle)
            else:
                noted = entry.__dict__ if self._noted else None
                self._table.put(entry.handle, self._group(entry.origin), context, known=noted)
            self._tell_who_waits(entry.origin, None if before is None else context_in(before), context)
        for neighbour in self._neighbours:
            if neighbour != came_from:
                self._updates += 1
                self._around.send(neighbour, entry)

    def _tell_who_waits(self, origin: Address, before: Context | None, after: Context | None) -> None:
        hop = self._tree.next_hop(origin)
        if hop is not None:
            if before is not None:
                self._around.lost(hop, before, frozenset())
            if after is not None:
                self._around.learnt(hop, after, frozenset())

    def _correct(self, entry: ContextEntry) -> None:
        """Somebody speaks of our own contexts: otherwise than we do, perhaps from before we failed, it must not."""
        own = self._known.get(entry.handle)
        if own is not None and own.version > entry.version:
            return
        ours = None if own is None else own.attributes
        if entry.attributes != ours:
            context = None if own is None else context_in(own)
            self._take(entry_of(entry.handle, entry.version + 1, entry.origin, context), None)

    def _group(self, origin: Address) -> int:
        group = self._origins.get(origin)
        if group is None:
            group = self._origins[origin] = self._contexts.group(origin)
            self._side[group] = self._side_of(origin)
        return group

    def _side_of(self, origin: Address) -> int:
        hop = self._tree.next_hop(origin) if origin in self._tree else None
        return _NOWHERE if hop is None else self._neighbours.index(hop)

    # Messages

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        return self.behind(asked(message), came_from)

    def behind(self, questions: Questions, came_from: Address | None) -> list[Address]:
        """The neighbours behind which something meets one of the conjuncts."""
        side_of, neighbours = self._side, self._neighbours
        sides = {side_of[group] for group in self._table.groups(questions)}
        return [neighbours[side] for side in sorted(sides) if side != _NOWHERE and neighbours[side] != came_from]

    def concerned(self, asked: Questions) -> list[Address]:
        """All other routers with a context that is meant, also those out of reach, in order."""
        met = self._table.groups(asked)
        return sorted(origin for origin, number in self._origins.items() if number in met)

    @property
    def unreachable(self) -> list[Address]:
        """Routers out of reach whose contexts are known."""
        return sorted(self._unreachable_since)

    # The tree

    def tree_changed(self, tree: TreeView) -> None:
        self._tree, self._digest_now = tree, None
        self._neighbours = tuple(sorted(tree.neighbours))
        self._differs.clear()
        now = self._around.now()
        for origin, group in self._origins.items():
            self._side[group] = self._side_of(origin)
        for origin in self._known.origins():
            if origin in tree:
                self._unreachable_since.pop(origin, None)
            else:
                self._unreachable_since.setdefault(origin, now)

    def joined(self, neighbour: Address) -> None:
        known = self._known
        # Unless messages are kept for them, those out of reach are of no use there; if they come back, digests tell.
        everyone = self._settings.tell_unreachable
        self._resend(neighbour, known.of([origin for origin in known.origins() if everyone or origin in self._tree]))

    def left(self, neighbour: Address) -> None:
        self._differs.pop(neighbour, None)

    def _forget_unreachable(self) -> None:
        before = self._around.now() - round(self._settings.unreachable * MICROSECONDS)
        for origin, since in list(self._unreachable_since.items()):
            if since <= before:
                self.forget(origin)

    def forget(self, origin: Address) -> None:
        """It will not come back; nothing happens if it is there."""
        if self._unreachable_since.pop(origin, None) is not None:
            for entry in self._known.forget(origin):
                self._table.remove(entry.handle)

    # What is lost

    def news(self, neighbour: Address) -> bytes:  # noqa: ARG002 - the same to all
        return self._tree.identity.to_bytes(8, "little", signed=True) + self._digest().to_bytes(8, "little")

    def heard_news(self, neighbour: Address, news: bytes) -> None:
        """What differs may be on its way; what differs twice in the same way, or for long, is looked into."""
        if len(news) != 16 or int.from_bytes(news[:8], "little", signed=True) != self._tree.identity:
            return
        theirs, ours = int.from_bytes(news[8:], "little"), self._digest()
        before = self._differs.pop(neighbour, (0, 0, 0))
        if theirs == ours:
            return
        at_rest = before[:2] == (theirs, ours)
        if not at_rest and before[2] + 1 < _TOO_LONG:
            self._differs[neighbour] = theirs, ours, before[2] + 1
        else:
            self._resent += 1
            self._updates += 1
            self._around.send(neighbour, OriginDigests(self._tree.identity, self._reachable()))

    def _reachable(self) -> dict[Address, int]:
        # Those out of reach may be forgotten here and not there.
        return {origin: digest for origin, digest in self._known.digests().items() if origin in self._tree}

    def _digest(self) -> int:
        if self._digest_now is None:
            self._digest_now = reduce(xor, self._reachable().values(), 0)
        return self._digest_now

    def _answer(self, neighbour: Address, theirs: dict[Address, int]) -> None:
        ours = self._reachable()
        differing = [origin for origin in sorted(ours.keys() | theirs.keys()) if ours.get(origin) != theirs.get(origin)]
        self._resend(neighbour, self._known.of(differing))
        if any(origin not in ours for origin in differing):
            # Of these it is the other side that has to say something.
            self._around.send(neighbour, OriginDigests(self._tree.identity, ours))

    def _resend(self, neighbour: Address, entries: Sequence[ContextEntry]) -> None:
        for first in range(0, len(entries), _AT_ONCE):
            self._resent += 1
            self._updates += 1
            self._around.send(neighbour, Entries(tuple(entries[first : first + _AT_ONCE])))
