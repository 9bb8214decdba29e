"""Tells of cells when they have changed: of each where it lies once, and then how many are in it.

There may be thousands, with tens of thousands of clients in them.  So they are counted in turns, beside the pictures, and never for more than their
share of the loop's time; what was found holds for everybody from the next tick on, also for those who begin to look.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.core import Broker
from nearcast.dashboard.cells import MOST, always_drawn, collection, features_of, has_cells, region_feature
from nearcast.dashboard.contract import REGIONS, CellCounts, Cells
from nearcast.dashboard.turns import Turns
from nearcast.filtering.context import ClientContext
from nearcast.planning.regional import Region
from nearcast.transition.specification import MechanismSpec

log: Final = logging.getLogger(__name__)
EVERY: Final = 2
"""Ticks between two looks."""

SHARE: Final = 0.02
"""Of the loop's time, at most, goes into looks."""

MOST_KNOWN: Final = 2 * MOST
"""Cells of a scheme that a page has been told of; if there would be more, it begins anew with those that somebody is in."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """What pages know of one scheme."""

    empty: bool
    """Cells are drawn, too, that nobody is in."""

    features: Mapping[str, msgspec.Raw]
    counts: Mapping[str, int]
    """Of all of these."""

    def whole(self, scheme: str) -> list[msgspec.Struct]:
        return [
            Cells(scheme, collection(self.features.values()), more=False, empty=self.empty),
            CellCounts(scheme, dict(self.counts)),
        ]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What pages know, and what has to be said so that they do."""

    layers: Mapping[str, _Layer] = field(default_factory=dict)
    regions: Sequence[Region] = ()
    news: list[msgspec.Struct] = field(default_factory=list)


class CellWatch:
    """A layer of the feed."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._known = _Seen()
        self._looking: asyncio.Task[_Seen] | None = None
        self._ticks = 0
        self._due = 0.0

    def begin(self) -> None:
        self.end()
        self._known = _Seen()
        self._ticks = 0
        self._look()

    def end(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @property
    def at_rest(self) -> bool:
        """It is not looking at present."""
        return self._looking is None or self._looking.done()

    def standing(self) -> Sequence[msgspec.Struct]:
        known = self._known
        whole = [message for scheme, layer in known.layers.items() for message in layer.whole(scheme)]
        return [*whole, _regions(known.regions)]

    def changed(self) -> Sequence[msgspec.Struct]:
        """What was found since everybody was told last; of a scheme that nobody is in any more, no cells."""
        news: Sequence[msgspec.Struct] = ()
        if self._looking is not None and self._looking.done():
            looked, self._looking = self._looking, None
            if not looked.cancelled() and (error := looked.exception()) is not None:
                log.error("the cells of schemes cannot be shown", exc_info=error)
            elif not looked.cancelled():
                self._known = looked.result()
                news = self._known.news
        self._ticks += 1
        if self._looking is None and self._ticks % EVERY == 0 and self._broker.loop.time() >= self._due:
            self._look()
        return news

    def _look(self) -> None:
        self._looking = self._broker.loop.create_task(self._looked(self._known))

    async def _looked(self, known: _Seen) -> _Seen:
        live, turns = self._broker.scheming.live, Turns()
        layers, news = dict[str, _Layer](), list[msgspec.Struct]()
        try:
            for spec, contexts in live.members().items():
                if has_cells(spec):
                    scheme = str(spec)
                    layers[scheme], told = await self._layer(spec, contexts, known.layers.get(scheme), turns)
                    news += told
            news += [Cells(scheme, collection(())) for scheme in known.layers.keys() - layers.keys()]
            regions = live.regions
            if regions != known.regions:
                news.append(_regions(regions))
            return _Seen(layers, regions, news)
        finally:
            self._due = self._broker.loop.time() + turns.spent / SHARE

    async def _layer(
        self, spec: MechanismSpec, contexts: Sequence[ClientContext], known: _Layer | None, turns: Turns
    ) -> tuple[_Layer, list[msgspec.Struct]]:
        scheme, territory = str(spec), self._broker.scheming.live.territory
        counts = Counter[str]()
        async for some in turns.over(contexts):
            for context in some:
                counts.update(context.channels)
        empty = always_drawn(spec, territory)
        drawn = dict.fromkeys(empty, 0) | await fullest(counts, turns)
        before = known.features if known is not None else {}
        new = await features_of(spec, territory, ((name, n) for name, n in drawn.items() if name not in before), turns)
        if known is None or len(before) + len(new) > MOST_KNOWN:
            features = {name: before[name] for name in drawn if name in before} | new
            layer = _Layer(bool(empty), features, {name: drawn[name] for name in features})
            return layer, layer.whole(scheme)
        layer = _Layer(bool(empty), {**before, **new}, {name: drawn.get(name, 0) for name in (*before, *new)})
        told: list[msgspec.Struct] = []
        if new:
            told.append(Cells(scheme, collection(new.values()), more=True, empty=layer.empty))
        changed = {name: count for name, count in known.counts.items() if layer.counts[name] != count}
        if changed:
            told.append(CellCounts(scheme, {name: layer.counts[name] for name in changed}))
        return layer, told


async def fullest(counts: Mapping[str, int], turns: Turns, most: int = MOST) -> dict[str, int]:
    """Those with the most clients: of many cells, no more are drawn."""
    if len(counts) <= most:
        return dict(counts)
    sizes = Counter[int]()
    async for some in turns.over(list(counts.values())):
        sizes.update(some)
    room, least = most, 0
    for least in sorted(sizes, reverse=True):
        if sizes[least] >= room:
            break
        room -= sizes[least]
    chosen: dict[str, int] = {}
    async for cells in turns.over(list(counts.items())):
        for name, count in cells:
            if count == least and room > 0:
                room -= 1
            elif count <= least:
                continue
            chosen[name] = count
    return chosen


def _regions(regions: Sequence[Region]) -> Cells:
    return Cells(REGIONS, collection(map(region_feature, regions)))
