"""An index of content predicates: equal ones are shared, and a thousand are judged at once.

A predicate in disjunctive normal form is a few conjunctions.  A conjunction whose literals all compare one attribute
with constants is a bit in a *block* of 1,024.  For every attribute (and type: see ``Family``) that a block knows, the
constants cut the values into classes, and every class has a row of bits: a bit is 0 where its conjunction is falsified
by a value of that class.  Judging an event is finding its class for each attribute and taking the rows together.  That
costs as much as judging some eight predicates term by term, so the first few that an event needs are judged that way.

Everything else a predicate may say (LIKE, arithmetic, tags, geometry ...) is left to the model, once for each distinct
predicate and event.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np

from nearcast.matching.columns import (
    BEYOND,
    BLOCK_BITS,
    BLOCK_WORDS,
    END,
    LAST,
    MISSING,
    WITHIN,
    Bytes,
    Predicates,
    Words,
)
from nearcast.matching.grid import Floats
from nearcast.matching.predicate_columns import PredicateColumns, Step
from nearcast.model.event import RESERVED_PROPERTIES
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form
from nearcast.model.predicate import Comparison, In, IsNull, Predicate, Property, literal_parts
from nearcast.model.predicate import Literal as Value
from nearcast.model.time import instant

Family = Literal["number", "string", "boolean", "instant", "presence"]
"""Values of different families never compare; each is a dimension of its own.  ``presence`` serves IS NULL."""

Dimension = tuple[str, Family]
BLOCK: Final = 1 << BLOCK_BITS
LARGEST_EXACT: Final = 2**53
"""Up to here double precision holds every integer."""
UNKNOWN_TEXT: Final = -1.0
"""Stands for every text that is no constant of any predicate."""


@dataclass(frozen=True, slots=True)
class Term:
    """What one literal asks of one dimension: the classes it accepts, in terms of its constants."""

    dimension: Dimension
    op: str
    constants: tuple[float, ...]
    negated: bool


MOST_STEPS: Final = 256
"""Of one predicate; lists (IN) multiply.  What has more is judged by its block from the first time on."""

_LAST: Final[Step] = LAST, 0, 0.0, 0.0
_NEVER: Final[Step] = WITHIN, 0, math.inf, -math.inf
_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _step(op: str, column: int, constant: float) -> Step:
    match op:
        case "<":
            return WITHIN, column, -math.inf, math.nextafter(constant, -math.inf)
        case "<=":
            return WITHIN, column, -math.inf, constant
        case ">":
            return WITHIN, column, math.nextafter(constant, math.inf), math.inf
        case ">=":
            return WITHIN, column, constant, math.inf
        case "=":
            return WITHIN, column, constant, constant
        case _:
            return BEYOND, column, constant, constant


def _size(terms: tuple[Term, ...]) -> int:
    """How many steps a conjunction makes."""
    choices = math.prod(len(term.constants) for term in terms if term.constants and not term.negated)
    return choices * (1 + sum(len(term.constants) if term.negated else 1 for term in terms))


@dataclass
class _Rows:
    """The classes of one dimension in one block: missing, below, =c0, between, =c1, ..., above."""

    constants: list[float] = field(default_factory=list)
    uses: Counter[float] = field(default_factory=Counter)
    rows: Words = field(default_factory=lambda: np.full((2, BLOCK_WORDS), ~np.uint64(0), np.uint64))

    def know(self, constant: float) -> None:
        self.uses[constant] += 1
        if self.uses[constant] == 1:
            index = bisect_left(self.constants, constant)
            self.constants.insert(index, constant)
            between = 1 + 2 * index
            self.rows = np.insert(self.rows, [between, between], self.rows[between], axis=0)

    def forget(self, constant: float) -> None:
        """One use less; after the last, whose bit is cleared, the classes beside the constant are the same."""
        self.uses[constant] -= 1
        if not self.uses[constant]:
            del self.uses[constant]
            index = bisect_left(self.constants, constant)
            del self.constants[index]
            self.rows = np.delete(self.rows, [1 + 2 * index, 2 + 2 * index], axis=0)

    def accepted(self, term: Term) -> Bytes:
        """Which classes a term accepts."""
        accepted = np.zeros(len(self.rows), np.uint8)
        if term.op == "null":
            accepted[0] = 1
            return 1 - accepted if term.negated else accepted
        for constant in term.constants:
            equal = 2 + 2 * bisect_left(self.constants, constant)
            if term.op in ("=", "<=", ">="):
                accepted[equal] = 1
            if term.op in ("<", "<=", "<>"):
                accepted[1:equal] = 1
            if term.op in (">", ">=", "<>"):
                accepted[equal + 1 :] = 1
        if term.negated:
            accepted[1:] = 1 - accepted[1:]  # what is missing stays unknown
        return accepted

    def falsify(self, bit: int, accepted: Bytes) -> None:
        word, mask = bit >> 6, np.uint64(1 << (bit & 63))
        self.rows[accepted == 0, word] &= ~mask

    def clear(self, bits: range) -> None:
        for bit in bits:
            self.rows[:, bit >> 6] |= np.uint64(1 << (bit & 63))


@dataclass
class _Block:
    dimensions: dict[int, _Rows] = field(default_factory=dict)
    used: int = 0


@dataclass
class _Entry:
    number: int
    holders: int
    first: int
    """Its first conjunction; -1 if only the model can judge it."""
    conjunctions: list[tuple[Term, ...]]
    steps: list[Step]


class PredicateIndex:
    """Distinct predicates, numbered."""

    def __init__(self) -> None:
        self._entries: dict[Predicate, _Entry] = {}
        self._by_number: list[Predicate | None] = []
        self._free_numbers: list[int] = []
        self._free_runs: dict[int, list[int]] = {}
        self._blocks: list[_Block] = []
        self._columns: dict[Dimension, int] = {}
        self.families: dict[str, dict[Family, int]] = {}
        """Of an attribute: the families in which predicates compare it, with their columns."""
        self._texts: dict[str, float] = {}
        self._flat = PredicateColumns()
        self._changed: set[int] = set()
        """Blocks that the kernels have not seen yet."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def columns(self) -> int:
        """How many columns the values of events have."""
        return len(self._columns)

    @property
    def dimensions(self) -> Mapping[Dimension, int]:
        """Every (attribute, family) that some predicate compares, with its column in the values of events."""
        return self._columns

    def text(self, value: str) -> float:
        """The number of a text among the constants."""
        return self._texts.get(value, UNKNOWN_TEXT)

    def predicate(self, number: int) -> Predicate:
        predicate = self._by_number[number]
        assert predicate is not None
        return predicate

    def add(self, predicate: Predicate) -> int:
        entry = self._entries.get(predicate)
        if entry is not None:
            entry.holders += 1
            return entry.number
        conjunctions = _compiled(disjunctive_normal_form(predicate), self._texts)
        number = self._free_numbers.pop() if self._free_numbers else len(self._by_number)
        if number == len(self._by_number):
            self._by_number.append(None)
        first = -1 if conjunctions is None else self._place(conjunctions)
        entry = _Entry(number, 1, first, conjunctions or [], self._steps(conjunctions or []))
        self._flat.write_predicate(number, first, len(entry.conjunctions), entry.steps)
        self._by_number[number] = predicate
        self._entries[predicate] = entry
        return number

    def remove(self, number: int) -> bool:
        """One holder less; whether it was the last."""
        predicate = self.predicate(number)
        entry = self._entries[predicate]
        entry.holders -= 1
        if entry.holders:
            return False
        count = len(entry.conjunctions)
        if entry.first >= 0:
            block = self._blocks[entry.first >> BLOCK_BITS]
            bits = range(entry.first & (BLOCK - 1), (entry.first & (BLOCK - 1)) + count)
            for rows in block.dimensions.values():
                rows.clear(bits)
            for terms in entry.conjunctions:
                for term in terms:
                    for constant in term.constants:
                        block.dimensions[self._column(term.dimension)].forget(constant)
            self._free_runs.setdefault(count, []).append(entry.first)
            self._changed.add(entry.first >> BLOCK_BITS)
        self._flat.drop_predicate(number, len(entry.steps))
        del self._entries[predicate]
        self._by_number[number] = None
        self._free_numbers.append(number)
        return True

    def state(self) -> Predicates:
        """The arrays for the kernels."""
        while self._changed:
            number = self._changed.pop()
            self._flat.write_block(number, self._blocks[number].dimensions)
        return self._flat.arrays

    def _place(self, conjunctions: list[tuple[Term, ...]]) -> int:
        count = len(conjunctions)
        if self._free_runs.get(count):
            first = self._free_runs[count].pop()
        else:
            # Also one that is never true, and takes no bit, must lie inside a block.
            if not self._blocks or self._blocks[-1].used + max(1, count) > BLOCK:
                self._blocks.append(_Block())
            first = ((len(self._blocks) - 1) << BLOCK_BITS) + self._blocks[-1].used
            self._blocks[-1].used += count
        block = self._blocks[first >> BLOCK_BITS]
        for offset, terms in enumerate(conjunctions):
            for term in terms:
                column = self._column(term.dimension)
                rows = block.dimensions.setdefault(column, _Rows())
                for constant in term.constants:
                    rows.know(constant)
                rows.falsify((first & (BLOCK - 1)) + offset, rows.accepted(term))
        self._changed.add(first >> BLOCK_BITS)
        return first

    def _steps(self, conjunctions: list[tuple[Term, ...]]) -> list[Step]:
        """The conjunctions one after the other, if they are not too many; IN is a choice, NOT IN is several terms."""
        if not conjunctions:
            return [_NEVER, _LAST]
        if sum(map(_size, conjunctions)) > MOST_STEPS:
            return []
        flat: list[Step] = []
        for terms in conjunctions:
            choices: list[list[Step]] = [[]]
            for term in terms:
                steps = self._steps_of(term)
                if len(steps) == 1 or term.negated:
                    choices = [choice + steps for choice in choices]
                else:
                    choices = [[*choice, step] for choice in choices for step in steps]
            for choice in choices:
                flat += [*choice, (END, 0, 0.0, 0.0)]
        return [*flat[:-1], _LAST]

    def _steps_of(self, term: Term) -> list[Step]:
        column = self._column(term.dimension)
        if term.op == "null":
            return [(WITHIN if term.negated else MISSING, column, -math.inf, math.inf)]
        op = _NEGATED[term.op] if term.negated else term.op
        return [_step(op, column, constant) for constant in term.constants]

    def forget_stamps(self) -> None:
        self._flat.forget_stamps()

    def _column(self, dimension: Dimension) -> int:
        column = self._columns.setdefault(dimension, len(self._columns))
        name, family = dimension
        self.families.setdefault(name, {})[family] = column
        return column


def family_of(value: object) -> tuple[Family, float | str] | None:
    """The family of a value and its place there; ``None`` for what only the model can compare."""
    match value:
        case bool():
            return "boolean", float(value)
        case float():
            return "number", value
        case int():
            return ("number", float(value)) if -LARGEST_EXACT <= value <= LARGEST_EXACT else None
        case str():
            return "string", value
        case datetime():
            at = instant(value)
            return ("instant", float(at)) if -LARGEST_EXACT <= at <= LARGEST_EXACT else None
        case _:
            return None


def columns_of(predicates: PredicateIndex, attributes: Mapping[str, object], row: Floats) -> bool:
    """Write the attributes of one event to their columns; whether all could be (else the model must judge it)."""
    complete = True
    values: list[Any] = [math.nan] * len(row)
    families_of = predicates.families
    for name, value in attributes.items():
        families = families_of.get(name)
        if families is None:
            continue
        if type(value) is float and "number" in families:  # the shortest way for what is most common
            values[families["number"]] = value
        else:
            placed = family_of(value)
            if placed is None:
                complete = False
            elif placed[0] in families:
                family, number = placed
                values[families[family]] = predicates.text(number) if isinstance(number, str) else number
        if "presence" in families:
            values[families["presence"]] = 1.0
    row[:] = values
    return complete


def _compiled(conjuncts: tuple[Conjunct, ...], texts: dict[str, float]) -> list[tuple[Term, ...]] | None:
    """All conjunctions as terms, or ``None`` if one of them has a literal that is not for the index."""
    if len(conjuncts) > BLOCK:
        return None
    compiled = []
    for conjunct in conjuncts:
        terms = [_term(literal, texts) for literal in conjunct]
        if any(term is None for term in terms):
            return None
        compiled.append(tuple(term for term in terms if term is not None))
    return compiled


def _term(literal: Predicate, texts: dict[str, float]) -> Term | None:
    atom, negated = literal_parts(literal)
    match atom:
        case IsNull(Property(name)) if name not in RESERVED_PROPERTIES:
            return Term((name, "presence"), "null", (), negated)
        case Comparison(op, Property(name), Value(value)) if name not in RESERVED_PROPERTIES:
            return _comparison(name, op, [value], negated, texts)
        case In(Property(name), values) if name not in RESERVED_PROPERTIES:
            return _comparison(name, "=", [value.value for value in values], negated, texts)
        case _:
            return None


def _comparison(name: str, op: str, values: list[object], negated: bool, texts: dict[str, float]) -> Term | None:
    placed = [family_of(value) for value in values]
    families = {pair[0] for pair in placed if pair is not None}
    if None in placed or len(families) != 1:
        return None
    family = families.pop()
    # A text may also be compared with a path, and custom types bring orders of their own: only equality is indexed,
    # and events whose attribute is neither text nor number are left to the model as a whole.
    # Truth values have no order.
    if family in ("string", "boolean") and op not in ("=", "<>"):
        return None
    numbers = [
        texts.setdefault(place, float(len(texts))) if isinstance(place, str) else place
        for place in (pair[1] for pair in placed if pair is not None)
    ]
    return Term((name, family), op, tuple(sorted(numbers)), negated)
