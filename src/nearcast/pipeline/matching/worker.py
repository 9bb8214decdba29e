"""The functions that Spark runs in its Python workers: Arrow batches in, one row per event out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.matching.changes import ENDED, REPORT
from nearcast.pipeline.matching.happened import Happened, happened
from nearcast.pipeline.matching.packing import EVENTS, OTHERS, REPORTS, codes, numbers, one, table_of
from nearcast.pipeline.matching.replayer import Changed, Found, Replayer, nothing_changed


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """Reports, and all other changes, in any order; ``None`` where there are none."""

    reports: pa.Table | None = None
    others: pa.Table | None = None


@dataclass(frozen=True, eq=False, slots=True)
class GroupMatching:
    """A partition of blobs (see ``packing``): all changes and events of one group."""

    rich: bool
    """Whether ``detail`` of events is JSON, not just a topic."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs: dict[int, list[pa.BinaryScalar]] = {EVENTS: [], REPORTS: [], OTHERS: []}
        for batch in batches:
            for content, rows in zip(batch.column("content").to_pylist(), batch.column("rows"), strict=True):
                blobs[content].append(rows)
        if blobs[EVENTS]:
            events = table_of(blobs.pop(EVENTS))
            yield from self._matched(events, Known(*(table_of(found) if found else None for found in blobs.values())))

    def _matched(self, events: pa.Table, known: Known) -> Iterator[pa.RecordBatch]:
        ids, changed = in_order(known)
        events = events.take(pa.array(np.argsort(numbers(events, "time"), kind="stable")))
        loaded = int(np.searchsorted(changed.time, numbers(events, "time")[0], side="right"))
        replayer = Replayer(len(ids))
        replayer.load(changed.part(slice(0, loaded)))
        found = replayer.run(changed.part(slice(loaded, None)), _happened(events, ids, rich=self.rich))
        for answer in found:
            yield answered(events, answer, ids)


@dataclass(frozen=True, eq=False, slots=True)
class BroadcastMatching:
    """Events pass by a state that does not change; a worker loads it once."""

    known: Known
    token: str
    """Names this match: a worker that meets it again need not load the state again."""
    rich: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids, replayer = self._loaded()
        nothing = nothing_changed()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for answer in replayer.run(nothing, _happened(table, ids, rich=self.rich)):
                yield answered(table, answer, ids)

    def _loaded(self) -> tuple[pa.Array, Replayer]:
        if self.token not in _LOADED:
            _LOADED.clear()
            ids, changed = in_order(self.known)
            replayer = Replayer(len(ids))
            replayer.load(changed)
            _LOADED[self.token] = ids, replayer
        return _LOADED[self.token]


_LOADED: dict[str, tuple[pa.Array, Replayer]] = {}
"""The last state that this worker loaded."""


def in_order(known: Known) -> tuple[pa.Array, Changed]:
    """The ids of the clients, and the changes in the order in which they count, with clients by number."""
    tables = [table for table in (known.others, known.reports) if table is not None]
    if not tables:
        return pa.array([], pa.int64()), nothing_changed()
    others = 0 if known.others is None else len(known.others)
    rows = sum(map(len, tables))
    columns = pa.concat_tables([table.select(["time", "client"]) for table in tables]).unify_dictionaries()
    time = numbers(columns, "time")
    ids, client = codes(columns.column("client"))
    kind = np.full(rows, REPORT, np.int8)
    lat, lon = np.full((2, rows), np.nan)
    detail = np.full(rows, -1, np.int32)
    texts: list[str] = []
    if known.others is not None:
        kind[:others] = numbers(known.others, "kind")
        said, detail[:others] = codes(known.others.column("detail"))
        texts = said.to_pylist()
    if known.reports is not None:
        lat[others:], lon[others:] = (_floats(known.reports, name) for name in ("lat", "lon"))
    changed = Changed(time, kind, client, lat, lon, detail, texts)
    # Changes of different kinds at one instant do not mind each other, unless somebody leaves.
    keys: list[Any] = [kind] if (kind == ENDED).any() else []
    if "offset" in tables[0].column_names:
        keys = [kind, np.concatenate([pc.fill_null(table.column("offset"), -1).to_numpy() for table in tables])]
    # Mostly they come in order; to find that out costs less than to bring them into it.
    if not keys and (time[1:] >= time[:-1]).all():
        return ids, changed
    return ids, changed.part(np.lexsort((*keys, time)) if keys else np.argsort(time, kind="stable"))


def answered(events: pa.Table, found: Found, ids: pa.Array) -> pa.RecordBatch:
    """One row for each event, with the ids of its receivers."""
    rows = events.slice(found.first, len(found.offsets) - 1)
    receivers = pa.ListArray.from_arrays(pa.array(found.offsets.astype(np.int32)), ids.take(pa.array(found.clients)))
    columns = [one(rows.column("event")), one(rows.column("time")).cast(pa.timestamp("us", tz="UTC")), receivers]
    return pa.RecordBatch.from_arrays(columns, names=["event", "time", "receivers"])


def _happened(events: pa.Table, ids: pa.Array, *, rich: bool) -> Happened:
    return happened(
        numbers(events, "time"),
        _floats(events, "lat"),
        _floats(events, "lon"),
        events.column("detail"),
        rich=rich,
        ids=ids,
    )


def _floats(table: pa.Table, name: str) -> Any:
    """Degrees; null is NaN."""
    return one(table.column(name)).to_numpy(zero_copy_only=False)
