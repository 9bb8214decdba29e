"""The predicates as the kernels read them, kept up to date piece by piece.

Each predicate has a run of terms, each block a region of dimensions, constants and rows.  A run or region that has
become too small is written anew at the end, half as large again; so one new predicate never costs a rewriting of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from nearcast.matching.columns import BLOCK_WORDS, Predicates, Words
from nearcast.matching.growing import grown

Step = tuple[int, int, float, float]
"""A term as the kernels take it: kind, column, lower and upper bound (both included)."""


class Classes(Protocol):
    """What a block knows of one dimension: its constants in order, and a row of bits for every class of values."""

    @property
    def constants(self) -> list[float]: ...
    @property
    def rows(self) -> Words: ...


class _Region(NamedTuple):
    """Where the pieces of a block lie, and how many fit."""

    dimensions: range
    constants: range
    rows: range


_NOWHERE = _Region(range(0), range(0), range(0))


class PredicateColumns:
    def __init__(self) -> None:
        self._regions: list[_Region] = []
        self._free_steps: dict[int, list[int]] = {}
        self._steps = self._dimensions = self._constants = self._rows = 0
        self.arrays = Predicates(
            first=np.full(16, -1, np.int32),
            conjunctions=np.zeros(16, np.int32),
            term_start=np.full(16, -1, np.int32),
            term_kind=np.zeros(16, np.uint8),
            term_column=np.zeros(16, np.int32),
            term_low=np.zeros(16),
            term_high=np.zeros(16),
            asked=np.full((1, 2), -1, np.int32),
            dimension_span=np.zeros((1, 2), np.int32),
            dimension=np.zeros(16, np.int32),
            constant_start=np.zeros(16, np.int32),
            constant_count=np.zeros(16, np.int32),
            row_start=np.zeros(16, np.int32),
            constants=np.zeros(16),
            rows=np.zeros((16, BLOCK_WORDS), np.uint64),
            truth=np.zeros((1, BLOCK_WORDS), np.uint64),
            stamp=np.full(1, -1, np.int32),
        )

    def write_predicate(self, number: int, first: int, conjunctions: int, steps: list[Step]) -> None:
        """``first`` is -1 for a predicate that only the model can judge; without steps its block judges it."""
        a = self.arrays
        self.arrays = a = a._replace(
            first=grown(a.first, number + 1, -1),
            conjunctions=grown(a.conjunctions, number + 1, 0),
            term_start=grown(a.term_start, number + 1, -1),
        )
        a.first[number], a.conjunctions[number] = first, conjunctions
        a.term_start[number] = self._write_steps(steps) if steps else -1

    def drop_predicate(self, number: int, steps: int) -> None:
        start = int(self.arrays.term_start[number])
        if start >= 0:
            self._free_steps.setdefault(steps, []).append(start)
        self.arrays.first[number] = self.arrays.term_start[number] = -1

    def write_block(self, number: int, block: Mapping[int, Classes]) -> None:
        """Write a block as it is now."""
        constants = sum(len(classes.constants) for classes in block.values())
        rows = sum(len(classes.rows) for classes in block.values())
        region = self._region(number, len(block), constants, rows)
        a = self.arrays
        constant, row = region.constants.start, region.rows.start
        for at, (column, classes) in enumerate(block.items(), region.dimensions.start):
            a.dimension[at], a.constant_start[at], a.row_start[at] = column, constant, row
            a.constant_count[at] = len(classes.constants)
            a.constants[constant : constant + len(classes.constants)] = classes.constants
            a.rows[row : row + len(classes.rows)] = classes.rows
            constant += len(classes.constants)
            row += len(classes.rows)
        a.dimension_span[number] = region.dimensions.start, region.dimensions.start + len(block)
        a.stamp[number] = a.asked[number] = -1

    def forget_stamps(self) -> None:
        self.arrays.stamp.fill(-1)
        self.arrays.asked.fill(-1)

    def _write_steps(self, steps: list[Step]) -> int:
        free = self._free_steps.get(len(steps))
        if free:
            start = free.pop()
        else:
            start, self._steps = self._steps, self._steps + len(steps)
            a = self.arrays
            self.arrays = a._replace(
                term_kind=grown(a.term_kind, self._steps),
                term_column=grown(a.term_column, self._steps),
                term_low=grown(a.term_low, self._steps),
                term_high=grown(a.term_high, self._steps),
            )
        a = self.arrays
        for at, (kind, column, low, high) in enumerate(steps, start):
            a.term_kind[at], a.term_column[at], a.term_low[at], a.term_high[at] = kind, column, low, high
        return start

    def _region(self, number: int, dimensions: int, constants: int, rows: int) -> _Region:
        """Where the block has room."""
        a = self.arrays
        self.arrays = a = a._replace(
            asked=grown(a.asked, number + 1, -1),
            dimension_span=grown(a.dimension_span, number + 1, 0),
            truth=grown(a.truth, number + 1),
            stamp=grown(a.stamp, number + 1, -1),
        )
        self._regions.extend([_NOWHERE] * (number + 1 - len(self._regions)))
        region = self._regions[number]
        if len(region.dimensions) < dimensions:
            at, self._dimensions = self._dimensions, self._dimensions + _roomy(dimensions)
            region = region._replace(dimensions=range(at, self._dimensions))
            self.arrays = a = a._replace(
                dimension=grown(a.dimension, self._dimensions),
                constant_start=grown(a.constant_start, self._dimensions),
                constant_count=grown(a.constant_count, self._dimensions),
                row_start=grown(a.row_start, self._dimensions),
            )
        if len(region.constants) < constants:
            at, self._constants = self._constants, self._constants + _roomy(constants)
            region = region._replace(constants=range(at, self._constants))
            self.arrays = a = a._replace(constants=grown(a.constants, self._constants))
        if len(region.rows) < rows:
            at, self._rows = self._rows, self._rows + _roomy(rows)
            region = region._replace(rows=range(at, self._rows))
            self.arrays = a = a._replace(rows=grown(a.rows, self._rows))
        self._regions[number] = region
        return region


def _roomy(size: int) -> int:
    return size + size // 2 + 8
