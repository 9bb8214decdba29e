"""The state of one part of a stream: what is known at the watermark, and the rows that are waiting for it.

It is stored as Arrow: a *base*, in which every key has one row, and the changes *since*, to which each batch only adds.  A
worker keeps the matcher that it made of that, with the version of the state that it stands for: the next batch of the part
mostly comes to the same worker, and then nothing has to be loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from nearcast.pipeline.matching.replayer import Found
from nearcast.pipeline.streaming.known import LastingReplayer, compacted

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ListState, StatefulProcessorHandle, ValueState

    from nearcast.matching.grid import Int32s

NEVER: Final = -(2**62)
LEAST_COMPACTED: Final = 100_000
"""Rows that may come after the base, whatever its size, before it is written anew."""

MOST_KEPT: Final = 4
"""A worker serves few parts, and those that another worker went on with are of no use any more."""


class Store:
    """What Spark keeps of a part between batches; only what has changed is written."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self.head: Final[ValueState] = handle.getValueState("head", "version string, watermark bigint")
        """The version is new with every batch: what a failed attempt has left in a worker is not taken for the state."""
        self.base: Final[ValueState] = handle.getValueState("base", "rows binary")
        self.since: Final[ListState] = handle.getListState("since", "rows binary")
        self.waiting: Final[ValueState] = handle.getValueState("waiting", "rows binary")


@dataclass(slots=True)
class PartState:
    """Rows have the columns of ``schema``; those of changes leave ``event`` empty."""

    schema: pa.Schema
    waiting: pa.Table
    watermark: int = NEVER
    base: pa.Table = field(init=False)
    since: list[pa.Table] = field(default_factory=list)
    _unsaved: int | None = 0
    """So many of the last tables of ``since`` were not stored yet; ``None``: nor was the base."""
    _replayer: LastingReplayer = field(default_factory=LastingReplayer)

    def __post_init__(self) -> None:
        self.base = self.schema.empty_table()

    @classmethod
    def of(cls, store: Store, schema: pa.Schema) -> PartState:
        """What this worker has, if it is that; else as it was stored."""
        head = store.head.get()
        if head is None:
            return cls(schema, schema.empty_table())
        version, watermark = head
        if (kept := _KEPT.pop(version, None)) is not None:
            return kept
        part = cls(schema, _table_in(store.waiting.get(), schema), watermark)
        part._load(_table_in(store.base.get(), schema), [_table_in(each, schema) for each in store.since.get()])
        return part

    def save(self, store: Store, forget_after: int | None) -> None:
        """After a batch; the part is kept under the version that it gets."""
        if sum(each.num_rows for each in self.since) > max(self.base.num_rows, LEAST_COMPACTED):
            self._write_anew(self.schema.empty_table(), forget_after)
        if self._unsaved is None:
            store.since.clear()
            store.base.update((_bytes_of(self.base),))
            self._unsaved = len(self.since)
        for changes in self.since[len(self.since) - self._unsaved :]:
            store.since.appendValue((_bytes_of(changes),))
        self._unsaved = 0
        store.waiting.update((_bytes_of(self.waiting),))
        version = uuid4().hex
        store.head.update((version, self.watermark))
        while len(_KEPT) >= MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[version] = self

    def walk(self, changes: pa.Table, events: pa.Table, before: int, *, rich: bool) -> Iterator[Found]:
        """What is due: ``before`` is the watermark that there was, events are in the order of their time."""
        late = changes.column("time").to_numpy() < before
        if late.any():
            self._write_anew(changes.filter(pa.array(late)), None)
            changes = changes.filter(pa.array(~late))
        yield from self._replayer.answers(changes, events, rich=rich)
        if changes.num_rows:
            self.since.append(changes)
            self._unsaved = None if self._unsaved is None else self._unsaved + 1

    def named(self, clients: Int32s) -> pa.Array:
        """The ids of clients that were found."""
        ids = self._replayer.ids
        return pa.nulls(0, self.schema.field("client").type) if ids is None else ids.take(pa.array(clients))

    def _write_anew(self, late: pa.Table, forget_after: int | None) -> None:
        """One row for each key, with late ones in their places."""
        oldest = NEVER if forget_after is None else self.watermark - forget_after
        self._load(compacted(pa.concat_tables([self.base, *self.since, late]), oldest), [])
        self._unsaved = None

    def _load(self, base: pa.Table, since: list[pa.Table]) -> None:
        self.base, self.since, self._replayer = base, since, LastingReplayer()
        self._replayer.load(self._replayer.in_order(pa.concat_tables([base, *since])))


_KEPT: Final[dict[str, PartState]] = {}
"""What this worker has loaded, by the version of the state."""


def _table_in(stored: tuple[Any] | None, schema: pa.Schema) -> pa.Table:
    if stored is None or not stored[0]:
        return schema.empty_table()
    with pa.ipc.open_stream(stored[0]) as stream:
        return stream.read_all().cast(schema)


def _bytes_of(table: pa.Table) -> bytes:
    if not table.num_rows:
        return b""
    # Subscriptions repeat: each distinct text is stored once.
    place = table.column_names.index("detail")
    table = table.set_column(place, "detail", table.column("detail").combine_chunks().dictionary_encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
