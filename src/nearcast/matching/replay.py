"""A matcher for stretches of the past: reports and events come together, sorted by time, and are walked through."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nearcast.errors import HistoryNeeded
from nearcast.matching.approach import ApproachLog
from nearcast.matching.columns import OPEN_CASES, Events, Output
from nearcast.matching.filters import FilterTable
from nearcast.matching.grid import Int32s, with_room
from nearcast.matching.growing import grown
from nearcast.matching.matcher import Matcher
from nearcast.matching.matches import Matches, grouped, once
from nearcast.matching.open_cases import Judge
from nearcast.matching.replaying import NO_ROOM, Moves, OpenPositions, walk
from nearcast.matching.runner import KernelRunner
from nearcast.model.area import Area, Circle
from nearcast.model.delivery import in_area
from nearcast.model.geometry import Point

if TYPE_CHECKING:
    from nearcast.matching.events import EventBatch
    from nearcast.matching.subscribers import SubscriberTable
    from nearcast.matching.templates import TemplateTable


Case = tuple[int, int]
"""An event and an item."""


class ReplayMatcher(Matcher):
    """A matcher that also takes reports between the events of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self._walker = _Walker(self._filters, self._subscribers)
        self._kernels = self._walker

    def replay(self, moves: Moves, batch: EventBatch) -> Matches:
        """The receivers of events that are published between the moves: event k after ``moves.before[k]`` of them.

        The events have neither reach nor addressing; those are matched one present at a time, by ``match_batch``.
        """
        if batch.reaches or batch.addressing or self._approach:
            raise HistoryNeeded(
                "events with a reach or addressing, and filters that ask for directions, depend on where a client is "
                "at that moment: move and match_batch in turns"
            )
        events = len(batch)
        encoded = self._encoder.many(batch)
        out = self._walker.walked(encoded, np.arange(events, dtype=np.int32), moves)
        made = int(moves.before[-1]) if events else 0
        rest = slice(made, None)
        if len(moves.numbers) > made:
            self._subscribers.move(moves.numbers[rest], moves.lat[rest], moves.lon[rest])
        if self._subscribers.presence is not None:  # the walk did not look after the grid of positions
            self._subscribers.move(moves.numbers, moves.lat, moves.lon)
        pairs = self._walker.taken(out, events)
        self._events += events
        if out.progress[OPEN_CASES]:
            count = int(out.progress[OPEN_CASES])
            which, items = out.open_event[:count].copy(), out.open_item[:count].copy()
            judge = _JudgeOfThen(batch, self._subscribers, self._templates, self._walker.then(out))
            accepted = judge.accepted(which, items, out.open_what[:count])
            which, items = which[accepted], items[accepted]
            pairs = grouped(
                events,
                np.concatenate([pairs.events(), which]),
                np.concatenate([pairs.owners, self._subscribers.columns.client[items]]),
                np.concatenate([pairs.marks, items]),
            )
        self._matches += len(pairs.owners)
        offsets, clients = pairs.offsets, pairs.owners
        if self._may_repeat(addressed=False):
            self._seen = grown(self._seen, len(self._subscribers.ids), -1)
            offsets, clients = np.empty_like(pairs.offsets), np.empty_like(pairs.owners)
            clients = clients[: once(pairs.offsets, pairs.owners, self._seen, offsets, clients)]
        return Matches(offsets, clients, pairs, self._subscribers.ids, self._asked)


class _Walker(KernelRunner):
    def __init__(self, filters: FilterTable, subscribers: SubscriberTable) -> None:
        super().__init__(filters, subscribers)
        self._positions = OpenPositions(np.empty(0), np.empty(0))

    def walked(self, encoded: Events, which: Int32s, moves: Moves) -> Output:
        """Match the events ``which`` by their places, moving clients between them."""
        stamp = self._filters.stamps(len(which))
        made = np.zeros(1, np.int64)

        def kernel(out: Output) -> int:
            room = len(out.open_item)
            self._positions = OpenPositions(*(grown(column, room) for column in self._positions))
            while True:
                table = self._subscribers
                status = walk(
                    table.grid, table.where, self._filters.arrays, self._filters.predicates.state(), table.columns,
                    encoded, which, moves, made, stamp, out, self._positions, self._scratch,
                )  # fmt: skip
                if status < NO_ROOM:
                    return status
                chains = table.columns.first, table.columns.next_of_client
                table.grid = with_room(table.grid, table.where, *chains, status - NO_ROOM)

        self._batch = self._filled(self._with_offsets(len(which)), kernel)
        return self._batch

    def then(self, out: Output) -> dict[Case, Point | None]:
        """Where the clients of open cases were, by event and item."""
        count = int(out.progress[OPEN_CASES])
        columns = (out.open_event, out.open_item, *self._positions)
        return {
            (event, item): None if math.isnan(lat) else Point(lat, lon)
            for event, item, lat, lon in zip(*(column[:count].tolist() for column in columns), strict=True)
        }


class _JudgeOfThen(Judge):
    """Judges open cases by where their clients were, not by where they are."""

    def __init__(
        self, batch: EventBatch, subscribers: SubscriberTable, templates: TemplateTable, then: dict[Case, Point | None]
    ) -> None:
        super().__init__(batch, subscribers, templates, ApproachLog())
        self._then = then
        self._place_of = batch.place
        self._radius = subscribers.columns.radius

    def _in_area(self, event: int, item: int, area: Area | None) -> bool:
        around = Circle(float(self._radius[item])) if area is None else area
        return in_area(around, self._place_of(event), self._then[event, item])
