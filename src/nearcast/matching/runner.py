"""Runs the kernels: hands them their columns, and more room for results as often as they ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from nearcast.matching.columns import (
    DONE,
    NEAR_FULL,
    OPEN_FULL,
    PROGRESS,
    RESULTS,
    RESULTS_FULL,
    Events,
    Output,
    new_scratch,
)
from nearcast.matching.events import EventBatch
from nearcast.matching.filters import FilterTable
from nearcast.matching.grid import Int32s
from nearcast.matching.growing import grown
from nearcast.matching.kernels import match_reaches
from nearcast.matching.matches import Pairs
from nearcast.matching.packed import PackedArguments, match_packed
from nearcast.matching.subscribers import SubscriberTable
from nearcast.matching.vector import LANES

_FIRST: Final = np.zeros(1, np.int32)


class KernelRunner:
    """What it returns is good until the next call, except for ``taken``."""

    def __init__(self, filters: FilterTable, subscribers: SubscriberTable) -> None:
        self._filters = filters
        self._subscribers = subscribers
        self._scratch = new_scratch()
        self._packed_single = PackedArguments()
        self._packed_batch = PackedArguments()
        self._single = _new_output(results=1024, open_cases=256)
        self._batch = _new_output(results=4096, open_cases=1024)
        self.totals = np.zeros(PROGRESS, np.int64)

    def one(self, encoded: Events) -> Output:
        """Match a single event by its place."""
        self._single = self._placed(self._packed_single, encoded, _FIRST, self._single)
        return self._single

    def places(self, encoded: Events, which: Int32s) -> Output:
        """Match the events ``which`` by their places."""
        self._batch = self._placed(self._packed_batch, encoded, which, self._with_offsets(len(which)))
        return self._batch

    def _placed(self, packed: PackedArguments, encoded: Events, which: Int32s, out: Output) -> Output:
        stamp = self._filters.stamps(len(which))
        grid, filters, columns = self._subscribers.grid, self._filters.arrays, self._subscribers.columns
        predicates = self._filters.predicates.state()

        def kernel(out: Output) -> int:
            addresses = packed.update(grid, filters, predicates, columns, encoded, out, self._scratch)
            return match_packed(addresses, which, stamp)

        return self._filled(out, kernel)

    def reaches(self, batch: EventBatch, encoded: Events, which: Int32s) -> Output:
        """Match the events ``which``, all of which have a reach, by who stands in a circle around it."""
        centers = np.full((2, len(batch)), np.nan)
        metres = np.zeros(len(batch))
        for event, reach in batch.reaches.items():
            center = reach.fixed_center()
            centers[:, event] = center.lat, center.lon
            metres[event] = reach.bounding_radius()
        positions = self._subscribers.with_presence()
        clients = len(self._subscribers.ids)
        found = np.empty(clients, np.int32)
        stamp = self._filters.stamps(len(which))

        def kernel(out: Output) -> int:
            return match_reaches(
                positions,
                self._filters.arrays,
                self._filters.predicates.state(),
                self._subscribers.columns,
                clients,
                encoded,
                which,
                centers[0],
                centers[1],
                metres,
                stamp,
                out,
                found,
            )

        self._batch = self._filled(self._with_offsets(len(which)), kernel)
        return self._batch

    @staticmethod
    def taken(out: Output, events: int) -> Pairs:
        """The results of a batch, for keeps.

        Copied: writing every batch to new arrays instead costs more, since the kernel would meet them cold.
        """
        count = int(out.progress[RESULTS])
        return Pairs(out.offsets[: events + 1].copy(), out.owners[:count].copy(), out.marks[:count].copy())

    def _with_offsets(self, events: int) -> Output:
        if events < len(self._batch.offsets):
            return self._batch
        return self._batch._replace(offsets=np.zeros(events + 1, np.int64))

    def _filled(self, out: Output, kernel: Callable[[Output], int]) -> Output:
        out.progress.fill(0)
        status = kernel(out)
        while status != DONE:
            if status == NEAR_FULL:
                self._scratch = new_scratch(2 * len(self._scratch.aside))
            out = _with_room(out, status)
            status = kernel(out)
        self.totals += out.progress
        return out


def _new_output(results: int, open_cases: int) -> Output:
    return Output(
        offsets=np.zeros(2, np.int64),
        owners=np.empty(results + LANES, np.int32),
        marks=np.empty(results + LANES, np.int32),
        open_event=np.empty(open_cases, np.int32),
        open_item=np.empty(open_cases, np.int32),
        open_what=np.empty(open_cases, np.uint8),
        progress=np.zeros(PROGRESS, np.int64),
    )


def _with_room(out: Output, status: int) -> Output:
    if status == RESULTS_FULL:
        size = 2 * len(out.owners)
        return out._replace(owners=grown(out.owners, size), marks=grown(out.marks, size))
    if status == OPEN_FULL:
        size = 2 * len(out.open_item)
        return out._replace(
            open_event=grown(out.open_event, size),
            open_item=grown(out.open_item, size),
            open_what=grown(out.open_what, size),
        )
    return out
