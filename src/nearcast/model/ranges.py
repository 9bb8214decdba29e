"""Calculating with numbers of which only a range is known: where the result may lie, and whether there may be none.

Rather too wide than too narrow: of quotients and powers only it is said that there may be none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from nearcast.model.predicate import Arithmetic, Literal, Operand, Property
from nearcast.model.scalar import calculate
from nearcast.model.values import Range, is_number


@dataclass(frozen=True, slots=True)
class Result:
    """Somewhere between two bounds, both included."""

    low: float
    high: float
    unknown: bool = False
    """Whether for some operands there is none: a division by zero, too large a number."""


_ANYTHING = Result(-math.inf, math.inf, unknown=True)


def result(operand: Operand, properties: Mapping[str, object]) -> Result | None:
    """Of an operand; ``None`` if there is none, whatever the values are."""
    match operand:
        case Property():
            return _of_value(properties.get(operand.name))
        case Literal():
            return _of_value(operand.value)
        case Arithmetic():
            left, right = result(operand.left, properties), result(operand.right, properties)
            return None if left is None or right is None else _calculated(operand.op, left, right)
    return None  # a text


def _of_value(value: object) -> Result | None:
    if isinstance(value, Range) and is_number(value.low):
        return Result(value.low, value.high)  # type: ignore[arg-type]  # both are numbers
    return Result(value, value) if is_number(value) else None  # type: ignore[arg-type]


def _calculated(op: str, left: Result, right: Result) -> Result | None:
    if left.low == left.high and right.low == right.high:
        exact = calculate(op, left.low, right.low)
        unknown = left.unknown or right.unknown
        return None if exact is None else Result(exact, exact, unknown)
    if op in ("/", "div", "%") and right.low == right.high == 0:
        return None
    if op not in ("+", "-", "*"):
        # The largest by the smallest: if there is a result then, there always is, unless a divisor between the two is zero.
        largest, smallest = max(abs(left.low), abs(left.high)), min(abs(right.low), abs(right.high))
        there = op != "^" and not right.low <= 0 <= right.high and calculate(op, largest, smallest) is not None
        return Result(-math.inf, math.inf, left.unknown or right.unknown) if there else _ANYTHING
    ends = [calculate(op, a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return _ANYTHING
    return Result(min(known), max(known), left.unknown or right.unknown)
