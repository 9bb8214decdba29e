"""Contexts in columns, and the addressing of events against them.

A literal is judged once for every distinct text, path or truth value, by comparing arrays for numbers, and by the
model, one by one, for everything else (points, tag sets, values that are deliberately coarse).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidContext, UnknownName
from nearcast.matching.areas import Bools, covered
from nearcast.matching.grid import Floats, Int32s
from nearcast.matching.growing import grown
from nearcast.matching.predicates import LARGEST_EXACT
from nearcast.model.area import Area
from nearcast.model.evaluation import evaluate
from nearcast.model.event import checked_attributes
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import (
    Atom,
    Comparison,
    Literal,
    Predicate,
    Property,
    Spatial,
    atom_properties,
    literal_parts,
)
from nearcast.model.values import Path

MISSING: Final = 0
NUMBER: Final = 1
CODED: Final = 2
OTHER: Final = 3

NO_CONTEXT: Final = 0
"""The row of all clients that registered no context: nothing but their position."""

_COMPARE: Final = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class _Column:
    def __init__(self, rows: int) -> None:
        self.kind = np.zeros(rows, np.uint8)
        self.number = np.zeros(rows, np.float64)
        self.code = np.zeros(rows, np.int32)
        self.codes: dict[Any, int] = {}
        self.values: list[Any] = []

    def set(self, row: int, value: object) -> None:
        if not isinstance(value, bool) and isinstance(value, (int, float)) and abs(value) <= LARGEST_EXACT:
            self.kind[row], self.number[row] = NUMBER, value
        elif isinstance(value, (str, Path, bool)):
            # True and 1 are one key to Python, so the type is part of it.
            key = (type(value), value)
            code = self.codes.get(key)
            if code is None:
                code = self.codes[key] = len(self.values)
                self.values.append(value)
            self.kind[row], self.code[row] = CODED, code
        else:
            self.kind[row] = OTHER


class ContextTable:
    """The present contexts of clients, which are known here by their numbers."""

    def __init__(self) -> None:
        self._rows: list[Context | None] = [{}]
        self._free: list[int] = []
        self._of_client: dict[int, dict[str, int]] = {}
        self._columns: dict[str, _Column] = {}

    def __len__(self) -> int:
        return len(self._rows) - 1 - len(self._free)

    def contexts(self, client: int) -> dict[str, Context]:
        rows = self._of_client.get(client, {})
        return {name: self._rows[row] or {} for name, row in rows.items()}

    def register(self, client: int, name: str, attributes: Mapping[str, object]) -> None:
        """Register a context or replace it."""
        if not name:
            raise InvalidContext("a context needs a name")
        checked = checked_attributes(attributes, frozenset())
        rows = self._of_client.setdefault(client, {})
        row = rows.get(name)
        if row is None:
            row = rows[name] = self._free.pop() if self._free else len(self._rows)
            if row == len(self._rows):
                self._rows.append(None)
        else:
            self._clear(row)
        self._rows[row] = checked
        for attribute, value in checked.items():
            column = self._columns.setdefault(attribute, _Column(len(self._rows)))
            column.kind = grown(column.kind, len(self._rows), MISSING)
            column.number, column.code = grown(column.number, len(column.kind)), grown(column.code, len(column.kind))
            column.set(row, value)

    def deregister(self, client: int, name: str) -> None:
        row = self._of_client.get(client, {}).pop(name, None)
        if row is None:
            raise UnknownName(f"the client has registered no context {name!r}")
        self._drop(row)
        if not self._of_client[client]:
            del self._of_client[client]

    def forget(self, client: int) -> None:
        for row in self._of_client.pop(client, {}).values():
            self._drop(row)

    def addressed(self, conjuncts: tuple[Conjunct, ...], clients: Int32s, lat: Floats, lon: Floats) -> Bools:
        """For each client whether one conjunct holds within one of its contexts.  ``lat``, ``lon``: of these clients."""
        rows_of = [list(self._of_client.get(client, {}).values()) or [NO_CONTEXT] for client in clients.tolist()]
        owner = np.repeat(np.arange(len(clients)), [len(rows) for rows in rows_of])
        rows = np.array([row for rows in rows_of for row in rows], np.int64)
        met = np.zeros(len(clients), np.bool_)
        for conjunct in conjuncts:
            alive = np.flatnonzero(~met[owner])
            for literal in conjunct:
                if not len(alive):
                    break
                at = owner[alive]
                alive = alive[self._judge(literal, rows[alive], lat[at], lon[at])]
            met[owner[alive]] = True
        return met

    def _judge(self, literal: Predicate, rows: np.ndarray[Any, Any], lat: Floats, lon: Floats) -> Bools:
        """Where a literal is true."""
        atom, negated = literal_parts(literal)
        names = atom_properties(atom)
        if len(names) != 1:
            return self._one_by_one(literal, rows, lat, lon)
        name = names[0]
        column = self._columns.get(name)
        kind = np.full(len(rows), MISSING, np.uint8)
        if column is not None:
            known = rows < len(column.kind)
            kind[known] = column.kind[rows[known]]
        result = np.zeros(len(rows), np.bool_)
        missing = kind == MISSING
        if missing.any():
            if name == POSITION:
                self._positions(literal, missing, rows, lat, lon, result)
            else:
                result[missing] = evaluate(literal, {}) is True
        if column is None:
            return result
        coded = np.flatnonzero(kind == CODED)
        if len(coded):
            codes, inverse = np.unique(column.code[rows[coded]], return_inverse=True)
            verdicts = np.array([evaluate(literal, {name: column.values[code]}) is True for code in codes])
            result[coded] = verdicts[inverse]
        numbers = np.flatnonzero(kind == NUMBER)
        others = kind == OTHER
        if len(numbers):
            compared = _compared(atom, column.number[rows[numbers]])
            if compared is None:
                others[numbers] = True
            else:
                result[numbers] = ~compared if negated else compared
        rest = np.flatnonzero(others)
        if len(rest):
            result[rest] = self._one_by_one(literal, rows[rest], lat[rest], lon[rest])
        return result

    def _positions(
        self, literal: Predicate, where: Bools, rows: np.ndarray[Any, Any], lat: Floats, lon: Floats, result: Bools
    ) -> None:
        """The client's own position, where the context names none."""
        index = np.flatnonzero(where)
        if (
            isinstance(literal, Spatial)
            and literal.op in ("s_within", "s_intersects")
            and isinstance(literal.geometry, Area)
        ):
            result[index] = covered(literal.geometry, lat[index], lon[index])
        else:
            result[index] = self._one_by_one(literal, rows[index], lat[index], lon[index])

    def _one_by_one(self, literal: Predicate, rows: np.ndarray[Any, Any], lat: Floats, lon: Floats) -> Bools:
        return np.array(
            [
                evaluate(literal, with_position(self._rows[row] or {}, float(lat[i]), float(lon[i]))) is True
                for i, row in enumerate(rows.tolist())
            ],
            np.bool_,
        )

    def _clear(self, row: int) -> None:
        for attribute in self._rows[row] or {}:
            self._columns[attribute].kind[row] = MISSING

    def _drop(self, row: int) -> None:
        self._clear(row)
        self._rows[row] = None
        self._free.append(row)


def with_position(context: Context, lat: float, lon: float) -> Context:
    if np.isnan(lat) or POSITION in context:
        return context
    return {POSITION: Point(lat, lon), **context}


def _compared(atom: Atom, numbers: Floats) -> Bools | None:
    match atom:
        case Comparison(op, Property(), Literal(value)) if isinstance(value, (int, float)) and not isinstance(
            value, bool
        ):
            if abs(value) <= LARGEST_EXACT:
                compared: Bools = _COMPARE[op](numbers, value)
                return compared
    return None
