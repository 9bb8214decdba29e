"""Contexts in columns, and literals judged against many of them at once.

Numbers, ranges of numbers and points are compared as arrays; every other value is judged once for all the contexts that
have it, whatever its type, and areas only where their bounds meet those of what is asked for.  The model judges one
by one what is left: atoms over several attributes, and values that cannot be told apart.

A context of a routing table may stand for several (an aggregate): ``optional`` are attributes that some of these lack,
and the ``Judge`` then says what is *possible*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.matching.areas import Bools, covered
from nearcast.matching.grid import Floats
from nearcast.matching.growing import grown
from nearcast.matching.predicates import LARGEST_EXACT
from nearcast.model.area import Area, Box, Circle, Polygon
from nearcast.model.evaluation import evaluate
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
from nearcast.model.values import Range, is_number

Indexes = npt.NDArray[np.int64]
Bounds = tuple[float, float, float, float]
"""West, south, east, north."""

Judge = Callable[[Predicate, Context, frozenset[str]], bool]
"""``judge(literal, attributes, optional)``: whether the literal counts as met."""

MISSING: Final = 0
NUMBER: Final = 1
CODED: Final = 2
OTHER: Final = 3
RANGE: Final = 4
POINT: Final = 5
AREA: Final = 6

_COMPARE: Final = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_INSIDE: Final = ("s_within", "s_intersects")
_MARGIN: Final = 1e-7  # degrees, about a centimetre: more than anybody who judges adds for rounding


def surely(literal: Predicate, context: Context, _optional: frozenset[str]) -> bool:
    """As the definition of delivery has it: unknown is false at the top."""
    return evaluate(literal, context) is True


@dataclass(frozen=True, eq=False)
class Question:
    """A literal, with what need be found out about it only once, however many tables are asked."""

    literal: Predicate
    atom: Atom
    negated: bool
    names: tuple[str, ...]

    @cached_property
    def if_missing(self) -> bool:
        """Whether a context without its attributes meets it (IS NULL)."""
        return evaluate(self.literal, {}) is True

    @cached_property
    def number(self) -> tuple[str, float] | None:
        """The comparison with a number that it is, if it is one: its operator, negation included."""
        match self.atom:
            case Comparison(op, Property(), Literal(value)) if is_number(value) and abs(value) <= LARGEST_EXACT:
                return _OPPOSITE[op] if self.negated else op, value
        return None

    @property
    def inside(self) -> Point | Area | None:
        """The geometry that a position must lie in, if that is what is asked."""
        atom = self.atom
        return atom.geometry if isinstance(atom, Spatial) and atom.op in _INSIDE and not self.negated else None

    @cached_property
    def bounds_of_areas(self) -> Bounds:
        """Areas elsewhere do not meet what is asked for."""
        geometry = self.inside
        assert geometry is not None
        return bounds(geometry)

    @cached_property
    def bounds_of_points(self) -> Bounds:
        """Points elsewhere do not, either: rectangles and outlines are drawn in another plane for them."""
        geometry = self.inside
        if isinstance(geometry, (Point, Box, Polygon)):
            return self.bounds_of_areas
        assert isinstance(geometry, Area)
        return bounds(Circle(geometry.bounding_radius() * 1.01 + 1.0, geometry.fixed_center()))


Questions = tuple[tuple[Question, ...], ...]
"""Conjuncts of literals."""


def questions(conjuncts: tuple[Conjunct, ...]) -> Questions:
    """The literals of each conjunct, those first that are answered fastest."""
    return tuple(tuple(sorted(map(_question, conjunct), key=_effort)) for conjunct in conjuncts)


def _question(literal: Predicate) -> Question:
    atom, negated = literal_parts(literal)
    return Question(literal, atom, negated, atom_properties(atom))


def _effort(question: Question) -> int:
    return 0 if question.number else 1 if question.inside else 2 if len(question.names) == 1 else 3


def bounds(geometry: Point | Area) -> Bounds:
    """Of a place, in degrees, with a margin; all longitudes where it reaches the antimeridian, which has two."""
    if isinstance(geometry, Point):
        west, south, east, north = geometry.lon, geometry.lat, geometry.lon, geometry.lat
    else:
        from nearcast.model.shapes import bounds_of  # only here, as it brings shapely

        west, south, east, north = bounds_of(geometry)
    if west <= -180.0 + _MARGIN or east >= 180.0 - _MARGIN or abs(south) >= 90.0 - _MARGIN or north >= 90.0 - _MARGIN:
        west, east = -180.0, 180.0
    return west - _MARGIN, south - _MARGIN, east + _MARGIN, north + _MARGIN


class _Column:
    """One attribute of all rows."""

    def __init__(self, rows: int) -> None:
        self.kind = np.zeros(rows, np.uint8)
        self.number = np.zeros(rows, np.float64)
        """A number, the lower end of a range, a latitude."""

        self.second = np.zeros(0, np.float64)
        """The upper end of a range, a longitude; as long as there is none, nothing."""

        self.code = np.zeros(rows, np.int32)
        self.optional = np.zeros(0, np.bool_)
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        self.bounds = np.zeros((0, 4), np.float64)
        """By code: of areas."""

    def put(self, row: int, value: object, rows: int) -> None:
        self.kind = grown(self.kind, rows, MISSING)
        self.number, self.code = grown(self.number, len(self.kind)), grown(self.code, len(self.kind))
        if isinstance(value, (int, float)) and _exact(value):
            self.kind[row], self.number[row] = NUMBER, value
        elif isinstance(value, Point):
            self._pair(row, POINT, value.lat, value.lon)
        elif isinstance(value, Range) and _exact(value.low) and _exact(value.high):
            self._pair(row, RANGE, value.low, value.high)
        else:
            self._put_coded(row, value)

    def clear(self, row: int) -> None:
        if self.kind[row] in (CODED, AREA):
            code = int(self.code[row])
            self._uses[code] -= 1
            if not self._uses[code]:
                value = self.values[code]
                del self._codes[type(value), value]
                self.values[code] = None
                self._free.append(code)
        self.kind[row] = MISSING
        if row < len(self.optional):
            self.optional[row] = False

    def mark_optional(self, row: int) -> None:
        self.optional = grown(self.optional, len(self.kind), 0)
        self.optional[row] = True

    def _pair(self, row: int, kind: int, first: Any, second: Any) -> None:
        self.second = grown(self.second, len(self.kind))
        self.kind[row], self.number[row], self.second[row] = kind, first, second

    def _put_coded(self, row: int, value: object) -> None:
        # True and 1 are one key to Python, so the type is part of it.
        key = (type(value), value)
        try:
            code = self._codes.get(key)
        except TypeError:  # a value of a plug-in that cannot be a key
            self.kind[row] = OTHER
            return
        if code is None:
            code = self._free.pop() if self._free else len(self.values)
            if code == len(self.values):
                self.values.append(None)
                self._uses.append(0)
            self._codes[key], self.values[code] = code, value
            if isinstance(value, Area):
                self.bounds = grown(self.bounds, len(self.values))
                self.bounds[code] = bounds(value)
        self._uses[code] += 1
        self.kind[row], self.code[row] = AREA if isinstance(value, Area) else CODED, code


def _exact(value: object) -> bool:
    return is_number(value) and abs(value) <= LARGEST_EXACT  # type: ignore[arg-type]  # it is a number


class ContextColumns:
    """Contexts by row."""

    def __init__(self, judge: Judge = surely) -> None:
        self.contexts: list[Context | None] = []
        self._optional: dict[int, frozenset[str]] = {}
        self._columns: dict[str, _Column] = {}
        self._free: list[int] = []
        self._judge: Final = judge

    def __len__(self) -> int:
        return len(self.contexts) - len(self._free)

    def add(self, context: Context, optional: frozenset[str] = frozenset()) -> int:
        """Take a context, and say in which row."""
        row = self._free.pop() if self._free else len(self.contexts)
        if row == len(self.contexts):
            self.contexts.append(None)
        self.put(row, context, optional)
        return row

    def put(self, row: int, context: Context, optional: frozenset[str] = frozenset()) -> None:
        """Replace what is in a row."""
        self._clear(row)
        self.contexts[row] = context
        for name, value in context.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = _Column(len(self.contexts))
            column.put(row, value, len(self.contexts))
            if name in optional:
                column.mark_optional(row)
        if optional:
            self._optional[row] = optional

    def remove(self, row: int) -> None:
        self._clear(row)
        self.contexts[row] = None
        self._free.append(row)

    def met(self, conjunct: tuple[Question, ...], rows: Indexes) -> Indexes:
        """Those of the rows in which all literals are met."""
        for question in conjunct:
            if not len(rows):
                break
            rows = rows[self.judge(question, rows)]
        return rows

    def judge(self, question: Question, rows: Indexes, own: tuple[Floats, Floats] | None = None) -> Bools:
        """For each row whether the literal is met.  ``own``: positions that show where a context names none."""
        if len(question.names) != 1:
            return self._one_by_one(question.literal, rows, own)
        name = question.names[0]
        column = self._columns.get(name)
        result = np.zeros(len(rows), np.bool_)
        if column is None:
            kind = np.zeros(len(rows), np.uint8)
        elif len(column.kind) >= len(self.contexts):
            kind = column.kind[rows]
        else:
            kind = np.zeros(len(rows), np.uint8)
            known = rows < len(column.kind)
            kind[known] = column.kind[rows[known]]
        missing = np.flatnonzero(kind == MISSING)
        if len(missing):
            if name == POSITION and own is not None:
                here = own[0][missing], own[1][missing]
                result[missing] = self._positions(question, rows[missing], here)
            else:
                result[missing] = question.if_missing
        if column is None or len(missing) == len(rows):
            return result
        for some in (NUMBER, RANGE, POINT, AREA, CODED, OTHER):
            index = np.flatnonzero(kind == some)
            if len(index):
                there = None if own is None else (own[0][index], own[1][index])
                result[index] = self._of_kind(some, question, column, rows[index], there)
                if len(index) + len(missing) == len(rows):
                    break
        if question.if_missing and len(column.optional):
            optional = rows < len(column.optional)
            result[optional] |= column.optional[rows[optional]]
        return result

    def _of_kind(
        self, kind: int, question: Question, column: _Column, rows: Indexes, own: tuple[Floats, Floats] | None
    ) -> Bools:
        if kind == NUMBER and question.number:
            op, value = question.number
            compared: Bools = _COMPARE[op](column.number[rows], value)
            return compared
        if kind == RANGE and question.number:
            return _range_meets(*question.number, column.number[rows], column.second[rows])
        if kind == POINT and isinstance(question.inside, Area):
            return _inside(question, column.number[rows], column.second[rows])
        if kind in (CODED, AREA):
            return self._by_code(question, column, column.code[rows], areas=kind == AREA)
        return self._one_by_one(question.literal, rows, own)

    def _by_code(self, question: Question, column: _Column, codes: npt.NDArray[np.int32], *, areas: bool) -> Bools:
        """Once for each value that occurs."""
        occurs = np.flatnonzero(np.bincount(codes))
        if areas and question.inside is not None:
            west, south, east, north = question.bounds_of_areas
            of = column.bounds[occurs]
            near = (of[:, 0] <= east) & (of[:, 2] >= west) & (of[:, 1] <= north) & (of[:, 3] >= south)
            occurs = occurs[near]
        verdicts = np.zeros(len(column.values), np.bool_)
        name = question.names[0]
        for code in occurs.tolist():
            verdicts[code] = self._judge(question.literal, {name: column.values[code]}, frozenset())
        return verdicts[codes]

    def _positions(self, question: Question, rows: Indexes, own: tuple[Floats, Floats]) -> Bools:
        """The client's own position, where the context names none."""
        if isinstance(question.inside, Area):
            return covered(question.inside, *own)
        return self._one_by_one(question.literal, rows, own)

    def _one_by_one(self, literal: Predicate, rows: Indexes, own: tuple[Floats, Floats] | None) -> Bools:
        nothing: Context = {}
        none: frozenset[str] = frozenset()
        verdicts = []
        for i, row in enumerate(rows.tolist()):
            context = self.contexts[row] or nothing
            if own is not None:
                context = with_position(context, float(own[0][i]), float(own[1][i]))
            verdicts.append(self._judge(literal, context, self._optional.get(row, none)))
        return np.array(verdicts, np.bool_)

    def _clear(self, row: int) -> None:
        self._optional.pop(row, None)
        for attribute in self.contexts[row] or {}:
            self._columns[attribute].clear(row)


def with_position(context: Context, lat: float, lon: float) -> Context:
    if np.isnan(lat) or POSITION in context:
        return context
    return {POSITION: Point(lat, lon), **context}


def _range_meets(op: str, value: float, low: Floats, high: Floats) -> Bools:
    """Whether some number of the range stands in that relation to the value."""
    meets: Bools
    if op == "=":
        meets = (low <= value) & (value <= high)
    elif op == "<>":
        meets = (low != value) | (high != value)
    else:
        meets = _COMPARE[op](low if op in ("<", "<=") else high, value)
    return meets


def _inside(question: Question, lat: Floats, lon: Floats) -> Bools:
    """As ``covered``, for those alone that are near."""
    area = question.inside
    assert isinstance(area, Area)
    west, south, east, north = question.bounds_of_points
    result = np.zeros(len(lat), np.bool_)
    near = np.flatnonzero((lat >= south) & (lat <= north) & (lon >= west) & (lon <= east))
    result[near] = covered(area, lat[near], lon[near])
    return result
