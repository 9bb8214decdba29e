"""Predicates as readable text, close to CQL2: what explanations show.

Where every part of a predicate can be written in CQL2, so it is; circles appear as S_DWITHIN.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from nearcast.model import time
from nearcast.model.area import Area, Box, Circle, Polygon
from nearcast.model.geometry import Point
from nearcast.model.predicate import (
    And,
    Arithmetic,
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
    Operand,
    Or,
    Predicate,
    Property,
    Spatial,
    TagTest,
    Temporal,
    Under,
)
from nearcast.model.values import OneOf, Path, Range, Subtree

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS: Final = frozenset({"and", "or", "not", "in", "between", "like", "is", "null", "true", "false", "div"})


def to_text(predicate: Predicate) -> str:
    match predicate:
        case And() | Or():
            word = " AND " if isinstance(predicate, And) else " OR "
            if not predicate.terms:
                return "TRUE" if isinstance(predicate, And) else "FALSE"
            return word.join(_grouped(term) for term in predicate.terms)
        case Not(term=IsNull(operand=operand)):
            return f"{operand_text(operand)} IS NOT NULL"
        case Not():
            return f"NOT {_grouped(predicate.term)}"
        case Constant():
            return "NULL" if predicate.value is None else str(predicate.value).upper()
        case Comparison():
            return f"{operand_text(predicate.left)} {predicate.op} {operand_text(predicate.right)}"
        case In():
            return f"{operand_text(predicate.operand)} IN ({', '.join(sorted(map(operand_text, predicate.values)))})"
        case Like():
            return f"{operand_text(predicate.operand)} LIKE {literal_text(predicate.pattern)}"
        case IsNull():
            return f"{operand_text(predicate.operand)} IS NULL"
        case Under():
            return f"under({_name(predicate.property)}, {literal_text(str(predicate.path))})"
        case Spatial():
            return _spatial_text(predicate)
        case Temporal():
            return (
                f"{predicate.op.upper()}({_name(predicate.property)}, {_interval_text(predicate.start, predicate.end)})"
            )
        case TagTest():
            return f"{predicate.op.upper()}({_name(predicate.property)}, {literal_text(predicate.tags)})"
        case DistanceDecreases():
            return f"distance_decreases({'' if predicate.property is None else _name(predicate.property)})"
        case Custom():
            return f"{predicate.op}({_name(predicate.property)}, {literal_text(predicate.constant)})"


def operand_text(operand: Operand) -> str:
    match operand:
        case Property():
            return _name(operand.name)
        case Literal():
            return literal_text(operand.value)
        case Arithmetic():
            return f"({operand_text(operand.left)} {operand.op} {operand_text(operand.right)})"
        case Function():
            return f"{operand.name.upper()}({operand_text(operand.argument)})"


def literal_text(value: object) -> str:
    """A value as a filter would write it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return number_text(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP('{time.to_text(time.instant(value))}')"
        case Point():
            return f"POINT({number_text(value.lon)} {number_text(value.lat)})"
        case Path():
            return literal_text(str(value))
        case frozenset():
            return "(" + ", ".join(sorted(map(literal_text, value))) + ")"
        case OneOf():
            return "one of " + literal_text(value.values)
        case Range():
            return f"between {literal_text(value.low)} and {literal_text(value.high)}"
        case Subtree():
            return f"somewhere below {literal_text(value.root)}"
        case Area():
            return _area_text(value)
        case _:
            return repr(value)


def number_text(number: float) -> str:
    """All digits that matter, and no more."""
    return repr(number).removesuffix(".0")


def _grouped(term: Predicate) -> str:
    composite = isinstance(term, (And, Or)) and len(term.terms) > 0
    return f"({to_text(term)})" if composite else to_text(term)


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _spatial_text(predicate: Spatial) -> str:
    geometry = predicate.geometry
    if isinstance(geometry, Circle) and predicate.op == "s_within":
        return f"S_DWITHIN({_name(predicate.property)}, {literal_text(geometry.fixed_center())}, {number_text(geometry.radius)})"
    return f"{predicate.op.upper()}({_name(predicate.property)}, {literal_text(geometry)})"


def _area_text(area: Area) -> str:
    if isinstance(area, Box):
        return f"BBOX({', '.join(map(number_text, (area.west, area.south, area.east, area.north)))})"
    if isinstance(area, Polygon):
        import shapely  # only here: see area.py

        return str(shapely.to_wkt(area.shape, rounding_precision=-1))
    return repr(area)


def _interval_text(start: datetime | None, end: datetime | None) -> str:
    if start is not None and start == end:
        return literal_text(start)
    bounds = ("'..'" if bound is None else f"'{time.to_text(time.instant(bound))}'" for bound in (start, end))
    return f"INTERVAL({', '.join(bounds)})"
