"""The parts of CQL2's JSON tree that are no conditions: attributes, constants, arithmetic, instants and intervals.

- ``DATE('2026-11-15')`` is the instant at which that day begins in UTC, everywhere.
- A whole number is an integer, however it was written (``3.0`` is ``3``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from nearcast.errors import InvalidPredicate
from nearcast.guesses import near
from nearcast.model.predicate import (
    ARITHMETIC_OPERATORS,
    SPATIAL_OPERATORS,
    TAG_OPERATORS,
    Arithmetic,
    Function,
    Literal,
    Operand,
    Property,
)
from nearcast.model.scalar import calculate, folded
from nearcast.model.temporal import CQL2_RELATIONS
from nearcast.model.time import instant, to_datetime
from nearcast.model.values import COMPARISONS, custom_operators, is_number

CONDITIONS: Final = frozenset(
    {"and", "or", "not", "between", "in", "like", "isnull", "under", "tagged", "distance_decreases", "s_dwithin"}
    | {*COMPARISONS, *SPATIAL_OPERATORS, *TAG_OPERATORS, *CQL2_RELATIONS},
)
"""Operators that make a condition; plug-in types bring more."""

_MIRRORED_PAIRS: Final = (
    ("<", ">"),
    ("<=", ">="),
    ("s_within", "s_contains"),
    ("a_contains", "a_containedby"),
    ("t_after", "t_before"),
    ("t_contains", "t_during"),
    ("t_finishedby", "t_finishes"),
    ("t_meets", "t_metby"),
    ("t_overlappedby", "t_overlaps"),
    ("t_startedby", "t_starts"),
)
_MIRRORED: Final = dict(_MIRRORED_PAIRS) | {right: left for left, right in _MIRRORED_PAIRS}
_EXACT: Final = 2**53


def operation(node: Any, wanted: str) -> tuple[str, Sequence[Any]]:
    """Operator (in lower case) and arguments of a node."""
    if not isinstance(node, Mapping) or not isinstance(node.get("op"), str):
        raise InvalidPredicate(f"the filter holds {shown(node)} where {wanted} belongs")
    args = node.get("args")
    if not isinstance(args, (list, tuple)):
        raise InvalidPredicate(f"{node['op']} needs a list of arguments under 'args'")
    return node["op"].lower(), args


def mirrored(op: str) -> str:
    """The operator that says the same with its operands exchanged."""
    return _MIRRORED.get(op, op)


def is_property(node: Any, name: str | None = None) -> bool:
    return isinstance(node, Mapping) and "property" in node and name in (None, node["property"])


def interval(op: str, node: Any) -> tuple[datetime | None, datetime | None]:
    """Start and end of an interval, an instant or a date; ``None`` is open."""
    if isinstance(node, Mapping) and "interval" in node:
        bounds = node["interval"]
        if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
            raise InvalidPredicate(f"{op.upper()}: an interval has a start and an end, not {shown(bounds)}")
        start, end = (None if bound == ".." else _moment(op, bound) for bound in bounds)
        if start is not None and end is not None and start > end:
            raise InvalidPredicate(
                f"{op.upper()}: the interval ends at {end.isoformat()}, before its start {start.isoformat()}"
            )
        return start, end
    at = _moment(op, node)
    return at, at


def _moment(op: str, node: Any) -> datetime:
    if isinstance(node, Mapping) and isinstance(node.get("timestamp"), str):
        return to_datetime(instant(node["timestamp"]))
    if isinstance(node, Mapping) and isinstance(node.get("date"), str):
        return to_datetime(instant(f"{node['date']}T00:00:00Z"))
    if isinstance(node, str):
        return to_datetime(instant(node if len(node) > len("2026-11-15") else f"{node}T00:00:00Z"))
    raise InvalidPredicate(
        f"{op.upper()} needs TIMESTAMP('...'), DATE('...') or INTERVAL('...', '...') of constants, not {shown(node)}"
    )


def operand_of(node: Any) -> Operand:
    if is_property(node):
        return property_of(node)
    if isinstance(node, Mapping) and "op" in node:
        op, args = operation(node, "a value")
        if op in ("casei", "accenti"):
            return _folding(op, args)
        if op in ARITHMETIC_OPERATORS:
            return _arithmetic(op, args)
        if op in CONDITIONS:
            raise InvalidPredicate(f"{op.upper()} is a condition, not a value; combine conditions with AND, OR and NOT")
        raise InvalidPredicate(unknown(op))
    return Literal(constant_of(node))


def constant_of(node: Any) -> Any:
    if node is None:
        raise InvalidPredicate("nothing compares with NULL; write 'attribute IS NULL'")
    if isinstance(node, float):
        if not math.isfinite(node):
            raise InvalidPredicate(f"{node} is no number to compare with; numbers are finite")
        return int(node) if node.is_integer() and abs(node) < _EXACT else node
    if isinstance(node, (bool, int, str)):
        return node
    if isinstance(node, Mapping) and ("timestamp" in node or "date" in node):
        return _moment("a comparison", node)
    if isinstance(node, Mapping) and "interval" in node:
        raise InvalidPredicate("an interval does not compare; use T_DURING, T_AFTER, T_INTERSECTS and their like")
    if isinstance(node, Mapping) and ("type" in node or "bbox" in node):
        raise InvalidPredicate("a geometry does not compare; use S_WITHIN, S_INTERSECTS, S_EQUALS and their like")
    if isinstance(node, (list, tuple)):
        raise InvalidPredicate("a list does not compare; use IN, or A_CONTAINS, A_EQUALS and A_OVERLAPS for tags")
    raise InvalidPredicate(f"the filter holds {shown(node)} where a value belongs")


def property_of(node: Mapping[str, Any]) -> Property:
    name = node["property"]
    if not isinstance(name, str) or not name:
        raise InvalidPredicate(f"a property has a non-empty name, not {shown(name)}")
    return Property(name)


def _folding(op: str, args: Sequence[Any]) -> Operand:
    check_count(op, args, 1)
    argument = operand_of(args[0])
    if isinstance(argument, Literal):
        text = folded(op, argument.value)
        if text is None:
            raise InvalidPredicate(f"{op.upper()} takes a text, not {shown(args[0])}")
        return Literal(text)
    return Function(op, argument)


def _arithmetic(op: str, args: Sequence[Any]) -> Operand:
    check_count(op, args, 2)
    left, right = operand_of(args[0]), operand_of(args[1])
    for side in (left, right):
        if isinstance(side, Function) or (isinstance(side, Literal) and not is_number(side.value)):
            raise InvalidPredicate(f"{op} calculates with numbers, not with texts, truth values or instants")
    if isinstance(left, Literal) and isinstance(right, Literal):
        result = calculate(op, left.value, right.value)
        if result is None:
            raise InvalidPredicate(f"{shown(left.value)} {op} {shown(right.value)} is no finite number")
        return Literal(constant_of(result))
    return Arithmetic(op, left, right)


def sides(op: str, args: Sequence[Any], wanted: str) -> tuple[str, str, Any]:
    """Operator, property and constant, with the property on the left."""
    check_count(op, args, 2)
    left, right = args
    if is_property(right) and not is_property(left):
        op, left, right = mirrored(op), right, left
    if not is_property(left) or is_property(right):
        raise InvalidPredicate(f"{op.upper()} needs an attribute and {wanted}")
    return op, property_of(left).name, right


def check_count(op: str, args: Sequence[Any], wanted: int) -> None:
    if len(args) != wanted:
        raise InvalidPredicate(f"{op.upper()} takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(args)}")


def unknown(op: str) -> str:
    known = sorted({*CONDITIONS, "casei", "accenti", *custom_operators()} - {*COMPARISONS})
    close = near(op, known, 3)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    return f"unknown function or operator {op!r}{hint}; known: {', '.join(known)}"


def shown(node: Any) -> str:
    text = repr(node)
    return text if len(text) <= 60 else text[:57] + "..."
