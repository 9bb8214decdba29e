"""The aggregates of a link in columns, so that a new context is compared with all of them at once.

Intervals (numbers, instants, places) are compared as arrays.  All other values are few compared with the rows that have
them: each is compared once.  The result is that of ``values.similarity``, which the tests compare it with.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.matching.growing import grown
from nearcast.model.values import Value
from nearcast.overlay.aggregation.kernels import add_similarity, choose
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.kinds import AttributeKind
from nearcast.overlay.values.registry import kind_of
from nearcast.overlay.values.signatures import Signatures
from nearcast.overlay.values.similarity import Reading, of_values

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_WORD: Final = 64
_NO_CODE: Final = -1


class _Axes:
    """Extents: on each axis lows and highs; NaN where the attribute is missing."""

    def __init__(self, kind: AttributeKind, axes: int) -> None:
        self._kind = kind
        self._bounds = np.full((1, 2 * axes), np.nan)

    def set(self, row: int, value: Value) -> None:
        self._bounds = grown(self._bounds, row + 1, np.nan)
        self._bounds[row] = [bound for extent in self._kind.extents(value) for bound in extent]

    def clear(self, row: int) -> None:
        self._bounds[row] = np.nan

    def has(self, rows: Rows) -> Flags:
        return ~np.isnan(self._held(rows)[:, 0])

    def add(self, value: Value, rows: Rows, widths: tuple[float, ...], reading: Reading, total: Floats) -> None:
        """To the total of each row, unless the attribute is missing there."""
        own = np.array([bound for extent in self._kind.extents(value) for bound in extent], np.float64)
        points = reading is Reading.POSITION_ONLY_FOR_POINTS
        add_similarity(self._bounds, rows, own, np.array(widths, np.float64), points, total)

    def _held(self, rows: Rows) -> Floats:
        if len(rows) and rows[-1] >= len(self._bounds):  # rows are in order
            self._bounds = grown(self._bounds, int(rows[-1]) + 1, np.nan)
        return self._bounds[rows]


class _Codes:
    """Any other values: a number for each that some row has."""

    def __init__(self, kind: AttributeKind) -> None:
        self._kind = kind
        self._code = np.full(1, _NO_CODE, np.int64)
        self._codes: dict[Value, int] = {}
        self._values: list[Value] = []
        self._used: list[int] = []
        self._free: list[int] = []

    def set(self, row: int, value: Value) -> None:
        self._code = grown(self._code, row + 1, _NO_CODE)
        code = self._codes.get(value)
        if code is None:
            if not self._free:
                self._free.append(len(self._values))
                self._values.append(None)
                self._used.append(0)
            code = self._codes[value] = self._free.pop()
            self._values[code] = value
        self._used[code] += 1
        self._code[row] = code

    def clear(self, row: int) -> None:
        code = int(self._code[row])
        self._code[row] = _NO_CODE
        self._used[code] -= 1
        if not self._used[code]:
            del self._codes[self._values[code]]
            self._free.append(code)

    def has(self, rows: Rows) -> Flags:
        there: Flags = self._held(rows) != _NO_CODE
        return there

    def add(self, value: Value, rows: Rows, widths: tuple[float, ...], reading: Reading, total: Floats) -> None:
        """To the total of each row, unless the attribute is missing there."""
        asked, where = np.unique(self._held(rows), return_inverse=True)
        alike = [
            0.0 if code == _NO_CODE else of_values(value, self._values[code], self._kind, widths, reading)
            for code in asked.tolist()
        ]
        total += np.array(alike)[where]

    def _held(self, rows: Rows) -> Rows:
        if len(rows) and rows[-1] >= len(self._code):  # rows are in order
            self._code = grown(self._code, int(rows[-1]) + 1, _NO_CODE)
        return self._code[rows]


class Candidates:
    """Rows of coarse contexts."""

    def __init__(self, domains: Domains, reading: Reading, *, prefilter: bool) -> None:
        self._domains = domains
        self._reading = reading
        self._prefilter = prefilter
        self._signatures = Signatures()
        self._bits = np.zeros((0, 1), np.uint64)
        self._taken = np.zeros(0, np.bool_)
        self._columns: dict[tuple[str, str], _Axes | _Codes] = {}
        self._families: dict[str, list[str]] = {}
        self._rows: dict[int, Coarse] = {}
        self.compared = 0
        """With how many rows values were compared, since the beginning."""

    def set(self, row: int, context: Coarse) -> None:
        if row in self._rows:
            self.clear(row)
        self._rows[row] = context
        self._write_bits(row, self._signatures.of(context.attributes))
        self._taken[row] = True
        for name, value in context.attributes.items():
            kind = kind_of(value)
            column = self._columns.get((kind.family, name))
            if column is None:
                axes = 0 if kind.similarity is not None else len(kind.extents(value))
                column = self._columns[kind.family, name] = _Axes(kind, axes) if axes else _Codes(kind)
                self._families.setdefault(name, []).append(kind.family)
            column.set(row, value)

    def clear(self, row: int) -> None:
        for name, value in self._rows.pop(row).attributes.items():
            self._columns[kind_of(value).family, name].clear(row)
        self._bits[row] = 0
        self._taken[row] = False

    def similar(self, context: Coarse, threshold: float) -> list[int]:
        """The rows that are more similar than the threshold, the most similar first; of equals, the lower row."""
        rows, union = self._candidates(context, threshold)
        self.compared += len(rows)
        if not len(rows):
            return []
        total = np.zeros(len(rows))
        mergeable = np.ones(len(rows), np.bool_)
        for name in sorted(context.attributes):
            value = context.attributes[name]
            kind = kind_of(value)
            for family in self._families.get(name, ()):  # mostly one
                column = self._columns[family, name]
                if family == kind.family:
                    widths = self._domains.widths(name, kind) or (0.0,) * len(kind.extents(value))
                    column.add(value, rows, widths, self._reading, total)
                else:
                    mergeable &= ~column.has(rows)
        with np.errstate(invalid="ignore"):
            result = np.where(union == 0, 1.0, total / np.maximum(union, 1))
        enough = np.flatnonzero(mergeable & (result > threshold))
        best: list[int] = rows[enough[np.lexsort((rows[enough], -result[enough]))]].tolist()
        return best

    def _candidates(self, context: Coarse, threshold: float) -> tuple[Rows, npt.NDArray[np.int64]]:
        """The rows worth comparing, and how many attributes each has together with the context."""
        words = self._words(self._signatures.of(context.attributes))
        rows, union = np.empty(len(self._taken), np.int64), np.empty(len(self._taken), np.int64)
        names = len(context.attributes)
        found = choose(self._bits, self._taken, words, names, threshold, self._prefilter, rows, union)
        return rows[:found], union[:found]

    def _write_bits(self, row: int, signature: int) -> None:
        words = self._words(signature)
        missing = len(words) - self._bits.shape[1]
        if missing > 0:
            self._bits = np.pad(self._bits, ((0, 0), (0, missing)))
        self._bits, self._taken = grown(self._bits, row + 1, 0), grown(self._taken, row + 1, False)
        self._bits[row, : len(words)] = words

    @staticmethod
    def _words(signature: int) -> npt.NDArray[np.uint64]:
        count = max(1, -(-signature.bit_length() // _WORD))
        words: npt.NDArray[Any] = np.frombuffer(signature.to_bytes(count * _WORD // 8, "little"), "<u8")
        return words
