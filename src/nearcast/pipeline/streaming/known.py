"""All that is known at the watermark, ready to match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.matching.growing import grown
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.matching.changes import ENDED, REPORT, SUBSCRIPTION
from nearcast.pipeline.matching.happened import happened
from nearcast.pipeline.matching.packing import codes
from nearcast.pipeline.matching.replayer import Changed, Found, Replayer, last_rows

if TYPE_CHECKING:
    from nearcast.matching.grid import Int32s


REMEMBERED: Final = 3600 * MICROSECONDS
"""So long after a session or subscription has ended does the state know of it: what comes late must not bring it back."""


class LastingReplayer(Replayer):
    """One that outlives its batch: clients come as they come, and changes without an event count, too."""

    def __init__(self) -> None:
        super().__init__(0)
        self._numbers: dict[Any, int] = {}
        self.ids: pa.Array | None = None
        """The id of each number; none before anybody is known."""
        self._heard = np.empty((0, 2), np.int64)
        """Instant and offset of the last report of each client, or of the end of its last session."""

    def numbers(self, clients: pa.ChunkedArray) -> Int32s:
        """Of clients that may be new."""
        found, code = codes(clients)
        names, known = found.to_pylist(), self._numbers
        new = [name for name in names if name not in known]
        if new:
            first = len(known)
            known.update(zip(new, range(first, first + len(new)), strict=True))
            texts = [str(number) for number in range(first, first + len(new))]
            self._names += texts
            self._matcher.add_clients(texts)
            added = pa.array(new, found.type)
            self.ids = added if self.ids is None else pa.concat_arrays([self.ids, added])
        of_code = np.array([known[name] for name in names], np.int32)
        numbers: Int32s = of_code[code]
        return numbers

    def in_order(self, changes: pa.Table) -> Changed:
        """The changes in the order in which they count; without late reports, if newer ones are known."""
        changed = _changed(changes, self.numbers(changes.column("client")))
        offset, order = changes.column("offset").to_numpy(), _order(changes)
        self._heard = grown(self._heard, len(self._names), np.iinfo(np.int64).min)
        instant_before, offset_before = self._heard[changed.client].T
        stale = (changed.time < instant_before) | ((changed.time == instant_before) & (offset < offset_before))
        order = order[~(stale & (changed.kind == REPORT))[order]]
        ends = order[changed.kind[order] <= REPORT]
        self._heard[changed.client[ends]] = np.stack(
            [changed.time[ends], offset[ends]], 1
        )  # of several, the last stays
        return changed.part(order)

    def answers(self, changes: pa.Table, events: pa.Table, *, rich: bool) -> Iterator[Found]:
        """Walk through both, and to the end of the changes; events are in the order of their time."""
        new = self.ids is None
        changed = self.in_order(changes)
        time = events.column("time").to_numpy()
        if new:  # at once what else would be taken one by one: perhaps a whole city subscribes
            known = int(np.searchsorted(changed.time, time[0], side="right")) if len(time) else len(changed)
            self.load(changed.part(slice(0, known)))
            changed = changed.part(slice(known, None))
        seen = 0
        if len(time):
            asked = happened(
                time,
                events.column("lat").to_numpy(),
                events.column("lon").to_numpy(),
                events.column("detail").combine_chunks(),
                rich=rich,
                ids=self.ids,
            )
            yield from self.run(changed, asked)
            seen = int(np.searchsorted(changed.time, time[-1], side="right"))
        self._advance(changed.part(slice(seen, None)))

    def advance(self, changes: pa.Table) -> None:
        """To the end of changes among which there is no event."""
        self._advance(self.in_order(changes))

    def _advance(self, changes: Changed) -> None:
        moves = (changes.kind == REPORT) & ~np.isnan(changes.lat)
        made = 0
        for stop in [*np.flatnonzero(~moves).tolist(), len(changes)]:
            some = changes.part(slice(made, stop))
            self._matcher.move_many(some.client, some.lat, some.lon)
            if stop < len(changes):
                self._apply(changes, stop)
            made = stop + 1


def _changed(changes: pa.Table, client: Int32s) -> Changed:
    """As they are in the table, with clients by these numbers."""
    texts, detail = codes(changes.column("detail"))
    return Changed(
        changes.column("time").to_numpy(),
        changes.column("kind").to_numpy(),
        client,
        changes.column("lat").to_numpy(),
        changes.column("lon").to_numpy(),
        detail,
        texts.to_pylist(),
    )


def _order(changes: pa.Table) -> Any:
    """In which they count."""
    return np.lexsort(tuple(changes.column(name).to_numpy() for name in ("kind", "offset", "time")))


def compacted(changes: pa.Table, oldest: int) -> pa.Table:
    """One row for each key: its last; nothing of clients of whom nothing was heard since ``oldest``, nor of what ended long ago."""
    changes = changes.take(pa.array(_order(changes)))
    changed = _changed(changes, codes(changes.column("client"))[1])
    heard = np.full(len(changes), oldest - 1)  # there are not more clients than rows
    np.maximum.at(heard, changed.client, changed.time)
    ended = np.array([_is_end(text) for text in changed.texts] + [False])
    rows = np.sort(np.concatenate([last_rows(changed), _last_ends(changed)]))
    ends = (changed.kind[rows] == ENDED) | ((changed.kind[rows] == SUBSCRIPTION) & ended[changed.detail[rows]])
    over = ends & (changed.time[rows] < changed.time.max(initial=oldest) - REMEMBERED)
    return changes.take(pa.array(rows[~over & (heard[changed.client[rows]] >= oldest)]))


def _last_ends(changed: Changed) -> Any:
    """The last end of a session of each client."""
    ends = np.flatnonzero(changed.kind == ENDED)
    last = np.full(int(changed.client.max(initial=-1)) + 1, -1)
    last[changed.client[ends]] = ends  # of several, the last stays
    return last[last >= 0]


def _is_end(text: str) -> bool:
    """Whether that says that a subscription has ended; details of contexts have no such field."""
    detail = msgspec.json.decode(text, type=dict[str, Any])
    return "subscription" in detail and detail.get("topic_filter") is None
