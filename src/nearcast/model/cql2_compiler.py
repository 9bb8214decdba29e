"""From CQL2's JSON tree to predicates.

The tree comes from the parser of the ``cql2`` package or from the caller; whatever is wrong in it is found
here, so JSON needs no other validation and keeps its exact integers.  A property is brought to the left of
what it is compared with, and what is constant is calculated once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nearcast.errors import InvalidPredicate
from nearcast.model.area import Area, Box, Circle, area_from_geojson
from nearcast.model.cql2_operands import (
    check_count,
    constant_of,
    interval,
    is_property,
    mirrored,
    operand_of,
    operation,
    property_of,
    shown,
    sides,
    unknown,
)
from nearcast.model.geometry import Point
from nearcast.model.predicate import (
    SPATIAL_OPERATORS,
    TAG_OPERATORS,
    And,
    Comparison,
    Constant,
    Custom,
    DistanceDecreases,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Spatial,
    TagTest,
    Temporal,
    Under,
)
from nearcast.model.scalar import compare
from nearcast.model.temporal import CONTEXTCAST_RELATIONS, CQL2_RELATIONS
from nearcast.model.values import COMPARISONS, Path, custom_operators

LONGEST_PATTERN: Final = 1_024
"""Characters of a pattern: they are compiled and remembered."""


def compile_predicate(node: Any) -> Predicate:
    """The predicate of a JSON tree, or ``InvalidPredicate``."""
    if isinstance(node, bool):
        return Constant(node)
    if isinstance(node, Mapping) and "property" in node:
        return Comparison("=", property_of(node), Literal(True))
    op, args = operation(node, "a condition such as severity >= 3")
    compiler = _COMPILERS.get(op)
    if compiler is not None:
        return compiler(op, args)
    if op in custom_operators():
        return _custom(op, args)
    if op in CONTEXTCAST_RELATIONS:
        raise InvalidPredicate(
            f"{op}(time, ...) speaks of the receiver's context: it belongs into the addressing of an event"
        )
    raise InvalidPredicate(unknown(op))


def _logical(op: str, args: Sequence[Any]) -> Predicate:
    if not args:
        raise InvalidPredicate(f"{op.upper()} needs at least one condition")
    terms = tuple(compile_predicate(arg) for arg in args)
    if len(terms) == 1:
        return terms[0]
    return And(terms) if op == "and" else Or(terms)


def _negation(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 1)
    return Not(compile_predicate(args[0]))


def _comparison(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 2)
    return compared(op, operand_of(args[0]), operand_of(args[1]))


def compared(op: str, left: Operand, right: Operand) -> Predicate:
    """A comparison with the property on the left, or its result if there is none."""
    if not isinstance(left, Literal):
        return Comparison(op, left, right)
    if not isinstance(right, Literal):
        return Comparison(mirrored(op), right, left)
    return Constant(compare(op, left.value, right.value))


def _between(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 3)
    value, low, high = map(operand_of, args)
    return And((compared(">=", value, low), compared("<=", value, high)))


def _membership(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 2)
    if not isinstance(args[1], (list, tuple)):
        raise InvalidPredicate(f"IN needs a list of values, not {shown(args[1])}")
    operand, listed = operand_of(args[0]), [operand_of(node) for node in args[1]]
    values = frozenset(value for value in listed if isinstance(value, Literal))
    if isinstance(operand, Literal) or len(values) < len(set(listed)):
        return Or(tuple(compared("=", operand, value) for value in listed))
    return In(operand, values) if values else Constant(False)


def _like(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 2)
    operand, pattern = operand_of(args[0]), operand_of(args[1])
    if isinstance(operand, Literal) or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise InvalidPredicate("LIKE needs an attribute on the left and a text on the right, such as name LIKE 'A%'")
    if len(pattern.value) > LONGEST_PATTERN:
        raise InvalidPredicate(
            f"the pattern of a LIKE has at most {LONGEST_PATTERN} characters, not {len(pattern.value)}"
        )
    return Like(operand, pattern.value)


def _is_null(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 1)
    if args[0] is None:
        return Constant(True)
    operand = operand_of(args[0])
    return Constant(False) if isinstance(operand, Literal) else IsNull(operand)


def _spatial(op: str, args: Sequence[Any]) -> Predicate:
    op, prop, geometry = sides(op, args, "a geometry")
    return Spatial(op, prop, _geometry(op, geometry))


def _no_extent(op: str, _args: Sequence[Any]) -> Predicate:
    raise InvalidPredicate(
        f"{op.upper()} never holds for a position, which is a point; use one of {', '.join(map(str.upper, SPATIAL_OPERATORS))}"
    )


def _within_distance(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 3)
    op, prop, geometry = sides(op, args[:2], "a point")
    center, metres = _geometry(op, geometry), operand_of(args[2])
    if not isinstance(center, Point) or not isinstance(metres, Literal):
        raise InvalidPredicate(
            "S_DWITHIN needs an attribute, a point and metres, such as S_DWITHIN(position, POINT(8.65 49.87), 500)"
        )
    return Spatial("s_within", prop, Circle(metres.value, center))


def _geometry(op: str, node: Any) -> Point | Area:
    if isinstance(node, Mapping) and "bbox" in node:
        corners = node["bbox"]
        if not isinstance(corners, (list, tuple)) or len(corners) not in (4, 6):
            raise InvalidPredicate(f"{op.upper()}: BBOX needs west, south, east and north")
        # With six numbers the third and the last are heights, which positions here do not have.
        return Box(*corners) if len(corners) == 4 else Box(corners[0], corners[1], corners[3], corners[4])
    kind = node.get("type") if isinstance(node, Mapping) else None
    if kind in ("Polygon", "MultiPolygon"):
        return area_from_geojson(node)
    if kind == "Point":
        position = node.get("coordinates")
        if not isinstance(position, (list, tuple)) or len(position) < 2:
            raise InvalidPredicate(f"{op.upper()}: a Point needs longitude and latitude, not {shown(position)}")
        return Point(lat=position[1], lon=position[0])
    what = kind if isinstance(kind, str) else shown(node)
    raise InvalidPredicate(f"{op.upper()} needs POINT, POLYGON, MULTIPOLYGON or BBOX, not {what}")


def _temporal(op: str, args: Sequence[Any]) -> Predicate:
    op, prop, when = sides(op, args, "an instant or interval")
    return Temporal(op, prop, *interval(op, when))


def _tag_test(op: str, args: Sequence[Any]) -> Predicate:
    op, prop, tags = sides(op, args, "a list of tags")
    return TagTest(op, prop, _tags(op, [tags] if isinstance(tags, str) else tags))


def _tagged(op: str, args: Sequence[Any]) -> Predicate:
    if not args:
        raise InvalidPredicate("tagged needs at least one tag, such as tagged('music')")
    return TagTest("a_contains", "tags", _tags(op, args))


def _tags(op: str, tags: Any) -> frozenset[str]:
    if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) and tag for tag in tags):
        raise InvalidPredicate(
            f"{op.upper()} needs tags, which are non-empty texts, such as ('music', 'free'), not {shown(tags)}"
        )
    return frozenset(tags)


def _under(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 2)
    if not is_property(args[0]) or not isinstance(args[1], str):
        raise InvalidPredicate("under needs an attribute and a path, such as under(transport, '/vehicle/motorized')")
    return Under(property_of(args[0]).name, Path.parse(args[1]))


def _distance_decreases(_op: str, args: Sequence[Any]) -> Predicate:
    if len(args) > 1 or not all(is_property(arg) for arg in args):
        raise InvalidPredicate("distance_decreases takes nothing, or the attribute that holds a position")
    return DistanceDecreases(property_of(args[0]).name if args else None)


def _custom(op: str, args: Sequence[Any]) -> Predicate:
    check_count(op, args, 2)
    if not is_property(args[0]):
        raise InvalidPredicate(f"{op} needs an attribute and a constant, such as {op}(attribute, 'x')")
    node = args[1]
    if isinstance(node, Mapping) and ("type" in node or "bbox" in node):
        return Custom(op, property_of(args[0]).name, _geometry(op, node))
    if isinstance(node, (list, tuple)):
        return Custom(op, property_of(args[0]).name, tuple(constant_of(item) for item in node))
    constant = operand_of(node)
    if not isinstance(constant, Literal):
        raise InvalidPredicate(f"{op} needs an attribute and a constant, such as {op}(attribute, 'x')")
    return Custom(op, property_of(args[0]).name, constant.value)


_REFUSED: Final = ("s_crosses", "s_overlaps")
_COMPILERS: Final[dict[str, Callable[[str, Sequence[Any]], Predicate]]] = {
    "and": _logical,
    "or": _logical,
    "not": _negation,
    "between": _between,
    "in": _membership,
    "like": _like,
    "isnull": _is_null,
    "under": _under,
    "tagged": _tagged,
    "distance_decreases": _distance_decreases,
    "s_dwithin": _within_distance,
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(SPATIAL_OPERATORS, _spatial),
    **dict.fromkeys(_REFUSED, _no_extent),
    **dict.fromkeys(TAG_OPERATORS, _tag_test),
    **dict.fromkeys(CQL2_RELATIONS, _temporal),
}
