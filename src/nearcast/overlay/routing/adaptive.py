"""Adaptive propagation: contexts are told where that saves more messages than it costs (5.3).

Without knowledge about a link, a message goes there on speculation.  Who gets many messages in vain tells the neighbour from whom they
come what lies behind it: a *complete composite* for the attributes that they ask for.  Who gets a composite that prunes too little sends it back.

What we mend (numbers of the hazards as in our notes on 5.3):

1. A message never goes back to where it came from, on speculation either.
2. A composite is sent only by who holds one for these attributes, or more, from every other neighbour; when it loses one of these, it
   retires what it made of them, and so does who got that.
3. What feeds a composite that was sent is pinned: that it prunes little is because others prune for it.
4. A composite without updates is worth any message; smoothing starts with the first window; windows of which a composite saw only a part do
   not count; what a neighbour holds already is not chosen again, and a superset retires its subsets on both sides.
5. A message for everybody asks for no attribute, and every composite knows whether anybody is there.

All this is said of one link in one tree: with another tree it begins anew, on speculation, so nobody is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nearcast.matching.context_columns import Questions
from nearcast.matching.entries import Judge
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.absences import AbsenceSettings
from nearcast.overlay.routing.adaptive_link import AdaptiveLink, count_changes, one_by_one, turned
from nearcast.overlay.routing.benefit import Rate
from nearcast.overlay.routing.composites import (
    Change,
    Condense,
    Held,
    Listed,
    Names,
    Partial,
    Rows,
    Sent,
    in_order,
    partials_in,
)
from nearcast.overlay.routing.hop_local import HopLocal
from nearcast.overlay.routing.knowledge import KnowledgeStatistics, Surroundings
from nearcast.overlay.routing.messages import Everything, Partials, Retired, Stream, Unwanted
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.overlay.routing.wire import Routed
from nearcast.overlay.values.possible import possibly
from nearcast.runtime.ports import Address

_NO_SOURCES: Final[Mapping[Address, Names]] = {}
_HERE: Final = ""
"""Stands for the contexts that are registered here, among neighbours."""


class Adaptive(HopLocal):
    """``condense`` makes the list of partial contexts of a composite: as it is, or aggregated.

    ``shared``: contexts of all routers of this process; it judges for all of them.
    """

    def __init__(
        self,
        settings: AdaptiveSettings | None = None,
        judge: Judge = possibly,
        condense: Condense = Listed,
        shared: SharedContexts | None = None,
        absences: AbsenceSettings | None = None,
    ) -> None:
        super().__init__(judge if shared is None else shared.judge, absences)
        self._settings: Final = settings or AdaptiveSettings()
        self._shared: Final = shared
        self._condense: Final = condense
        self._local: Final[dict[Handle, Context]] = {}
        self._local_updates: Final[dict[str, Rate]] = {}
        self._links: dict[Address, AdaptiveLink] = {}
        self._invalidations = self._prunes = 0

    def start(self, surroundings: Surroundings) -> None:
        super().start(surroundings)
        window = self._settings.window
        # Not all at one instant: routers did not start their clocks together.
        surroundings.timers.every(window, self._window_ends, first=surroundings.random.uniform(0.5, 1.5) * window)

    def statistics(self) -> KnowledgeStatistics:
        held = [held for link in self._links.values() for held in link.held.values()]
        return KnowledgeStatistics(
            entries=sum(len(composite.partials) for composite in held),
            rows=sum(composite.table.rows for composite in held),
            updates_sent=self._updates,
            resent=self._resent,
            invalidations_sent=self._invalidations,
            composites_held=len(held),
            composites_sent=sum(len(link.sent) for link in self._links.values()),
            prunes=self._prunes,
            absences_heard=0 if self._absences is None else self._absences.heard,
            absences_told=0 if self._absences is None else self._absences.told,
        )

    def held(self, neighbour: Address) -> frozenset[Names]:
        """The attribute sets of the composites from there."""
        return frozenset(self._links[neighbour].held) if neighbour in self._links else frozenset()

    def sent(self, neighbour: Address) -> frozenset[Names]:
        return frozenset(self._links[neighbour].sent) if neighbour in self._links else frozenset()

    # Contexts

    def local(self, handle: Handle, context: Context | None) -> None:
        super().local(handle, context)
        before = self._local.pop(handle, None)
        if context is not None:
            self._local[handle] = context
        old, new = _whole(before), _whole(context)
        count_changes(self._local_updates, old, new)
        self._changed(_HERE, None, [(old, new)])

    def _changed(
        self, source: Address, names: Names | None, changes: list[tuple[Partial | None, Partial | None]]
    ) -> None:
        """Keep composites up to date of which that is a source; ``names``: that composite of the neighbour's."""
        for neighbour, link in self._links.items():
            if neighbour == source:
                continue
            for sent in link.sent.values():
                if names is None or sent.sources.get(source) == names:
                    self._tell(neighbour, sent, [part for old, new in changes for part in sent.changed(old, new)])

    def _tell(self, neighbour: Address, sent: Sent, changes: Iterable[Change]) -> None:
        newest = dict(changes)
        if newest:
            self._updates += 1
            self._say(neighbour, Rows(newest.items()).message(sent.names, *self._next(neighbour), whole=False))

    # Messages

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        conjuncts = one_by_one(message)
        return [
            neighbour
            for neighbour, link in self._links.items()
            if neighbour != came_from and self._wanted(link, self._left(neighbour, message, conjuncts))
        ]

    def _left(
        self, neighbour: Address, message: Routed, conjuncts: list[tuple[Questions, Names]]
    ) -> list[tuple[Questions, Names]]:
        """Without those that nobody there meets."""
        excluded = self._excluded(neighbour, message)
        if not excluded:
            return conjuncts
        return [conjunct for number, conjunct in enumerate(conjuncts) if number not in excluded]

    def _possible(self, neighbour: Address, asked: Questions) -> bool:
        link = self._links[neighbour]
        for conjunct in asked:
            held = link.covering(frozenset(name for question in conjunct for name in question.names))
            if held is None or held.table.meets((conjunct,)):
                return True
        return False

    def _wanted(self, link: AdaptiveLink, conjuncts: list[tuple[Questions, Names]]) -> bool:
        """Somebody there could match, or nobody knows."""
        used: dict[Names, Held] = {}
        for alone, constrained in conjuncts:
            held = link.covering(constrained)
            if held is None or held.table.meets(alone):
                return True
            used[held.names] = held
        self._prunes += 1
        for held in used.values():
            held.prunes.count += 1
        return False

    def judged(self, message: Routed, came_from: Address | None, *, useful: bool) -> None:
        super().judged(message, came_from, useful=useful)
        link = self._links.get(came_from) if came_from is not None else None
        if useful or link is None:
            return
        names: Names = frozenset().union(*(constrained for _, constrained in one_by_one(message)))
        link.in_vain.setdefault(names, Rate()).count += 1

    # Windows

    def _window_ends(self) -> None:
        settings = self._settings
        window, newest = settings.window, settings.newest
        updates = {_HERE: turned(self._local_updates, window, newest)}
        for neighbour, link in self._links.items():
            updates[neighbour] = turned(link.updates, window, newest)
        for neighbour in list(self._links):
            self._propagate(neighbour, updates)
        for neighbour in list(self._links):
            self._invalidate(neighbour)

    def _propagate(self, neighbour: Address, updates: dict[Address, dict[str, float]]) -> None:
        """Alg. 5.3."""
        others = [rates for source, rates in updates.items() if source != neighbour]
        for names in self._links[neighbour].worth_sending(
            others, self._settings, lambda names: self._sources(neighbour, names) is not None
        ):
            self._send_composite(neighbour, names)

    def _invalidate(self, neighbour: Address) -> None:
        """Alg. 5.5."""
        for names in self._links[neighbour].not_worth_keeping(self._settings):
            if not self._pinned(neighbour, names):
                self._refuse(neighbour, names)

    def _pinned(self, neighbour: Address, names: Names) -> bool:
        return any(
            sent.sources.get(neighbour) == names
            for other, link in self._links.items()
            if other != neighbour
            for sent in link.sent.values()
        )

    def _refuse(self, neighbour: Address, names: Names) -> None:
        self._drop(neighbour, [names])
        self._knows_less(neighbour)
        self._invalidations += 1
        tree, number = self._next(neighbour)
        self._say(neighbour, Unwanted(tree=tree, number=number, names=in_order(names)))
        self._cascade()
        self._around.learnt(neighbour, None, frozenset())

    # Composites that are sent

    def _sources(
        self, neighbour: Address, names: Names, current: Mapping[Address, Names] = _NO_SOURCES
    ) -> dict[Address, Names] | None:
        """From every other neighbour a composite that covers these attributes, if possible the current one; none: one is missing."""
        sources: dict[Address, Names] = {}
        for other, link in self._links.items():
            if other == neighbour:
                continue
            if other in current:
                sources[other] = current[other]
                continue
            held = link.covering(names)
            if held is None:
                return None
            sources[other] = held.names
        return sources

    def _send_composite(self, neighbour: Address, names: Names) -> None:
        link = self._links[neighbour]
        made = self._made(neighbour, names)
        if made is None:
            return
        for smaller in [other for other in link.sent if other < names]:
            del link.sent[smaller]  # whoever gets the larger one drops it by itself
        link.sent[names] = made
        for asked_for in [other for other in link.in_vain if other <= names]:
            del link.in_vain[asked_for]
        self._updates += 1
        self._say(neighbour, Rows(made.condensed.all()).message(names, *self._next(neighbour), whole=True))

    def _made(self, neighbour: Address, names: Names) -> Sent | None:
        """Alg. 5.1, 5.2, of what is known now."""
        sources = self._sources(neighbour, names)
        if sources is None:
            return None
        sent = Sent(names, self._condense(names))
        sent.sources = sources
        for context in self._local.values():
            sent.changed(None, (context, frozenset()))
        for other, held in sources.items():
            for partial in self._links[other].held[held].partials.values():
                sent.changed(None, partial)
        return sent

    def _cascade(self) -> None:
        """Composites whose sources have changed: made of others if there are any, otherwise retired."""
        for neighbour, link in self._links.items():
            for names, sent in list(link.sent.items()):
                sources = self._sources(neighbour, names, sent.sources)
                if sources is None:
                    self._retire(neighbour, names)
                elif sources != sent.sources:
                    self._send_composite(neighbour, names)

    def _retire(self, neighbour: Address, names: Names) -> None:
        """Also of one that the neighbour does not want: it may have got it once more meanwhile."""
        if self._links[neighbour].sent.pop(names, None) is not None:
            self._updates += 1
            tree, number = self._next(neighbour)
            self._say(neighbour, Retired(tree=tree, number=number, names=in_order(names)))

    def _drop(self, neighbour: Address, composites: Iterable[Names]) -> None:
        """Forget composites from there; what was made of them has to be made anew (``_cascade``)."""
        held = self._links[neighbour].held
        for names in composites:
            if held.pop(names, None) is not None:
                for link in self._links.values():
                    for sent in link.sent.values():
                        if sent.sources.get(neighbour) == names:
                            del sent.sources[neighbour]

    # What neighbours say

    def _understand(self, neighbour: Address, said: list[Stream]) -> None:
        for message in said:
            self._hear_one(neighbour, message)
        if any(not isinstance(message, Partials) or message.whole for message in said):
            self._cascade()
        if any(not isinstance(message, (Partials, Unwanted)) for message in said):
            self._around.learnt(neighbour, None, frozenset())

    def _hear_one(self, neighbour: Address, message: Stream) -> None:
        link = self._links[neighbour]
        match message:
            case Partials():
                self._take(neighbour, link, message)
            case Everything():
                self._drop(neighbour, list(link.held))
                for composite in message.composites:
                    self._take(neighbour, link, composite)
            case Retired():
                self._drop(neighbour, [frozenset(message.names)])
            case Unwanted():
                self._retire(neighbour, frozenset(message.names))

    def _take(self, neighbour: Address, link: AdaptiveLink, message: Partials) -> None:
        names = frozenset(message.names)
        if message.whole:
            self._drop(neighbour, [other for other in link.held if other <= names])
            link.held[names] = Held(names, self.judge, self._shared)
        held = link.held.get(names)
        if held is None:  # what said that it is not wanted was lost, or is still on its way
            if not any(names <= other for other in link.held):
                tree, number = self._next(neighbour)
                self._say(neighbour, Unwanted(tree=tree, number=number, names=message.names))
            return
        held.updates.count += not message.whole
        changes = []
        for which, partial in partials_in(message):
            old, new = held.put(which, partial)
            changes.append((old, new))
            if old is not None:
                self._around.lost(neighbour, *old)
            if new is not None:
                self._around.learnt(neighbour, *new)
            if not message.whole:
                count_changes(link.updates, old, new)
        if not message.whole:
            self._changed(neighbour, names, changes)

    # The tree

    def _open(self) -> None:
        self._links = {neighbour: AdaptiveLink(incoming) for neighbour, incoming in self._incoming.items()}

    def _close(self, neighbour: Address) -> None:
        self._drop(neighbour, list(self._links[neighbour].held))
        self._links[neighbour] = AdaptiveLink(self._incoming[neighbour])
        self._cascade()

    def _everything(self, neighbour: Address, tree: int, number: int) -> tuple[Partials, ...]:
        return tuple(
            Rows(sent.condensed.all()).message(sent.names, tree, number, whole=True)
            for sent in self._links[neighbour].sent.values()
        )


def _whole(context: Context | None) -> Partial | None:
    return None if context is None else (context, frozenset())
