"""What predicates mean: three-valued logic over typed and coarse values.

- A property that is missing, or of a type that the operator does not know, makes its atom *unknown* (``None``);
  AND, OR and NOT follow Kleene.  Unknown is false at the top.  ``IS NULL`` is two-valued.
- ``tags`` is a closed world: the caller always supplies it, so a tag that is absent is false and its NOT true.
- Numbers compare exactly whether integer or float; a boolean is no number; a path compares with a text as a path.

**Coarse values match when they possibly match.**  Negations are pushed down to the atoms first; then each
literal asks whether *some* value inside the coarse one makes it true.  So for ``speed`` somewhere in 30 to 60
both ``speed > 50`` and ``NOT speed > 50`` hold.  Each literal is asked for itself: two literals may be met
by two different values (BETWEEN on a ``OneOf``), so a coarse value matches rather too often than too seldom.
Every number inside a ``Range`` counts, also between integers; below the root of a ``Subtree`` lie more places than
any filter names.  Arithmetic on a range is unknown, and so is an atom
over several ``OneOf`` with more than ``MOST_CHOICES`` combinations.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import product
from typing import Any, Final

from nearcast.model import ranges, spatial
from nearcast.model.area import Area
from nearcast.model.geometry import Point
from nearcast.model.predicate import (
    And,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Custom,
    DistanceDecreases,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Property,
    Spatial,
    TagTest,
    Temporal,
    Under,
    atom_properties,
)
from nearcast.model.scalar import applied, as_path, compare, like, scalar
from nearcast.model.temporal import CQL2_RELATIONS
from nearcast.model.time import instant
from nearcast.model.values import OneOf, Path, Range, Subtree, is_coarse, is_number

Approaching = Callable[[str | None], bool | None]
"""Answers ``distance_decreases``: whether the producer, or the point in the named property, comes nearer."""

MOST_CHOICES: Final = 4096
_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TAG_TESTS: Final[dict[str, Callable[[frozenset[str], frozenset[str]], bool]]] = {
    "a_contains": operator.ge,
    "a_containedby": operator.le,
    "a_equals": operator.eq,
    "a_overlaps": lambda tags, others: not tags.isdisjoint(others),
}


def evaluate(
    predicate: Predicate,
    properties: Mapping[str, object],
    approaching: Approaching | None = None,
) -> bool | None:
    """True, false, or ``None`` for unknown."""
    return _evaluate(predicate, properties, approaching, negated=False)


def all_of(results: list[bool | None]) -> bool | None:
    return False if False in results else None if None in results else True


def any_of(results: list[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False


def negation(result: bool | None) -> bool | None:
    return None if result is None else not result


def _evaluate(
    predicate: Predicate,
    properties: Mapping[str, object],
    approaching: Approaching | None,
    *,
    negated: bool,
) -> bool | None:
    if isinstance(predicate, Not):
        return _evaluate(predicate.term, properties, approaching, negated=not negated)
    if isinstance(predicate, (And, Or)):
        results = [_evaluate(term, properties, approaching, negated=negated) for term in predicate.terms]
        return all_of(results) if isinstance(predicate, And) != negated else any_of(results)
    return literal(predicate, properties, approaching, negated=negated)


def literal(
    atom: Atom,
    properties: Mapping[str, object],
    approaching: Approaching | None,
    *,
    negated: bool,
) -> bool | None:
    """Whether the atom (``negated``: its negation) is possibly true."""
    coarse = {name: value for name in atom_properties(atom) if is_coarse(value := properties.get(name))}
    if coarse:
        uncertain = {name: value.values for name, value in coarse.items() if isinstance(value, OneOf)}
        if uncertain:
            return _one_of(uncertain, atom, properties, approaching, negated=negated)
        if not isinstance(atom, DistanceDecreases):
            return _coarse(atom, properties, negated=negated)
    result = _plain(atom, properties, approaching)
    return negation(result) if negated else result


def _one_of(
    uncertain: Mapping[str, frozenset[object]],
    atom: Atom,
    properties: Mapping[str, object],
    approaching: Approaching | None,
    *,
    negated: bool,
) -> bool | None:
    """Try every combination of the values that the properties may have."""
    combinations: int = math.prod(map(len, uncertain.values()))
    if len(uncertain) > 1 and combinations > MOST_CHOICES:
        return None
    return any_of(
        [
            literal(atom, {**properties, **dict(zip(uncertain, choice, strict=True))}, approaching, negated=negated)
            for choice in product(*uncertain.values())
        ],
    )


def _coarse(atom: Atom, properties: Mapping[str, object], *, negated: bool) -> bool | None:
    """The answer of an atom that meets a range, a subtree or an area."""
    match atom:
        case IsNull():
            return _null_coarse(atom, properties, negated=negated)
        case Comparison():
            return _compare_coarse(atom, properties, negated=negated)
        case In(operand=Property(name=name)):
            tests = [
                literal(Comparison("=", Property(name), value), properties, None, negated=negated)
                for value in atom.values
            ]
            if not negated:
                return any_of(tests)
            value = properties[name]
            several = isinstance(value, Subtree) or (isinstance(value, Range) and value.low < value.high)  # type: ignore[operator]
            # Between two bounds, and below a place, lie more values than any list names.
            return None if None in tests else True if several else all_of(tests)
        case Spatial():
            area = properties[atom.property]
            return spatial.possible(atom.op, area, atom.geometry, negated=negated) if isinstance(area, Area) else None
        case Under():
            below = properties[atom.property]
            if not isinstance(below, Subtree):
                return None
            return not below.root.is_under(atom.path) if negated else below.meets(atom.path)
        case Temporal():
            return _range_relation(atom, properties[atom.property], negated=negated)
        case _:
            return None


def _null_coarse(atom: IsNull, properties: Mapping[str, object], *, negated: bool) -> bool:
    """Something is there, but none of it is a text to fold; what it is matters only where somebody calculates: zero may be in a range."""
    if isinstance(atom.operand, Arithmetic):
        found = ranges.result(atom.operand, properties)
        return found is not None if negated else found is None or found.unknown
    return isinstance(atom.operand, Function) is not negated


def _compare_coarse(atom: Comparison, properties: Mapping[str, object], *, negated: bool) -> bool | None:
    op = _OPPOSITE[atom.op] if negated else atom.op
    if any(isinstance(properties.get(name), Subtree) for name in atom_properties(atom)):
        return _compare_subtree(op, atom, properties)
    if not isinstance(atom.left, Property) or not isinstance(atom.right, (Property, Literal)):
        return None
    left = properties.get(atom.left.name)
    if atom.left == atom.right:  # whatever the value is, it is on both sides
        return op in ("=", "<=", ">=") if isinstance(left, Range) or op in ("=", "<>") else None
    right = scalar(atom.right, properties)
    if isinstance(left, Point):
        left, right = right, left
    if isinstance(left, Area) and isinstance(right, Point) and op in ("=", "<>"):
        return spatial.possible("s_equals", left, right, negated=op == "<>")
    low, high = _bounds(left), _bounds(right)
    if low is None or high is None:
        return None
    (a, b), (c, d) = low, high
    if isinstance(a, datetime) != isinstance(c, datetime):
        return None
    meets: dict[str, bool] = {
        "=": a <= d and c <= b,
        "<>": not a == b == c == d,
        "<": a < d,
        "<=": a <= d,
        ">": b > c,
        ">=": b >= c,
    }
    return meets[op]


def _compare_subtree(op: str, atom: Comparison, properties: Mapping[str, object]) -> bool | None:
    if op not in ("=", "<>"):
        return None  # paths have no order
    if atom.left == atom.right and isinstance(atom.left, Property):
        return op == "="
    left, right = scalar(atom.left, properties), scalar(atom.right, properties)
    if not isinstance(left, Subtree):
        left, right = right, left
    if not isinstance(left, Subtree):
        return None  # folded or calculated with: a path is neither text nor number
    if isinstance(right, Subtree):
        return op == "<>" or left.meets(right.root)
    place = as_path(right, left.root)
    return (op == "<>" or place.is_under(left.root)) if isinstance(place, Path) else None


def _bounds(value: object) -> tuple[Any, Any] | None:
    if isinstance(value, Range):
        return value.low, value.high
    return (value, value) if is_number(value) or isinstance(value, datetime) else None


def _range_relation(atom: Temporal, value: object, *, negated: bool) -> bool | None:
    if not isinstance(value, Range) or not isinstance(value.low, datetime) or not isinstance(value.high, datetime):
        return None
    # In half microseconds, so that there is an instant between any two: a range is continuous.
    low, high = 2 * instant(value.low), 2 * instant(value.high)
    start, end = _interval(atom, scale=2)
    marks = [low, high, *(mark + shift for mark in (start, end) if math.isfinite(mark) for shift in (-1, 0, 1))]
    relation = CQL2_RELATIONS[atom.op]
    return any(relation(at, at, start, end) != negated for at in marks if low <= at <= high)


def _interval(atom: Temporal, scale: int = 1) -> tuple[float, float]:
    start = -math.inf if atom.start is None else scale * instant(atom.start)
    end = math.inf if atom.end is None else scale * instant(atom.end)
    return start, end


def _plain(atom: Atom, properties: Mapping[str, object], approaching: Approaching | None) -> bool | None:
    match atom:
        case Constant():
            return atom.value
        case Comparison():
            return compare(atom.op, scalar(atom.left, properties), scalar(atom.right, properties))
        case In():
            value = scalar(atom.operand, properties)
            return any_of([compare("=", value, listed.value) for listed in atom.values])
        case Like():
            return like(scalar(atom.operand, properties), atom.pattern)
        case IsNull():
            return scalar(atom.operand, properties) is None
        case Under():
            value = properties.get(atom.property)
            return value.is_under(atom.path) if isinstance(value, Path) else None
        case Spatial():
            value = properties.get(atom.property)
            return spatial.relation(atom.op, value, atom.geometry) if isinstance(value, Point) else None
        case Temporal():
            value = properties.get(atom.property)
            if not isinstance(value, datetime):
                return None
            at = instant(value)
            return CQL2_RELATIONS[atom.op](at, at, *_interval(atom))
        case TagTest():
            value = properties.get(atom.property)
            return _TAG_TESTS[atom.op](value, atom.tags) if isinstance(value, frozenset) else None
        case Custom():
            return applied(atom.op, properties.get(atom.property), atom.constant)
        case DistanceDecreases():
            return None if approaching is None else approaching(atom.property)
