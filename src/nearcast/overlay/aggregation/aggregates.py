"""The aggregates of one incoming link (Alg. 4.3 to 4.5), with these corrections:

- a member that leaves is taken out *before* its aggregate is made anew, and only what changed is told;
- every aggregate has a handle of its own, also while it has one member: members come and go, its neighbours' knowledge stays;
- a context that changes is absorbed where it still fits; else it leaves and comes again, and neighbours hear the difference only.

A member is *defining* if the aggregate changed when it was added to those before it; the first always is.  An aggregate is at
all times what its members make, and because merging is a join, in any order; the defining ones alone make it too, so
whoever is not defining comes, changes within the aggregate and goes unheard.

When a defining one leaves, what the others make takes a few merges (``joins``).  To find out who of them is defining takes one for each; so this waits,
and meanwhile everybody counts as defining.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from nearcast.errors import UnknownName
from nearcast.overlay.aggregation.candidates import Candidates
from nearcast.overlay.aggregation.joins import Joins
from nearcast.overlay.aggregation.thresholds import Fixed, Threshold
from nearcast.overlay.handles import Handle
from nearcast.overlay.values.coarse import Coarse, merged
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.similarity import Reading


@dataclass(frozen=True, slots=True)
class Change:
    """What neighbours are to be told of one aggregate; the highest version counts."""

    handle: Handle
    version: int
    context: Coarse | None
    """``None``: it is no more."""

    hops: int = 0
    """To the nearest of its members, or a little less: some may have left."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How contexts are aggregated."""

    threshold: Threshold = field(default_factory=Fixed)
    reading: Reading = Reading.POSITION_ONLY_FOR_POINTS
    limits: Limits = field(default_factory=Limits)
    prefilter: bool = True
    """Whether structure alone rules candidates out before values are compared; the result is the same."""


@dataclass(frozen=True, slots=True)
class AggregatesStatistics:
    contexts: int
    aggregates: int
    additions: int
    """How often a context looked for an aggregate to join."""
    compared: int
    """Aggregates whose values were compared then."""
    absorbed: int
    """Changes of contexts that changed no aggregate."""
    changes: int
    """What neighbours were told."""
    rebuilt: int
    """Aggregates that were made anew from their members."""


@dataclass(slots=True)
class _Aggregate:
    handle: Handle
    row: int
    context: Coarse
    members: dict[Handle, Coarse]
    joins: Joins
    defining: set[Handle] | None
    """None: it was not found out."""
    hops: int
    waited: int = 0
    """How often that would have helped."""


class Aggregates:
    """What is behind one link, in few words.

    ``name`` makes handles unique: that of the router and of the link.
    """

    def __init__(self, name: str, aggregation: Aggregation, domains: Domains, random: Random) -> None:
        self._name: Final = name
        self._aggregation = aggregation
        self._domains = domains
        self._random = random
        self._candidates = Candidates(domains, aggregation.reading, prefilter=aggregation.prefilter)
        self._by_row: dict[int, _Aggregate] = {}
        self._free_rows: list[int] = []
        self._of_member: dict[Handle, _Aggregate] = {}
        self._by_handle: dict[Handle, _Aggregate] = {}
        self._told: dict[Handle, Change] = {}
        self._touched: dict[Handle, None] = {}
        self._made = self._version = 0
        self._additions = self._absorbed = self._rebuilt = 0

    def put(self, member: Handle, context: Coarse, hops: int = 0) -> list[Change]:
        """A context that is new, or has changed (Alg. 4.3), and comes from so many hops away."""
        self._domains.see(context.attributes)
        aggregate = self._of_member.get(member)
        if aggregate is None:
            self._add(member, context, hops)
        elif aggregate.members[member] != context:
            self._replace(aggregate, member, context, hops)
        return self._changes()

    def remove(self, member: Handle) -> list[Change]:
        """A context that is no more (Alg. 4.4)."""
        if member not in self._of_member:
            raise UnknownName(f"no context {member!r} came over this link")
        self._take_out(member)
        return self._changes()

    def reaggregate(self, handle: Handle) -> list[Change]:
        """Dissolve an aggregate that is too coarse; its members look for better ones, in random order (Alg. 4.5)."""
        aggregate = self._by_handle.get(handle)
        if aggregate is None:
            raise UnknownName(f"there is no aggregate {handle!r} on this link")
        members = list(aggregate.members.items())
        self._random.shuffle(members)
        self._drop(aggregate)
        for member, context in members:
            self._add(member, context, aggregate.hops)
        return self._changes()

    def members(self, handle: Handle) -> dict[Handle, Coarse]:
        """Of an aggregate, in their order."""
        return dict(self._by_handle[handle].members)

    def defining(self, handle: Handle) -> frozenset[Handle]:
        aggregate = self._by_handle[handle]
        return frozenset(self._found_defining(aggregate) if aggregate.defining is None else aggregate.defining)

    def aggregate_of(self, member: Handle) -> Handle:
        return self._of_member[member].handle

    def contexts(self) -> Iterator[Change]:
        """All aggregates, as they were told last: for a neighbour that knows nothing yet."""
        yield from self._told.values()

    def __len__(self) -> int:
        return len(self._by_handle)

    def statistics(self) -> AggregatesStatistics:
        return AggregatesStatistics(
            contexts=len(self._of_member),
            aggregates=len(self._by_handle),
            additions=self._additions,
            compared=self._candidates.compared,
            absorbed=self._absorbed,
            changes=self._version,
            rebuilt=self._rebuilt,
        )

    # One context

    def _add(self, member: Handle, context: Coarse, hops: int, emptied: Handle | None = None) -> None:
        """Into the most similar aggregate, or one of its own: the one that it has just left empty, if so."""
        self._additions += 1
        for row in self._candidates.similar(context, self._aggregation.threshold.of(context, hops)):
            aggregate = self._by_row[row]
            together = merged(aggregate.context, context, self._aggregation.limits)
            if together is not None:
                aggregate.hops = min(aggregate.hops, hops)
                self._join(aggregate, member, context, together)
                return
        self._begin(member, context, hops, emptied)

    def _join(self, aggregate: _Aggregate, member: Handle, context: Coarse, together: Coarse) -> None:
        aggregate.members[member] = context
        aggregate.joins.put(member, context)
        self._of_member[member] = aggregate
        if together != aggregate.context:
            if aggregate.defining is not None:
                aggregate.defining.add(member)
            self._show(aggregate, together)

    def _begin(self, member: Handle, context: Coarse, hops: int, emptied: Handle | None) -> None:
        if emptied is None:
            self._made += 1
        handle = emptied or f"{self._name}/{self._made}"
        row = self._free_rows.pop() if self._free_rows else len(self._by_row)
        aggregate = _Aggregate(handle, row, context, {member: context}, Joins(self._aggregation.limits), {member}, hops)
        aggregate.joins.put(member, context)
        self._by_row[row] = aggregate
        self._by_handle[handle] = aggregate
        self._of_member[member] = aggregate
        self._show(aggregate, context)

    def _replace(self, aggregate: _Aggregate, member: Handle, context: Coarse, hops: int) -> None:
        together = merged(aggregate.context, context, self._aggregation.limits)
        if together == aggregate.context and len(aggregate.members) > 1:
            aggregate.members[member] = context
            aggregate.joins.put(member, context)
            self._without(aggregate, member)
        else:
            emptied = aggregate.handle if len(aggregate.members) == 1 else None
            self._take_out(member)
            self._add(member, context, hops, emptied)

    def _take_out(self, member: Handle) -> None:
        aggregate = self._of_member.pop(member)
        del aggregate.members[member]
        aggregate.joins.remove(member)
        if not aggregate.members:
            self._drop(aggregate)
        else:
            self._without(aggregate, member)

    # One aggregate

    def _without(self, aggregate: _Aggregate, member: Handle) -> None:
        """Without what that member was."""
        if aggregate.defining is not None and member not in aggregate.defining:
            return
        self._rebuilt += 1
        whole = aggregate.joins.whole()
        aggregate.waited += 1
        if aggregate.waited < len(aggregate.members):
            aggregate.defining = None
        else:
            aggregate.defining, aggregate.waited = self._found_defining(aggregate), 0
        if whole != aggregate.context:
            self._show(aggregate, whole)

    def _found_defining(self, aggregate: _Aggregate) -> set[Handle]:
        whole: Coarse | None = None
        defining: set[Handle] = set()
        for member, context in aggregate.members.items():
            together = context if whole is None else merged(whole, context, self._aggregation.limits)
            if whole is None or together != whole:
                defining.add(member)
            whole = together
        return defining

    def _show(self, aggregate: _Aggregate, context: Coarse) -> None:
        aggregate.context = context
        self._candidates.set(aggregate.row, context)
        self._touched[aggregate.handle] = None

    def _drop(self, aggregate: _Aggregate) -> None:
        del self._by_row[aggregate.row], self._by_handle[aggregate.handle]
        self._candidates.clear(aggregate.row)
        self._free_rows.append(aggregate.row)
        self._touched[aggregate.handle] = None

    def _changes(self) -> list[Change]:
        """What is different from what neighbours were told last."""
        changes: list[Change] = []
        for handle in self._touched:
            aggregate = self._by_handle.get(handle)
            told = self._told.get(handle)
            if aggregate is None and told is None:
                continue  # it came and went unheard
            if aggregate is not None and told is not None and aggregate.context == told.context:
                continue
            self._version += 1
            if aggregate is None:
                change = Change(handle, self._version, None)
                del self._told[handle]
            else:
                change = self._told[handle] = Change(handle, self._version, aggregate.context, aggregate.hops)
            changes.append(change)
        if not changes:
            self._absorbed += 1
        self._touched.clear()
        return changes
