"""Any offsets of a table, from wherever they are at present.

A stretch of the journal goes to the lake, and some time later leaves the journal; that may happen between planning and
reading.  So where it is is asked only by who reads it: below the lake's own mark in the lake, above it in the journal, and if
it has just left the journal, then the mark is about to move.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from nearcast.errors import InvalidSettings, OffsetTrimmed
from nearcast.pipeline.source.lake import Lake, TimeBounds
from nearcast.pipeline.source.link import BrokerLink
from nearcast.pipeline.source.options import SourceOptions
from nearcast.pipeline.source.tail import tail_batch

PATIENCE: Final = 30.0
"""Seconds until what was deleted from the journal must be in the lake."""

_PAUSE: Final = 0.05
BYTES_PER_PARTITION: Final = 16_000_000
"""Of compressed Parquet."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Offsets that can be read."""

    first: int
    last: int
    """No longer part of it."""


class JournalTable:
    """One table, in the lake, in the broker's journal, or across both."""

    def __init__(self, options: SourceOptions) -> None:
        self._options: Final = options
        self._lake: Final = None if options.lake is None else Lake(options.lake)
        self._link: Final = None if options.broker is None else BrokerLink(options.broker)

    def extent(self) -> Extent:
        exported = 0 if self._lake is None else self._lake.exported()
        if self._link is None:
            return Extent(0, exported)
        found = self._link.extent()
        # What is in a lake at all is read from there, however far back.
        return Extent(found["oldest"] if self._lake is None else 0, max(found["stored"], exported))

    def cut(self, first: int, last: int, bounds: TimeBounds) -> list[tuple[int, int]]:
        """These offsets in pieces of work that are about the same; what certainly holds no row is left out."""
        exported = 0 if self._lake is None else self._lake.exported()
        seam = min(max(first, exported), last)
        pieces = [] if self._lake is None else _cut_files(self._lake, self._options.table, first, seam, bounds)
        size = self._options.offsets_per_partition
        return pieces + [(start, min(start + size, last)) for start in range(seam, last, size)]

    def batches(self, schema: Any, first: int, last: int, bounds: TimeBounds) -> Iterator[Any]:
        """Each row of these offsets once, as batches of that schema."""
        position, table = first, self._options.table
        deadline: float | None = None
        while position < last:
            exported = 0 if self._lake is None else min(self._lake.exported(), last)
            if self._lake is not None and exported > position:
                yield from self._lake.batches(table, schema, position, exported, bounds)
                position, deadline = exported, None
                continue
            if self._link is None:
                raise InvalidSettings(
                    f"the lake {self._options.lake} holds nothing from offset {position} on, and {last} was asked for; "
                    "is it another lake than before? Set the option broker to read what is not exported yet"
                )
            try:
                batch, position = tail_batch(self._link, table, schema, position, last, bounds)
            except OffsetTrimmed as error:
                deadline = deadline or time.monotonic() + PATIENCE
                self._wait_for_lake(error, deadline)
                continue
            deadline = None
            if batch is not None:
                yield batch

    def _wait_for_lake(self, error: OffsetTrimmed, deadline: float) -> None:
        if self._lake is None:
            raise OffsetTrimmed(f"{error}; set the option lake to the broker's lake, which has it", error.oldest)
        if time.monotonic() > deadline:
            raise OffsetTrimmed(f"{error}; nor is it in the lake {self._options.lake}", error.oldest)
        time.sleep(_PAUSE)


def _cut_files(lake: Lake, table: str, first: int, last: int, bounds: TimeBounds) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    begin, end, size = first, first, 0
    for file in lake.files(table, first, last, bounds):
        # Files of one export have the same offsets, and different days: they stay together.
        if size and size + file.size > BYTES_PER_PARTITION and file.first >= end:
            pieces.append((begin, end))
            begin, size = file.first, 0
        begin = begin if size else max(first, file.first)
        end, size = max(end, min(file.last + 1, last)), size + file.size
    return [*pieces, (begin, end)] if size else pieces
