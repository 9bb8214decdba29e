"""What a type of attributes brings, so that contexts with it can be aggregated.

The types themselves (domain and operators) are those of ``model.values``.  A plug-in type needs nothing here: its values
are then nominal, they are listed as ``OneOf`` and alike or not.  One that can do better registers a kind (``registry``).

**A merge is a join**: commutative, associative, idempotent, and whatever one of the two could match, the result possibly
matches.  Then an aggregate depends on its members only, not on their order, and can be made again at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidValue
from nearcast.model.values import LARGEST_CHOICE, OneOf, Value, is_coarse, type_of

Extent = tuple[float, float]
"""From the lowest to the highest, along one axis."""

DEFAULT_LARGEST_SET: Final = 8
"""The document leaves open when a set becomes an interval: ours."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How precise aggregated values stay."""

    largest_set: int = DEFAULT_LARGEST_SET
    """So many single values are listed; more become an interval, a subtree, or cannot be merged."""

    def __post_init__(self) -> None:
        if not 1 <= self.largest_set <= LARGEST_CHOICE:
            raise InvalidValue(f"a set holds from 1 to {LARGEST_CHOICE} values, not {self.largest_set}")


@dataclass(frozen=True, slots=True)
class AttributeKind:
    """Merging and similarity of the values of one or several attribute types."""

    family: str
    """Values of one family can be merged; an attribute is of one family in all contexts of an aggregate."""
    merge: Callable[[Value, Value, Limits], Value | None]
    """A value that stands for both, or ``None``: keep them apart."""
    extents: Callable[[Value], tuple[Extent, ...]] = lambda _value: ()
    """How far a value reaches on each axis; from this the width of the attribute's domain is learned."""
    similarity: Callable[[Value, Value, tuple[float, ...]], float] | None = None
    """From 0 to 1, given the widths of the domain.  ``None``: by the extents (Eq. 4.3), the mean of all axes."""
    possible: Callable[[str, Value, Value, bool], bool] | None = None
    """``possible(operator, value, constant, negated)``, for a type whose coarse values the model does not know as coarse.

    Asked for comparisons with a constant and for the type's own operators.  Without it the model is asked, which knows
    ``OneOf``, ``Range``, ``Subtree`` and areas.
    """


def choices(value: Value) -> frozenset[Value] | None:
    """The single values that it stands for, unless they are too many to name."""
    if isinstance(value, OneOf):
        return value.values
    return None if is_coarse(value) else frozenset((value,))


def listed(a: Value, b: Value, limits: Limits) -> OneOf | None:
    """The values of both by name, if they are of one type and few."""
    some, others = choices(a), choices(b)
    if some is None or others is None or type_of(a).name != type_of(b).name:
        return None
    union = some | others
    return OneOf(union) if len(union) <= limits.largest_set else None
