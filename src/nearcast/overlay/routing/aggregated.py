"""Context aggregation: each router tells its neighbours of few coarse contexts instead of many (4.4).

What comes over a link, and what is registered here, is aggregated for itself (``overlay.aggregation``) and told to all other
neighbours, which do the same.  Whom a message is sent on to is decided by what the neighbour there said; the document asks
the aggregates made of it, although their members are stored beside them, and so sends messages in vain that nobody need send (``by_aggregates``).

Neighbours say how many hops away what they tell of is, so that a threshold can know what is far away coarsely and what is near well.

A message that comes in vain was sent because an aggregate of ours seemed to match.  Which one, we know; one that does so too often is
dissolved (Alg. 4.5, for which the document gives no threshold), and a threshold that tunes itself is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidSettings
from nearcast.matching.entries import EntryTable, Judge, Questions
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context
from nearcast.overlay.aggregation.aggregates import Aggregates, Aggregation
from nearcast.overlay.aggregation.aggregates import Change as AggregateChange
from nearcast.overlay.aggregation.thresholds import SelfTuning
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.absences import AbsenceSettings
from nearcast.overlay.routing.composites import Names, Partial, Rows, partials_in
from nearcast.overlay.routing.hop_local import HopLocal
from nearcast.overlay.routing.knowledge import KnowledgeStatistics, Surroundings
from nearcast.overlay.routing.messages import Everything, Partials, Stream
from nearcast.overlay.routing.streams import Incoming
from nearcast.overlay.routing.wire import Routed, asked
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.possible import possibly
from nearcast.runtime.ports import Address

_Row = tuple[int, Partial | None, int]
"""As ``Change``, and how many hops away that is."""

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

    def __init__(self, aggregates: Aggregates, judge: Judge, shared: SharedContexts | None) -> None:
        self.aggregates: Final = aggregates
        self.in_vain: Final[Counter[Handle]] = Counter()
        """By aggregate, since the window began."""

        self.numbers: Final[dict[Handle, int]] = {}
        """As neighbours know the aggregates."""

        self.told: Final[EntryTable[Handle]] = EntryTable(judge, shared)
        self.absorbed = 0
        """As of the last window."""

    def all(self) -> Iterator[_Row]:
        for change in self.aggregates.contexts():
            yield self.numbers[change.handle], _partial(change.context), change.hops


class _Link(_Source):
    """Of a neighbour."""

    def __init__(
        self, aggregates: Aggregates, judge: Judge, shared: SharedContexts | None, incoming: Incoming[Stream]
    ) -> None:
        super().__init__(aggregates, judge, shared)
        self.incoming: Final = incoming
        self.said: Final[EntryTable[int]] = EntryTable(judge, shared)
        """The neighbour's own words."""

        self.partials: Final[dict[int, Partial]] = {}
        """The same, one by one."""

    def nothing(self) -> list[_Row]:
        """What would take all of them back."""
        return [(number, None, 0) for number, _ in self.said.items()]


class Aggregated(HopLocal):
    """``shared``: contexts of all routers of this process; it judges for all of them."""

    def __init__(
        self,
        aggregation: Aggregation | None = None,
        settings: AggregatedSettings | None = None,
        domains: Domains | None = None,
        judge: Judge = possibly,
        shared: SharedContexts | None = None,
        absences: AbsenceSettings | None = None,
    ) -> None:
        super().__init__(judge if shared is None else shared.judge, absences)
        self._aggregation: Final = aggregation or Aggregation()
        self._settings: Final = settings or AggregatedSettings()
        self._domains: Final = domains or Domains()
        self._shared: Final = shared
        self._links: dict[Address, _Link] = {}
        self._here: _Source
        self._number = self._prunes = self._reaggregated = 0

    def start(self, surroundings: Surroundings) -> None:
        super().start(surroundings)
        self._here = _Source(self._aggregates(), self.judge, self._shared)
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
            absences_heard=0 if self._absences is None else self._absences.heard,
            absences_told=0 if self._absences is None else self._absences.told,
        )

    def _sources(self, neighbour: Address | None) -> Iterator[_Source]:
        """All that a neighbour is told of; none: all."""
        yield self._here
        for other, link in self._links.items():
            if other != neighbour:
                yield link

    # Contexts

    def local(self, handle: Handle, context: Context | None) -> None:
        super().local(handle, context)
        here = self._here.aggregates
        changes = here.remove(handle) if context is None else here.put(handle, Coarse(context))
        self._tell(self._here, changes)

    def _tell(self, source: _Source, changes: Iterable[AggregateChange]) -> None:
        """To all but the neighbour from whom it comes."""
        newest: dict[int, _Row] = {}
        for change in changes:
            partial = _partial(change.context)
            if change.handle not in source.numbers:
                self._number += 1
                source.numbers[change.handle] = self._number
            if partial is None:
                source.told.remove(change.handle)
                number = source.numbers.pop(change.handle)
            else:
                source.told.put(change.handle, 0, *partial)
                number = source.numbers[change.handle]
            newest[number] = number, partial, change.hops
        if not newest:
            return
        rows: Rows | None = None
        for neighbour, link in self._links.items():
            if link is not source:
                rows = rows or _written(newest.values())
                self._updates += 1
                self._say(neighbour, rows.message(_WHATEVER, *self._next(neighbour), whole=False))

    # Messages

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        whole = asked(message)
        wanted = []
        for neighbour, link in self._links.items():
            if neighbour == came_from:
                continue
            conjuncts = whole
            if excluded := self._excluded(neighbour, message):
                conjuncts = tuple(conjunct for number, conjunct in enumerate(whole) if number not in excluded)
            if self._behind(link, conjuncts):
                wanted.append(neighbour)
            else:
                self._prunes += 1
        return wanted

    def _possible(self, neighbour: Address, asked: Questions) -> bool:
        return self._behind(self._links[neighbour], asked)

    def _behind(self, link: _Link, asked: Questions) -> bool:
        """Whether somebody there could meet one of these; who has not said anything may know anybody."""
        if not link.incoming.begun:
            return True
        return (link.told if self._settings.by_aggregates else link.said).meets(asked)

    def judged(self, message: Routed, came_from: Address | None, *, useful: bool) -> None:
        super().judged(message, came_from, useful=useful)
        if useful or came_from not in self._links:
            return
        for source in self._sources(came_from):
            source.in_vain.update(source.told.keys(asked(message)))

    # Windows

    def _window_ends(self) -> None:
        stricter = self._tuned()
        most = self._settings.in_vain * self._settings.window
        for source in list(self._sources(None)):
            # Where the threshold rose, what was merged under the old one is not all dissolved, but the worst of it.
            worst = max(source.in_vain.values(), default=0) if stricter else most + 1
            for handle, times in list(source.in_vain.items()):
                dissolved = times > most or times >= worst
                if dissolved and handle in source.numbers and len(source.aggregates.members(handle)) > 1:
                    self._reaggregated += 1
                    self._tell(source, source.aggregates.reaggregate(handle))
            source.in_vain.clear()

    def _tuned(self) -> bool:
        """Tell a threshold that tunes itself what it cost and what it saved; whether it became stricter."""
        counted = saved = 0
        for source in self._sources(None):
            counted += source.in_vain.total()
            absorbed = source.aggregates.statistics().absorbed
            # A change that is absorbed would have been told to so many.
            saved += (absorbed - source.absorbed) * (len(self._links) - (source is not self._here))
            source.absorbed = absorbed
        threshold = self._aggregation.threshold
        return isinstance(threshold, SelfTuning) and threshold.counted(counted, saved)

    # What neighbours say

    def _understand(self, neighbour: Address, said: list[Stream]) -> None:
        link = self._links[neighbour]
        for message in said:
            match message:
                case Everything():
                    news = [*link.nothing(), *(row for composite in message.composites for row in _rows(composite))]
                    self._take(link, news)
                case Partials():
                    news = _rows(message)
                    self._take(link, news)
                case _:
                    continue
            for number, partial, _ in news:
                old = link.partials.pop(number, None)
                if old is not None:
                    self._around.lost(neighbour, *old)
                if partial is not None:
                    link.partials[number] = partial
                    self._around.learnt(neighbour, *partial)

    def _take(self, link: _Link, rows: list[_Row]) -> None:
        changes: list[AggregateChange] = []
        for number, partial, hops in rows:
            if partial is not None:
                link.said.put(number, 0, *partial)
                changes += link.aggregates.put(str(number), Coarse(*partial), hops + 1)
            elif number in link.said:
                link.said.remove(number)
                changes += link.aggregates.remove(str(number))
        self._tell(link, changes)

    # The tree

    def _open(self) -> None:
        self._links = {
            neighbour: _Link(self._aggregates(), self.judge, self._shared, incoming)
            for neighbour, incoming in self._incoming.items()
        }

    def _close(self, neighbour: Address) -> None:
        link = self._links[neighbour]
        self._take(link, link.nothing())
        self._links[neighbour] = _Link(self._aggregates(), self.judge, self._shared, self._incoming[neighbour])

    def _everything(self, neighbour: Address, tree: int, number: int) -> tuple[Partials, ...]:
        rows = [row for source in self._sources(neighbour) for row in source.all()]
        return (_written(rows).message(_WHATEVER, tree, number, whole=True),)


def _written(rows: Iterable[_Row]) -> Rows:
    rows = list(rows)
    return Rows([(number, partial) for number, partial, _ in rows], tuple(hops for _, _, hops in rows))


def _rows(message: Partials) -> list[_Row]:
    rows = partials_in(message)
    hops = message.hops if len(message.hops) == len(rows) else (0,) * len(rows)
    return [(number, partial, away) for (number, partial), away in zip(rows, hops, strict=True)]


def _partial(context: Coarse | None) -> Partial | None:
    return None if context is None else (context.attributes, context.optional)
