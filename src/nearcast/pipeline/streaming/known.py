"""All that is known at the watermark, ready to match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.matching.changes import REPORT, SUBSCRIPTION
from nearcast.pipeline.matching.happened import happened
from nearcast.pipeline.matching.replayer import Changed, Found, Replayer, last_rows

if TYPE_CHECKING:
    from nearcast.matching.grid import Int32s


class LastingReplayer(Replayer):
    """One that outlives its batch: clients come as they come, and changes without an event count, too."""

    def __init__(self) -> None:
        super().__init__(0)
        self._numbers: dict[Any, int] = {}
        self.ids: pa.Array | None = None
        """The id of each number; none before anybody is known."""

    def numbers(self, clients: pa.ChunkedArray) -> Int32s:
        """Of clients that may be new."""
        coded = clients.combine_chunks().dictionary_encode()
        names, known = coded.dictionary.to_pylist(), self._numbers
        new = [name for name in names if name not in known]
        if new:
            first = len(known)
            known.update(zip(new, range(first, first + len(new)), strict=True))
            texts = [str(number) for number in range(first, first + len(new))]
            self._names += texts
            self._matcher.add_clients(texts)
            added = pa.array(new, coded.dictionary.type)
            self.ids = added if self.ids is None else pa.concat_arrays([self.ids, added])
        of_code = np.array([known[name] for name in names], np.int32)
        found: Int32s = of_code[coded.indices.to_numpy(zero_copy_only=False)]
        return found

    def in_order(self, changes: pa.Table) -> Changed:
        """The changes in the order in which they count."""
        details = changes.column("detail").combine_chunks().dictionary_encode()
        changed = Changed(
            changes.column("time").to_numpy(),
            changes.column("kind").to_numpy(),
            self.numbers(changes.column("client")),
            changes.column("lat").to_numpy(),
            changes.column("lon").to_numpy(),
            pc.fill_null(details.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False),
            details.dictionary.to_pylist(),
        )
        return changed.part(np.lexsort((changed.kind, changes.column("offset").to_numpy(), changed.time)))

    def answers(self, changes: pa.Table, events: pa.Table, *, rich: bool) -> Iterator[Found]:
        """Walk through both, and to the end of the changes; events are in the order of their time."""
        changed = self.in_order(changes)
        time = events.column("time").to_numpy()
        seen = 0
        if len(time):
            asked = happened(
                time,
                events.column("lat").to_numpy(),
                events.column("lon").to_numpy(),
                events.column("detail").combine_chunks(),
                rich=rich,
            )
            yield from self.run(changed, asked)
            seen = int(np.searchsorted(changed.time, time[-1], side="right"))
        self._advance(changed.part(slice(seen, None)))

    def _advance(self, changes: Changed) -> None:
        moves = (changes.kind == REPORT) & ~np.isnan(changes.lat)
        made = 0
        for stop in [*np.flatnonzero(~moves).tolist(), len(changes)]:
            some = changes.part(slice(made, stop))
            self._matcher.move_many(some.client, some.lat, some.lon)
            if stop < len(changes):
                self._apply(changes, stop)
            made = stop + 1


def compacted(changes: pa.Table, oldest: int) -> pa.Table:
    """One row for each key: its last; nothing of clients of whom nothing was heard since ``oldest``, nor of what has ended."""
    scratch = LastingReplayer()
    order = np.lexsort(
        (changes.column("kind").to_numpy(), changes.column("offset").to_numpy(), changes.column("time").to_numpy())
    )
    changes = changes.take(pa.array(order))
    changed = scratch.in_order(changes)
    heard = np.full(len(changes), oldest - 1)  # there are not more clients than rows
    np.maximum.at(heard, changed.client, changed.time)
    ended = np.array([_is_end(text) for text in changed.texts] + [False])
    rows = last_rows(changed)
    over = (changed.kind[rows] == SUBSCRIPTION) & ended[changed.detail[rows]]
    return changes.take(pa.array(rows[~over & (heard[changed.client[rows]] >= oldest)]))


def _is_end(text: str) -> bool:
    """Whether that says that a subscription has ended; details of contexts have no such field."""
    detail = msgspec.json.decode(text, type=dict[str, Any])
    return "subscription" in detail and detail.get("topic_filter") is None
