"""The functions that Spark runs in its Python workers: Arrow batches in, one row per event out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.matching.changes import ENDED, EVENT
from nearcast.pipeline.matching.happened import Happened, happened
from nearcast.pipeline.matching.replayer import Changed, Found, Replayer

if TYPE_CHECKING:
    from nearcast.matching.grid import Int64s


@dataclass(frozen=True, eq=False, slots=True)
class GroupMatching:
    """A partition of changes and events that belong together: client or event is the ``id``, or ``event`` if there is that."""

    rich: bool
    """Whether ``detail`` of events is JSON, not just a topic."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        if received:
            yield from self._matched(pa.Table.from_batches(received).combine_chunks())

    def _matched(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        is_event = _numbers(table, "kind") == EVENT
        events = table.filter(pa.array(is_event))
        if not events.num_rows:
            return
        if "event" not in events.column_names:
            events = events.rename_columns({"id": "event"})
        changes = table.filter(pa.array(~is_event)).rename_columns({"id": "client"})
        order = np.argsort(_numbers(events, "time"), kind="stable")
        ids, changed = in_order(changes)
        loaded = int(np.searchsorted(changed.time, _numbers(events, "time").min(), side="right"))
        replayer = Replayer(len(ids))
        replayer.load(changed.part(slice(0, loaded)))
        sorted_events = events.take(pa.array(order))
        found = replayer.run(changed.part(slice(loaded, None)), _happened(sorted_events, rich=self.rich))
        for answer in found:
            yield answered(sorted_events, answer, ids)


@dataclass(frozen=True, eq=False, slots=True)
class BroadcastMatching:
    """Events pass by a state that does not change; a worker loads it once."""

    state: pa.Table
    token: str
    """Names this match: a worker that meets it again need not load the state again."""
    rich: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids, replayer = self._loaded()
        nothing = in_order(self.state.slice(0, 0))[1]
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for answer in replayer.run(nothing, _happened(table, rich=self.rich)):
                yield answered(table, answer, ids)

    def _loaded(self) -> tuple[pa.Array, Replayer]:
        if self.token not in _LOADED:
            _LOADED.clear()
            ids, changed = in_order(self.state)
            replayer = Replayer(len(ids))
            replayer.load(changed)
            _LOADED[self.token] = ids, replayer
        return _LOADED[self.token]


_LOADED: dict[str, tuple[pa.Array, Replayer]] = {}
"""The last state that this worker loaded."""


def in_order(changes: pa.Table) -> tuple[pa.Array, Changed]:
    """The ids of the clients, and the changes in the order in which they count, with clients by number."""
    time = _numbers(changes, "time")
    kind = _numbers(changes, "kind")
    offset = pc.fill_null(changes.column("offset"), -1).to_numpy() if "offset" in changes.column_names else None
    ids, client = _coded(changes.column("client"))
    texts, detail = _coded(changes.column("detail"))
    changed = Changed(time, kind, client, _floats(changes, "lat"), _floats(changes, "lon"), detail, texts.to_pylist())
    if offset is not None:
        return ids, changed.part(np.lexsort((kind, offset, time)))
    if (kind == ENDED).any():
        return ids, changed.part(np.lexsort((kind, time)))
    # Changes of different kinds at one instant do not mind each other, unless somebody leaves.
    return ids, changed.part(np.argsort(time, kind="stable"))


def answered(events: pa.Table, found: Found, ids: pa.Array) -> pa.RecordBatch:
    """One row for each event, with the ids of its receivers."""
    rows = events.slice(found.first, len(found.offsets) - 1)
    receivers = pa.ListArray.from_arrays(pa.array(found.offsets.astype(np.int32)), ids.take(pa.array(found.clients)))
    columns = [_one(rows.column("event")), _one(rows.column("time")).cast(pa.timestamp("us", tz="UTC")), receivers]
    return pa.RecordBatch.from_arrays(columns, names=["event", "time", "receivers"])


def _happened(events: pa.Table, *, rich: bool) -> Happened:
    return happened(
        _numbers(events, "time"),
        _floats(events, "lat"),
        _floats(events, "lon"),
        _one(events.column("detail")),
        rich=rich,
    )


def _coded(column: pa.ChunkedArray) -> tuple[pa.Array, Any]:
    """Distinct values, and their numbers; null is -1."""
    coded = _one(column).dictionary_encode()
    return coded.dictionary, pc.fill_null(coded.indices, -1).to_numpy().astype(np.int32, copy=False)


def _numbers(table: pa.Table, name: str) -> Int64s:
    column: Int64s = _one(table.column(name)).to_numpy()
    return column


def _floats(table: pa.Table, name: str) -> Any:
    """Degrees; null is NaN."""
    return _one(table.column(name)).to_numpy(zero_copy_only=False)


def _one(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
