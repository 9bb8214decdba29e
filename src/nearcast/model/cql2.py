"""Filters in OGC CQL2, as text and as JSON.

``parse`` reads a predicate over attributes; ``parse_addressing`` also takes out the one temporal predicate that
may speak of the receiver's context, on the reserved property ``time``::

    under(transport, '/vehicle') AND overlaps(time, TIMESTAMP('2026-11-15T10:15:00Z'), TIMESTAMP('2026-11-15T11:15:00Z'))
    severity >= 3 AND T_DURING(time, INTERVAL('2026-11-15T10:15:00Z', '..'))
    meets(time, '2026-11-15T10:15:00Z', '2026-11-15T11:15:00Z', '5m')

Added to CQL2: ``under``, ``tagged``, ``S_DWITHIN`` in metres, ``distance_decreases`` and what plug-in types bring.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import cql2

from nearcast.errors import InvalidPredicate, InvalidTime
from nearcast.model.cql2_bounds import check_text, check_tree
from nearcast.model.cql2_compiler import compile_predicate
from nearcast.model.cql2_operands import interval, is_property, mirrored, operation
from nearcast.model.predicate import And, Predicate
from nearcast.model.temporal import CONTEXTCAST_RELATIONS, CQL2_RELATIONS, TemporalPredicate
from nearcast.model.time import Instant, duration, instant, moment

T = TypeVar("T")
TIME: Final = "time"
"""The reserved property: the validity of the receiver's context."""

# What was read is remembered, but for polygons, which are long and mostly written once.  A parsed filter takes twenty times the room of its text:
# many short ones and a few long ones, so that nobody fills the memory by making filters up.
_LONGEST_CACHED: Final = 2048
_SHORT: Final = 256
_CACHED: Final = 8192
_CACHED_LONG: Final = 256
_WHERE: Final = re.compile(r"--> (\d+):(\d+)")
_EXPECTED: Final = re.compile(r"= expected (.*)")


def parse(text_or_json: str | Mapping[str, Any]) -> Predicate:
    """The predicate of a CQL2 text, a JSON text or a JSON tree, or ``InvalidPredicate``."""
    if isinstance(text_or_json, str) and len(text_or_json) <= _LONGEST_CACHED:
        return _parsed(text_or_json)
    return compile_predicate(_tree(text_or_json))


def parse_addressing(
    text_or_json: str | Mapping[str, Any],
    now: Instant | None = None,
) -> tuple[Predicate | None, TemporalPredicate | None]:
    """Constraints on the receiver's context, and when they must hold.

    The temporal predicate is one term of the outermost AND.  With ``now``, its bounds may be relative, such as
    ``'-2h'``.
    """
    if isinstance(text_or_json, str) and len(text_or_json) <= _LONGEST_CACHED:
        predicate, node = _addressing(text_or_json)
    else:
        predicate, node = _split(_tree(text_or_json))
    return predicate, None if node is None else _temporal(node, now)


def _remembered(read: Callable[[str], T]) -> Callable[[str], T]:
    short, long = lru_cache(maxsize=_CACHED)(read), lru_cache(maxsize=_CACHED_LONG)(read)
    return lambda text: (short if len(text) <= _SHORT else long)(text)


@_remembered
def _parsed(text: str) -> Predicate:
    return compile_predicate(_tree(text))


@_remembered
def _addressing(text: str) -> tuple[Predicate | None, Any]:
    # Without the bounds of the temporal predicate: those depend on now.
    return _split(_tree(text))


def _tree(source: str | Mapping[str, Any]) -> Any:
    """The JSON tree, within bounds."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        source = _loaded(source)
    if isinstance(source, Mapping):
        check_tree(source)
        return source
    if not isinstance(source, str):
        raise InvalidPredicate(f"a filter is CQL2 text or a JSON object, not {type(source).__name__}")
    if not source.strip():
        raise InvalidPredicate("the filter is empty; leave it out, or write TRUE")
    check_text(source)
    try:
        return cql2.parse_text(source).to_json()
    except Exception as error:  # noqa: BLE001 - besides ParseError the parser raises bare Exception (POINT EMPTY)
        raise InvalidPredicate(_explained(source, str(error))) from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidPredicate("the filter nests too deeply to be read; write it flatter") from None
    except ValueError as error:
        raise InvalidPredicate(f"the filter begins like JSON but is none: {error}") from None


def _explained(text: str, error: str) -> str:
    """The parser's message on one line, with the place and what stands there."""
    where, expected = _WHERE.search(error), _EXPECTED.search(error)
    if where is None:
        return f"the filter cannot be read: {' '.join(error.split())}"
    line, column = int(where[1]), int(where[2])
    rest = text.split("\n")[line - 1][column - 1 :].strip()
    near = f"near {rest[:20]!r}" if rest else "where it ends"
    return (
        f"the filter cannot be read at line {line}, column {column}, {near}{_wanted(expected[1] if expected else '')}"
    )


def _wanted(rules: str) -> str:
    """What the parser's grammar rules mean to a reader."""
    if "Identifier" in rules or rules == "Expr":
        return ": expected an attribute, a value or a condition"
    if "And" in rules:
        return ": expected an operator, AND, OR or the end"
    return f": expected {rules}" if rules else ""


def _split(tree: Any) -> tuple[Predicate | None, Any]:
    """The constraints, and the node of the temporal predicate."""
    terms: list[Predicate] = []
    temporal: Any = None
    for node in _conjuncts(tree):
        if not _is_temporal(node):
            _refuse_time(node)
            terms.append(compile_predicate(node))
        elif temporal is not None:
            raise InvalidPredicate(
                "the filter holds two temporal predicates on time; send two events, or choose one interval"
            )
        else:
            temporal = node
    if not terms:
        return None, temporal
    return terms[0] if len(terms) == 1 else And(tuple(terms)), temporal


def _conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping) and str(node.get("op")).lower() == "and":
        for term in operation(node, "a condition")[1]:
            yield from _conjuncts(term)
    else:
        yield node


def _is_temporal(node: Any) -> bool:
    """Whether the node is a temporal predicate on ``time``."""
    if not isinstance(node, Mapping) or not isinstance(node.get("op"), str):
        return False
    op, args = operation(node, "a condition")
    return op in CONTEXTCAST_RELATIONS or (op in CQL2_RELATIONS and any(is_property(arg, TIME) for arg in args))


def _refuse_time(tree: Any) -> None:
    stack = [tree]
    while stack:
        node = stack.pop()
        if is_property(node, TIME) or _is_temporal(node):
            raise InvalidPredicate(
                "time is the validity of the receiver's context: use one temporal predicate such as overlaps(time, a, b) "
                "or T_DURING(time, INTERVAL(a, b)), joined to the rest by AND, outside of OR and NOT",
            )
        stack.extend(node.values() if isinstance(node, Mapping) else node if isinstance(node, (list, tuple)) else ())


def _temporal(node: Any, now: Instant | None) -> TemporalPredicate:
    op, args = operation(node, "a temporal predicate")
    usage = f"{op}(time, a, b)" if op in CONTEXTCAST_RELATIONS else f"{op.upper()}(time, INTERVAL(a, b))"
    if op in CQL2_RELATIONS:
        if len(args) != 2 or all(is_property(arg) for arg in args):
            raise InvalidPredicate(f"{op.upper()} on time needs constants: {usage}")
        left, right = args
        if not is_property(left):
            op, right = mirrored(op), left
        return TemporalPredicate(op, *_bounds(op, [right], now))
    if not args or not is_property(args[0], TIME):
        raise InvalidPredicate(f"{op} speaks of the property time: {usage}")
    bounds, tolerance = list(args[1:]), 0
    # One interval (or instant) or two bounds, then perhaps a tolerance.
    if len(bounds) == 3 or (len(bounds) == 2 and isinstance(bounds[0], Mapping) and "interval" in bounds[0]):
        tolerance = _tolerance(op, bounds.pop())
    if len(bounds) not in (1, 2):
        raise InvalidPredicate(f"{op} takes time, two bounds and perhaps a tolerance: {op}(time, a, b, '5m')")
    return TemporalPredicate(op, *_bounds(op, bounds, now), tolerance)


def _bounds(op: str, nodes: list[Any], now: Instant | None) -> tuple[Instant | None, Instant | None]:
    if len(nodes) == 1 and isinstance(nodes[0], Mapping) and "interval" in nodes[0]:
        ends = nodes[0]["interval"]
        if not isinstance(ends, (list, tuple)) or len(ends) != 2:
            raise InvalidPredicate(f"{op}: an interval has a start and an end")
        nodes = list(ends)
    moments = [_moment(op, node, now) for node in nodes]
    return moments[0], moments[-1]


def _moment(op: str, node: Any, now: Instant | None) -> Instant | None:
    if node == "..":
        return None
    if isinstance(node, str) and now is not None:
        try:
            return moment(node, now)
        except InvalidTime:
            pass  # a date, or nothing that can be read: said below
    if isinstance(node, str) and _is_relative(node):
        raise InvalidPredicate(
            f"{op}: {node!r} is relative, but what 'now' is has not been said; write an instant such as 2026-11-15T09:30:00Z"
        )
    start, _ = interval(op, node)
    return None if start is None else instant(start)


def _is_relative(text: str) -> bool:
    try:
        return text == "now" or duration(text) is not None
    except InvalidTime:
        return False


def _tolerance(op: str, node: Any) -> int:
    if not isinstance(node, str):
        raise InvalidPredicate(f"{op}: the tolerance is a duration such as '5m', not {node!r}")
    return duration(node)
