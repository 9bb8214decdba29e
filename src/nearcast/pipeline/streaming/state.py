"""The state of one part of a stream: what is known at the watermark, and the rows that are waiting for it.

It is stored as Arrow: a *base*, in which every key has one row, and the changes *since*, to which each batch only adds.  A
worker keeps the matcher that it made of that.  Spark gives the next batch of a part to any worker that is free: one that
had the part before has to read only what others have added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import InvalidSettings
from nearcast.pipeline.matching.changes import REPORT
from nearcast.pipeline.matching.replayer import Found
from nearcast.pipeline.streaming.known import LastingReplayer, compacted
from nearcast.pipeline.streaming.store import LAYOUT, Head, Store

if TYPE_CHECKING:
    from nearcast.matching.grid import Int32s

NEVER: Final = -(2**62)
LEAST_COMPACTED: Final = 500_000
"""Rows that may come after the base, whatever its size, before it is written anew."""

MOST_SINCE: Final = 250
"""Tables that may come after the base, however small: each is named in the head, which every batch reads and writes."""

MOST_KEPT: Final = 8
"""A worker serves few parts."""

BASE: Final = "base"
WAITING: Final = "waiting"


def _since(number: int) -> str:
    return f"since {number}"


def _new_name() -> str:
    return uuid4().hex


@dataclass(slots=True)
class PartState:
    """Rows have the columns of ``schema``; those of changes leave ``event`` empty."""

    schema: pa.Schema
    parts: int
    lineage: str = field(default_factory=_new_name)
    base_name: str = field(default_factory=_new_name)
    watermark: int = NEVER
    waiting: pa.Table = field(init=False)
    base: pa.Table = field(init=False)
    since: list[pa.Table] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of the tables of ``since`` that are stored."""
    _version: str = ""
    _base_is_new: bool = False
    _outdated: int = 0
    """So many tables are stored that followed a base that was since written anew."""
    _waiting_is_stored: bool = False
    _replayer: LastingReplayer = field(default_factory=LastingReplayer)

    def __post_init__(self) -> None:
        self.waiting = self.base = self.schema.empty_table()

    @property
    def is_new(self) -> bool:
        """Whether nothing of it is stored yet."""
        return not self._version

    def bring_up_to(self, head: Head, store: Store) -> None:
        """As it is stored: read what others have added, or all if this one is new."""
        if self._version == head.version:
            return
        new = self.is_new
        if new:
            self.base = store.table(BASE, self.schema)
        added = [store.table(_since(number), self.schema) for number in range(len(self.names), len(head.since))]
        self.since += added
        self.waiting = store.table(WAITING, self.schema)
        self.names, self._waiting_is_stored = head.since, self.waiting.num_rows > 0
        self.watermark, self._version = head.watermark, head.version
        if new:
            self._load()
        for changes in () if new else added:
            self._replayer.advance(changes)

    def save(self, store: Store, forget_after: int | None) -> None:
        """After a batch; only what has changed is written."""
        rows = sum(each.num_rows for each in self.since)
        if rows > max(self.base.num_rows, LEAST_COMPACTED) or len(self.since) > MOST_SINCE:
            self._write_anew(forget_after)
        if self._base_is_new:
            store.put(BASE, self.base)
            for number in range(len(self.since), self._outdated):
                store.remove(_since(number))
            self._base_is_new, self._outdated = False, 0
        for number in range(len(self.names), len(self.since)):
            store.put(_since(number), self.since[number])
            self.names = [*self.names, _new_name()]
        if self.waiting.num_rows or self._waiting_is_stored:
            store.put(WAITING, self.waiting)
            self._waiting_is_stored = self.waiting.num_rows > 0
        self._version = _new_name()
        head = Head(self.lineage, self._version, self.base_name, self.names, self.watermark, self.parts, LAYOUT)
        store.put_head(head)

    def walk(self, changes: pa.Table, events: pa.Table, before: int, *, rich: bool) -> Iterator[Found]:
        """What is due: ``before`` is the watermark that there was, events are in the order of their time."""
        # Late reports count at once, or not at all; what else is late may change what came of something later.
        late = (changes.column("time").to_numpy() < before) & (changes.column("kind").to_numpy() != REPORT)
        if late.any():
            rows = [self.base, *self.since, changes.filter(pa.array(late))]
            self._begin_anew(compacted(pa.concat_tables(rows), NEVER))
            self._load()
            changes = changes.filter(pa.array(~late))
        yield from self._replayer.answers(changes, events, rich=rich)
        if changes.num_rows:
            self.since.append(changes)

    def named(self, clients: Int32s) -> pa.Array:
        """The ids of clients that were found."""
        ids = self._replayer.ids
        return pa.nulls(0, self.schema.field("client").type) if ids is None else ids.take(pa.array(clients))

    def _write_anew(self, forget_after: int | None) -> None:
        """One row for each key."""
        oldest = NEVER if forget_after is None else self.watermark - forget_after
        self._begin_anew(compacted(pa.concat_tables([self.base, *self.since]), oldest))
        known = 0 if self._replayer.ids is None else len(self._replayer.ids)
        if forget_after is not None or known > 2 * pc.count_distinct(self.base.column("client")).as_py():
            self._load()  # or it would know for ever whoever was there once

    def _begin_anew(self, base: pa.Table) -> None:
        self._outdated = max(self._outdated, len(self.names))
        self.base, self.since, self.names = base, [], []
        self.base_name, self._base_is_new = _new_name(), True

    def _load(self) -> None:
        self._replayer = LastingReplayer()
        self._replayer.load(self._replayer.in_order(pa.concat_tables([self.base, *self.since])))


_KEPT: Final[dict[str, PartState]] = {}
"""What this worker has loaded, by its lineage."""


def stored(store: Store, schema: pa.Schema, parts: int) -> PartState:
    """The part as it is stored; whoever takes it keeps it again when all is well."""
    head = store.head()
    if head is None:
        return PartState(schema, parts)
    if head.parts != parts:
        raise InvalidSettings(
            f"the checkpoint of this stream is of {head.parts} parts, not {parts}: "
            f"go on with parts = {head.parts}, or begin with another checkpoint"
        )
    kept = _KEPT.pop(head.lineage, None)
    if kept is None or kept.base_name != head.base or kept.names != head.since[: len(kept.names)]:
        kept = PartState(schema, parts, head.lineage, head.base)
    kept.bring_up_to(head, store)
    return kept


def keep(part: PartState) -> None:
    while len(_KEPT) >= MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]
    _KEPT[part.lineage] = part
