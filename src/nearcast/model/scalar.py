"""Operands and how plain values compare; ``None`` is unknown throughout."""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from nearcast.errors import InvalidValue
from nearcast.model.geometry import Point
from nearcast.model.predicate import Arithmetic, Function, Literal, Operand, Property
from nearcast.model.values import Path, is_coarse, is_number, type_of

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

# What a plug-in's operator raises when the constant of a stranger's filter is not what it expects.
_MISFITS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def scalar(operand: Operand, properties: Mapping[str, object]) -> object:
    """The value of an operand, or ``None``."""
    match operand:
        case Property():
            return properties.get(operand.name)
        case Literal():
            return operand.value
        case Function():
            return folded(operand.name, scalar(operand.argument, properties))
        case Arithmetic():
            return calculate(operand.op, scalar(operand.left, properties), scalar(operand.right, properties))


def compare(op: str, left: object, right: object) -> bool | None:
    """``left op right``; ``None`` where the types do not meet."""
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return _ORDER[op](left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _ORDER[op](left, right)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return _ORDER[op](left, right)
    left, right = as_path(left, right), as_path(right, left)
    for kind in (bool, Path, Point, frozenset):
        if isinstance(left, kind) and isinstance(right, kind):
            return _ORDER[op](left, right) if op in ("=", "<>") else None
    return _compare_custom(op, left, right)


def as_path(value: object, other: object) -> object:
    """A text that is compared with a path is one, or nothing."""
    if isinstance(value, str) and isinstance(other, Path):
        try:
            return Path.parse(value)
        except InvalidValue:
            return None
    return value


def _compare_custom(op: str, left: object, right: object) -> bool | None:
    """Comparisons of plug-in types, where they define them."""
    return None if is_coarse(left) else applied(op, left, right)


def applied(op: str, value: object, constant: object) -> bool | None:
    """What the operator of the value's type says; ``None`` if the type has none of that name."""
    if value is None:
        return None
    try:
        operators = type_of(value).operators
        apply = next((function for name, function in operators.items() if name.lower() == op), None)
        return None if apply is None else apply(value, constant)
    except _MISFITS:
        return None


def folded(function: str, value: object) -> str | None:
    """The text without regard to case (``casei``) or accents (``accenti``)."""
    if not isinstance(value, str):
        return None
    if function == "casei":
        return value.casefold()
    parts = unicodedata.normalize("NFD", value)
    return unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c)))


def calculate(op: str, left: Any, right: Any) -> int | float | None:
    """Arithmetic; what has no finite result (division by zero, overflow) is unknown."""
    if not is_number(left) or not is_number(right):
        return None
    try:
        result = _calculated(op, left, right)
        # An integer beyond all floats overflows in isfinite: it is as unknown as the infinite float.
        return result if is_number(result) and math.isfinite(result) else None
    except (ZeroDivisionError, OverflowError):
        return None


def _calculated(op: str, left: Any, right: Any) -> Any:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "div":  # towards zero, as SQL does
            quotient = abs(left) // abs(right)
            return quotient if (left < 0) == (right < 0) else -quotient
        case "%":  # with the sign of the dividend, as SQL does
            remainder = abs(left) % abs(right)
            return -remainder if left < 0 else remainder
        case _:
            # In floats: 9^9^9 as integers would take the machine with it.
            return float(left) ** float(right)


def like(value: object, pattern: str) -> bool | None:
    if not isinstance(value, str):
        return None
    return _like_pattern(pattern).fullmatch(value) is not None


@lru_cache(maxsize=4096)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    pieces = [""]  # what stands between the '%'
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "\\":
            pieces[-1] += re.escape(next(characters, "\\"))
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *middle, last = pieces
    # Every piece has a fixed length, so its first occurrence is as good as any later one: atomic groups never try
    # another, and a pattern of many '%' takes no longer than a search for each piece.
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)
