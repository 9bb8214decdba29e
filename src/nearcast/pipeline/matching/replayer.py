"""What one worker does with one group: load what is known, then walk through changes and events in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from nearcast.errors import HistoryNeeded, UnknownName
from nearcast.matching.open_cases import asks_direction
from nearcast.matching.replay import ReplayMatcher
from nearcast.matching.replaying import Moves
from nearcast.model.subscription import Subscription
from nearcast.model.value_text import attributes_in
from nearcast.pipeline.matching.changes import ACCEPTING, CONTEXT, ENDED, REPORT, SUBSCRIPTION
from nearcast.pipeline.matching.happened import Happened
from nearcast.pipeline.rows import subscription_of

if TYPE_CHECKING:
    from nearcast.matching.grid import Floats, Int32s, Int64s

CHUNK: Final = 65_536
"""Events that are matched at once: enough to make calls cheap, few enough that their receivers fit into the cache."""


class HeldDetail(msgspec.Struct, frozen=True):
    """A subscription; without a topic filter, the end of one."""

    subscription: str
    topic_filter: str | None = None
    radius: float | None = None
    area: str | None = None
    condition: str | None = None
    frame_since: int | None = None
    frame_until: int | None = None
    no_local: bool | None = None

    def held(self) -> Subscription | None:
        if self.topic_filter is None:
            return None
        return subscription_of(
            self.topic_filter,
            self.condition,
            self.area,
            self.radius,
            self.frame_since,
            self.frame_until,
            self.subscription,
            self.no_local,
        )


class ContextDetail(msgspec.Struct, frozen=True):
    name: str
    attributes: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Changed:
    """Changes in the order in which they count; ``detail`` numbers the distinct texts, -1 is none."""

    time: Int64s
    kind: Any
    client: Int32s
    lat: Floats
    lon: Floats
    detail: Int32s
    texts: list[str]

    def __len__(self) -> int:
        return len(self.time)

    def part(self, rows: Any) -> Changed:
        return Changed(
            self.time[rows], self.kind[rows], self.client[rows], self.lat[rows], self.lon[rows], self.detail[rows],
            self.texts,
        )  # fmt: skip


def nothing_changed() -> Changed:
    numbers, floats = np.zeros(0, np.int32), np.zeros(0)
    return Changed(np.zeros(0, np.int64), np.zeros(0, np.int8), numbers, floats, floats, numbers, [])


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """Receivers of events ``first`` and following: those of event i are ``clients[offsets[i]:offsets[i + 1]]``."""

    first: int
    offsets: Int64s
    clients: Int32s


class Replayer:
    """A matcher over the clients of one group, which are known by their numbers."""

    def __init__(self, clients: int) -> None:
        self._matcher = ReplayMatcher()
        self._names = [str(number) for number in range(clients)]
        self._matcher.add_clients(self._names)
        self._looks_inside = False
        """Whether a subscription has a condition, so that events must be shown as a whole."""

    def load(self, changes: Changed) -> None:
        """All that is known before the first event, at once: of every key only the last row counts."""
        rows = last_rows(changes)
        moved = rows[(changes.kind[rows] == REPORT) & ~np.isnan(changes.lat[rows])]
        self._matcher.move_many(changes.client[moved], changes.lat[moved], changes.lon[moved])
        held = rows[changes.kind[rows] == SUBSCRIPTION]
        details = changes.detail[held]
        order = np.argsort(details, kind="stable")
        bounds = np.flatnonzero(np.diff(details[order], prepend=-2, append=-2))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            name, subscription = self._subscription(changes.texts[details[order[first]]])
            clients = changes.client[held[order[first:last]]]
            if name == ACCEPTING:
                for client in clients.tolist():
                    self._matcher.accept_addressed(self._names[client], subscription is not None)
            elif subscription is not None:
                self._matcher.subscribe_many(clients, subscription)
        for row in rows[changes.kind[rows] == CONTEXT].tolist():
            self._apply(changes, row)

    def run(self, changes: Changed, events: Happened) -> Iterator[Found]:
        """Walk through both; neither comes before what was loaded."""
        counted = np.searchsorted(changes.time, events.time, side="right")  # of each event: the changes before it
        moves_made = (changes.kind == REPORT) & ~np.isnan(changes.lat)
        moves = changes if moves_made.all() else changes.part(moves_made)
        rank = np.concatenate(([0], np.cumsum(moves_made)))
        before = rank[counted]
        made = at = 0
        for stop in [*np.flatnonzero(~moves_made).tolist(), len(changes)]:
            # Those to whom the change counts already come after it.
            end = len(events) if stop == len(changes) else int(np.searchsorted(counted, stop, side="right"))
            if end > at:
                yield from self._walked(moves, made, before, events, at, end)
                made = int(before[end - 1])
            at = end
            if at == len(events):
                return
            upto = int(rank[stop])
            if upto > made:
                self._matcher.move_many(moves.client[made:upto], moves.lat[made:upto], moves.lon[made:upto])
                made = upto
            self._apply(changes, stop)

    def _walked(
        self, moves: Changed, made: int, before: Int64s, events: Happened, first: int, last: int
    ) -> Iterator[Found]:
        """Events between which nothing but positions change."""
        chosen = events.chosen[first:last]
        cuts = [first, *(np.flatnonzero(np.diff(chosen)) + first + 1).tolist(), last]
        for start, end in pairwise(cuts):
            at, moments = start, bool(events.chosen[start])
            while at < end:
                to = min(end, at + CHUNK)
                if moments:  # where clients are is asked again after the walk: one moment at a time
                    to = at + int(np.searchsorted(before[at:to], before[at], side="right"))
                upto = int(before[to - 1])
                part = moves.client[made:upto], moves.lat[made:upto], moves.lon[made:upto]
                batch = events.batch(at, to, whole=self._looks_inside)
                if moments:
                    self._matcher.move_many(*part)
                    found = self._matcher.match_batch(batch)
                else:
                    found = self._matcher.replay(Moves(*part, before[at:to] - made), batch)
                yield Found(at, found.offsets, found.clients)
                made, at = upto, to

    def _apply(self, changes: Changed, row: int) -> None:
        """One change that is no position."""
        client = self._names[int(changes.client[row])]
        kind = int(changes.kind[row])
        if kind == ENDED:
            self._matcher.remove_client(client)
            self._matcher.add_clients([client])  # numbers of what has gone are given to what comes
        elif kind == REPORT:
            self._matcher.forget_position(client)
        elif kind == CONTEXT:
            self._context(client, msgspec.json.decode(changes.texts[changes.detail[row]], type=ContextDetail))
        else:
            name, subscription = self._subscription(changes.texts[changes.detail[row]])
            if name == ACCEPTING:
                self._matcher.accept_addressed(client, subscription is not None)
            elif subscription is not None:
                self._matcher.subscribe(client, subscription)
            else:
                with suppress(UnknownName):  # it was never held, or went with its client
                    self._matcher.unsubscribe(client, name)

    def _context(self, client: str, detail: ContextDetail) -> None:
        if detail.attributes is not None:
            self._matcher.register_context(client, detail.name, attributes_in(detail.attributes))
            return
        with suppress(UnknownName):
            self._matcher.deregister_context(client, detail.name)

    def _subscription(self, text: str) -> tuple[str, Subscription | None]:
        detail = msgspec.json.decode(text, type=HeldDetail)
        held = detail.held()
        if held is not None and held.where is not None:
            self._looks_inside = True
            if asks_direction(held.where):
                raise HistoryNeeded(
                    f"the condition {detail.condition!r} asks for the previous event of the same publisher, which may be in "
                    "another block or slice; only the broker answers it"
                )
        return detail.subscription, held


_NAME_BITS: Final = 28
"""More than there can be names in a group; above them there is room for the kind and all clients."""


def last_rows(changes: Changed) -> Any:
    """The rows that are the last of their client, kind and name, and after the client last left."""
    size = len(changes)
    left = np.full(int(changes.client.max(initial=-1)) + 1, -1)
    gone = np.flatnonzero(changes.kind == ENDED)
    left[changes.client[gone]] = gone
    # One number for client, kind and name, so that one sort will do.
    keys = (
        (changes.client.astype(np.int64) << _NAME_BITS + 3)
        | (changes.kind.astype(np.int64) << _NAME_BITS)
        | _names(changes)
    )
    order = np.argsort(keys, kind="stable")
    last = np.ones(size, np.bool_)
    last[:-1] = np.diff(keys[order]) != 0
    rows = np.sort(order[last])
    return rows[rows > left[changes.client[rows]]]


class _Name(msgspec.Struct, frozen=True):
    """The part of a detail that tells apart what a client has several of."""

    subscription: str | None = None
    name: str | None = None


def _names(changes: Changed) -> Any:
    """Of each change the number of its name."""
    numbers: dict[_Name, int] = {}
    of_text = np.zeros(len(changes.texts) + 1, np.int64)  # the last one is that of no text
    for number, text in enumerate(changes.texts):
        of_text[number] = numbers.setdefault(msgspec.json.decode(text, type=_Name), len(numbers))
    return of_text[changes.detail]
