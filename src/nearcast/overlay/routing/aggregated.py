"""Context aggregation: each router tells its neighbours of few coarse contexts instead of many (4.4).

What comes over a link, and what is registered here, is aggregated for itself (``overlay.aggregation``) and told to all other
neighbours, which do the same.  Whom a message is sent on to is decided by what the neighbour there said; the document asks
the aggregates made of it, although their members are stored beside them, and so sends messages in vain that nobody need send (``by_aggregates``).

A message that comes in vain was sent because an aggregate of ours seemed to match.  Which one, we know; one that does so too often is
dissolved (Alg. 4.5, for which the document gives no threshold), and a threshold that tunes itself is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nearcast.errors import InvalidSettings
from nearcast.matching.entries import EntryTable, Judge
from nearcast.model.history import Context
from nearcast.overlay.aggregation.aggregates import Aggregates, Aggregation
from nearcast.overlay.aggregation.aggregates import Change as AggregateChange
from nearcast.overlay.aggregation.thresholds import SelfTuning
from nearcast.overlay.routing.composites import Change, Names, Partial, partials_in, partials_of
from nearcast.overlay.routing.hop_local import HopLocal
from nearcast.overlay.routing.knowledge import KnowledgeStatistics, Surroundings
from nearcast.overlay.routing.messages import Everything, Handle, Partials, Stream
from nearcast.overlay.routing.streams import Incoming
from nearcast.overlay.routing.wire import Routed, asked
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.possible import possibly
from nearcast.runtime.ports import Address

_ALL: Final = np.ones(1, np.bool_)
_WHATEVER: Final[Names] = frozenset()
"""The attributes of what is told: all that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedSettings:
    window: float = 10.0
    """Seconds after which false positives are looked at."""

    in_vain: float = 1.0
    """An aggregate that brought more messages in vain than so many per second is dissolved."""

    by_aggregates: bool = False
    """Whether messages are sent on by what was made of a neighbour's contexts, as in the document, and not by what it said."""

    def __post_init__(self) -> None:
        if not (self.window > 0 and self.in_vain >= 0):
            raise InvalidSettings("a window needs a length, and false positives are not counted below none")


class _Source:
    """What is registered here, or comes over one link."""

    def __init__(self, aggregates: Aggregates, judge: Judge) -> None:
        self.aggregates: Final = aggregates
        self.in_vain: Final[Counter[Handle]] = Counter()
        """By aggregate, since the window began."""

        self.numbers: Final[dict[Handle, int]] = {}
        """As neighbours know the aggregates."""

        self.told: Final[EntryTable[Handle]] = EntryTable(judge)
        self.absorbed = 0
        """As of the last window."""

    def all(self) -> Iterator[Change]:
        for change in self.aggregates.contexts():
            yield self.numbers[change.handle], _partial(change.context)


class _Link(_Source):
    """Of a neighbour."""

    def __init__(self, aggregates: Aggregates, judge: Judge, incoming: Incoming[Stream]) -> None:
        super().__init__(aggregates, judge)
        self.incoming: Final = incoming
        self.said: Final[EntryTable[int]] = EntryTable(judge)
        """The neighbour's own words."""

        self.partials: Final[dict[int, Partial]] = {}
        """The same, one by one."""


class Aggregated(HopLocal):
    def __init__(
        self,
        aggregation: Aggregation | None = None,
        settings: AggregatedSettings | None = None,
        domains: Domains | None = None,
        judge: Judge = possibly,
    ) -> None:
        super().__init__()
        self._aggregation: Final = aggregation or Aggregation()
        self._settings: Final = settings or AggregatedSettings()
        self._domains: Final = domains or Domains()
        self.judge = judge
        self._links: dict[Address, _Link] = {}
        self._here: _Source
        self._number = self._prunes = self._reaggregated = 0

    def start(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._here = _Source(self._aggregates(), self.judge)
        window = self._settings.window
        # Not all at one instant: routers did not start their clocks together.
        surroundings.timers.every(window, self._window_ends, first=surroundings.random.uniform(0.5, 1.5) * window)

    def _aggregates(self) -> Aggregates:
        return Aggregates(self._around.me, self._aggregation, self._domains, self._around.random)

    def statistics(self) -> KnowledgeStatistics:
        return KnowledgeStatistics(
            entries=sum(len(link.said) for link in self._links.values()),
            rows=sum(len(source.aggregates) for source in self._sources(None)),
            updates_sent=self._updates,
            resent=self._resent,
            prunes=self._prunes,
            reaggregated=self._reaggregated,
        )

    def _sources(self, neighbour: Address | None) -> Iterator[_Source]:
        """All that a neighbour is told of; none: all."""
        yield self._here
        for other, link in self._links.items():
            if other != neighbour:
                yield link

    # Contexts

    def local(self, handle: Handle, context: Context | None) -> None:
        here = self._here.aggregates
        changes = here.remove(handle) if context is None else here.put(handle, Coarse(context))
        self._tell(self._here, changes)

    def _tell(self, source: _Source, changes: Iterable[AggregateChange]) -> None:
        """To all but the neighbour from whom it comes."""
        newest: dict[int, Partial | None] = {}
        for change in changes:
            partial = _partial(change.context)
            if change.handle not in source.numbers:
                self._number += 1
                source.numbers[change.handle] = self._number
            if partial is None:
                source.told.remove(change.handle)
                newest[source.numbers.pop(change.handle)] = None
            else:
                source.told.put(change.handle, 0, *partial)
                newest[source.numbers[change.handle]] = partial
        if not newest:
            return
        for neighbour, link in self._links.items():
            if link is not source:
                self._updates += 1
                self._say(neighbour, partials_of(_WHATEVER, newest.items(), *self._next(neighbour), whole=False))

    # Messages

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        return [
            neighbour
            for neighbour, link in self._links.items()
            if neighbour != came_from and self._wanted(link, message)
        ]

    def _wanted(self, link: _Link, message: Routed) -> bool:
        if not link.incoming.begun:
            return True  # nobody knows
        table = link.told if self._settings.by_aggregates else link.said
        found = len(table.groups(asked(message), _ALL)) > 0
        self._prunes += not found
        return found

    def judged(self, message: Routed, came_from: Address | None, *, useful: bool) -> None:
        if useful or came_from not in self._links:
            return
        for source in self._sources(came_from):
            source.in_vain.update(source.told.keys(asked(message)))

    # Windows

    def _window_ends(self) -> None:
        most = self._settings.in_vain * self._settings.window
        counted = saved = 0
        for source in list(self._sources(None)):
            counted += source.in_vain.total()
            absorbed = source.aggregates.statistics().absorbed
            saved += absorbed - source.absorbed
            source.absorbed = absorbed
            for handle, times in list(source.in_vain.items()):
                if times > most and handle in source.numbers and len(source.aggregates.members(handle)) > 1:
                    self._reaggregated += 1
                    self._tell(source, source.aggregates.reaggregate(handle))
            source.in_vain.clear()
        if isinstance(self._aggregation.threshold, SelfTuning):
            self._aggregation.threshold.counted(counted, saved)

    # What neighbours say

    def _understand(self, neighbour: Address, said: list[Stream]) -> None:
        link = self._links[neighbour]
        for message in said:
            match message:
                case Everything():
                    gone = [(number, None) for number, _ in link.said.items()]
                    news = [row for composite in message.composites for row in partials_in(composite)]
                    self._take(link, [*gone, *news])
                    news = [*gone, *news]
                case Partials():
                    news = partials_in(message)
                    self._take(link, news)
                case _:
                    continue
            for number, partial in news:
                old = link.partials.pop(number, None)
                if old is not None:
                    self._around.lost(neighbour, *old)
                if partial is not None:
                    link.partials[number] = partial
                    self._around.learnt(neighbour, *partial)

    def _take(self, link: _Link, rows: list[Change]) -> None:
        changes: list[AggregateChange] = []
        for number, partial in rows:
            if partial is not None:
                link.said.put(number, 0, *partial)
                changes += link.aggregates.put(str(number), Coarse(*partial))
            elif number in link.said:
                link.said.remove(number)
                changes += link.aggregates.remove(str(number))
        self._tell(link, changes)

    # The tree

    def _open(self) -> None:
        self._links = {
            neighbour: _Link(self._aggregates(), self.judge, incoming) for neighbour, incoming in self._incoming.items()
        }

    def _close(self, neighbour: Address) -> None:
        link = self._links[neighbour]
        self._take(link, [(number, None) for number, _ in link.said.items()])
        self._links[neighbour] = _Link(self._aggregates(), self.judge, self._incoming[neighbour])

    def _everything(self, neighbour: Address, tree: int, number: int) -> tuple[Partials, ...]:
        rows = [row for source in self._sources(neighbour) for row in source.all()]
        return (partials_of(_WHATEVER, rows, tree, number, whole=True),)


def _partial(context: Coarse | None) -> Partial | None:
    return None if context is None else (context.attributes, context.optional)
