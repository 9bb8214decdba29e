"""Typed attribute values.

=============  ==============================  =================================================
``integer``     ``int`` of 64 bits              compares with floats, exactly
``float``       ``float``, finite               compares with integers, exactly
``string``      ``str``                         also matched by LIKE
``boolean``     ``bool``                        is not a number
``instant``     aware ``datetime``              kept in UTC
``point``       ``Point``                       WGS 84
``path``        ``Path``                        a place in a hierarchy, ``/vehicle/motorized/car``
``tags``        ``frozenset[str]``              a closed world
=============  ==============================  =================================================

A value of a context may be deliberately coarse (Contextcast 3.1.1, Def. 4.1): ``OneOf`` several values,
a ``Range`` of numbers or instants, a ``Subtree`` of a hierarchy, or an absolute ``Area`` instead of a point.  Then it
matches when it *possibly* matches (see ``evaluation``).

A new type is a plug-in: ``register_type(AttributeType(name, python_type, check, operators))``.  ``check``
is its domain; its operators are reachable from filters as ``operator(attribute, constant)`` and, where it
defines ``=``, ``<`` and so on, as comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from nearcast.errors import InvalidValue
from nearcast.model.area import Area
from nearcast.model.geometry import Point

Value = object
"""Anything that ``checked_value`` accepts."""

Operator = Callable[[Any, Any], bool | None]
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
INTEGER_BITS: Final = 64
LARGEST_CHOICE: Final = 1024
"""How many values a ``OneOf`` may hold."""
_INTEGER_BOUND: Final = 2 ** (INTEGER_BITS - 1)


@dataclass(frozen=True, slots=True)
class Path:
    """A place in a hierarchy, from the root down; ``Path(())`` is the root itself."""

    segments: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.segments, tuple):
            raise InvalidValue(f"a path is made of a tuple of segments, not {self.segments!r}; use Path.parse('/a/b')")
        for segment in self.segments:
            if not isinstance(segment, str) or not segment or "/" in segment or "\0" in segment:
                raise InvalidValue(f"{segment!r} is no segment of a path: segments are non-empty and without '/'")

    @classmethod
    def parse(cls, text: str) -> Path:
        """Read ``/vehicle/motorized/car``; ``/`` is the root."""
        if not isinstance(text, str) or not text.startswith("/"):
            raise InvalidValue(f"a path begins with '/', such as '/vehicle/motorized/car'; this one is {text!r}")
        if text == "/":
            return cls(())
        segments = tuple(text[1:].split("/"))
        if not all(segments):
            raise InvalidValue(
                f"the path {text!r} has an empty segment; write '/vehicle/motorized', without '//' or a last '/'"
            )
        return cls(segments)

    def is_under(self, other: Path) -> bool:
        """Whether this is ``other`` or one of its descendants."""
        return self.segments[: len(other.segments)] == other.segments

    def __str__(self) -> str:
        return "/" + "/".join(self.segments)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values of the same type; which one is not said."""

    values: frozenset[Any]
    # Part of equality: OneOf({True}) is not OneOf({1}), although Python's sets say so.
    type_name: str = field(init=False)

    def __init__(self, values: Iterable[Any]) -> None:
        given = list(values)
        if not 0 < len(given) <= LARGEST_CHOICE:
            raise InvalidValue(f"OneOf needs at least one value and takes at most {LARGEST_CHOICE}, not {len(given)}")
        if any(is_coarse(value) for value in given):
            raise InvalidValue("OneOf holds plain values, not sets, ranges, subtrees or areas")
        types = {type_of(value).name for value in given}
        if len(types) > 1:
            raise InvalidValue(f"OneOf holds values of one type, not of {', '.join(sorted(types))}")
        kept = type_of(given[0])
        object.__setattr__(self, "values", frozenset(kept.check(value) for value in given))
        object.__setattr__(self, "type_name", kept.name)


@dataclass(frozen=True, slots=True)
class Range:
    """Somewhere between two numbers or two instants, both included; every number between counts as possible."""

    low: int | float | datetime
    high: int | float | datetime

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = getattr(self, name)
            if not is_number(bound) and not isinstance(bound, datetime):
                raise InvalidValue(f"a Range lies between two numbers or two instants, not at {bound!r}")
            object.__setattr__(self, name, type_of(bound).check(bound))
        if isinstance(self.low, datetime) != isinstance(self.high, datetime):
            raise InvalidValue(f"a Range lies between two values of one type, not {self.low!r} and {self.high!r}")
        if self.low > self.high:  # type: ignore[operator]  # both are numbers or both are instants
            raise InvalidValue(f"the Range ends at {self.high!r}, before its start {self.low!r}")


@dataclass(frozen=True, slots=True)
class Subtree:
    """Some place at or below ``root``; like a ``Range``, it has room for more than any list of places could name."""

    root: Path

    def __post_init__(self) -> None:
        if not isinstance(self.root, Path):
            raise InvalidValue(f"a Subtree hangs on a Path, not on {self.root!r}; use Subtree(Path.parse('/vehicle'))")

    def meets(self, other: Path) -> bool:
        """Whether some place lies below both."""
        return self.root.is_under(other) or other.is_under(self.root)


@dataclass(frozen=True, slots=True)
class AttributeType:
    """A domain and its operators."""

    name: str
    python_type: type
    check: Callable[[Any], Any]
    """Returns the value to keep; raises ``ValueError`` (or ``InvalidValue``) outside the domain."""
    operators: Mapping[str, Operator] = field(default_factory=dict, compare=False)
    write: Callable[[Any], Any] | None = field(default=None, compare=False)
    """A value as something that JSON has, and back (``value_text``); dataclasses need neither."""
    read: Callable[[Any], Any] | None = field(default=None, compare=False)
    """What is not of the type makes it raise; whoever sent it is a stranger."""


_NEVER_COARSE: Final = frozenset({int, float, str, bool, datetime, Point, Path, frozenset, type(None)})


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_coarse(value: object) -> bool:
    # The exact type first: asking for an abstract class takes ten times as long.
    return type(value) not in _NEVER_COARSE and isinstance(value, (OneOf, Range, Subtree, Area))


def _integer(value: int) -> int:
    if not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        raise InvalidValue(f"an integer has {INTEGER_BITS} bits; use a float or a string")
    return int(value)


def _float(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidValue("a float is finite; leave the attribute out when its value is not known")
    return float(value)


def _string(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue("a string is valid Unicode, without lone surrogates") from None
    return str(value)


def _instant(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise InvalidValue("an instant has a time zone; use datetime(..., tzinfo=UTC)")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidValue("an instant lies between the years 1 and 9999 in UTC") from None


def _tags(value: frozenset[Any]) -> frozenset[str]:
    if not all(isinstance(tag, str) and tag for tag in value):
        raise InvalidValue("tags are non-empty strings")
    return frozenset(_string(tag) for tag in value)


_types: dict[str, AttributeType] = {}
_by_python_type: dict[type, AttributeType] = {}

RESERVED_OPERATORS: Final = frozenset(
    {"and", "or", "not", "in", "between", "like", "isnull", "casei", "accenti", "under", "tagged", "s_dwithin"}
    | {"distance_decreases", "before", "after", "equals", "meets", "met_by", "ends_in", "starts_in", "overlaps"}
    | {"excludes", "during", "contains", "div"},
)


def register_type(kind: AttributeType) -> None:
    """Make a type known to events, contexts and filters."""
    if kind.name in _types:
        raise InvalidValue(f"the attribute type {kind.name!r} is known already; choose another name")
    if kind.python_type in _by_python_type or issubclass(kind.python_type, (OneOf, Range, Subtree, Area)):
        raise InvalidValue(
            f"values of the Python type {kind.python_type.__name__} have an attribute type already; wrap them in a class of their own"
        )
    for operator in kind.operators:
        plain = operator.lower()
        if operator in COMPARISONS:
            continue
        if not plain.isidentifier() or plain in RESERVED_OPERATORS or plain.startswith(("s_", "t_", "a_")):
            raise InvalidValue(
                f"{operator!r} cannot be an operator of {kind.name!r}: it is no identifier or has a meaning already"
            )
    _types[kind.name] = kind
    _by_python_type[kind.python_type] = kind


def unregister_type(name: str) -> None:
    """Forget a plug-in type (for tests and for reloading)."""
    kind = attribute_type(name)
    if name in _BUILT_IN:
        raise InvalidValue(f"the attribute type {name!r} is built in")
    del _types[name]
    del _by_python_type[kind.python_type]


def attribute_type(name: str) -> AttributeType:
    try:
        return _types[name]
    except KeyError:
        raise InvalidValue(f"unknown attribute type {name!r}; known: {', '.join(_types)}") from None


def type_of(value: object) -> AttributeType:
    """The type of a plain value, or of the values that a coarse one may stand for."""
    plain = _by_python_type.get(type(value))
    if plain is not None:
        return plain
    if isinstance(value, OneOf):
        return attribute_type(value.type_name)
    if isinstance(value, Range):
        return type_of(value.low)
    if isinstance(value, Subtree):
        return attribute_type("path")
    if isinstance(value, Area):
        return attribute_type("point")
    for python_type in type(value).__mro__:  # bool comes before int
        kind = _by_python_type.get(python_type)
        if kind is not None:
            return kind
    raise InvalidValue(
        f"no attribute type has values of the Python type {type(value).__name__}; known types: {', '.join(_types)}"
    )


def custom_operators() -> frozenset[str]:
    """Names of the operators that plug-in types bring, in lower case."""
    return frozenset(name.lower() for kind in _types.values() for name in kind.operators if name not in COMPARISONS)


def same(a: Value, b: Value) -> bool:
    """Equal, and of one type: to Python 1, 1.0 and True are the same, to a filter they are not."""
    return type(a) is type(b) and a == b


def likeness(attributes: Mapping[str, Value]) -> frozenset[tuple[str, type, Value]]:
    """Equal for attributes that no filter can tell apart."""
    return frozenset((name, type(value), value) for name, value in attributes.items())


def checked_value(name: str, value: object) -> Value:
    """The value as nearcast keeps it, or ``InvalidValue`` that says what to do."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidValue(f"an attribute needs a non-empty name, not {name!r}")
    if isinstance(value, set):
        value = frozenset(value)
    if isinstance(value, Area) and value.is_relative:
        raise InvalidValue(
            f"attribute {name!r}: {value!r} is relative; a coarse position is absolute, use area.anchored(at)"
        )
    if is_coarse(value):
        return value
    try:
        return type_of(value).check(value)
    except ValueError as error:  # InvalidValue is one, and so is what a plug-in raises
        raise InvalidValue(f"attribute {name!r} cannot be {value!r}: {error}") from error


for _kind in (
    AttributeType("boolean", bool, bool),
    AttributeType("integer", int, _integer),
    AttributeType("float", float, _float),
    AttributeType("string", str, _string),
    AttributeType("instant", datetime, _instant),
    AttributeType("point", Point, lambda point: point),
    AttributeType("path", Path, lambda path: path),
    AttributeType("tags", frozenset, _tags),
):
    register_type(_kind)
_BUILT_IN: Final = frozenset(_types)
